"""A chart as data, and as lines of styled text. No Textual here: the same chart gives the same characters."""

from __future__ import annotations

from collections.abc import Hashable

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tui import numbers
from trainmon.tui.canvas import Canvas
from trainmon.tui.curve import Curve, draw_curve
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.plot import cell_range, plot
from trainmon.tui.raster import BRAILLE, PLAIN
from trainmon.tui.scale import Scale, Wish, scale_of
from trainmon.tui.span import Line, Span, clip, cut, pad, width_of


@dataclass(frozen=True, slots=True)
class Shade:
    """An episode on the chart: its steps, the name of its style ("fail", "warn", "info") and its glyph."""

    first: float
    last: float
    style: str
    glyph: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Something that happened at `x` and belongs on the axis: `kind` is one of `Glyphs.ticks`."""

    x: float
    kind: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw. `key` changes when, and only when, the picture does; `number` is the key that enlarges it.

    `value`, `change` and `beside` (other signals of the same slot) stand in the title. `log_y` None: decided by
    the values. `clip_start`: see `curve.value_range`. `window`: the x range to show, None for
    everything. `floor`: the y axis begins no higher. `least_span`: the y axis covers at least this share of its
    middle value, so that noise of a percent does not look like trouble. `smooth`: a running mean over the raw
    curve, which is dimmed. `clip_outliers`: the few highest and lowest columns are held at the edge. `cursor`: an x.
    `points`: curves of few values, each drawn as a mark (evaluations on the axis of the loss). `preview`: these are
    only some of the values, from all along the log.
    """

    title: str
    curves: tuple[Curve, ...]
    key: Hashable
    number: str = ""
    value: str = ""
    change: str = ""
    beside: str = ""
    unit: str = ""
    x_name: str = "step"
    threshold: float | None = None
    shades: tuple[Shade, ...] = ()
    window: tuple[float, float] | None = None
    log_y: bool | None = None
    clip_start: bool = False
    floor: float | None = None
    signals: tuple[str, ...] = ()
    least_span: float = 0.0
    smooth: bool = False
    clip_outliers: bool = False
    cursor: float | None = None
    ticks: tuple[Tick, ...] = ()
    points: tuple[Curve, ...] = ()
    preview: bool = False

    @property
    def x_range(self) -> tuple[float, float] | None:
        """The window, or the extent of all curves; None when there is nothing to draw."""
        if self.window is not None:
            return self.window
        ends = [ends for curve in self.curves if (ends := curve.range) is not None]
        return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else None

    def x_text(self, value: float) -> str:
        """`value` of the x axis, as exact as one would look it up."""
        if self.x_name == "time":
            return numbers.duration(value)
        return numbers.count(value) if self.x_name in ("tokens", "flops") else numbers.step(value)

    def x_label(self, value: float) -> str:
        """`value` of the x axis, in short."""
        return numbers.duration(value) if self.x_name == "time" else numbers.count(value)

    @property
    def x_words(self) -> str:
        """What the x axis counts, and what was done to the curves."""
        done = (
            ("preview", self.preview),
            ("log y", self.log_y is True),
            ("smoothed", self.smooth),
            ("outliers cut", self.clip_outliers),
        )
        return ", ".join((self.x_name, *(word for word, holds in done if holds)))


_GUTTER = 7  # cells for the labels beside a plot: most fit, and charts above one another share their x axis
_NARROW = 46  # cells of a chart that cannot spare them


