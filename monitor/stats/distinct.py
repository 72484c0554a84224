"""The distinct values of an array. numpy's own imports `numpy.ma` first, which holds up all threads meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """(n,) each value once, ascending, as `np.unique` gives them; `values` hold no NaN.

    >>> distinct(np.array([3, 1, 3, 2])).tolist(), distinct(np.array([])).tolist()
    ([1, 2, 3], [])
    """
    ranked = np.sort(values, axis=None)
    is_new = np.ones(len(ranked), bool)
    np.not_equal(ranked[1:], ranked[:-1], out=is_new[1:])
    return ranked[is_new]
