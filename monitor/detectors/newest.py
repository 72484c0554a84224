"""The newest value of a series at or before a row: what was in force when another number was logged."""

from __future__ import annotations

import math

import numpy as np

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray, IntArray


class Newest:
    """To be fed every frame, also those that hold no value; then asked about rows of the newest one.

    Costs one look-up a frame while nobody asks. `now`: the newest value of all, NaN before there was one.
    """

    __slots__ = ("_before", "_column", "key", "now")

    def __init__(self, key: SignalKey) -> None:
        self.key = key
        self._before = math.nan
        self.now = math.nan
        self._column: FloatArray | None = None

    def feed(self, frame: Frame) -> None:
        """Takes the next frame."""
        self._before = self.now
        self._column = frame.columns.get(self.key)
        if self._column is None or not len(self._column):
            return
        last = float(self._column[-1])
        if not math.isfinite(last):
            finite = np.flatnonzero(np.isfinite(self._column))
            if not len(finite):
                return
            last = float(self._column[finite[-1]])
        self.now = last

    def at(self, rows: list[int]) -> list[float]:
        """The value at each of `rows` of the newest frame; NaN before there was one."""
        found: list[float] = self.at_all(np.array(rows, np.int64)).tolist()
        return found

    def at_all(self, rows: IntArray) -> FloatArray:
        """As `at`, (n,) -> (n,), for many."""
        column = self._column
        if column is None:
            return np.full(len(rows), self._before)
        is_finite = np.isfinite(column)
        if is_finite.all():
            return column[rows]
        finite = np.flatnonzero(is_finite)
        if not len(finite):
            return np.full(len(rows), self._before)
        behind = np.searchsorted(finite, rows, side="right") - 1
        return np.where(behind >= 0, column[finite[np.maximum(behind, 0)]], self._before)
