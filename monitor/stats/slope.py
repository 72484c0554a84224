"""Theil-Sen slope, and a test of a slope that minds autocorrelated noise."""

from __future__ import annotations

import math

import numpy as np

from trainmon.monitor.stats.middle import median
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray


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
