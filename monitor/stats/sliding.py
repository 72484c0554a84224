"""Bounds on the median and the MAD of a sliding window, for many values at once: most of them need no more."""

from __future__ import annotations

import numpy as np

from trainmon.tails.record import FloatArray

LEAST_WINDOW = 20
COARSE, FINE = 3, 10  # a group of windows begins at so many parts of a window


def median_bounds(values: FloatArray, window: int, parts: int = COARSE) -> tuple[FloatArray, FloatArray]:
    """For each value after the first `window`: a lower and an upper bound of the median of the `window` before it.

    `values`: (window + n,) finite; returns two arrays (n,). Windows that begin near each other share most values; two
    order statistics of those bound the medians of all of them, whatever the others are. With more `parts` the groups
    are smaller, the bounds nearer and the work greater.

    >>> low, high = median_bounds(np.arange(30.0), 20)
    >>> all(low <= np.arange(9.5, 19.5)), all(high >= np.arange(9.5, 19.5))
    (True, True)
    """
    n, step = len(values) - window, _step(window, parts)
    ranked = _ranked(values, window, step)
    lowest, highest = (window - 1) // 2 - (step - 1), window // 2
    return np.repeat(ranked[:, lowest], step)[:n], np.repeat(ranked[:, highest], step)[:n]


def mad_bound(values: FloatArray, window: int, parts: int = FINE) -> FloatArray:
    """(n,) a lower bound of the median absolute deviation of the `window` values before each one.

    Half of a window lies within its MAD of its median, so in an interval of twice that length, and most of that half
    is shared by the windows of a group: the shortest interval that holds so many of the shared values is no longer.

    >>> bool(mad_bound(np.arange(30.0), 20)[0] <= 5.0)
    True
    """
    n, step = len(values) - window, _step(window, parts)
    ranked = _ranked(values, window, step)
    held = (window + 1) // 2 - (step - 1)
    shortest = (ranked[:, held - 1 :] - ranked[:, : ranked.shape[1] - held + 1]).min(axis=1)
    return np.asarray(np.repeat(shortest / 2 * (1 - 1e-12), step)[:n])  # the MAD is rounded too


def _step(window: int, parts: int) -> int:
    if window < LEAST_WINDOW:
        raise ValueError(f"bounds of a window below {LEAST_WINDOW} values say nothing")
    return window // parts


def _ranked(values: FloatArray, window: int, step: int) -> FloatArray:
    """(groups, shared) what the windows that begin at one group's values share, ascending."""
    n = len(values) - window
    groups = -(-n // step)
    padded = np.concatenate([values, np.full(groups * step - n, values[-1])])
    common = np.lib.stride_tricks.sliding_window_view(padded[step - 1 :], window - step + 1)[::step][:groups]
    return np.sort(common, axis=1)
