"""Whether what is called a duration is the time since the start: it never falls."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.record import FloatArray

ONLY_RISES = "what is logged as step time never falls: the time since the start? log the time of each step"
FEWEST = 30
_SHARE = 0.9


class OnlyRises:
    """Tells of each value whether those of its series so far never fell within an attempt and nearly always rose.

    The noise of a true duration cannot do that: 30 values in rising order have odds of 1 in 30!.

    >>> rises = OnlyRises()
    >>> rises.update(np.arange(40.0)).tolist().index(True), rises.holds
    (29, True)
    >>> rises.new_attempt()
    >>> rises.update(np.array([3.0, 4.0])).tolist(), rises.update(np.array([2.0])).tolist(), rises.holds
    ([True, True], [False], False)
    """

    def __init__(self) -> None:
        self._count = 0
        self._rises = 0
        self._fell = False
        self._last = math.nan

    @property
    def holds(self) -> bool:
        """Of all values so far."""
        return not self._fell and self._count >= FEWEST and self._rises >= _SHARE * self._count

    def new_attempt(self) -> None:
        """A clock may begin anew."""
        self._last = math.nan

    def update(self, values: FloatArray) -> NDArray[np.bool_]:
        """(n,) for each of the finite `values` whether it holds up to there."""
        if not len(values):
            return np.zeros(0, np.bool_)
        steps = np.diff(values, prepend=self._last)
        fell = np.logical_or.accumulate(steps < 0) | self._fell
        rises = self._rises + np.cumsum(steps > 0)
        counts = self._count + np.arange(1, len(values) + 1)
        self._fell, self._rises, self._count = bool(fell[-1]), int(rises[-1]), int(counts[-1])
        self._last = float(values[-1])
        return ~fell & (counts >= FEWEST) & (rises >= _SHARE * counts)
