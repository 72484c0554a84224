"""Exponentially weighted mean."""

from __future__ import annotations

from trainmon.monitor.stats.decaying import DecayingSum
from trainmon.tails.record import FloatArray


class Ewma:
    """Mean with weights (1 - alpha)^age, corrected for its start (as Adam corrects its moments).

    value = sum(w_i x_i) / sum(w_i), w_i = (1 - alpha)^(n - i).

    >>> stat = Ewma(alpha=0.5)
    >>> for x in [4.0, 1.0, 1.0]:
    ...     stat.update(x)
    >>> round(stat.value, 6)
    1.428571
    """

    __slots__ = ("_count", "_sum", "alpha")

    def __init__(self, alpha: float) -> None:
        if not 0 < alpha <= 1:
            raise ValueError("alpha lies in (0, 1]")
        self.alpha = alpha
        self._sum = DecayingSum(1 - alpha)
        self._count = 0

    def update(self, x: float) -> None:
        """Takes one value in."""
        self._sum.update(x)
        self._count += 1

    def extend(self, values: FloatArray) -> None:
        """Takes (n,) values in, one after the other."""
        self._sum.extend(values)
        self._count += len(values)

    @property
    def value(self) -> float:
        """The weighted mean; NaN before the first value."""
        if not self._count:
            return float("nan")
        return self._sum.value * self.alpha / (1 - (1 - self.alpha) ** self._count)
