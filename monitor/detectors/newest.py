"""The newest value of a series at or before a row: what was in force when another number was logged."""

from __future__ import annotations

import math

import numpy as np

from trainmon.monitor.frame import Frame, SignalKey


class Newest:
    """To be fed every frame, also those that hold no value; then asked about rows of the newest one.

    Costs one look-up a frame while nobody asks. `now`: the newest value of all, NaN before there was one.
    """

    __slots__ = ("_before", "_column", "key", "now")

    def __init__(self, key: SignalKey) -> None:
        self.key = key
        self._before = math.nan
        self.now = math.nan
        self._column: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None

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
        if self._column is None:
            return [self._before] * len(rows)
        finite = np.flatnonzero(np.isfinite(self._column))
        if not len(finite):
            return [self._before] * len(rows)
        behind = np.searchsorted(finite, rows, side="right") - 1
        values = np.where(behind >= 0, self._column[finite[np.maximum(behind, 0)]], self._before)
        found: list[float] = values.tolist()
        return found
