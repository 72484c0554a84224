"""Where the next value of a steadily falling series should lie: the level by its trend, and the spread around it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.stats.middle import median
from trainmon.monitor.stats.robust_score import NORMAL
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.tails.record import FloatArray, IntArray

SHORT = 10  # values whose median is the level of now
RESIDUALS = 50  # newest values whose distances from the level before them tell the trend and the spread
FEWEST = 15  # such distances
JUST_NOW = 4  # values above all of which a jump stands: noise alone seldom does
STEEP = math.log(1.02)  # so far below the median of the whole window lies the level of now ...
STEEP_SPREADS = 1.0  # ... and so many of the D of the window; a straight fall alone is 1.8


@dataclass(frozen=True, slots=True)
class LocalLevel:
    """`expected`: of the next value, `spread`: median absolute deviation around it, `falls`: by a trend alone."""

    expected: float
    spread: float
    falls: bool = False

    def score(self, u: float) -> float:
        """D6 with the trend taken out."""
        return NORMAL * (u - self.expected) / max(self.spread, 1e-12)


def local_level(robust: RollingRobust, floor: float) -> LocalLevel | None:
    """By the newest values of the window, where they fall steeply; else None: the window itself is the measure.

    Where they fall, median and median absolute deviation of the window say more of the fall than of the noise: a value
    twice its neighbours may lie below the median. So each value u_i is held against q_i, the median of the SHORT values
    before it: under a steady trend u_i - q_i is a constant and the noise. The median of the last RESIDUALS of these is
    the trend, their median absolute deviation, at least `floor`, the spread.

    >>> falling, level = RollingRobust(100), RollingRobust(100)
    >>> falling.load([5.0 - 0.02 * i for i in range(100)])
    >>> level.load([5.0, 5.1] * 50)
    >>> told = local_level(falling, 0.001)
    >>> round(told.expected, 3), told.spread, local_level(level, 0.001) is None
    (3.0, 0.001, True)
    """
    if len(robust) < FEWEST + SHORT:
        return None
    ranked_now = sorted(robust.newest(SHORT))
    now = (ranked_now[SHORT // 2 - 1] + ranked_now[SHORT // 2]) / 2
    middle = robust.median
    if now >= middle - STEEP or now >= middle - STEEP_SPREADS * robust.mad:  # the MAD costs more: only where it decides
        return None
    newest = np.array(robust.newest(RESIDUALS + SHORT)[::-1])
    ranked = np.sort(np.lib.stride_tricks.sliding_window_view(newest, SHORT)[:-1], axis=1)
    before = (ranked[:, SHORT // 2 - 1] + ranked[:, SHORT // 2]) / 2
    apart = newest[SHORT:] - before
    trend = median(apart)
    return LocalLevel(now + trend, max(median(np.abs(apart - trend)), floor), falls=True)


def may_be_steep(
    values: FloatArray, window: int, rows: IntArray, high: FloatArray, spread: FloatArray | float
) -> NDArray[np.bool_]:
    """(rows,) whether the window before `values[window + row]` can be falling steeply.

    `high`: (rows,) upper bounds of the windows' medians, `spread`: lower bounds of their D. The median of SHORT values
    lies below a bar only where half of them do.
    """
    recent = values[(rows + window)[:, None] - np.arange(1, SHORT + 1)]
    bar = high - np.maximum(STEEP, STEEP_SPREADS * spread) + 1e-9
    return np.asarray((recent < bar[:, None]).sum(axis=1) >= SHORT // 2)
