"""How one looks at charts: which stretch of the x axis, where the cursor is, and what is drawn over the raw curve.

The same for all charts of a screen, so that what is seen on one can be looked up on the others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tui import numbers
from trainmon.tui.chart import Chart
from trainmon.tui.levels import MOST_BINS

ZOOM = 2.0
_PAN = 0.25  # of the stretch shown
_NARROWEST = 1e-5  # of the whole axis
_CURSOR = 1 / 60  # of the stretch shown: about one cell

Stretch = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ChartView:
    """`stretch` None: everything. `follow`: the stretch ends at the newest value and moves with it.

    `log_y` and `outliers` None: as each chart decides; `smooth`: a running mean over the raw curve; `cursor`: an x.
    """

    stretch: Stretch | None = None
    follow: bool = False
    smooth: bool = False
    log_y: bool | None = None
    clip: bool | None = None
    cursor: float | None = None

    def shown(self, whole: Stretch) -> Stretch:
        """The stretch to draw of charts that reach over `whole`."""
        if self.stretch is None:
            return whole
        width = min(self.stretch[1] - self.stretch[0], whole[1] - whole[0])
        if self.follow:
            return whole[1] - width, whole[1]
        start = min(max(self.stretch[0], whole[0]), whole[1] - width)
        return start, start + width

    def zoomed(self, whole: Stretch, by: int) -> ChartView:
        """Narrower (by = 1) or wider (-1) around the cursor, else around the newest value shown.

        >>> ChartView().zoomed((0.0, 100.0), 1).stretch
        (50.0, 100.0)
        """
        start, stop = self.shown(whole)
        middle = self.cursor if self.cursor is not None and start <= self.cursor <= stop else stop
        share = (middle - start) / (stop - start) if stop > start else 1.0
        width = (stop - start) * ZOOM**-by
        full = whole[1] - whole[0]
        if width >= full:
            return replace(self, stretch=None, follow=False)
        width = max(width, full * _NARROWEST)
        first = middle - share * width
        at_end = first + width >= whole[1]
        return replace(self, stretch=(first, first + width), follow=self.follow or (at_end and self.cursor is None))

    def panned(self, whole: Stretch, by: int) -> ChartView:
        """A quarter of what is shown to the left (-1) or right (1); nowhere while everything is shown."""
        if self.stretch is None:
            return self
        start, stop = self.shown(whole)
        shift = (stop - start) * _PAN * by
        moved = replace(self, stretch=(start + shift, stop + shift), follow=False).shown(whole)
        return replace(self, stretch=moved, follow=by > 0 and moved[1] >= whole[1])

    def following(self, whole: Stretch) -> ChartView:
        """The newest part: a tenth of everything, or as much as was shown."""
        start, stop = self.shown(whole)
        width = stop - start if self.stretch is not None else (whole[1] - whole[0]) / 10
        return replace(self, stretch=(whole[1] - width, whole[1]), follow=True, cursor=None)

    def read(self, whole: Stretch, by: int) -> ChartView:
        """The cursor about a cell to the left or right; it begins at the newest value and takes the stretch along."""
        start, stop = self.shown(whole)
        here = stop if self.cursor is None else self.cursor
        moved = here + by * (stop - start) * _CURSOR
        cursor = min(max(moved, whole[0]), whole[1])
        view = replace(self, cursor=cursor)
        if self.stretch is not None and not start <= cursor <= stop:
            return replace(view.panned(whole, by), cursor=cursor)
        return view

    def on(self, chart: Chart, whole: Stretch | None) -> Chart:
        """`chart`, one of several that reach over `whole`, as it is looked at."""
        if whole is None or self == ChartView():
            return chart
        window = self.shown(whole) if self.stretch is not None else chart.window
        value, change = (chart.value, chart.change) if self.cursor is None else (reading(chart, self.cursor), "")
        return replace(
            chart,
            key=(chart.key, self, window),
            window=window,
            smooth=self.smooth,
            log_y=chart.log_y if self.log_y is None else self.log_y,
            clip_outliers=bool(self.clip),
            clip_start=chart.clip_start and self.clip is not False and self.stretch is None,
            cursor=self.cursor,
            value=value,
            change=change,
        )


def reading(chart: Chart, cursor: float) -> str:
    """The value of the first curve that is nearest to x = `cursor`, and where it is; with what it stands for."""
    if not chart.curves:
        return ""
    curve = chart.curves[0]
    if (ends := curve.range) is not None:
        near = (ends[1] - ends[0]) / MOST_BINS * 4
        curve = curve.between(cursor - near, cursor + near)
    good = np.flatnonzero(np.isfinite(curve.x))
    if not good.size:
        return ""
    distance = np.abs(curve.x[good] - cursor)
    at = int(good[np.flatnonzero(distance == distance.min())[-1]])  # the newest attempt's, where there are several
    value, low, high = float(curve.values[at]), float(curve.low[at]), float(curve.high[at])
    text = numbers.with_unit(value, chart.unit)
    if high > low:
        text += f" ({numbers.plain(low)}..{numbers.plain(high)})"
    return f"{text} @{chart.x_text(float(curve.x[at]))}"


def whole_of(charts: tuple[Chart, ...]) -> Stretch | None:
    """From the smallest to the largest x of all curves of `charts`, whatever part is shown."""
    ends = [ends for chart in charts for curve in chart.curves if (ends := curve.range) is not None]
    return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else None
