"""Stretches of logs are read again in threads of their own: a disk that is slow holds up nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainmon.monitor.zoomed import Again, Stretch
from trainmon.tails.clock import Clock


class ReadAgain:
    """`answer` is called with a run's name and what was read, by the thread that read it."""

    def __init__(self, clock: Clock, answer: Callable[[str, Stretch], None]) -> None:
        self._clock = clock
        self._answer = answer
        self._asked: dict[str, Again] = {}

    def ask(self, run: str, again: Again) -> None:
        """Has `again` read, unless that is what was asked for last."""
        if self._asked.get(run) != again:
            self._asked[run] = again
            threading.Thread(target=self._work, args=(run, again), name="trainmon-stretch", daemon=True).start()

    def _work(self, run: str, again: Again) -> None:
        stretch = again.read(self._clock)
        if self._asked.get(run) == again:  # else somebody looks elsewhere by now
            self._answer(run, stretch)
