"""The inside of a chart: curves as dots, what marks them, and the ground behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trainmon.tails.record import FloatArray, IntArray
from trainmon.tui.canvas import Canvas
from trainmon.tui.curve import Drawn
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.raster import BRAILLE, PLAIN, BoolArray, Spans, cells, column_of, curve_dots, level_dots, row_of
from trainmon.tui.scale import Scale
from trainmon.tui.span import Line

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
    layers: list[BoolArray] = []
    styles: list[str] = []
    if chart.threshold is not None:
        limit = float(scale.place(np.array([chart.threshold]))[0])
        layers.append(level_dots(limit, scale.bottom, scale.top, high, wide, 2 * grid.across))
        styles.append("threshold")
    for curve, one in reversed(list(zip(chart.curves, drawn, strict=True))):  # the first curve lies on top
        if one.older:
            layers.append(_dots(one.older, scale, high))
            styles.append("older")
        layers.append(_dots(one.newest, scale, high))
        styles.append("raw" if chart.smooth else curve.style)
    if chart.smooth:
        for curve, one in reversed(list(zip(chart.curves, drawn, strict=True))):
            layers.append(_dots((smoothed(one.merged()),), scale, high))
            styles.append(curve.style)
    codes, owner = cells(layers or [np.zeros((high, wide), dtype=np.bool_)], grid)
    canvas = Canvas(codes, owner + 1, ["text", *styles])
    _mark_points(chart, canvas, scale, ends, glyphs)
    _mark_cut(canvas, drawn, scale, grid.across, glyphs)
    _mark_bad(canvas, drawn, grid.across, glyphs)
    _mark_ends(chart, canvas, drawn, scale, grid.across)
    return canvas.lines(_shading(chart, ends, across))


def _dots(parts: tuple[Spans, ...], scale: Scale, rows: int) -> BoolArray:
    layers = [
        curve_dots(Spans(scale.place(part.low), scale.place(part.high)), scale.bottom, scale.top, rows)
        for part in parts
    ]
    return layers[0] if len(layers) == 1 else np.logical_or.reduce(layers)


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


def _mark_cut(canvas: Canvas, drawn: list[Drawn], scale: Scale, per_cell: int, glyphs: Glyphs) -> None:
    """An arrow in the top row over every value that is higher than the axis, in the lowest under every lower one."""
    if not (scale.cut_top or scale.cut_bottom):
        return
    for one in drawn:
        whole = one.merged(older=True)
        if scale.cut_top:
            over = np.flatnonzero(scale.place(whole.high) > scale.top + 1e-12)
            canvas.put(0, over // per_cell, glyphs.cut, "muted")
        if scale.cut_bottom:
            under = np.flatnonzero(scale.place(whole.low) < scale.bottom - 1e-12)
            canvas.put(-1, under // per_cell, glyphs.cut_below, "muted")


def _mark_bad(canvas: Canvas, drawn: list[Drawn], per_cell: int, glyphs: Glyphs) -> None:
    for one in drawn:
        if one.bad.any():
            canvas.put(0, np.flatnonzero(one.bad) // per_cell, glyphs.bad, "fail")


def _mark_points(chart: Chart, canvas: Canvas, scale: Scale, ends: tuple[float, float], glyphs: Glyphs) -> None:
    """One mark a value, held at the edge where the axis does not reach it; fewer where they would hide the curve."""
    rows, across = canvas.codes.shape
    for points in chart.points:
        cells_at = column_of(points.x, *ends, across)
        order = np.flatnonzero((cells_at >= 0) & np.isfinite(scale.place(points.values)))
        height = row_of(scale.place(points.values[order]), scale.bottom, scale.top, rows)
        free = -_POINTS_APART
        for cell, row in zip(cells_at[order].tolist(), height.tolist(), strict=True):
            if cell >= free + _POINTS_APART or cell < free:
                canvas.put(row, cell, glyphs.point, points.style)
                free = cell


def _mark_ends(chart: Chart, canvas: Canvas, drawn: list[Drawn], scale: Scale, per_cell: int) -> None:
    """The label of each curve at the newest value that the axis can show, so that colour alone never tells curves
    apart."""
    rows = len(canvas.codes)
    for curve, one in zip(chart.curves, drawn, strict=True):
        if not curve.label:
            continue
        spans = one.merged()
        places = scale.place((spans.low + spans.high) / 2)
        known = np.flatnonzero(np.isfinite(places))
        if not known.size:
            continue
        column = int(known[-1])
        share = (scale.top - float(places[column])) / (scale.top - scale.bottom)
        row = min(rows - 1, max(0, int(share * rows)))
        cell = column // per_cell
        for distance in range(rows):  # next free row when two curves end together
            for free in (row - distance, row + distance):
                if 0 <= free < rows and not canvas.style_at(free, cell).startswith("label"):
                    canvas.put(free, cell, curve.label[:1], f"label{curve.style[4:]}")
                    break
            else:
                continue
            break


def _shading(chart: Chart, ends: tuple[float, float], across: int) -> list[str]:
    """The background of each cell column: that of the worst episode over it; [] where there is none."""
    if not chart.shades and chart.cursor is None:
        return []
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
