"""Other processes that write the same log: steps drawn again nearby, or a second sequence of steps far behind."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import numpy as np

from trainmon.monitor.counter import StepCounter
from trainmon.tails.quick_dataclass import dataclass

_NEAR_INTERVALS: Final = 8.0
_REDRAW_INTERVALS: Final = 3.0
# A second writer that is alone for this many rows has become the run: no fewer than a quarter of those that both wrote,
# since the one that is behind ends alone.
_ALONE_ROWS: Final = 20
_ALONE_SHARE: Final = 0.25
_MOST_ALONE_ROWS: Final = 500
# So many rows drawn again are no accident.
_REDRAWS_SHOWN: Final = 3
_REDRAWS_TO_TELL: Final = 20
_REDRAW_SHARE: Final = 0.25


class Turn(Enum):
    """Whose row it is, where two sequences are written in turn."""

    FIRST = auto()
    SECOND = auto()
    SECOND_ALONE = auto()  # the first has not been heard of for long: the second is the run now


@dataclass(slots=True)
class _Sequence:
    last: float
    interval: float


class Writers:
    """What is known of writers beside the first. How often rows were drawn again holds for all attempts of a log.

    >>> writers, counter = Writers(), StepCounter()
    >>> writers.begin_second(40.0, counter)
    >>> writers.turn(41.0, counter) is Turn.SECOND
    True
    """

    def __init__(self) -> None:
        self._redraws = 0
        self._redrawn = np.nan  # the step drawn again last
        self._second: _Sequence | None = None
        self._alone = 0
        self._together = 0  # rows of the two sequences

    @property
    def in_turn(self) -> bool:
        """Whether two sequences are written in turn."""
        return self._second is not None

    def begin_attempt(self) -> None:
        """A new attempt: one sequence again."""
        self._second, self._alone, self._redrawn = None, 0, np.nan

    def begin_second(self, step: float, counter: StepCounter) -> None:
        """A second sequence was seen at `step`, as wide as the first (`counter`)."""
        self._second, self._alone, self._together = _Sequence(step, counter.interval), 0, 0

    def fits(self, step: float, counter: StepCounter) -> bool:
        """Whether several processes write and `step` is where one of them is."""
        reach = _REDRAW_INTERVALS * counter.interval
        if self._second is not None and 0 < step - self._second.last <= reach:
            return True
        shown = self._second is not None or self._redraws >= _REDRAWS_SHOWN
        return shown and abs(step - counter.top) <= reach

    def is_redraw(self, step: float, counter: StepCounter, repeats: int) -> bool:
        """Whether `step` is one that another process draws again; `repeats` of the attempt's records were so."""
        if self._redraws >= _REDRAWS_TO_TELL and 0 < step - self._redrawn <= _REDRAW_INTERVALS * counter.interval:
            return True  # however far the one that is behind falls back
        shown_before = repeats >= _REDRAWS_SHOWN or self._redraws >= _REDRAWS_SHOWN
        reach = _NEAR_INTERVALS if self._redraws >= _REDRAWS_TO_TELL else _REDRAW_INTERVALS
        near = step >= counter.top - reach * counter.interval
        return shown_before and near and counter.has_seen(step)

    def count_redraw(self, step: float, rows: int) -> bool:
        """Takes a row of another writer beside the `rows` of the attempt; whether so many must be told of."""
        self._redrawn = step
        self._redraws += self._second is None
        return self._redraws >= _REDRAWS_TO_TELL or self._redraws >= max(_REDRAWS_SHOWN, _REDRAW_SHARE * rows)

    def turn(self, step: float, counter: StepCounter) -> Turn:
        """Whose row at `step` it is: of the sequence that it is nearer to going on with."""
        second = self._second
        if second is None:
            return Turn.FIRST
        self._together += 1
        to_first = step - (counter.top + counter.interval)
        to_second = step - (second.last + second.interval)
        if step >= counter.top and abs(to_first) <= abs(to_second):
            self._alone = min(self._alone, 0) - 1
            if self._alone <= -_ALONE_ROWS:
                self._second = None
            return Turn.FIRST
        self._alone = max(self._alone, 0) + 1
        if self._alone >= max(_ALONE_ROWS, min(_ALONE_SHARE * self._together, _MOST_ALONE_ROWS)):
            return Turn.SECOND_ALONE
        second.last = step
        return Turn.SECOND
