"""What other threads ask of runs: it is done by the engine's thread, which alone changes them."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping

from trainmon.monitor.watched import WatchedRun


def _nothing(_watched: WatchedRun) -> None:
    """What is asked of a run that only has to be published again."""


class Asked:
    """`wake`: ends the wait of who answers."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._asked: queue.SimpleQueue[tuple[str, Callable[[WatchedRun], None]]] = queue.SimpleQueue()

    def ask(self, run: str, apply: Callable[[WatchedRun], None] = _nothing) -> None:
        """Has `apply` called with the run, which is then published again; from any thread."""
        self._asked.put((run, apply))
        self._wake()

    def answer(self, runs: Mapping[str, WatchedRun]) -> bool:
        """Does all that was asked; whether any of it was about one of `runs`."""
        is_any = False
        while not self._asked.empty():
            name, apply = self._asked.get()
            if name in runs:
                apply(runs[name])
                runs[name].dirty = is_any = True
        return is_any
