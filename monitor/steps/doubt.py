"""A step that went back, and whether the rows behind it are a restart or another process that writes the same log.

A restart leaves the old sequence behind for good; of two writers both go on. Which it is the next row may tell, or
only one of the rows that follow, since writers slip past each other: 10, 8, 9, 11 shows it at 11, but 10, 9, 10, 11,
11, 12, 12 not before the steps come twice.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import Final

# A writer that is alone for so many rows is no writer beside another: the run began again.
_MOST_ROWS: Final = 12
_NEXT: Final = 1.5  # a step within so many intervals goes on with a sequence
_NEXT_NEARBY: Final = 3.0
# Steps that come twice once the sequence from behind has come by: one may be a restart after a step, two are not.
_TURNS_TO_TELL: Final = 2


class Why(Enum):
    """What a step back was."""

    OPEN = auto()
    RESTART = auto()
    WRITERS = auto()


class Doubt:
    """Follows the sequence that began with the step back, and the one before it.

    `top`, `interval`: where the old sequence stood, and how wide its steps are (NaN: not known yet). `is_near`: the
    step back was a small one. `is_sure`: the interval was seen more than once.

    >>> doubt = Doubt(8.0, top=10.0, interval=1.0, is_near=True)
    >>> [doubt.hear(step).name for step in (9.0, 11.0)]
    ['OPEN', 'WRITERS']
    >>> doubt = Doubt(9.0, top=10.0, interval=1.0, is_near=True)
    >>> [doubt.hear(step).name for step in (10.0, 11.0, 11.0, 12.0, 12.0)]
    ['OPEN', 'OPEN', 'OPEN', 'OPEN', 'WRITERS']
    >>> doubt = Doubt(8.0, top=10.0, interval=1.0, is_near=True)
    >>> [doubt.hear(step).name for step in (9.0, 8.0)]
    ['OPEN', 'RESTART']
    """

    def __init__(self, step: float, *, top: float, interval: float, is_near: bool, is_sure: bool = True) -> None:
        self.last = step
        self._old = top
        self._interval = interval
        self._own = interval if is_sure and math.isfinite(interval) else math.inf
        self._reach = _NEXT_NEARBY if is_near else _NEXT
        self._has_come_by = False
        self._turns = 0
        self._rows = 1

    def hear(self, step: float) -> Why:
        """Takes the next training row's step."""
        self._rows += 1
        if self.last < step <= self._old:  # the sequence from behind may be a finer one
            self._own = min(self._own, step - self.last)
        wide = self._interval if math.isfinite(self._interval) else self._own if math.isfinite(self._own) else 1.0
        goes_on = 0 < step - self._old <= (_NEXT if self._has_come_by else self._reach) * wide
        if self._has_come_by:
            return self._hear_behind(step, goes_on=goes_on)
        is_next = 0 < step - self.last <= _NEXT * (self._own if math.isfinite(self._own) else 1.0)
        if goes_on and not is_next:
            return Why.WRITERS
        if step <= self.last or (step > self._old and not is_next):
            return Why.RESTART
        self.last = step
        self._has_come_by = step > self._old
        return self._open()

    def _hear_behind(self, step: float, *, goes_on: bool) -> Why:
        """The sequence from behind is ahead of where the old one stood."""
        if step > self.last:
            self.last = step
            return self._open()
        if not goes_on:
            return Why.RESTART
        self._old = step
        self._turns += 1
        return Why.WRITERS if self._turns >= _TURNS_TO_TELL else self._open()

    def _open(self) -> Why:
        return Why.OPEN if self._rows < _MOST_ROWS else Why.RESTART
