"""Bounds on the medians of a sliding window, for many values at once: most of them need no more."""

from __future__ import annotations

import numpy as np

from trainmon.tails.record import FloatArray

LEAST_WINDOW = 20
_SHARE = 10


def median_bounds(values: FloatArray, window: int) -> tuple[FloatArray, FloatArray]:
    """For each value after the first `window`: a lower and an upper bound of the median of the `window` before it.

    `values`: (window + n,) finite; returns two arrays (n,). Windows that begin near each other share most values; two
    order statistics of those bound the medians of all of them, whatever the others are.

    >>> low, high = median_bounds(np.arange(30.0), 20)
    >>> all(low <= np.arange(9.5, 19.5)), all(high >= np.arange(9.5, 19.5))
    (True, True)
    """
    if window < LEAST_WINDOW:
        raise ValueError(f"bounds of a window below {LEAST_WINDOW} values say nothing")
    n = len(values) - window
    step = window // _SHARE
    groups = -(-n // step)
    shared = window - step + 1  # of the windows that begin at one group's values
    padded = np.concatenate([values, np.full(groups * step - n, values[-1])])
    common = np.lib.stride_tricks.sliding_window_view(padded[step - 1 :], shared)[::step][:groups]
    lowest, highest = (window - 1) // 2 - (step - 1), window // 2
    ranked = np.partition(common, (lowest, highest), axis=1)
    return np.repeat(ranked[:, lowest], step)[:n], np.repeat(ranked[:, highest], step)[:n]
