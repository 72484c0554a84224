"""A power law with an offset, y = e + a x^-b, fitted to a loss curve, and what it says beyond the data: a range.

The offset e is what the data hardly tell (Hoffmann et al. 2022, "Training Compute-Optimal Large Language Models",
appendix D, fit such a law to many runs). So every offset whose fit is nearly as good as the best one counts, and the
answer is what they all say together (METRICS.md, "Comparing runs": a range, not a number).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

_FEWEST = 8
_OFFSETS = 60
_ROUNDS = 4  # each looks closer at the offsets that fit
_CHI2_95 = 3.84  # one parameter, 95%: the profile of the offset
_T_95 = 2.1
MOST_POINTS = 40


@dataclass(frozen=True, slots=True)
class Range:
    """What y may be at `x`: from `low` to `high`. `exponent`: the least and largest b that fit."""

    x: float
    low: float
    high: float
    exponent: tuple[float, float]


def extrapolated(x: FloatArray, y: FloatArray, at: float) -> Range | None:
    """The range of y at `at` from (n,) points with x > 0; None where the points do not tell (too few, or not falling).

    >>> x = np.geomspace(1.0, 100.0, 30)
    >>> found = extrapolated(x, 1.7 + 2.0 * x**-0.3, 200.0)
    >>> f"{found.low:.3f} {1.7 + 2.0 * 200**-0.3:.3f} {found.high:.3f}"
    '2.108 2.108 2.108'
    >>> extrapolated(x, 2.0 + 0 * x, 200.0) is None
    True
    """
    fine = np.isfinite(x) & np.isfinite(y) & (x > 0)
    x, y = x[fine], y[fine]
    if x.size < _FEWEST or not at > 0 or x.max() <= x.min() or y.min() <= 0:
        return None
    unit = float(y.max())
    y = y / unit  # so that no square leaves the range of a float
    floor = float(y.min())
    spread = float(np.ptp(y))
    # Offsets crowd towards the lowest value, where they matter; none may lie above a value of the curve.
    below = spread * np.geomspace(1e-3, max(floor / spread, 2e-3), _OFFSETS) if spread else np.zeros(1)
    offsets = np.append((floor - below)[floor >= below], 0.0)
    near: list[_Fit] = []
    for _ in range(_ROUNDS):
        fits = [fit for fit in (_fit(x, y, offset, at) for offset in offsets.tolist()) if fit is not None]
        if not fits:
            return None
        # A curve without any noise has one fit; rounding alone must not exclude its neighbours.
        worst = min(fit.squares for fit in fits) * (1.0 + _CHI2_95 / max(x.size - 3, 1)) + 1e-20 * spread**2
        near = [fit for fit in fits if fit.squares <= worst]
        held = np.sort([fit.offset for fit in fits])
        first = max(int(np.searchsorted(held, min(fit.offset for fit in near))) - 1, 0)
        last = min(int(np.searchsorted(held, max(fit.offset for fit in near))) + 1, held.size - 1)
        offsets = np.linspace(held[first], held[last], _OFFSETS)
    exponents = [fit.exponent for fit in near]
    if min(exponents) <= 0:
        return None
    low, high = unit * min(fit.low for fit in near), unit * max(fit.high for fit in near)
    return Range(at, low, high, (min(exponents), max(exponents))) if np.isfinite(high) else None


class _Fit(NamedTuple):
    squares: float
    offset: float
    low: float
    high: float
    exponent: float


def _fit(x: FloatArray, y: FloatArray, offset: float, at: float) -> _Fit | None:
    """For one offset, by least squares in log space; weighted so that it is noise in y that counts."""
    above = y - offset
    if (above <= 0).any():
        return None
    u, v, weight = np.log(x), np.log(above), (above / above.max()) ** 2
    total = float(weight.sum())
    middle, level = float((weight * u).sum()) / total, float((weight * v).sum()) / total
    scatter = float((weight * (u - middle) ** 2).sum())
    if scatter <= 0:
        return None
    slope = float((weight * (u - middle) * (v - level)).sum()) / scatter
    fitted = level + slope * (u - middle)
    squares = float(((above - np.exp(fitted)) ** 2).sum())
    noise = float(np.sqrt((weight * (v - fitted) ** 2).sum() / max(x.size - 3, 1)))
    away = float(np.log(at)) - middle
    error = _T_95 * noise * float(np.sqrt(1.0 / total + away**2 / scatter))
    there = level + slope * away
    return _Fit(squares, offset, offset + float(np.exp(there - error)), offset + float(np.exp(there + error)), -slope)


def batched(x: FloatArray, y: FloatArray, skip_share: float = 0.1) -> tuple[FloatArray, FloatArray]:
    """At most `MOST_POINTS` means of equal stretches of log x, without the first `skip_share` of x (warm-up): a curve's
    noise is correlated, so that its single values tell less than their number."""
    kept = (x > 0) & (x >= x[0] + skip_share * (x[-1] - x[0])) if x.size else np.zeros(0, bool)
    x, y = x[kept], y[kept]
    if x.size <= MOST_POINTS:
        return x, y
    edges = np.geomspace(x[0], x[-1], MOST_POINTS + 1)
    cell = np.clip(np.searchsorted(edges, x, "right") - 1, 0, MOST_POINTS - 1)
    count = np.bincount(cell, minlength=MOST_POINTS)
    full = count > 0
    return (
        np.bincount(cell, x, MOST_POINTS)[full] / count[full],
        np.bincount(cell, y, MOST_POINTS)[full] / count[full],
    )
