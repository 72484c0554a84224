"""What a new attempt is to the ones before it: a resume of the same training, or another beginning."""

from __future__ import annotations

import math
from typing import NamedTuple

from trainmon.monitor.detectors.common import resumed

LEAST_STEPS = 10.0  # an attempt that begins this near to where the run began, begins anew
INTERVALS = 1.5
SHARE = 0.01


class Restart(NamedTuple):
    """How an attempt begins. `resumed`: it carries on the training before it; the branch beyond `step` is abandoned."""

    step: float
    resumed: bool

    def leaves_behind(self, step: float) -> bool:
        """Whether what happened at `step` lies on the branch that is abandoned."""
        return self.resumed and self.step <= step


class Lineage:
    """Follows the attempts of one series of steps.

    An attempt that begins near where the last one ended, or well beyond where the run began, resumes; one that begins
    where the run began is another run in the same log.

    >>> lineage = Lineage()
    >>> lineage.enter(0, 1.0) is None
    True
    >>> lineage.saw(1.0, 4351.0, 4351)
    >>> lineage.enter(1, 2001.0)
    Restart(step=2001.0, resumed=True)
    >>> lineage.saw(2001.0, 3000.0, 1000)
    >>> lineage.enter(2, 1.0), lineage.chain
    (Restart(step=1.0, resumed=False), 2)
    """

    __slots__ = ("attempt", "chain", "count", "last", "origin")

    def __init__(self) -> None:
        self.attempt: int | None = None
        self.chain = 0
        """The attempt at which the present training began."""
        self.origin = math.nan
        self.last = math.nan
        self.count = 0

    def enter(self, attempt: int, first_step: float) -> Restart | None:
        """To be told the attempt of rows and their first step; None where it is the known or the first one."""
        if attempt == self.attempt:
            return None
        begun, self.attempt = self.attempt is not None, attempt
        if not begun:
            return None
        carries_on = first_step > self.origin + self._margin or resumed(self.last, first_step)
        if not carries_on:
            self.chain = attempt
            self.forget()
        return Restart(first_step, carries_on)

    def saw(self, first: float, last: float, count: int) -> None:
        """Takes in `count` rows from step `first` to step `last`."""
        if math.isnan(self.origin):
            self.origin = first
        self.last = last
        self.count += count

    def forget(self) -> None:
        """The steps so far were none of the training."""
        self.origin, self.last, self.count = math.nan, math.nan, 0

    @property
    def _margin(self) -> float:
        done = self.last - self.origin
        interval = done / (self.count - 1) if self.count > 1 else 0.0
        return max(LEAST_STEPS, INTERVALS * interval, SHARE * done)
