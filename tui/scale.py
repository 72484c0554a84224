"""The y axis of a chart: what it reaches over, whether it is logarithmic, and its labels."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.stats.middle import median, quantile
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray
from trainmon.tui import numbers
from trainmon.tui.curve import Drawn, value_range
from trainmon.tui.raster import Spans

_LOG_RATIO = 50.0  # above this largest/median ratio a positive curve is drawn on a log axis
_OUTLIERS = 0.02  # of the columns, at either end, may lie outside the axis where outliers are clipped


@dataclass(frozen=True, slots=True)
class Wish:
    """What a chart asks of its y axis; see `chart.Chart`."""

    threshold: float | None = None
    log_y: bool | None = None
    clip_start: bool = False
    clip_outliers: bool = False
    floor: float | None = None
    least_span: float = 0.0


@dataclass(frozen=True, slots=True)
class Scale:
    """`cut_top`, `cut_bottom`: values beyond the axis there are held at its edge, and marked."""

    bottom: float
    top: float
    log: bool
    cut_top: bool = False
    cut_bottom: bool = False

    def place(self, values: FloatArray) -> FloatArray:
        """Values as they lie on the axis; NaN for what a log axis cannot show."""
        if not self.log:
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(values > 0, np.log10(np.maximum(values, 1e-300)), np.nan)

    def label(self, share: float, unit: str) -> str:
        """The value at `share` of the height."""
        value = self.bottom + (self.top - self.bottom) * share
        if self.log:
            return numbers.axis(10.0 ** min(value, 308.0), unit)  # the margin above the largest float has no number
        return numbers.axis(value, unit, self.top - self.bottom)

    def labels(self, rows: int, unit: str) -> dict[int, str]:
        """Row, from the top, to label."""
        labels = {0: self.label(1.0, unit)}
        if rows > 1:
            labels[rows - 1] = self.label(0.0, unit)
        if rows >= 7:
            middle = (rows - 1) // 2
            labels[middle] = self.label(1 - (middle + 0.5) / rows, unit)
        return labels


def scale_of(wish: Wish, drawn: list[Drawn]) -> Scale:
    """The axis for what was drawn; 0 to 1 when nothing was."""
    everything = _merge([one.merged(older=True) for one in drawn])
    limits = value_range(everything, wish.clip_start)
    if limits is None:
        return Scale(0.0, 1.0, log=False)
    bottom, top, true_top = limits
    true_bottom = bottom
    if wish.clip_outliers:
        bottom, top = _without_outliers(everything, bottom, top)
    if wish.floor is not None:
        bottom = min(bottom, wish.floor)
    log = wish.log_y if wish.log_y is not None else _wants_log(everything, bottom)
    if wish.threshold is not None and bottom < wish.threshold <= top + 1.5 * max(top - bottom, abs(top) * 0.05):
        top = max(top, wish.threshold)
    cut_top, cut_bottom = top < true_top, bottom > true_bottom
    if log:
        bottom, top = _logarithms(everything, bottom, top, keep_bottom=cut_bottom)
    middle = (bottom + top) / 2
    least = abs(middle) * max(wish.least_span, 1e-9) if not log else 0.0
    if top - bottom <= least or top <= bottom:
        least = max(least, abs(middle) * 0.1) or 1.0
        bottom, top = middle - least / 2, middle + least / 2
    return Scale(bottom, top, log, cut_top, cut_bottom)


def _logarithms(spans: Spans, bottom: float, top: float, *, keep_bottom: bool) -> tuple[float, float]:
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = spans.low[spans.low > 0]
    lowest = bottom if keep_bottom and bottom > 0 else float(positive.min()) if positive.size else 0.1
    low = float(np.log10(lowest))
    return low, float(np.log10(top)) if top > 0 else low + 1


def _without_outliers(spans: Spans, bottom: float, top: float) -> tuple[float, float]:
    low, high = spans.low[np.isfinite(spans.low)], spans.high[np.isfinite(spans.high)]
    if high.size < 10:
        return bottom, top
    inner = quantile(low, _OUTLIERS), quantile(high, 1 - _OUTLIERS)
    room = 0.1 * (inner[1] - inner[0])
    return max(bottom, inner[0] - room), min(top, inner[1] + room)


def _merge(parts: list[Spans]) -> Spans:
    if not parts:
        return Spans(np.empty(0), np.empty(0))
    if len(parts) == 1:
        return parts[0]
    return Spans(np.fmin.reduce([part.low for part in parts]), np.fmax.reduce([part.high for part in parts]))


def _wants_log(spans: Spans, bottom: float) -> bool:
    if bottom <= 0:
        return False
    high = spans.high[np.isfinite(spans.high)]
    return bool(high.max() > _LOG_RATIO * median(high))
