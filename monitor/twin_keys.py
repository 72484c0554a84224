"""Two keys of one log that tell the same values: when the first falls silent, the second speaks for both.

A trainer may print its loss and log it too, to one file, or write it under two names. A signal belongs to one key;
where that is told no more and another one, which agreed with it as long as both were told, goes on, its values count.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Final

import numpy as np

from trainmon.monitor.rows import BoolArray
from trainmon.tails.record import FloatArray

_ENOUGH: Final = 8  # values that must agree
_MISSED: Final = 2  # steps in a row of which the first key does not tell
_REMEMBERED: Final = 64  # steps of which one key has told and the other not yet
_RELATIVE: Final = 1e-3  # what is printed with four digits agrees with what is logged in full
_ABSOLUTE: Final = 1e-6


_Waiting = OrderedDict[float, float]  # step -> value, the oldest first


class Twin:
    """The second key of one signal.

    >>> twin, steps = Twin(), np.arange(1.0, 13.0)
    >>> values = 3 - steps / 100
    >>> twin.take(steps, np.where(steps < 10, values, np.nan), values, steps < 10, steps > 0).tolist()[8:]
    [False, False, True, True]
    """

    def __init__(self) -> None:
        self.is_other = False  # it told something else once
        self._agreed = 0
        self._missed = 0
        self._own_last = self._second_last = -math.inf
        self._own: _Waiting = OrderedDict()
        self._second: _Waiting = OrderedDict()

    def take(
        self, steps: FloatArray, own: FloatArray, second: FloatArray, has_own: BoolArray, has_second: BoolArray
    ) -> BoolArray:
        """(n,) the rows in which the second key's value counts. All arrays are (n,), in the order of the log."""
        taken = np.zeros(len(steps), np.bool_)
        rows = np.flatnonzero(has_own | has_second)
        if not len(rows) or self.is_other:
            return taken
        if (has_own & has_second).all() and self._are_in_step(steps, own, second):
            self._compare_all(steps, own, second)
            return taken
        for row in rows.tolist():
            step = float(steps[row])
            if has_own[row]:
                if step < self._own_last:
                    self._begin_again()
                self._missed = 0
                self._own_last = step
                self._meet(step, float(own[row]), self._own, self._second)
            if has_second[row] and not self.is_other:
                if step < self._second_last:
                    self._begin_again()
                self._second_last = step
                taken[row] = not has_own[row] and self._is_missed(step)
                self._meet(step, float(second[row]), self._second, self._own)
        return taken

    def _are_in_step(self, steps: FloatArray, own: FloatArray, second: FloatArray) -> bool:
        """Whether both keys are numbers in each record, steps go on, and none waits for the other."""
        if self._own or self._second or not all(np.isfinite(values).all() for values in (steps, own, second)):
            return False
        return bool(steps[0] >= max(self._own_last, self._second_last) and (np.diff(steps) >= 0).all())

    def _compare_all(self, steps: FloatArray, own: FloatArray, second: FloatArray) -> None:
        self.is_other = bool((np.abs(own - second) > _ABSOLUTE + _RELATIVE * np.abs(own)).any())
        self._agreed += len(steps)
        self._missed = 0
        self._own_last = self._second_last = float(steps[-1])

    def _begin_again(self) -> None:
        """A restart: of the steps to come nobody has told."""
        self._own.clear()
        self._second.clear()
        self._missed = 0
        self._own_last = self._second_last = -math.inf

    def _is_missed(self, step: float) -> bool:
        """Whether the first key has been silent for long enough that the second speaks at `step`."""
        if not step > self._own_last:
            return False
        self._missed += 1
        return self._missed >= _MISSED and self._agreed >= _ENOUGH

    def _meet(self, step: float, value: float, mine: _Waiting, others: _Waiting) -> None:
        """One key told `value` at `step`: it is held against what the other told of it, or waits for that."""
        if not math.isfinite(value) or step != step:
            return
        other = others.pop(step, None)
        if other is None:
            mine[step] = value
            if len(mine) > _REMEMBERED:
                mine.popitem(last=False)
        elif abs(value - other) > _ABSOLUTE + _RELATIVE * abs(other):
            self.is_other = True
        else:
            self._agreed += 1
