"""A memory that rises steadily: its slope, and where the rise began."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import numpy as np

from trainmon.monitor.detectors.common import Place
from trainmon.monitor.stats.slope import slope_test, theil_sen
from trainmon.tails.quick_dataclass import dataclass

CREEP_T: Final = 6.0  # a slope must be so many of its errors above 0 ...
RISES: Final = 6  # ... it must have risen so often: one jump is no creep ...
ONSET: Final = 0.1
WARMING: Final = 50  # values: while an allocator fills its pools, a fast rise is no creep


@dataclass(frozen=True, slots=True)
class RiseRule:
    """Maxima of `block` values each, of which the newest `most` make a slope and `fewest` are needed.

    `rising`: the share of the changes between blocks that must be rises. `least`: so much of the capacity must have
    been gained over them, and on all values before them; `lasting`: the second half must have gained such a share of
    what the first half did.
    """

    block: int
    most: int
    fewest: int
    rising: float
    least: float = 0.0
    lasting: float = 0.0


# Printed in few digits, most blocks of a slow creep change nothing; a fast one is told by its size.
SLOW: Final = RiseRule(10, 40, 12, 0.5)
FAST: Final = RiseRule(5, 10, 10, 0.75, least=0.05, lasting=0.75)


class RisingBlocks:
    """The maxima of blocks of values, and the slope that they make."""

    def __init__(self, rule: RiseRule) -> None:
        self.rule = rule
        self.slope = 0.0  # per step; 0 unless the rise is steady
        self.tops: deque[float] = deque(maxlen=rule.most)
        self.steps: deque[float] = deque(maxlen=rule.most)
        self._begun: deque[Place] = deque(maxlen=rule.most)  # where each block began
        self._begin_at: Place | None = None
        self._count = 0
        self._top = 0.0
        self._highest = -math.inf  # of all values before the blocks

    def clear(self) -> None:
        """What comes is another level."""
        self.slope = 0.0
        self._count, self._highest = 0, -math.inf
        for kept in (self.tops, self.steps, self._begun):
            kept.clear()

    def pass_over(self, x: float) -> None:
        """A value of before the blocks."""
        self._highest = max(self._highest, x)

    def take(self, at: Place, x: float, capacity: float | None) -> bool:
        """One more value; whether it completed a block. O(1), O(most) where a block ends."""
        if not self._count:
            self._begin_at, self._top = at, x
        self._count += 1
        self._top = max(self._top, x)
        if self._count < self.rule.block:
            return False
        self._count = 0
        if len(self.tops) == self.rule.most:
            self.pass_over(self.tops[0])
        self._begun.append(self._begin_at or at)
        self.steps.append(at.step)
        self.tops.append(self._top)
        if capacity is not None:
            self.slope = self._steady(capacity)
        return True

    def onset(self) -> Place | None:
        """Where the blocks leave the lowest level of the window for good: a tenth of the way up."""
        lowest, highest = min(self.tops), max(self.tops)
        low = [i for i, top in enumerate(self.tops) if top <= lowest + ONSET * (highest - lowest)]
        return self._begun[low[-1]] if low else None

    def still_gains(self, capacity: float) -> bool:
        """Whether half of what a fast creep must gain is gained over these blocks."""
        return len(self.tops) > 1 and self.tops[-1] - self.tops[0] >= 0.5 * self.rule.least * capacity

    def _steady(self, capacity: float) -> float:
        tops, rule = self.tops, self.rule
        if len(tops) < rule.fewest:
            return 0.0
        if rule.least:
            middle = tops[len(tops) // 2]
            if tops[-1] - max(tops[0], self._highest) < rule.least * capacity:
                return 0.0
            if tops[-1] - middle < rule.lasting * (middle - tops[0]):
                return 0.0
        x, y = np.array(self.steps), np.array(tops)
        change = np.diff(y)
        rises, falls = int((change > 0).sum()), int((change < 0).sum())
        if rises < RISES or rises < rule.rising * (rises + falls) or slope_test(x, y).t < CREEP_T:
            return 0.0
        return max(theil_sen(x, y), 0.0)
