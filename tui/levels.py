"""A long series in few bins, kept as it grows: what a frame draws of a million values costs what four thousand cost.

Each bin keeps its first step, its mean, its least and its greatest value, so that no spike is lost; bins never reach
over a restart. Where one has zoomed in, the values themselves are cut out again (`window`).
"""

from __future__ import annotations

import math
import weakref
from collections import OrderedDict
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.snapshot import SeriesView
from trainmon.monitor.stats.distinct import distinct
from trainmon.tails.record import IntArray

MOST_BINS = 4096
_KEPT_SERIES = 256  # about 50 MB when all of them are long
_MOST_FALLS = 1024  # steps that fall more often than any run restarts: left as they are


Numbers: TypeAlias = NDArray[np.generic]
Columns: TypeAlias = tuple[Numbers | None, ...]


class Thin(NamedTuple):
    """`view` in bins; (bins,) `firsts`: which value of the series each bin begins with."""

    view: SeriesView
    firsts: IntArray


class _Bins:
    """Bins of `width` values of one growing buffer; the last, unfinished ones are made anew each time."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.done = 0  # values in finished bins
        self._kept = 0  # those bins
        self._last: tuple[SeriesView, Thin] | None = None

    def thin(self, view: SeriesView) -> Thin:
        """All values of `view`, which must go on where the one before it ended."""
        n = view.steps.size
        before = None
        if self._last is not None:
            drawn, before = self._last
            if drawn is view:
                return before
            if drawn.steps.size == n:  # nothing came
                return self._keep(view, Thin(_with(view, *_columns(before.view)), before.firsts))
        new = _firsts(view, self.done, n, self.width)
        ends = np.append(new[1:], n)[: new.size]
        mean = np.add.reduceat(view.values, new) / (ends - new)
        low, high = np.minimum.reduceat(view.low, new), np.maximum.reduceat(view.high, new)
        times = None if view.times is None else view.times[new]
        columns: Columns = (view.steps[new], mean, low, high, view.attempts[new], times)
        firsts = new
        if before is not None and self._kept:
            firsts = np.concatenate((before.firsts[: self._kept], new))
            pairs = zip(_columns(before.view), columns, strict=True)
            columns = tuple(_joined(old, late, self._kept) for old, late in pairs)
        if (whole := n - n % self.width) > self.done:
            self._kept, self.done = int(np.searchsorted(firsts, whole)), whole
        return self._keep(view, Thin(_with(view, *columns), firsts))

    def _keep(self, view: SeriesView, thin: Thin) -> Thin:
        self._last = (view, thin)
        return thin


def _joined(old: Numbers | None, late: Numbers | None, kept: int) -> Numbers | None:
    return None if old is None or late is None else np.concatenate((old[:kept], late))


def _columns(view: SeriesView) -> Columns:
    """What a bin has one of."""
    return view.steps, view.values, view.low, view.high, view.attempts, view.times


def _with(view: SeriesView, *columns: Any) -> SeriesView:
    """`view` with these `_columns`."""
    steps, values, low, high, attempts, times = columns
    return replace(view, steps=steps, values=values, low=low, high=high, attempts=attempts, times=times)


def _firsts(view: SeriesView, begin: int, end: int, width: int) -> IntArray:
    """Where bins begin from value `begin` on: every `width` values, where steps fall, and at the very last value."""
    if begin >= end:
        return np.empty(0, np.int64)
    back = max(0, begin - 1)
    steps, attempts = view.steps[back:end], view.attempts[back:end]
    falls = np.flatnonzero((steps[1:] < steps[:-1]) | (attempts[1:] != attempts[:-1])) + back + 1
    if falls.size > _MOST_FALLS:
        falls = falls[:0]
    parts = (np.arange(begin, end, width), falls[falls >= begin], np.array([end - 1]))
    return distinct(np.concatenate(parts)).astype(np.int64)


class LevelCache:
    """The bins of the series that were drawn last, by the buffer that holds their values."""

    def __init__(self, most: int = _KEPT_SERIES) -> None:
        self._most = most
        self._known: OrderedDict[int, tuple[weakref.ref[NDArray[np.generic]], _Bins]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def thin(self, view: SeriesView) -> Thin:
        """`view` in some `MOST_BINS` points at most; as it is when it is no longer than that."""
        if view.steps.size <= MOST_BINS:
            return Thin(view, np.arange(view.steps.size))
        return self._bins(view).thin(view)

    def _bins(self, view: SeriesView) -> _Bins:
        n = view.steps.size
        buffer = view.values if view.values.base is None else view.values.base
        assert isinstance(buffer, np.ndarray)
        found = self._known.get(id(buffer))
        if found is None or found[0]() is not buffer or n > found[1].width * MOST_BINS or n < found[1].done:
            found = (weakref.ref(buffer), _Bins(_width(n, MOST_BINS // 2)))
            self._known[id(buffer)] = found
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        self._known.move_to_end(id(buffer))
        return found[1]


def _width(values: int, bins: int) -> int:
    """The power of two by which `values` are at most `bins` bins."""
    return 1 << max(0, math.ceil(math.log2(values / bins)))


LEVELS = LevelCache()


def thinned(view: SeriesView) -> SeriesView:
    """`view` in some `MOST_BINS` points at most."""
    return LEVELS.thin(view).view


def window(view: SeriesView, start: float, stop: float) -> SeriesView:
    """What `view` holds of the steps from `start` to `stop`, with some values on either side.

    Every value while they are few; more are thinned again, to what a screen can show.
    """
    thin, firsts = LEVELS.thin(view)
    if thin.steps.size < 2 or thin is view:
        return view
    ends = np.maximum(np.append(thin.steps[1:], thin.steps[-1:]), thin.steps)
    inside = np.flatnonzero((thin.steps <= stop) & (ends >= start))
    if not inside.size:
        return thin
    first = int(firsts[max(0, inside[0] - 1)])
    last = int(firsts[inside[-1] + 2]) if inside[-1] + 2 < firsts.size else view.steps.size
    cut = slice(first, last)
    part = replace(
        view,
        steps=view.steps[cut],
        values=view.values[cut],
        low=view.low[cut],
        high=view.high[cut],
        attempts=view.attempts[cut],
        times=None if view.times is None else view.times[cut],
    )
    n = part.steps.size
    return part if n <= MOST_BINS else _Bins(_width(n, MOST_BINS // 2)).thin(part).view
