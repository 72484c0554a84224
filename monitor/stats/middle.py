"""Medians and quantiles. numpy's own import `numpy.ma` first, which takes as long as two interpreters to start."""

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


def medians(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the median of each of (n, m) rows, m at least 1; NaN for a row that holds any.

    >>> medians(np.array([[3.0, 1.0, 2.0], [1.0, np.nan, 2.0]])).tolist()
    [2.0, nan]
    """
    ranked = np.sort(rows, axis=1)
    half = rows.shape[1] >> 1
    middle = ranked[:, half] if rows.shape[1] & 1 else (ranked[:, half - 1] + ranked[:, half]) / 2
    return np.where(np.isnan(ranked[:, -1]), np.nan, middle)


def quantile(values: NDArray[Any] | Iterable[float], share: float) -> float:
    """The value below which `share` (0 to 1) of all values lies, linearly interpolated as numpy does it; NaN where any
    is, or none.

    >>> quantile([4.0, 1.0, 3.0, 2.0], 0.5), quantile(np.array([3, 1, 2]), 0.75), quantile([], 0.5)
    (2.5, 2.5, nan)
    """
    ranked = np.sort(np.asarray(values if isinstance(values, np.ndarray) else list(values), np.float64).ravel())
    n = len(ranked)
    if not n or np.isnan(ranked[-1]):
        return float("nan")
    place = (n - 1) * share
    low = int(place)
    below, above = float(ranked[low]), float(ranked[min(low + 1, n - 1)])
    part = place - low
    return below + (above - below) * part if part < 0.5 else above - (above - below) * (1 - part)
