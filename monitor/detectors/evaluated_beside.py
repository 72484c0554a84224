"""Which rows of a table are evaluations although the series itself holds NaN there: what stands beside it tells."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.rows import BoolArray
from trainmon.tails.record import IntArray

FEWEST = 2  # rows on which both were numbers
MOST = 64  # series that are looked at


class EvaluatedBeside:
    """The other series of the same kind (``eval.``) that are numbers only where `key` is one.

    A table fills the rows without an evaluation with NaN, so NaN alone says nothing. A number in the accuracy of the
    same evaluation says that there was one. What was a number in a gap of `key` that ended has a rhythm of its own.
    """

    def __init__(self, key: SignalKey) -> None:
        self._key = key
        self._kind = key.signal.partition(".")[0] + "."
        self._common: dict[SignalKey, int] = {}
        self._strangers: set[SignalKey] = set()
        self._in_gap: set[SignalKey] = set()
        self._here: dict[SignalKey, BoolArray] = {}

    def read(self, frame: Frame) -> None:
        """Makes `frame` the one that rows are of."""
        keys = sorted(key for key in frame.columns if key.signal.startswith(self._kind) and key != self._key)
        self._here = {key: np.isfinite(frame.columns[key]) for key in keys[:MOST] if key not in self._strangers}

    def leave(self) -> None:
        """No rows of it come any more: nothing of it is kept."""
        self._here = {}

    def good(self, rows: IntArray, *, ends_gap: bool) -> None:
        """The series is a number on the (n,) `rows`. `ends_gap`: what stood before the first was only a gap."""
        if ends_gap:
            self._strangers |= self._in_gap
        self._in_gap.clear()
        for key, finite in self._here.items():
            count = int(np.count_nonzero(finite[rows]))
            if count:
                self._common[key] = self._common.get(key, 0) + count

    def due(self, rows: IntArray) -> BoolArray:
        """(n,) whether each of the (n,) `rows`, on which the series is none, is an evaluation."""
        result = np.zeros(len(rows), np.bool_)
        for key, finite in self._here.items():
            here = finite[rows]
            if not here.any():
                continue
            self._in_gap.add(key)
            if self._common.get(key, 0) >= FEWEST and key not in self._strangers:
                result |= here
        return result
