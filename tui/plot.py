"""The inside of a chart: curves as dots, what marks them, and the ground behind."""

from __future__ import annotations

from itertools import pairwise
from operator import ne
from typing import TYPE_CHECKING

import numpy as np

from trainmon.tails.record import FloatArray, IntArray
from trainmon.tui.curve import Drawn
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.raster import BRAILLE, PLAIN, BoolArray, Spans, cells, column_of, curve_dots, level_dots, row_of
from trainmon.tui.scale import Scale
from trainmon.tui.span import Line, Span

if TYPE_CHECKING:
    from trainmon.tui.chart import Chart, Shade

_POINTS_APART = 3  # cells
_SMOOTHED_OVER = 15  # of the columns shown: the running mean reaches over so large a part of them


def plot(
    chart: Chart,
    drawn: list[Drawn],
    scale: Scale,
    ends: tuple[float, float],
    rows: int,
    across: int,
    glyphs: Glyphs,
) -> list[Line]:
    """`rows` lines of `across` cells."""
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
        styles.append("raw" if chart.smooth else curve.style)
    if chart.smooth:
        for curve, one in reversed(list(zip(chart.curves, drawn, strict=True))):
            layers.append(_dots((smoothed(one.merged()),), scale, high, blank))
            styles.append(curve.style)
    texts, owner = cells(layers, grid)
    characters = [list(text) for text in texts]
    names = [[styles[number] if number > 0 else "text" for number in line] for line in owner.tolist()]
    _mark_points(chart, characters, names, scale, ends, glyphs)
    _mark_cut(characters, names, drawn, scale, grid.across, glyphs)
    _mark_bad(characters, names, drawn, grid.across, glyphs)
    _mark_ends(chart, characters, names, drawn, scale, rows, grid.across)
    return runs(characters, names, _shading(chart, ends, across))


def _dots(parts: tuple[Spans, ...], scale: Scale, rows: int, blank: BoolArray) -> BoolArray:
    dots = blank.copy()
    for part in parts:
        dots |= curve_dots(Spans(scale.place(part.low), scale.place(part.high)), scale.bottom, scale.top, rows)
    return dots


def smoothed(spans: Spans) -> Spans:
    """The running mean of the middle of each column, over a fifteenth of all columns; NaN stays NaN.

    >>> y = np.concatenate([np.zeros(15), np.full(15, 3.0)])
    >>> smoothed(Spans(y, y)).low[13:17].tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    middle = (spans.low + spans.high) / 2
    there = np.isfinite(middle)
    half = max(1, middle.size // _SMOOTHED_OVER // 2)
    sums = np.concatenate(([0.0], np.cumsum(np.where(there, middle, 0.0))))
    counts = np.concatenate(([0], np.cumsum(there)))
    index = np.arange(middle.size)
    first, end = np.maximum(index - half, 0), np.minimum(index + half + 1, middle.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: FloatArray = np.where(there, (sums[end] - sums[first]) / (counts[end] - counts[first]), np.nan)
    return Spans(mean, mean)


def _mark_cut(
    characters: list[list[str]],
    names: list[list[str]],
    drawn: list[Drawn],
    scale: Scale,
    per_cell: int,
    glyphs: Glyphs,
) -> None:
    """An arrow in the top row over every value that is higher than the axis, in the lowest under every lower one."""
    if not (scale.cut_top or scale.cut_bottom):
        return
    for one in drawn:
        over = scale.place(one.merged(older=True).high) > scale.top + 1e-12
        for cell in sorted({int(column) // per_cell for column in np.flatnonzero(over & scale.cut_top)}):
            characters[0][cell], names[0][cell] = glyphs.cut, "muted"
        under = scale.place(one.merged(older=True).low) < scale.bottom - 1e-12
        for cell in sorted({int(column) // per_cell for column in np.flatnonzero(under & scale.cut_bottom)}):
            characters[-1][cell], names[-1][cell] = glyphs.cut_below, "muted"


def _mark_bad(
    characters: list[list[str]], names: list[list[str]], drawn: list[Drawn], per_cell: int, glyphs: Glyphs
) -> None:
    for one in drawn:
        for cell in sorted({int(column) // per_cell for column in np.flatnonzero(one.bad)}):
            characters[0][cell], names[0][cell] = glyphs.bad, "fail"


def _mark_points(
    chart: Chart,
    characters: list[list[str]],
    names: list[list[str]],
    scale: Scale,
    ends: tuple[float, float],
    glyphs: Glyphs,
) -> None:
    """One mark a value, held at the edge where the axis does not reach it; fewer where they would hide the curve."""
    rows, across = len(characters), len(characters[0])
    for points in chart.points:
        cells_at = column_of(points.x, *ends, across)
        order = np.flatnonzero((cells_at >= 0) & np.isfinite(scale.place(points.values)))
        height = row_of(scale.place(points.values[order]), scale.bottom, scale.top, rows)
        free = -_POINTS_APART
        for cell, row in zip(cells_at[order].tolist(), height.tolist(), strict=True):
            if cell >= free + _POINTS_APART or cell < free:
                characters[row][cell], names[row][cell] = glyphs.point, points.style
                free = cell


def _mark_ends(
    chart: Chart,
    characters: list[list[str]],
    names: list[list[str]],
    drawn: list[Drawn],
    scale: Scale,
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
        first, last = cell_range(shade, ends, across)
        for cell in range(first, last + 1):
            shading[cell] = f"shade_{shade.style}"
    if chart.cursor is not None and ends[0] <= chart.cursor <= ends[1]:
        shading[int(column_of(np.array([chart.cursor]), *ends, across)[0])] = "cursor"
    return shading


def cell_range(shade: Shade, ends: tuple[float, float], across: int) -> tuple[int, int]:
    """First and last cell under `shade`."""
    inside = np.clip(np.array([shade.first, shade.last]), *ends)
    places: IntArray = column_of(inside, *ends, across)
    return int(places[0]), max(int(places[0]), int(places[1]))


def runs(characters: list[list[str]], names: list[list[str]], shading: list[str]) -> list[Line]:
    """Cells side by side of one style and ground as one span."""
    ground = [cell for cell, differs in enumerate(map(ne, shading[1:], shading), 1) if differs]
    lines: list[Line] = []
    for row, row_names in zip(characters, names, strict=True):
        edges = [cell for cell, differs in enumerate(map(ne, row_names[1:], row_names), 1) if differs]
        if ground:
            edges = sorted({*edges, *ground})
        text = "".join(row)
        lines.append(
            [Span(text[start:end], row_names[start], shading[start]) for start, end in pairwise((0, *edges, len(row)))]
        )
    return lines
