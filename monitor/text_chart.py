"""A chart of characters for reports and `compare`, drawn by plotext. The live screens have their own raster."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray
from trainmon.tails.text import printable

_MARKERS = ("braille", "dot", "x", "o", "+", "#")
_LARGEST = 1e150  # beyond it, plotext cannot write the numbers of the axis
_LETTERS = ("*", "x", "o", "+", "#", "@")
# plotext keeps one figure for the whole process.
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: `x` and `y` (n,), of which what is not finite is left out; `bad` (m,): x at which NaN or Inf was
    logged, over which no line is drawn."""

    name: str
    x: FloatArray
    y: FloatArray
    bad: FloatArray | None = None


def text_chart(
    lines: Sequence[Line],
    *,
    title: str = "",
    x_label: str = "step",
    width: int = 80,
    height: int = 14,
    ascii_only: bool = False,
    upright: Sequence[float] = (),
    clip: bool = False,
) -> str:
    """The chart as lines of plain text, "" where there is nothing to draw. `upright`: x values marked by a line;
    `clip`: outliers of which the title tells are drawn at the edge (`shown_range`).

    Never more than a few points a column are handed to plotext: of each column's stretch the lowest and the highest.
    """
    shown = [(line, *thinned(line.x, line.y, 2 * width)) for line in lines]
    shown = [(line, x, y) for line, x, y in shown if x.size]
    if not shown:
        return ""
    if clip:
        low, high, beyond = shown_range(np.concatenate([y for _, _, y in shown]))
        shown = [(line, x, np.clip(y, low, high)) for line, x, y in shown]
        title += beyond_words(beyond)
    import plotext

    with _lock:
        plotext.clear_figure()
        plotext.theme("clear")
        plotext.plot_size(width, height)
        if title:
            plotext.title(printable(title, width))
        plotext.xlabel(x_label)
        for number, (line, x, y) in enumerate(shown):
            marker = (_LETTERS if ascii_only else _MARKERS)[number % len(_MARKERS)]
            label = printable(line.name, 40) if len(shown) > 1 else None
            for part_x, part_y in pieces(x, y, line.bad):
                plotext.plot(part_x.tolist(), part_y.tolist(), marker=marker, label=label)
                label = None
        for x_at in upright:
            plotext.vline(x_at)
        drawn = plotext.uncolorize(plotext.build())
        plotext.clear_figure()
    text = "\n".join(row.rstrip() for row in drawn.splitlines())
    return _ascii(text) if ascii_only else text


def beyond_words(count: int) -> str:
    """What a chart's title says of values that lie beyond its edge."""
    return f", {count} value{'s' if count > 1 else ''} beyond the edge" if count else ""


def shown_range(y: FloatArray) -> tuple[float, float, int]:
    """The lowest and highest value to draw of (n,) finite ones, and how many lie beyond: few outliers that would press
    all the rest into a line are drawn at the edge.

    >>> shown_range(np.array([2.0, 3.0, 2.5, 2.2] * 50)), shown_range(np.array([2.0, 3.0] * 100 + [1e6]))
    ((2.0, 3.0, 0), (2.0, 5.0, 1))
    """
    low, high = float(y.min()), float(y.max())
    inner_low, inner_high = (float(each) for each in np.quantile(y, (0.03, 0.97)))
    spread = inner_high - inner_low
    if not 0 < 20 * spread < high - low:
        return low, high, 0
    low, high = max(low, inner_low - 2 * spread), min(high, inner_high + 2 * spread)
    return low, high, int(((y < low) | (y > high)).sum())


_PLAIN = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++|++" + "+-|")


def _ascii(text: str) -> str:
    return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")


def thinned(x: FloatArray, y: FloatArray, columns: int) -> tuple[FloatArray, FloatArray]:
    """At most 2 * `columns` of the finite points, in the order of x: each column's lowest and highest, so that no spike
    is lost."""
    fine = np.isfinite(x) & np.isfinite(y)
    x, y = x[fine], np.clip(y[fine], -_LARGEST, _LARGEST)
    y = np.where(np.abs(y) < 1 / _LARGEST, 0.0, y)
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    if x.size <= 2 * columns:
        return x, y
    edges = np.linspace(0, x.size, columns + 1).astype(np.int64)
    kept: list[int] = []
    for begin, end in pairwise(edges.tolist()):
        if end > begin:
            piece = y[begin:end]
            kept += sorted({begin + int(piece.argmin()), begin + int(piece.argmax())})
    return x[kept], y[kept]


def pieces(x: FloatArray, y: FloatArray, bad: FloatArray | None) -> list[tuple[FloatArray, FloatArray]]:
    """The curve cut wherever a value that is not finite was logged between two points."""
    if bad is None or not bad.size or x.size < 2:
        return [(x, y)]
    before = np.searchsorted(np.sort(bad), x)
    cuts = np.flatnonzero(np.diff(before)) + 1
    return list(zip(np.split(x, cuts), np.split(y, cuts), strict=True))
