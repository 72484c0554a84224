"""Other processes that write the same log: steps drawn again nearby, or a second sequence of steps far behind."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from trainmon.monitor.counter import StepCounter
from trainmon.tails.quick_dataclass import dataclass

_NEAR_INTERVALS: Final = 8.0
_REDRAW_INTERVALS: Final = 3.0
# A second writer that is alone for this many rows has become the run.
_ALONE_ROWS: Final = 20
# So many rows drawn again are no accident.
_REDRAWS_SHOWN: Final = 3
_REDRAWS_TO_TELL: Final = 20


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
        self._second: _Sequence | None = None
        self._alone = 0

    @property
    def in_turn(self) -> bool:
        """Whether two sequences are written in turn."""
        return self._second is not None

    def begin_attempt(self) -> None:
        """A new attempt: one sequence again."""
        self._second, self._alone = None, 0

    def begin_second(self, step: float, counter: StepCounter) -> None:
        """A second sequence was seen at `step`, as wide as the first (`counter`)."""
        self._second, self._alone = _Sequence(step, counter.interval), 0

    def fits(self, step: float, counter: StepCounter) -> bool:
        """Whether several processes write and `step` is where one of them is."""
        reach = _REDRAW_INTERVALS * counter.interval
        if self._second is not None and 0 < step - self._second.last <= reach:
            return True
        shown = self._second is not None or self._redraws >= _REDRAWS_SHOWN
        return shown and abs(step - counter.top) <= reach

    def is_redraw(self, step: float, counter: StepCounter, repeats: int) -> bool:
        """Whether `step` is one that another process draws again; `repeats` of the attempt's records were so."""
        shown_before = repeats >= _REDRAWS_SHOWN or self._redraws >= _REDRAWS_SHOWN
        reach = _NEAR_INTERVALS if self._redraws >= _REDRAWS_TO_TELL else _REDRAW_INTERVALS
        near = step >= counter.top - reach * counter.interval
        return shown_before and near and counter.has_seen(step)

    def count_redraw(self) -> bool:
        """Takes a row of another writer; whether there were so many that it must be told."""
        self._redraws += self._second is None
        return self._redraws == _REDRAWS_TO_TELL

    def turn(self, step: float, counter: StepCounter) -> Turn:
        """Whose row at `step` it is: of the sequence that it is nearer to going on with."""
        second = self._second
        if second is None:
            return Turn.FIRST
        to_first = step - (counter.top + counter.interval)
        to_second = step - (second.last + second.interval)
        if step >= counter.top and abs(to_first) <= abs(to_second):
            self._alone = min(self._alone, 0) - 1
            if self._alone <= -_ALONE_ROWS:
                self._second = None
            return Turn.FIRST
        self._alone = max(self._alone, 0) + 1
        if self._alone >= _ALONE_ROWS:
            return Turn.SECOND_ALONE
        second.last = step
        return Turn.SECOND
