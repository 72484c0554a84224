"""Standard input read to its end, as items like those of a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

from trainmon.tails.discover import STDIN
from trainmon.tails.reader import BUDGET_BYTES, IntakeItem, failure_words
from trainmon.tails.record import Parsed
from trainmon.tails.stdin_source import StdinTail, is_readable
from trainmon.tails.tail import TailUpdate

_WAIT_S = 0.2


def stdin_items(name: str, tail: StdinTail, stop: threading.Event) -> Iterator[IntakeItem]:
    """What comes through `tail` for the run `name`, until it ends or `stop` is set; waits for it."""
    is_first = True
    while not stop.is_set():
        try:
            update = tail.poll(BUDGET_BYTES)
        except Exception as error:  # the top of this worker, as for files: the source ends, and says why
            status = replace(tail.status(), problem=f"standard input: {failure_words(error)}")
            yield IntakeItem(name, str(STDIN), TailUpdate(Parsed()), status, "stdout", is_ended=True)
            return
        if is_first or tail.is_ended or not update.is_empty:
            yield IntakeItem(name, str(STDIN), update, tail.status(), "stdout", is_ended=tail.is_ended)
            is_first = False
        if tail.is_ended:
            return
        if not update.more:
            is_readable(tail.fd, _WAIT_S)
