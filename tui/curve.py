"""One curve to draw: values by x, cut where attempts begin, with the range of values worth showing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from trainmon.monitor.snapshot import SeriesView
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, IntArray
from trainmon.tui.axis import Mapping
from trainmon.tui.levels import thinned, window
from trainmon.tui.raster import BoolArray, Spans, column_of, column_spans, join, sparkline

_ZOOMED = 0.7  # of the whole axis: a narrower stretch is drawn from the values themselves
_MOST_SEGMENTS = 64  # drawn apart; a run that restarted more often than there is room for is drawn as one


@dataclass(frozen=True, slots=True)
class Full:
    """The series that a curve was thinned from, and how it lies on the x axis (None: by step)."""

    view: SeriesView
    along: Mapping | None

    def cut(self, curve: Curve, start: float, stop: float) -> Curve:
        """`curve` with the values from x = `start` to `stop`."""
        along = self.along
        steps = np.array([start, stop]) if along is None else along.steps_at(np.array([start, stop]))
        part = window(self.view, float(steps[0]), float(steps[1]))
        x = part.steps if along is None else along.at(part.steps)
        return replace(
            curve,
            x=x,
            values=part.values,
            low=part.low,
            high=part.high,
            attempts=part.attempts,
            steps=None if along is None else part.steps,
            full=None,
        )


@dataclass(frozen=True, slots=True)
class Curve:
    """(n,) arrays in log order; `bad_x` is where NaN, Inf or null was logged. `label` marks its end on the chart.

    `steps` where x is something else: attempts begin, and leave branches behind, by step. `full` where a long series
    was thinned to bins.
    """

    x: FloatArray
    values: FloatArray
    low: FloatArray
    high: FloatArray
    attempts: IntArray
    bad_x: FloatArray
    label: str = ""
    style: str = "line0"
    steps: FloatArray | None = None
    full: Full | None = None

    def between(self, start: float, stop: float) -> Curve:
        """As exact as it can be drawn from x = `start` to `stop`: itself, or every value there where it was thinned."""
        ends = self.range
        if self.full is None or ends is None or (stop - start) > _ZOOMED * (ends[1] - ends[0]):
            return self
        return self.full.cut(self, start, stop)

    @property
    def range(self) -> tuple[float, float] | None:
        """Smallest and largest x, those of bad values included; None when nothing was logged."""
        found = [ends for part in (self.x, self.bad_x) if (ends := _ends(part)) is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def _ends(x: FloatArray) -> tuple[float, float] | None:
    """The least and the greatest number in `x`; None when there is none."""
    if not x.size:
        return None
    low, high = float(x.min()), float(x.max())
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    known = x[np.isfinite(x)]
    return (float(known.min()), float(known.max())) if known.size else None


def curve_of(view: SeriesView, label: str = "", style: str = "line0", along: Mapping | None = None) -> Curve:
    """The curve of a series by step, or `along` another axis (the `axis.mapping` of the thinned series)."""
    thin = thinned(view)
    full = None if thin is view else Full(view, along)
    bad, parts = view.bad_steps, (thin.values, thin.low, thin.high, thin.attempts)
    if along is None:
        return Curve(thin.steps, *parts, bad, label, style, full=full)
    x = along.x if along.x.size == thin.steps.size else along.at(thin.steps)
    return Curve(x, *parts, along.at(bad), label, style, thin.steps, full)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A curve in columns: `newest` is what stands, `older` the branches that a restart left behind."""

    newest: tuple[Spans, ...]
    older: tuple[Spans, ...]
    bad: BoolArray

    def merged(self, older: bool = False) -> Spans:
        """Every segment in one."""
        parts = self.newest + (self.older if older else ())
        if len(parts) == 1:
            return parts[0]
        low = np.fmin.reduce([part.low for part in parts])
        high = np.fmax.reduce([part.high for part in parts])
        return Spans(low, high)


