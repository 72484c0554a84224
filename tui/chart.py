"""A chart as data, and as lines of styled text. No Textual here: the same chart gives the same characters."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from trainmon.tails.record import FloatArray, IntArray
from trainmon.tui import numbers
from trainmon.tui.curve import Curve, Drawn, draw_curve, value_range
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.raster import BRAILLE, PLAIN, BoolArray, Spans, cells, column_of, curve_dots, level_dots
from trainmon.tui.span import Line, Span, clip, cut, fit, pad, width_of

MIN_HEIGHT = 4  # title, two rows of dots, x axis
_LOG_RATIO = 50.0  # above this largest/median ratio a positive curve is drawn on a log axis


@dataclass(frozen=True, slots=True)
class Shade:
    """An episode on the chart: its steps, the name of its style ("fail", "warn", "info") and its glyph."""

    first: float
    last: float
    style: str
    glyph: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw. `key` changes when, and only when, the picture does; `number` is the key that enlarges it.

    `value`, `change` and `beside` (other signals of the same slot) stand in the title. `log_y` None: decided by
    the values. `clip_start`: see `curve.value_range`. `window`: the x range to show, None for
    everything. `floor`: the y axis begins no higher. `least_span`: the y axis covers at least this share of its
    middle value, so that noise of a percent does not look like trouble.
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

    @property
    def x_range(self) -> tuple[float, float] | None:
        """The window, or the extent of all curves; None when there is nothing to draw."""
        if self.window is not None:
            return self.window
        ends = [ends for curve in self.curves if (ends := curve.range) is not None]
        return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else None


@dataclass(frozen=True, slots=True)
class _Scale:
    bottom: float
    top: float
    log: bool
    cut_at: float | None  # the true top, when values above `top` are held at the edge

    def place(self, values: FloatArray) -> FloatArray:
        if not self.log:
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(values > 0, np.log10(np.maximum(values, 1e-300)), np.nan)

    def label(self, share: float, unit: str) -> str:
        value = self.bottom + (self.top - self.bottom) * share
        if self.log:
            return numbers.axis(10.0**value, unit)
        return numbers.axis(value, unit, self.top - self.bottom)


def draw_chart(chart: Chart, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """`height` lines of exactly `width` cells: title, plot, x axis. Raw values are always drawn."""
    title = pad(_title(chart, width, glyphs), width)
    ends = chart.x_range
    rows = height - 2
    if ends is None or rows < 1 or width < 12:
        return [title, *[pad([], width) for _ in range(height - 1)]][:height]
    grid = BRAILLE if glyphs.braille else PLAIN
    columns = max(2, width - 9) * grid.across  # a first guess; the gutter depends on the labels
    drawn = [draw_curve(curve, *ends, columns) for curve in chart.curves]
    scale = _scale(chart, drawn)
    labels = _labels(scale, rows, chart.unit)
    gutter = max((len(text) for text in labels.values()), default=0) + 1
    across = max(2, width - gutter - 1)
    if across * grid.across != columns:
        columns = across * grid.across
        drawn = [draw_curve(curve, *ends, columns) for curve in chart.curves]
    plot = _plot(chart, drawn, scale, ends, rows, across, glyphs)
    lines = [title]
    for row, line in enumerate(plot):
        label = labels.get(row, "")
        lines.append(pad([Span(label.rjust(gutter - 1) + " ", "faint"), Span(glyphs.vertical, "faint"), *line], width))
    lines.append(pad(_x_axis(chart, ends, scale.log, gutter, across, glyphs), width))
    return lines


def _title(chart: Chart, width: int, glyphs: Glyphs) -> Line:
    line: Line = []
    if chart.number:
        line.append(Span(f"{chart.number} ", "key"))
    worst = max(chart.shades, key=lambda shade: ("info", "warn", "fail").index(shade.style), default=None)
    if worst is not None:
        line.append(Span(f"{worst.glyph} ", worst.style))
    line.append(Span(chart.title, "title"))
    if chart.value:
        line.append(Span(f" {chart.value}", "value"))
    if chart.change:
        line.append(Span(f" {chart.change}", "muted"))
    if chart.beside and (room := width - width_of(line) - 3) > 8:
        line.append(Span(f" {glyphs.dot} {clip(chart.beside, room, glyphs.ellipsis)}", "muted"))
    return [Span(clip(span.text, width, glyphs.ellipsis), span.fg) for span in cut(line, width)]


def _scale(chart: Chart, drawn: list[Drawn]) -> _Scale:
    everything = _merge([one.merged(older=True) for one in drawn])
    limits = value_range(everything, chart.clip_start)
    if limits is None:
        return _Scale(0.0, 1.0, False, None)
    bottom, top, true_top = limits
    if chart.floor is not None:
        bottom = min(bottom, chart.floor)
    log = chart.log_y if chart.log_y is not None else _wants_log(everything, bottom)
    if chart.threshold is not None and bottom < chart.threshold <= top + 1.5 * max(top - bottom, abs(top) * 0.05):
        top = max(top, chart.threshold)
    if log:
        with np.errstate(divide="ignore", invalid="ignore"):
            positive = everything.low[everything.low > 0]
        bottom = float(np.log10(positive.min())) if positive.size else -1.0
        top = float(np.log10(top)) if top > 0 else bottom + 1
    middle = (bottom + top) / 2
    least = abs(middle) * max(chart.least_span, 1e-9) if not log else 0.0
    if top - bottom <= least or top <= bottom:
        least = max(least, abs(middle) * 0.1) or 1.0
        bottom, top = middle - least / 2, middle + least / 2
    return _Scale(bottom, top, log, true_top if limits[1] < true_top else None)


def _merge(parts: list[Spans]) -> Spans:
    if not parts:
        return Spans(np.empty(0), np.empty(0))
    return Spans(np.fmin.reduce([part.low for part in parts]), np.fmax.reduce([part.high for part in parts]))


def _wants_log(spans: Spans, bottom: float) -> bool:
    if bottom <= 0:
        return False
    high = spans.high[np.isfinite(spans.high)]
    return bool(high.max() / np.median(high) > _LOG_RATIO)


def _labels(scale: _Scale, rows: int, unit: str) -> dict[int, str]:
    labels = {0: scale.label(1.0, unit)}
    if rows > 1:
        labels[rows - 1] = scale.label(0.0, unit)
    if rows >= 7:
        middle = (rows - 1) // 2
        labels[middle] = scale.label(1 - (middle + 0.5) / rows, unit)
    return labels


def _plot(
    chart: Chart,
    drawn: list[Drawn],
    scale: _Scale,
    ends: tuple[float, float],
    rows: int,
    across: int,
    glyphs: Glyphs,
) -> list[Line]:
    grid = BRAILLE if glyphs.braille else PLAIN
    high, wide = rows * grid.down, across * grid.across
    blank = np.zeros((high, wide), dtype=np.bool_)
    layers, styles = [blank], [""]
    if chart.threshold is not None:
        limit = float(scale.place(np.array([chart.threshold]))[0])
        layers.append(level_dots(limit, scale.bottom, scale.top, high, wide, 2 * grid.across))
        styles.append("threshold")
    for curve, one in reversed(list(zip(chart.curves, drawn, strict=True))):  # the first curve lies on top
        if one.older:
            layers.append(_dots(one.older, scale, high, blank))
            styles.append("older")
        layers.append(_dots(one.newest, scale, high, blank))
        styles.append(curve.style)
    texts, owner = cells(layers, grid)
    characters = [list(text) for text in texts]
    names = [[styles[number] if number > 0 else "text" for number in line] for line in owner.tolist()]
    _mark_cut(characters, names, drawn, scale, grid.across, glyphs)
    _mark_bad(characters, names, drawn, grid.across, glyphs)
    _mark_ends(chart, characters, names, drawn, scale, rows, grid.across)
    return _runs(characters, names, _shading(chart, ends, across))


def _dots(parts: tuple[Spans, ...], scale: _Scale, rows: int, blank: BoolArray) -> BoolArray:
    dots = blank.copy()
    for part in parts:
        dots |= curve_dots(Spans(scale.place(part.low), scale.place(part.high)), scale.bottom, scale.top, rows)
    return dots


def _mark_cut(
    characters: list[list[str]],
    names: list[list[str]],
    drawn: list[Drawn],
    scale: _Scale,
    per_cell: int,
    glyphs: Glyphs,
) -> None:
    """An arrow in the top row over every value that is higher than the axis."""
    if scale.cut_at is None:
        return
    for one in drawn:
        over = scale.place(one.merged(older=True).high) > scale.top + 1e-12
        for cell in sorted({int(column) // per_cell for column in np.flatnonzero(over)}):
            characters[0][cell], names[0][cell] = glyphs.cut, "muted"


def _mark_bad(
    characters: list[list[str]], names: list[list[str]], drawn: list[Drawn], per_cell: int, glyphs: Glyphs
) -> None:
    for one in drawn:
        for cell in sorted({int(column) // per_cell for column in np.flatnonzero(one.bad)}):
            characters[0][cell], names[0][cell] = glyphs.bad, "fail"


def _mark_ends(
    chart: Chart,
    characters: list[list[str]],
    names: list[list[str]],
    drawn: list[Drawn],
    scale: _Scale,
    rows: int,
    per_cell: int,
) -> None:
    """The label of each curve at its newest value, so that colour alone never tells curves apart."""
    for curve, one in zip(chart.curves, drawn, strict=True):
        spans = one.merged()
        known = np.flatnonzero(np.isfinite(spans.high))
        if not curve.label or not known.size:
            continue
        column = int(known[-1])
        value = scale.place(np.array([(spans.low[column] + spans.high[column]) / 2]))[0]
        share = (scale.top - float(value)) / (scale.top - scale.bottom)
        row = min(rows - 1, max(0, int(share * rows)))
        cell = column // per_cell
        for distance in range(rows):  # next free row when two curves end together
            for free in (row - distance, row + distance):
                if 0 <= free < rows and not names[free][cell].startswith("label"):
                    characters[free][cell], names[free][cell] = curve.label[:1], f"label{curve.style[4:]}"
                    break
            else:
                continue
            break


def _shading(chart: Chart, ends: tuple[float, float], across: int) -> list[str]:
    """The background of each cell column: that of the worst episode over it."""
    shading = [""] * across
    for shade in sorted(chart.shades, key=lambda shade: ("info", "warn", "fail").index(shade.style)):
        if shade.style == "info" or shade.last < ends[0] or shade.first > ends[1]:
            continue
        first, last = _cell_range(shade, ends, across)
        for cell in range(first, last + 1):
            shading[cell] = f"shade_{shade.style}"
    return shading


def _cell_range(shade: Shade, ends: tuple[float, float], across: int) -> tuple[int, int]:
    inside = np.clip(np.array([shade.first, shade.last]), *ends)
    places: IntArray = column_of(inside, *ends, across)
    return int(places[0]), max(int(places[0]), int(places[1]))


def _runs(characters: list[list[str]], names: list[list[str]], shading: list[str]) -> list[Line]:
    lines: list[Line] = []
    for row, row_names in zip(characters, names, strict=True):
        line: Line = []
        start = 0
        for cell in range(1, len(row) + 1):
            if cell == len(row) or row_names[cell] != row_names[start] or shading[cell] != shading[start]:
                line.append(Span("".join(row[start:cell]), row_names[start], shading[start]))
                start = cell
        lines.append(line)
    return lines


def _x_axis(chart: Chart, ends: tuple[float, float], log: bool, gutter: int, across: int, glyphs: Glyphs) -> Line:
    first, last = numbers.count(ends[0]), numbers.count(ends[1])
    rule = [glyphs.horizontal] * across
    names = ["faint"] * across
    marks = {_cell_range(shade, ends, across)[0]: shade for shade in chart.shades if ends[0] <= shade.first <= ends[1]}
    for text, start in ((first, 0), (last, across - len(last))):
        taken = range(start, start + len(text))
        if start >= 0 and len(first) + len(last) + 2 <= across and not marks.keys() & taken:
            rule[start : start + len(text)] = list(text)
    middle = f" {chart.x_name}{', log y' if log else ''} "
    start = (across - len(middle)) // 2
    if len(first) + len(last) + len(middle) + 6 <= across and not marks.keys() & range(start, start + len(middle)):
        rule[start : start + len(middle)] = list(middle)
    for cell, shade in marks.items():
        rule[cell], names[cell] = shade.glyph, shade.style
    return [Span(" " * gutter + glyphs.corner, "faint"), *_runs([rule], [names], [""] * across)[0]]


def draw_absent(title: str, number: str, glyph: str, reason: str, width: int, glyphs: Glyphs) -> Line:
    """One line for a chart without data: what to log, in place of an empty frame."""
    head = f"{number} {glyph} "
    return pad([Span(head, "key"), Span(fit(f"{title}: {reason}", width - len(head), glyphs.ellipsis), "muted")], width)
