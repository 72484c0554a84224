"""Numbers to characters: curves as dots, dots as braille (2 x 4 a cell) or ASCII (1 x 2 a cell). numpy only.

A curve of any length becomes one vertical span (lowest to highest value) for each column of dots, so that no
spike is ever lost to down-sampling; only the room between two points is interpolated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.stats.distinct import distinct
from trainmon.tails.record import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

# Bit of each braille dot by (row, column) inside a cell, Unicode 2800-28FF.
_BRAILLE_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_LARGEST = 1e300  # sums and differences of what is drawn stay finite
_BLANK = ord(" ")
_ASCII_CELLS = np.array([_BLANK, ord("'"), ord("."), ord(":")], dtype=np.uint32)


def _braille_cells() -> NDArray[np.uint32]:
    """(256,) the character of each cell whose dots, column by column from the top, are the bits from the highest."""
    order = [_BRAILLE_BITS[row][column] for column in range(2) for row in range(4)]
    codes = [0x2800 + sum(bit for at, bit in enumerate(order) if byte & (0x80 >> at)) for byte in range(256)]
    return np.array([_BLANK, *codes[1:]], dtype=np.uint32)


_BRAILLE_CELLS = _braille_cells()


class Grid(NamedTuple):
    """How many dots one cell holds."""

    across: int
    down: int


BRAILLE = Grid(2, 4)
PLAIN = Grid(1, 2)


class Spans(NamedTuple):
    """The lowest and the highest value in each column; NaN where a column holds no value. (columns,) each."""

    low: FloatArray
    high: FloatArray


def column_of(x: FloatArray, start: float, stop: float, columns: int) -> IntArray:
    """The column of each `x` on an axis from `start` to `stop`; -1 outside it."""
    width = stop - start
    if not width > 0 or columns < 1:
        return np.where(x == start, 0, -1).astype(np.int64)
    inside = (x >= start) & (x <= stop)
    place = np.where(inside, (x - start) / width * columns, 0.0)
    return np.where(inside, np.minimum(place.astype(np.int64), columns - 1), -1)


def column_spans(x: FloatArray, low: FloatArray, high: FloatArray, start: float, stop: float, columns: int) -> Spans:
    """Min/max of a curve in each column; values that are no number do not count.

    `x` ascending, (n,) as `low` and `high`.

    >>> nan = float("nan")
    >>> x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([5.0, nan, 1.0, 9.0])
    >>> [part.tolist() for part in column_spans(x, y, y, 0, 3, 2)]
    [[5.0, 1.0], [5.0, 9.0]]
    """
    lows, highs = np.full(columns, np.nan), np.full(columns, np.nan)
    first, end = int(x.searchsorted(start, "left")), int(x.searchsorted(stop, "right"))
    if (first, end) != (0, x.size):
        x, low, high = x[first:end], low[first:end], high[first:end]
    keep = np.isfinite(low) & np.isfinite(high)
    if not keep.all():
        x, low, high = x[keep], low[keep], high[keep]
    if not x.size:
        return Spans(lows, highs)
    if (width := stop - start) > 0:
        places = np.minimum(((x - start) / width * columns).astype(np.int64), columns - 1)
        firsts = np.concatenate(([0], np.flatnonzero(places[1:] != places[:-1]) + 1))
    else:
        places, firsts = np.zeros(1, np.int64), np.zeros(1, np.int64)
    at = places[firsts]
    lows[at] = np.minimum.reduceat(low, firsts)
    highs[at] = np.maximum.reduceat(high, firsts)
    for part in (lows, highs):
        np.minimum(np.maximum(part, -_LARGEST, out=part), _LARGEST, out=part)
    return Spans(lows, highs)


def join(spans: Spans, breaks: BoolArray | None = None) -> Spans:
    """Empty columns between two filled ones on the straight line between them, except across a column in `breaks`.

    >>> nan = float("nan")
    >>> y = np.array([1.0, nan, 3.0, nan])
    >>> join(Spans(y, y)).low.tolist()
    [1.0, 2.0, 3.0, nan]
    >>> join(Spans(y, y), np.array([False, True, False, False])).low.tolist()
    [1.0, nan, 3.0, nan]
    """
    filled = np.isfinite(spans.low)
    known = np.flatnonzero(filled)
    if known.size < 2 or filled.all():
        return spans
    index = np.arange(filled.size)
    middle = np.interp(index, known, (spans.low[known] + spans.high[known]) / 2, left=np.nan, right=np.nan)
    if breaks is not None:
        gap = np.maximum.accumulate(np.where(filled, index, -1))
        torn = distinct(gap[breaks & ~filled])
        middle[np.isin(gap, torn)] = np.nan
    return Spans(np.where(filled, spans.low, middle), np.where(filled, spans.high, middle))


def row_of(y: FloatArray, bottom: float, top: float, rows: int) -> IntArray:
    """The row of dots of each value, 0 at the top; values outside are held at the edge. NaN gives 0: mask it."""
    height = top - bottom
    if not height > 0:
        return np.full(y.shape, (rows - 1) // 2, dtype=np.int64)
    place = np.fmax((top - y) / height * (rows - 1), 0.0)  # NaN too
    return np.rint(np.minimum(place, rows - 1)).astype(np.int64)


def curve_dots(spans: Spans, bottom: float, top: float, rows: int) -> BoolArray:
    """(rows, columns) dots of a curve; neighbouring columns are made to touch.

    >>> y = np.array([0.0, 1.0, 2.0])
    >>> for row in curve_dots(Spans(y, y), 0, 2, 3): print("".join(".#"[int(dot)] for dot in row))
    ..#
    .#.
    #..
    """
    there = np.isfinite(spans.low) & np.isfinite(spans.high)
    upper, lower = row_of(np.stack((spans.high, spans.low)), bottom, top, rows)
    if there.size > 1:
        both = there[1:] & there[:-1]
        falls, rises = both & (upper[1:] > lower[:-1]), both & (lower[1:] < upper[:-1])
        down, up = (lower[:-1] + upper[1:]) // 2, (upper[:-1] + lower[1:]) // 2
        np.maximum(lower[:-1], down, out=lower[:-1], where=falls)
        np.minimum(upper[1:], down + 1, out=upper[1:], where=falls)
        np.minimum(upper[:-1], up + 1, out=upper[:-1], where=rises)
        np.maximum(lower[1:], up, out=lower[1:], where=rises)
    upper[~there] = rows
    row = np.arange(rows, dtype=np.int32)[:, None]
    dots: BoolArray = (row >= upper.astype(np.int32)) & (row <= lower.astype(np.int32))
    return dots


def level_dots(value: float, bottom: float, top: float, rows: int, columns: int, period: int = 4) -> BoolArray:
    """(rows, columns) dots of a dashed horizontal line; none when `value` is outside the axis."""
    dots = np.zeros((rows, columns), dtype=np.bool_)
    if bottom <= value <= top:
        dots[row_of(np.array([value]), bottom, top, rows)[0], ::period] = True
    return dots


def cells(layers: list[BoolArray], grid: Grid) -> tuple[NDArray[np.uint32], IntArray]:
    """Characters for stacked layers of dots, all (cell rows * down, cell columns * across).

    Returns (cell rows, cell columns) code points, and for each cell the number of the last layer with a dot in it, -1
    for none.

    >>> dots = np.zeros((4, 4), dtype=bool); dots[3, 0] = dots[0, 3] = True
    >>> text_of(cells([dots], BRAILLE)[0])
    '⡀⠈'
    """
    rows, columns = layers[0].shape[0] // grid.down, layers[0].shape[1] // grid.across
    packed = _packed(layers[0], rows, columns, grid)
    owner = np.where(packed, 0, -1)
    for number, dots in enumerate(layers[1:], 1):
        these = _packed(dots, rows, columns, grid)
        owner[these != 0] = number
        packed = packed | these
    return (_BRAILLE_CELLS if grid == BRAILLE else _ASCII_CELLS)[packed], owner


def _packed(dots: BoolArray, rows: int, columns: int, grid: Grid) -> NDArray[np.uint8]:
    """(rows, columns) the dots of each cell as one number."""
    if grid != BRAILLE:
        return dots[::2].astype(np.uint8) + np.uint8(2) * dots[1::2].astype(np.uint8)
    by_cell = dots.reshape(rows, grid.down, columns, grid.across).transpose(0, 2, 3, 1)
    return np.packbits(by_cell.reshape(rows, -1), axis=1)


def text_of(codes: NDArray[np.uint32]) -> str:
    """All code points, row after row, as one text."""
    return codes.astype("<u4").tobytes().decode("utf-32-le")


def sparkline(spans: Spans, bad: BoolArray, levels: str, bad_mark: str, bottom: float, top: float) -> str:
    """One character a column: its highest value as a level, `bad_mark` where NaN or Inf was logged, else a blank.

    >>> y = np.array([1.0, 2.0, 3.0, float("nan")])
    >>> sparkline(Spans(y, y), np.array([False, False, False, True]), "▁▂▃▄▅▆▇█", "✗", 1, 3)
    '▁▅█✗'
    """
    height = top - bottom
    share = (spans.high - bottom) / height if height > 0 else np.where(np.isfinite(spans.high), 0.4, np.nan)
    level = np.clip(np.nan_to_num(share) * len(levels), 0, len(levels) - 1).astype(np.int64)
    there = np.isfinite(spans.high)
    return "".join(
        bad_mark if is_bad else levels[place] if is_there else " "
        for is_bad, is_there, place in zip(bad, there, level, strict=True)
    )