def draw_chart(chart: Chart, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """`height` lines of exactly `width` cells: title, plot, x axis. Raw values are always drawn."""
    title = draw_title(chart, width, glyphs)
    ends = chart.x_range
    rows = height - 2
    if ends is None or rows < 1 or width < 12:
        return [title, *[pad([], width) for _ in range(height - 1)]][:height]
    grid = BRAILLE if glyphs.braille else PLAIN
    least = _GUTTER if width >= _NARROW else 4
    columns = max(2, width - least - 1) * grid.across  # the scale is that of these, whatever its labels take
    curves = [curve.between(*ends) for curve in chart.curves]
    drawn = [draw_curve(curve, *ends, columns) for curve in curves]
    scale = scale_of(_wish(chart), [*drawn, *(draw_curve(points, *ends, columns) for points in chart.points)])
    labels = scale.labels(rows, chart.unit)
    gutter = max(least, *(len(text) + 1 for text in labels.values()))
    across = max(2, width - gutter - 1)
    if across * grid.across != columns:
        drawn = [draw_curve(curve, *ends, across * grid.across) for curve in curves]
    lines = [title]
    rule = Span(glyphs.vertical, "faint")
    blank = Span(" " * gutter, "faint")
    is_wide = gutter + 1 + across > width
    for row, line in enumerate(plot(chart, drawn, scale, ends, rows, across, glyphs)):
        label = labels.get(row)
        whole = [blank if label is None else Span(label.rjust(gutter - 1) + " ", "faint"), rule, *line]
        lines.append(cut(whole, width) if is_wide else whole)
    lines.append(pad(_x_axis(chart, ends, scale, gutter, across, glyphs), width))
    return lines


def draw_title(chart: Chart, width: int, glyphs: Glyphs) -> Line:
    """The first line of `draw_chart`."""
    return pad(_title(chart, width, glyphs), width)


def plot_offset(chart: Chart, width: int, height: int, glyphs: Glyphs) -> int:
    """Cells to the left of the plot in `draw_chart`: labels and the rule beside them."""
    axis = draw_chart(chart, width, height, glyphs)[-1]
    return width_of(axis[:1])


def _wish(chart: Chart) -> Wish:
    return Wish(chart.threshold, chart.log_y, chart.clip_start, chart.clip_outliers, chart.floor, chart.least_span)


def _title(chart: Chart, width: int, glyphs: Glyphs) -> Line:
    line: Line = []
    if chart.number:
        line.append(Span(f"{chart.number} ", "key"))
    worst = max(chart.shades, key=lambda shade: ("info", "warn", "fail").index(shade.style), default=None)
    if worst is not None:
        line.append(Span(f"{worst.glyph} ", worst.style))
    line.append(Span(chart.title, "title"))
    if chart.value:
        value = chart.value
        if chart.unit and width_of(line) + 1 + len(value) > width:  # the unit is the lesser half
            value = value.replace(f" {numbers.short_unit(chart.unit)}", "")
        line.append(Span(f" {value}", "value"))
    if chart.change and width_of(line) + len(chart.change) < width:  # half a number says nothing
        line.append(Span(f" {chart.change}", "muted"))
    if chart.beside and (room := width - width_of(line) - 3) > 8:
        line.append(Span(f" {glyphs.dot} {clip(chart.beside, room, glyphs.ellipsis)}", "muted"))
    if width_of(line) > width > 1:
        return [*cut(line, width - 1), Span(glyphs.ellipsis, "muted")]
    return cut(line, width)


def _x_axis(chart: Chart, ends: tuple[float, float], scale: Scale, gutter: int, across: int, glyphs: Glyphs) -> Line:
    """The rule under the plot: ends, what is counted, checkpoints and restarts; episodes lie over all of it."""
    first, last = chart.x_label(ends[0]), chart.x_label(ends[1])
    rule = Canvas.blank(1, across, glyphs.horizontal, "faint")
    taken: set[int] = set()
    for tick in chart.ticks:
        if ends[0] <= tick.x <= ends[1]:
            cell = cell_range(Shade(tick.x, tick.x, "info", ""), ends, across)[0]
            rule.put(0, cell, glyphs.ticks[tick.kind], _TICK_STYLES[tick.kind])
            taken = taken - {cell} if _TICK_STYLES[tick.kind] == "muted" else taken | {cell}
    marks = {cell_range(shade, ends, across)[0]: shade for shade in chart.shades if ends[0] <= shade.first <= ends[1]}
    taken |= marks.keys()
    words = chart.x_words + (", log y" if scale.log and chart.log_y is None else "")
    if len(first) + len(last) + 2 <= across:
        for text, start in ((first, 0), (last, across - len(last))):
            _write(rule, text, start, taken)
    middle = f" {words} "
    if len(first) + len(last) + len(middle) + 6 > across:
        middle = f" {chart.x_name} "
    if len(first) + len(last) + len(middle) + 6 <= across:
        _write(rule, middle, _free_place(middle, len(first), across - len(last), taken), taken)
    for cell, shade in marks.items():
        rule.put(0, cell, shade.glyph, shade.style)
    return [Span(" " * gutter + glyphs.corner, "faint"), *rule.lines([])[0]]


_TICK_STYLES = {"checkpoint": "muted", "lr": "note", "config": "note", "restart": "key", "remark": "key"}


def _free_place(text: str, first: int, end: int, taken: set[int]) -> int:
    """Where `text` hides no mark, as near to the middle between `first` and `end` as it can; -1 for nowhere."""
    middle = (first + end - len(text)) // 2
    if not taken:
        return middle if first + 1 <= middle < end - len(text) else -1
    places = sorted(range(first + 1, end - len(text)), key=lambda place: abs(place - middle))
    return next((place for place in places if not taken & set(range(place, place + len(text)))), -1)


def _write(rule: Canvas, text: str, start: int, taken: set[int]) -> None:
    """`text` on the rule, unless it would hide a mark."""
    if start >= 0 and not (taken and taken & set(range(start, start + len(text)))):
        rule.write(0, start, text, "faint")
