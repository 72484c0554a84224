"""Layer by step as a map of levels: numpy only, one pass over a few thousand bins a layer.

Of the values that share a cell the one furthest from its layer's usual level stands, so that nothing unusual is
averaged away.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.snapshot import SeriesView
from trainmon.monitor.stats.middle import median, quantile
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, IntArray
from trainmon.tui.levels import thinned, window
from trainmon.tui.raster import BoolArray, column_of

LEVELS = 9
_ENDS = (0.02, 0.98)  # quantiles at which the scale of values ends
_LEAST_DOUBLINGS = 1.0  # a map of changes never makes noise look like more than that


@dataclass(frozen=True, slots=True)
class HeatMap:
    """`level` (rows, columns): 0 to LEVELS - 1, -1 where nothing was logged. With `by_change` the middle level is a
    layer's own usual value and the ends are `low` and `high` times it (or so much less and more, where `log` is
    False); else `low` and `high` are the values at the ends. `bad`: NaN or Inf was logged there.
    `rows`: (first, end) of the layers in each row.
    """

    level: IntArray
    bad: BoolArray
    rows: tuple[tuple[int, int], ...]
    low: float
    high: float
    log: bool
    by_change: bool
    ends: tuple[float, float]


def layer_rows(layers: int, rows: int) -> tuple[tuple[int, int], ...]:
    """Which layers stand in each of at most `rows` rows.

    >>> layer_rows(5, 2), layer_rows(3, 10)
    (((0, 2), (2, 5)), ((0, 1), (1, 2), (2, 3)))
    """
    count = max(1, min(layers, rows))
    return tuple((row * layers // count, (row + 1) * layers // count) for row in range(count))


def heat_map(
    views: tuple[SeriesView, ...],
    columns: int,
    rows: int,
    ends: tuple[float, float] | None = None,
    *,
    by_change: bool = False,
    usual_is: float | None = None,
) -> HeatMap | None:
    """The map of `views` (one a layer) from step `ends[0]` to `ends[1]`; None when there is nothing to draw.

    `usual_is`: what all rows are measured against in place of each one's own usual level.
    """
    thin = [thinned(view) for view in views]
    whole = _extent(thin)
    if whole is None or columns < 1 or rows < 1:
        return None
    start, stop = ends or whole
    is_zoomed = stop - start < 0.7 * (whole[1] - whole[0])
    drawn = [window(view, start, stop) for view in views] if is_zoomed else thin
    usual = np.array([median(view.values) if view.values.size else np.nan for view in thin])
    if usual_is is not None:
        usual = np.where(np.isfinite(usual), usual_is, np.nan)
    log = all(view.low.size == 0 or float(view.low.min()) >= 0 for view in thin) and bool(
        (usual[usual == usual] > 0).all()
    )
    cells = np.array([_row(view, level, start, stop, columns, log) for view, level in zip(drawn, usual, strict=True)])
    bad = np.array([_bad(view, start, stop, columns) for view in views])
    groups = layer_rows(len(views), rows)
    picked = np.array([_strongest(cells[a:b], usual[a:b], log) for a, b in groups])
    marked = np.array([bad[a:b].any(axis=0) for a, b in groups])
    level, low, high = (_changes if by_change else _values)(picked[..., 0], picked[..., 1], log)
    return HeatMap(level, marked, groups, low, high, log, by_change, (start, stop))


def _extent(views: list[SeriesView]) -> tuple[float, float] | None:
    known = [view.steps for view in views if view.steps.size]
    if not known:
        return None
    start, stop = min(float(steps.min()) for steps in known), max(float(steps.max()) for steps in known)
    return (start, stop if stop > start else start + 1)


def _distance(values: FloatArray, usual: float | FloatArray, log: bool) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        if log:
            return np.asarray(np.abs(np.log2(np.maximum(values, 1e-300) / usual)))
        return np.asarray(np.abs(values - usual))


def _row(view: SeriesView, usual: float, start: float, stop: float, columns: int, log: bool) -> FloatArray:
    """(columns,) the value in each column that is furthest from `usual`; the one before it where none was logged."""
    out = np.full(columns, np.nan)
    place = column_of(view.steps, start, stop, columns)
    inside = np.flatnonzero(place >= 0)
    if not inside.size:
        return out
    place, low, high = place[inside], view.low[inside], view.high[inside]
    if (np.diff(place) < 0).any():  # an attempt began anew further back
        order = np.argsort(place, kind="stable")
        place, low, high = place[order], low[order], high[order]
    above, below = _distance(high, usual, log), _distance(low, usual, log)
    extreme, distance = np.where(above >= below, high, low), np.maximum(above, below)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    furthest = np.repeat(np.maximum.reduceat(distance, first), np.diff(first, append=place.size))
    is_furthest = distance >= furthest
    out[place[is_furthest]] = extreme[is_furthest]
    known = np.flatnonzero(np.isfinite(out))
    held = np.maximum.accumulate(np.where(np.isfinite(out), np.arange(columns), -1))
    gaps = (held >= 0) & (np.arange(columns) <= known[-1])
    out[gaps] = out[held[gaps]]
    return out


def _bad(view: SeriesView, start: float, stop: float, columns: int) -> BoolArray:
    marked = np.zeros(columns, np.bool_)
    places = column_of(view.bad_steps, start, stop, columns)
    marked[places[places >= 0]] = True
    return marked


def _strongest(cells: FloatArray, usual: FloatArray, log: bool) -> NDArray[np.float64]:
    """(columns, 2): of the layers in one row the value furthest from its layer's usual one, and that usual one."""
    distance = np.nan_to_num(_distance(cells, usual[:, None], log), nan=-1.0)
    pick = distance.argmax(axis=0)
    column = np.arange(cells.shape[1])
    return np.stack([cells[pick, column], usual[pick]], axis=1)


def _values(cells: FloatArray, usual: FloatArray, log: bool) -> tuple[IntArray, float, float]:
    del usual
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.log2(np.where(cells > 0, cells, np.nan)) if log else cells
    known = scaled[np.isfinite(scaled)]
    if not known.size:
        return np.where(np.isfinite(cells), 0, -1), 0.0, 0.0
    low, high = (quantile(known, share) for share in _ENDS)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    scaled = np.where(np.isfinite(cells) & ~np.isfinite(scaled), low, scaled)
    ends = (2.0**low, 2.0**high) if log else (low, high)
    return _levels((scaled - low) / (high - low)), *ends


def _changes(cells: FloatArray, usual: FloatArray, log: bool) -> tuple[IntArray, float, float]:
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.log2(np.maximum(cells, 1e-300) / usual) if log else cells - usual
    known = np.abs(moved[np.isfinite(moved)])
    most = quantile(known, _ENDS[1]) if known.size else 1.0
    most = max(most, _LEAST_DOUBLINGS) if log else most or 1.0
    ends = (2.0**-most, 2.0**most) if log else (-most, most)
    return _levels(moved / (2 * most) + 0.5), *ends


def _levels(share: FloatArray) -> IntArray:
    known = np.isfinite(share)
    scaled = np.clip(np.nan_to_num(share) * LEVELS, 0, LEVELS - 1).astype(np.int64)
    return np.where(known, scaled, -1)
