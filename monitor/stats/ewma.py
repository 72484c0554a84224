"""Exponentially weighted mean."""

from __future__ import annotations


class Ewma:
    """Mean with weights (1 - alpha)^age, corrected for its start (as Adam corrects its moments).

    value = sum(w_i x_i) / sum(w_i), w_i = (1 - alpha)^(n - i).

    >>> stat = Ewma(alpha=0.5)
    >>> for x in [4.0, 1.0, 1.0]:
    ...     stat.update(x)
    >>> round(stat.value, 6)
    1.428571
    """

    __slots__ = ("_sum", "_weight", "alpha")

    def __init__(self, alpha: float) -> None:
        if not 0 < alpha <= 1:
            raise ValueError("alpha lies in (0, 1]")
        self.alpha = alpha
        self._sum = 0.0
        self._weight = 0.0

    def update(self, x: float) -> None:
        """Takes one value in."""
        keep = 1 - self.alpha
        self._sum = keep * self._sum + x
        self._weight = keep * self._weight + 1

    @property
    def value(self) -> float:
        """The weighted mean; NaN before the first value."""
        return self._sum / self._weight if self._weight else float("nan")