def segments(curve: Curve) -> list[tuple[int, int, float]]:
    """(first index, end index, step from which it was left behind) of each stretch in which the steps never fall."""
    steps = curve.x if curve.steps is None else curve.steps
    n = steps.size
    if n == 0:
        return []
    falls = (steps[1:] < steps[:-1]) | (curve.attempts[1:] != curve.attempts[:-1])
    if not falls.any():
        return [(0, n, math.inf)]
    starts = np.concatenate(([0], np.flatnonzero(falls) + 1))
    if starts.size > _MOST_SEGMENTS:
        starts = np.concatenate(([0], starts[-_MOST_SEGMENTS + 1 :]))
    ends = np.append(starts[1:], n)
    firsts = steps[starts]
    later = np.append(np.minimum.accumulate(firsts[::-1])[::-1][1:], np.inf)
    return [(int(a), int(b), float(limit)) for a, b, limit in zip(starts, ends, later, strict=True)]


def draw_curve(curve: Curve, start: float, stop: float, columns: int) -> Drawn:
    """The spans of `curve` on an x axis from `start` to `stop`."""
    bad = np.zeros(columns, dtype=np.bool_)
    if curve.bad_x.size:
        places = column_of(curve.bad_x, start, stop, columns)
        bad[places[places >= 0]] = True
    newest: list[Spans] = []
    older: list[Spans] = []
    steps = curve.x if curve.steps is None else curve.steps
    for first, end, limit in segments(curve):
        if limit == math.inf:
            kept = end
        else:
            kept = first + int(np.searchsorted(steps[first:end], limit, side="left"))
            if not rises(steps[first:end]):  # segments were lumped together: all stands
                kept = end
        for parts, begin, stop_at in ((newest, first, kept), (older, kept, end)):
            if stop_at > begin:
                parts.append(join(_spans(curve, begin, stop_at, start, stop, columns), bad))
    if not newest:
        newest = [Spans(np.full(columns, np.nan), np.full(columns, np.nan))]
    return Drawn(tuple(newest), tuple(older), bad)


def rises(x: FloatArray) -> bool:
    """Whether no value is less than the one before it, and all are numbers but one that stands alone."""
    return bool((x[1:] >= x[:-1]).all())


def _spans(curve: Curve, first: int, end: int, start: float, stop: float, columns: int) -> Spans:
    x, low, high = curve.x[first:end], curve.low[first:end], curve.high[first:end]
    if not rises(x):  # where x is no number, or goes back although the steps do not
        order = np.argsort(x, kind="stable")
        x, low, high = x[order], low[order], high[order]
    return column_spans(x, low, high, start, stop, columns)


def value_range(spans: Spans, clip_start: bool) -> tuple[float, float, float] | None:
    """(bottom, top, true top) of what was drawn; None when nothing was.

    With `clip_start` the first tenth of the columns may not set the top: a loss that falls from 11 to 2 would
    otherwise squeeze all that follows into one row. What is cut so is marked on the chart.
    """
    known = np.flatnonzero(np.isfinite(spans.high))
    if not known.size:
        return None
    bottom, true_top = float(np.fmin.reduce(spans.low)), float(np.fmax.reduce(spans.high))
    top = true_top
    if clip_start and known.size >= 5:
        rest = known[max(1, known.size // 10) :]
        settled = float(np.max(spans.high[rest]))
        if true_top - settled > 0.25 * (settled - bottom):
            top = settled + 0.1 * (settled - bottom)
    return bottom, top, true_top


def spark_text(curve: Curve, width: int, levels: str, bad_mark: str, least_span: float = 0.0) -> str:
    """The whole curve in `width` characters, the older branches left out; "" when there is nothing.

    It reaches over at least `least_span` of its middle value, so that noise looks like noise.
    """
    ends = curve.range
    if ends is None or width < 1:
        return ""
    drawn = draw_curve(curve, *ends, width)
    spans = drawn.merged()
    limits = value_range(spans, clip_start=True)
    bottom, top = limits[:2] if limits else (0.0, 1.0)
    middle = (bottom + top) / 2
    if top - bottom < (least := abs(middle) * least_span):
        bottom, top = middle - least / 2, middle + least / 2
    return sparkline(spans, drawn.bad, levels, bad_mark, bottom, top)
