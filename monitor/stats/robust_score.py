"""The robust spike score D6."""

from __future__ import annotations

import math

from trainmon.monitor.stats.rolling_robust import RollingRobust

EPS = 1e-12
NORMAL = 0.6745  # the MAD of a standard Gaussian


def robust_score(u: float, median: float, mad: float, floor: float = 0.0) -> float:
    """D6 with a sign: 0.6745 * (u - q) / (max(D, floor) + eps).

    >>> round(robust_score(1.2, 1.0, 0.01), 2)
    13.49
    """
    return NORMAL * (u - median) / (max(mad, floor) + EPS)


class RobustScore:
    """z_t of METRICS.md D6 against the `window` values before t, on the logarithm or on raw values.

    `score(x)` is signed (up is positive) and changes nothing; `update(x)` takes x into the window. Whoever calls
    decides whether a flagged value is learned: by D6 it is not. `half_unit` is half a unit in the last printed
    place: it floors D, divided by the level when logarithms are taken.

    >>> stat = RobustScore(window=100)
    >>> for x in [2.0, 2.02, 1.98, 2.01, 1.99]:
    ...     stat.update(x)
    >>> round(stat.score(4.0), 1), stat.score(2.0)
    (93.3, 0.0)
    """

    __slots__ = ("half_unit", "log", "robust")

    def __init__(self, window: int, log: bool = True) -> None:
        self.robust = RollingRobust(window)
        self.log = log
        self.half_unit = 0.0

    def __len__(self) -> int:
        return len(self.robust)

    def scale(self, x: float) -> float:
        """`x` as it is judged: its logarithm, or itself. Raises ValueError for log of a value not above 0."""
        return math.log(x + EPS) if self.log else x

    @property
    def floor(self) -> float:
        """What D is floored by: the half unit, propagated through the logarithm at the median."""
        if not self.log or not self.half_unit:
            return self.half_unit
        return self.half_unit / (math.exp(self.robust.median) + EPS)

    @property
    def spread(self) -> float:
        """The floored D."""
        return max(self.robust.mad, self.floor)

    def score(self, x: float) -> float:
        """z of `x` against the window as it is; NaN while the window is empty."""
        return robust_score(self.scale(x), self.robust.median, self.robust.mad, self.floor)

    def above(self, rise: float, cut: float) -> bool:
        """Whether a value `rise` above the median scores above `cut`, without working out D (two bisects)."""
        limit = NORMAL * rise / cut - EPS
        return limit > self.floor and limit > 0 and self.robust.within(limit)

    def update(self, x: float) -> None:
        """Takes `x` into the window."""
        self.robust.update(self.scale(x))
