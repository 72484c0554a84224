"""How far a run's loss lies above or below another's at the same x: means over common stretches, so noise cancels."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.compare.alignment import effective
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.tails.record import FloatArray
from trainmon.tui.axis import mapping
from trainmon.tui.curve import Curve
from trainmon.tui.levels import thinned

STRETCHES = 80  # enough to see a course, few enough for the noise to cancel


def placed(run: RunSnapshot, signal: str, axis: str) -> tuple[FloatArray, FloatArray] | None:
    """(x, values) of the branch that counts, x rising; None where the run does not log it, or has no such axis."""
    view = run.series.get(SignalKey(signal))
    if view is None or not view.values.size:
        return None
    thin: SeriesView = thinned(view)
    steps, values = effective(thin)
    if axis == "step":
        x = steps
    else:
        along = mapping(run, thin, axis)
        if along is None:
            return None
        x = along.at(steps)
    known = np.isfinite(x)
    x, values = x[known], values[known]
    order = np.argsort(x, kind="stable")
    return x[order], values[order]


def difference(
    first: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray], label: str, style: str
) -> Curve | None:
    """`other` less `first` over the x that both reached; None where they share none."""
    start, stop = max(first[0][0], other[0][0]), min(first[0][-1], other[0][-1])
    if not stop > start:
        return None
    edges = np.linspace(start, stop, STRETCHES + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    gap = _means(*other, edges, middle) - _means(*first, edges, middle)
    keep = np.isfinite(gap)
    if not keep.any():
        return None
    x, y = middle[keep], gap[keep]
    return Curve(x, y, y, y, np.zeros(x.size, np.int64), np.empty(0), label, style)


def _means(x: FloatArray, y: FloatArray, edges: FloatArray, middle: FloatArray) -> FloatArray:
    """(STRETCHES,) the mean of each stretch; on a straight line between the values beside it where it holds none."""
    place = np.searchsorted(edges, x, "right") - 1
    inside = (place >= 0) & (place < middle.size)
    sums = np.bincount(place[inside], y[inside], middle.size)
    counts = np.bincount(place[inside], minlength=middle.size)
    between = np.interp(middle, x, y)
    return np.where(counts > 0, sums / np.maximum(counts, 1), between)
