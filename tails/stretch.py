"""A stretch of a long log read again: where it lies by a sparse index of steps, and its records by its own format."""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from typing import Final

import numpy as np

from trainmon.tails.formats.base import LineFormat
from trainmon.tails.formats.derived_steps import DERIVED
from trainmon.tails.ingest import Detect, Ingest
from trainmon.tails.logpane import LogPane
from trainmon.tails.opening import NotRegular, close, open_regular
from trainmon.tails.record import Block, Parsed

MOST_BYTES: Final = 32 << 20  # a longer stretch is more than a screen can tell apart, and more than a moment's work
_HEAD_BYTES: Final = 64 << 10
_MOST_ENTRIES: Final = 4096
_FIRST_SPACING: Final = 64


class StepIndex:
    """Where in a file steps stand: one row in `spacing`, twice as far apart whenever there are 4,096 of them.

    >>> index = StepIndex()
    >>> steps = np.arange(1000.0)
    >>> index.add(Block("log", steps, steps, (10 * steps).astype(np.int64), steps.astype(np.int64), {}))
    >>> index.span(130.0, 200.0, 9990)
    (1280, 2560)
    >>> index.span(130.0, 2000.0, 9990), index.span(-5.0, 10.0, 9990)
    ((1280, 9990), (0, 640))
    """

    def __init__(self) -> None:
        self.spacing = _FIRST_SPACING
        self._steps = array("d")  # a list of as many would take five times the room
        self._offsets = array("q")
        self._rows = 0

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, block: Block) -> None:
        """Takes in the rows of `block`; those without a step tell no place."""
        first = -self._rows % self.spacing
        self._rows += len(block)
        for row in range(first, len(block), self.spacing):
            step = float(block.steps[row])
            if step == step:
                self._steps.append(step)
                self._offsets.append(int(block.offsets[row]))
        if len(self._steps) > _MOST_ENTRIES:
            self._steps, self._offsets = self._steps[::2], self._offsets[::2]
            self.spacing *= 2

    def span(self, first: float, last: float, size: int) -> tuple[int, int] | None:
        """(begin, end) of the bytes with the newest rows of the steps from `first` to `last`; `size`: of what was read.

        None where steps go back in between: there no stretch of the file is that of the steps.
        """
        steps = np.array(self._steps)
        if not len(steps):
            return None
        upward = np.diff(steps, append=np.inf) >= 0
        known = np.flatnonzero((steps <= first) & (np.append(steps[1:], np.inf) > first))
        at = int(known[-1]) if len(known) else 0
        behind = np.flatnonzero(steps[at + 1 :] > last)
        end = at + 1 + int(behind[0]) if len(behind) else len(steps)
        if not upward[at : max(end - 1, at)].all():
            return None
        return self._offsets[at], self._offsets[end] if end < len(steps) else size


def read_stretch(path: Path, source: str, detect: Detect, begin: int, end: int) -> Parsed | None:
    """The records of bytes `begin` to `end` of a log of lines, which begin and end with whole lines; None for others,
    and where steps are derived by counting the records before.

    Reads these bytes and the head, which tells the format. Line numbers are not those of the file. For a worker thread:
    it blocks on the file system.
    """
    try:
        fd, _ = open_regular(path)
    except (NotRegular, OSError):
        return None
    try:
        ingest = Ingest(source, detect, LogPane(source, 1))
        if begin:
            head = os.pread(fd, _HEAD_BYTES, 0)
            ingest.feed(head[: head.rfind(b"\n") + 1], is_at_end=True)
        told = ingest.feed(os.pread(fd, min(end - begin, MOST_BYTES), begin), is_at_end=True)
        told.add(ingest.finish(is_final=True))
        if not isinstance(ingest.format, LineFormat) or any(block.step_key in DERIVED for block in told.blocks):
            return None
    except OSError:
        return None
    finally:
        close(fd)
    told.notes.clear()
    return told
