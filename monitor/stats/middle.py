"""The median of an array. numpy's own imports `numpy.ma` first, which takes as long as two interpreters to start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def median(values: NDArray[Any] | Iterable[float]) -> float:
    """The median of all values, the mean of the two middle ones where their number is even; NaN where any is, or none.

    >>> median([4.0, 1.0, 3.0, 2.0]), median(np.array([3, 1, 2])), median([])
    (2.5, 2.0, nan)
    """
    ranked = np.sort(np.asarray(values if isinstance(values, np.ndarray) else list(values), np.float64).ravel())
    n = len(ranked)
    if not n or np.isnan(ranked[-1]):
        return float("nan")
    half = n >> 1
    return float(ranked[half]) if n & 1 else float((ranked[half - 1] + ranked[half]) / 2)
