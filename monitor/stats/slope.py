"""Theil-Sen slope, and a test of a slope that minds autocorrelated noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.stats.middle import median
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

_SOUND = 1e-6  # a difference of sums of which less is left is not trusted; nor how it compares, so close to a bound


def theil_sen(x: FloatArray, y: FloatArray) -> float:
    """The median of the slopes of all pairs with different `x`: (n,), (n,) -> slope; NaN below 2 points.

    Sen, "Estimates of the regression coefficient based on Kendall's tau" (1968). O(n^2): give it block medians.

    >>> float(theil_sen(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0, 5.0, 100.0])))
    17.5
    """
    first, second = np.triu_indices(len(x), 1)
    dx = x[second] - x[first]
    kept = dx != 0
    if not kept.any():
        return float("nan")
    return median((y[second] - y[first])[kept] / dx[kept])


@dataclass(frozen=True, slots=True)
class SlopeTest:
    """A straight line through points: its `slope`, the slope's standard `error`, `points`, and lag-1 correlation.

    The error of ordinary least squares is too small when neighbouring residuals go together. It is widened by
    sqrt((1 + r) / (1 - r)), r their lag-1 correlation (0 when negative): the effective number of points of a
    first-order autoregressive noise.
    """

    slope: float
    error: float
    points: int
    correlation: float

    @property
    def t(self) -> float:
        """Slope over error: 0 for a slope of 0, infinite for points that lie on a line exactly."""
        if self.error > 0:
            return self.slope / self.error
        return math.copysign(math.inf, self.slope) if self.slope else 0.0


def slope_test(x: FloatArray, y: FloatArray) -> SlopeTest:
    """Fits and tests (n,) against (n,). With fewer than 4 points nothing is known: slope 0, error inf.

    >>> fit = slope_test(np.arange(6.0), np.array([0.0, 1.1, 1.9, 3.1, 3.9, 5.0]))
    >>> round(fit.slope, 2), fit.t > 20
    (0.99, True)
    """
    n = len(x)
    dx = x - x.mean() if n else x
    spread = float(dx @ dx)
    if n < 4 or spread == 0:
        return SlopeTest(0.0, float("inf"), n, 0.0)
    slope = float(dx @ y) / spread
    residual = y - y.mean() - slope * dx
    power = float(residual @ residual)
    correlation = float(residual[1:] @ residual[:-1]) / power if power > 0 else 0.0
    r = min(max(correlation, 0.0), 0.99)
    error = (power / (n - 2) / spread * (1 + r) / (1 - r)) ** 0.5
    return SlopeTest(slope, error, n, correlation)


def falling_ends(x: FloatArray, y: FloatArray, t: float) -> NDArray[np.bool_]:
    """(n,) whether `slope_test` of the points from each one on is beyond doubt below `t`, all ends at once.

    False where rounding leaves it open or the points are few: there only the test itself tells.

    >>> x = np.arange(8.0)
    >>> falling_ends(x, np.array([9.0, 7.0, 5.2, 3.0, 1.1, 1.0, 1.2, 1.0]), -3.0).tolist()
    [True, False, False, False, False, False, False, False]
    """
    n = len(x)
    left = np.arange(n, 0, -1.0)
    if n < 4:
        return np.zeros(n, np.bool_)
    # Counted from the last point, sums over an end lose little to rounding, however short it is.
    x, y = x - x[-1], y - y[-1]
    sums = np.stack([x, y, x * x, x * y, y * y])
    lagged = np.zeros((3, n))
    lagged[:, :-1] = x[1:] * x[:-1], x[1:] * y[:-1] + x[:-1] * y[1:], y[1:] * y[:-1]
    sx, sy, sxx, sxy, syy = np.add.accumulate(sums[:, ::-1], axis=1)[:, ::-1]
    lxx, lxy, lyy = np.add.accumulate(lagged[:, ::-1], axis=1)[:, ::-1]
    with np.errstate(all="ignore"):
        spread = sxx - sx * sx / left
        slope = (sxy - sx * sy / left) / spread
        level = (sy - slope * sx) / left
        power = syy - sy * sy / left - slope * slope * spread
        # Residuals of neighbours: all but the first, and all but the last.
        ones, xs, ys = left - 1, 2 * sx - x - x[-1], 2 * sy - y - y[-1]
        lag = lyy - level * ys - slope * lxy + level * level * ones + level * slope * xs + slope * slope * lxx
        r = np.clip(lag / power, 0.0, 0.99)
        tested = slope / np.sqrt(power / (left - 2) / spread * (1 + r) / (1 - r))
        is_sound = (left >= 4) & (power > _SOUND * syy) & (spread > _SOUND * sxx)
        return np.asarray(is_sound & (tested < t - _SOUND * abs(t)))
