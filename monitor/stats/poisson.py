"""What a count of rare events says about their rate."""

from __future__ import annotations

import math


def upper_bound(count: int, confidence: float = 0.95) -> float:
    """The largest mean of a Poisson count that `count` events do not contradict, one-sided (Garwood).

    Zero events bound the mean by -log(1 - confidence): the "rule of three". Raises ValueError for a negative count.

    >>> [round(upper_bound(count), 2) for count in (0, 1, 2, 10)]
    [3.0, 4.74, 6.3, 16.96]
    """
    if count < 0:
        raise ValueError("a count is not negative")
    low, high = 0.0, 4.0 * count + 20.0
    for _ in range(80):
        middle = (low + high) / 2
        if _at_most(count, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(count: int, mean: float) -> float:
    """The chance of `count` events or fewer when so many are expected."""
    if mean <= 0:
        return 1.0
    logs = [k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(count + 1)]
    return math.fsum(map(math.exp, logs))
