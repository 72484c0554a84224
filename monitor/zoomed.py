"""Series with the raw points of one stretch in the place of the bins that they were thinned to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Final

import numpy as np

from trainmon.monitor.engine import RunEngine
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import SeriesView
from trainmon.tails.clock import Clock
from trainmon.tails.formats.registry import detect
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.stretch import read_stretch

# More points than this in the stretch are as many as a screen can tell apart: nothing is gained by reading again.
ENOUGH_POINTS: Final = 4000


def bins_of(view: SeriesView, first: float, last: float) -> slice | None:
    """The points of the newest attempt that stand for the steps from `first` to `last`; None where none is thinned."""
    if not len(view.steps):
        return None
    begun = int(np.searchsorted(view.attempts, view.attempts[-1]))
    steps = view.steps[begun:]
    if np.any(np.diff(steps) < 0):
        return None
    begin = begun + max(int(np.searchsorted(steps, first, "right")) - 1, 0)
    where = slice(begin, begun + int(np.searchsorted(steps, last, "right")))
    return where if (view.low[where] < view.high[where]).any() else None


def ends_of(view: SeriesView, where: slice) -> tuple[float, float]:
    """(first, behind): the step of the first point, and that at which the next point begins (infinite at the end)."""
    behind = float(view.steps[where.stop]) if where.stop < len(view.steps) else np.inf
    return float(view.steps[where.start]), behind


def wanted(series: Mapping[SignalKey, SeriesView], first: float, last: float) -> tuple[float, float] | None:
    """The steps that have to be read again so that nothing in `first` to `last` is thinned; None where nothing is."""
    ends = [
        ends_of(view, where)
        for view in series.values()
        if not view.derived
        if (where := bins_of(view, first, last)) is not None and where.stop - where.start < ENOUGH_POINTS
    ]
    return (min(one for one, _ in ends), max(other for _, other in ends)) if ends else None


def spliced(view: SeriesView, raw: SeriesView, first: float, last: float) -> SeriesView:
    """`view` with the values of `raw` for the steps `first` to `last`; as it is where they do not make its bins.

    They do when their least and greatest values are those of the bins: then they are the very values that were thinned.
    """
    where = bins_of(view, first, last)
    if where is None:
        return view
    begin, behind = ends_of(view, where)
    rows = np.flatnonzero((raw.steps >= begin) & (raw.steps < behind))
    if not len(rows):
        return view
    values = raw.values[rows]
    if values.min() != view.low[where].min() or values.max() != view.high[where].max():
        return view

    def joined(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.concatenate([old[: where.start], new, old[where.stop :]])

    times = raw.times[rows] if raw.times is not None else np.full(len(rows), np.nan)
    return replace(
        view,
        steps=joined(view.steps, raw.steps[rows]),
        values=joined(view.values, values),
        low=joined(view.low, values),
        high=joined(view.high, values),
        attempts=joined(view.attempts, np.full(len(rows), view.attempts[where.start])),
        times=None if view.times is None else joined(view.times, times),
    )


@dataclass(frozen=True, slots=True)
class Again:
    """What is to be read again for the steps `first` to `last`: path -> (begin, end) in bytes."""

    first: float
    last: float
    places: Mapping[str, tuple[int, int]]

    def read(self, clock: Clock) -> Stretch:
        """The raw series; for a worker thread, since it waits for the disk."""
        engine = RunEngine("", "", clock=clock, detectors=(), sources=tuple(self.places))
        for path, (begin, end) in self.places.items():
            parsed = read_stretch(Path(path), path, detect, begin, end)
            if parsed is not None:
                engine.feed(path, parsed)
        engine.settle()
        return Stretch(self.first, self.last, engine.series_views(with_scores=False))


@dataclass(slots=True)
class Stretch:
    """What was read again: the raw series of the steps `first` to `last`."""

    first: float
    last: float
    raw: Mapping[SignalKey, SeriesView]
    _made: dict[SignalKey, tuple[SeriesView, SeriesView]] = field(default_factory=dict)

    def put_into(self, series: Mapping[SignalKey, SeriesView]) -> dict[SignalKey, SeriesView]:
        """`series` with the raw points; a series that is as it was gives the same object as before."""
        return {key: self._with_raw(key, view) for key, view in series.items()}

    def _with_raw(self, key: SignalKey, view: SeriesView) -> SeriesView:
        if key not in self.raw:
            return view
        known = self._made.get(key)
        if known is None or known[0] is not view:
            known = self._made[key] = (view, spliced(view, self.raw[key], self.first, self.last))
        return known[1]
