"""Which of many values may be out, told from bounds on the medians before them: most need no closer look."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.detectors.spike_rule import SpikeRule
from trainmon.monitor.stats.local_level import JUST_NOW, may_be_steep
from trainmon.monitor.stats.robust_score import EPS, NORMAL
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.stats.sliding import FINE, mad_bound, median_bounds
from trainmon.tails.record import FloatArray, IntArray

_MANY = 64  # when more than one in so many may be out, nearer bounds and the spread are looked at too


def may_be_out(known: FloatArray, rule: SpikeRule, size: float) -> tuple[FloatArray, IntArray]:
    """(n,) lower bounds of the medians, and which of the n values behind the first window may be out.

    `known`: (window + n,) logarithms; `size`: the least distance from the median, or under a steep fall from the values
    just before, of a value that is out.
    """
    window = rule.window
    us = known[window:]
    low, high = median_bounds(known, window)
    candidates = (us - low > size) | (us - high < -size)
    if rule.follows_falls:
        candidates |= _may_jump_in_a_fall(known, window, size, high, np.zeros(len(high)))
    if candidates.sum() <= len(us) // _MANY:
        return low, np.flatnonzero(candidates)
    low, high = median_bounds(known, window, FINE)
    spread = mad_bound(known, window)
    rise = np.maximum(us - low, high - us)
    limit = NORMAL * rise / rule.z - EPS  # as `RobustScore.above` has it
    candidates = (rise > size) & (limit * (1 + 1e-9) > spread)
    if rule.follows_falls:
        candidates |= _may_jump_in_a_fall(known, window, size, high, spread)
    return low, np.flatnonzero(candidates)


def _may_jump_in_a_fall(
    known: FloatArray, window: int, size: float, high: FloatArray, spread: FloatArray
) -> NDArray[np.bool_]:
    """(n,) which values stand above those just before by `size`, where the window may be falling steeply."""
    n = len(known) - window
    highest = np.max([known[window - back : window - back + n] for back in range(1, JUST_NOW + 1)], axis=0)
    jumps = np.asarray(known[window:] - highest > size)
    rows = np.flatnonzero(jumps)
    jumps[rows] = may_be_steep(known, window, rows, high[rows], spread[rows])
    return jumps


def highest_rise(known: FloatArray, most: FloatArray, robust: RollingRobust, above: float) -> tuple[float, int]:
    """The largest distance over the median before it and its row, the first of equal ones; (`above`, -1): none larger.

    `most`: (n,) bounds it from above. Loads windows into `robust`.
    """
    window = robust.window
    best, where = above, -1
    hopeful = np.flatnonzero(most > above)
    for at in hopeful[np.argsort(-most[hopeful], kind="stable")].tolist():
        if most[at] < best:
            break
        robust.load(known[at : at + window].tolist())
        rise = float(known[at + window]) - robust.median
        if rise > best or (rise == best and -1 < at < where):
            best, where = rise, at
    return best, where
