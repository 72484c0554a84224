"""The values of one series on its axis."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from trainmon.monitor.axis import Axis
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.growable import Growable
from trainmon.monitor.snapshot import SeriesView
from trainmon.tails.record import FloatArray, IntArray

# Steps at which NaN, Inf or null was logged; beyond this every second of the older half is let go.
_MOST_BAD_STEPS = 1 << 16


class Column:
    """Finite values parallel to `axis`; after thinning the mean, least, greatest and last of each bin.

    `count`: logged values so far, NaN, Inf and null among them; `numbers`: those that are finite; `last`: the newest of
    all (NaN for null).
    """

    __slots__ = (
        "_bad",
        "_high",
        "_low",
        "_tails",
        "_values",
        "_view",
        "axis",
        "count",
        "key",
        "last",
        "numbers",
        "priority",
    )

    def __init__(self, key: SignalKey, priority: int, axis: Axis) -> None:
        self.key = key
        self.priority = priority
        self.axis = axis
        self.count = self.numbers = 0
        self.last = float("nan")
        self._values = Growable(np.full(len(axis), np.nan))
        self._low: Growable | None = None
        self._high: Growable | None = None
        self._tails: Growable | None = None
        self._bad = Growable(np.empty(0))
        self._view: SeriesView | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Column:
        """Shares the values that are there, and the view of them, which never changes."""
        other = copy.copy(self)
        memo[id(self)] = other
        other.axis = copy.deepcopy(self.axis, memo)
        for name in ("_values", "_low", "_high", "_tails", "_bad"):
            setattr(other, name, copy.deepcopy(getattr(self, name), memo))
        return other

    @property
    def nbytes(self) -> int:
        """Bytes of the values, the axis not counted."""
        parts = (self._values, self._low, self._high, self._tails, self._bad)
        return sum(part.nbytes for part in parts if part is not None)

    @property
    def tails(self) -> FloatArray:
        """(n,) the last value that each point stands for."""
        return (self._tails or self._values).view()

    def note(self, count: int, last: float, bad_steps: FloatArray) -> None:
        """Counts what was logged, and keeps the steps of what is no number."""
        self.count += count
        self.numbers += count - len(bad_steps)
        self.last = last
        self._view = None
        if len(bad_steps):
            self._bad.append(bad_steps)
            if len(self._bad) > _MOST_BAD_STEPS:
                old, new = np.split(self._bad.view(), [_MOST_BAD_STEPS // 2])
                self._bad = Growable(np.concatenate([old[::2], new]))

    def append(self, values: FloatArray) -> None:
        """Adds finite values; the caller extends the axis by as many points."""
        for part in (self._values, self._low, self._high, self._tails):
            if part is not None:
                part.append(values)

    def rebin(self, axis: Axis, firsts: IntArray, room: int = 0) -> None:
        """Merges points as `Axis.bins` says; `axis` is the axis that results. `room`: for how many points."""
        counts = self.axis.counts
        values = self._values.view()
        low = (self._low or self._values).view()
        high = (self._high or self._values).view()
        ends = np.append(firsts[1:], len(values)) - 1
        tails = self.tails[ends]
        middles, lows, highs = values[firsts], low[firsts], high[firsts]
        # The newest points stay as they are, and the oldest were merged before: only those between are worked on.
        merged = np.flatnonzero(ends != firsts)
        if len(merged):
            bins = slice(int(merged[0]), int(merged[-1]) + 1)
            begin, end = int(firsts[bins.start]), int(ends[bins.stop - 1]) + 1
            at, counted = firsts[bins] - begin, counts[begin:end]
            totals = np.add.reduceat(values[begin:end] * counted, at) / np.add.reduceat(counted, at)
            middles[bins] = np.where(ends[bins] == firsts[bins], middles[bins], totals)
            lows[bins] = np.minimum.reduceat(low[begin:end], at)
            highs[bins] = np.maximum.reduceat(high[begin:end], at)
        self._values, self._low, self._high = Growable(middles, room), Growable(lows, room), Growable(highs, room)
        self._tails = Growable(tails, room)
        self.axis = axis
        self._view = None

    def view(self, unit: str, raw_key: str, derived: str) -> SeriesView:
        """The series for drawing; the same object while nothing was added."""
        if self._view is None or (self._view.raw_key, self._view.derived) != (raw_key, derived):
            self._view = SeriesView(
                self.key,
                unit,
                self.axis.steps,
                self._values.view(),
                (self._low or self._values).view(),
                (self._high or self._values).view(),
                self.axis.attempts,
                self._bad.view(),
                self.count,
                self.last,
                raw_key,
                derived,
                self.axis.times,
            )
        return self._view
