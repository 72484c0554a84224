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
_BRAILLE_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.uint16)
_LARGEST = 1e300  # sums and differences of what is drawn stay finite
_ASCII_CELLS = np.array([ord(" "), ord("'"), ord("."), ord(":")], dtype=np.uint32)


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
    empty = np.full(columns, np.nan)
    keep = np.isfinite(low) & np.isfinite(high) & (x >= start) & (x <= stop)
    if not keep.any():
        return Spans(empty, empty.copy())
    if not keep.all():
        x, low, high = x[keep], low[keep], high[keep]
    low, high = np.clip(low, -_LARGEST, _LARGEST), np.clip(high, -_LARGEST, _LARGEST)
    places = column_of(x, start, stop, columns)
    first = np.flatnonzero(np.diff(places, prepend=-1))
    lows, highs = empty, empty.copy()
    lows[places[first]] = np.minimum.reduceat(low, first)
    highs[places[first]] = np.maximum.reduceat(high, first)
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
    place = np.nan_to_num((top - y) / height * (rows - 1), nan=0.0, posinf=rows - 1, neginf=0.0)
    return np.clip(np.rint(place), 0, rows - 1).astype(np.int64)


def curve_dots(spans: Spans, bottom: float, top: float, rows: int) -> BoolArray:
    """(rows, columns) dots of a curve; neighbouring columns are made to touch.

    >>> y = np.array([0.0, 1.0, 2.0])
    >>> for row in curve_dots(Spans(y, y), 0, 2, 3): print("".join(".#"[int(dot)] for dot in row))
    ..#
    .#.
    #..
    """
    there = np.isfinite(spans.low) & np.isfinite(spans.high)
    upper, lower = row_of(spans.high, bottom, top, rows), row_of(spans.low, bottom, top, rows)
    if there.size > 1:
        both = there[1:] & there[:-1]
        falls = both & (upper[1:] > lower[:-1])
        rises = both & (lower[1:] < upper[:-1])
        down, up = (lower[:-1] + upper[1:]) // 2, (upper[:-1] + lower[1:]) // 2
        left_lower = np.where(falls, np.maximum(lower[:-1], down), lower[:-1])
        right_upper = np.where(falls, np.minimum(upper[1:], down + 1), upper[1:])
        left_upper = np.where(rises, np.minimum(upper[:-1], up + 1), upper[:-1])
        right_lower = np.where(rises, np.maximum(lower[1:], up), lower[1:])
        upper, lower = upper.copy(), lower.copy()
        upper[:-1] = np.minimum(upper[:-1], left_upper)
        lower[:-1] = np.maximum(lower[:-1], left_lower)
        upper[1:] = np.minimum(upper[1:], right_upper)
        lower[1:] = np.maximum(lower[1:], right_lower)
    row = np.arange(rows)[:, None]
    return (row >= upper) & (row <= lower) & there


def level_dots(value: float, bottom: float, top: float, rows: int, columns: int, period: int = 4) -> BoolArray:
    """(rows, columns) dots of a dashed horizontal line; none when `value` is outside the axis."""
    dots = np.zeros((rows, columns), dtype=np.bool_)
    if bottom <= value <= top:
        dots[row_of(np.array([value]), bottom, top, rows)[0], ::period] = True
    return dots


def cells(layers: list[BoolArray], grid: Grid) -> tuple[list[str], IntArray]:
    """Characters for stacked layers of dots, all (cell rows * down, cell columns * across).

    Returns the lines of text, and for each cell the number of the last layer with a dot in it, -1 for none.

    >>> dots = np.zeros((4, 4), dtype=bool); dots[3, 0] = dots[0, 3] = True
    >>> cells([dots], BRAILLE)[0]
    ['⡀⠈']
    """
    rows, columns = layers[0].shape[0] // grid.down, layers[0].shape[1] // grid.across
    owner = np.full((rows, columns), -1, dtype=np.int64)
    bits = np.zeros((rows, columns), dtype=np.uint32)
    for number, dots in enumerate(layers):
        these = _bits(dots, rows, columns, grid)
        owner[these != 0] = number
        bits |= these
    codes = np.where(bits, bits + 0x2800, ord(" ")) if grid == BRAILLE else _ASCII_CELLS[bits]
    return _text(codes), owner


def _bits(dots: BoolArray, rows: int, columns: int, grid: Grid) -> NDArray[np.uint32]:
    shaped = dots.reshape(rows, grid.down, columns, grid.across)
    weights = _BRAILLE_BITS if grid == BRAILLE else np.array([[1], [2]], dtype=np.uint16)
    bits: NDArray[np.uint32] = np.einsum("rdca,da->rc", shaped.astype(np.uint32), weights.astype(np.uint32))
    return bits


def _text(codes: NDArray[np.integer]) -> list[str]:
    return [row.astype("<u4").tobytes().decode("utf-32-le") for row in np.ascontiguousarray(codes)]


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
