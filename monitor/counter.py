"""The step counter of one attempt of one source: where it stands, how wide its steps are, which it has seen."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np

from trainmon.tails.record import FloatArray

# How many of the newest steps are remembered: wide enough to know a step printed again by another worker.
_REMEMBERED: Final = 64
_DIFFERENCES: Final = 16


class StepCounter:
    """`first`, `top` (the highest step) and the usual interval between logged steps.

    >>> counter = StepCounter()
    >>> counter.advance(np.array([10.0, 20.0, 30.0]))
    >>> counter.first, counter.top, counter.interval, counter.has_seen(20.0), counter.has_seen(25.0)
    (10.0, 30.0, 10.0, True, False)
    """

    def __init__(self) -> None:
        self.first = np.nan
        self.top = -np.inf
        self._recent: deque[float] = deque(maxlen=_REMEMBERED)
        self._widths: deque[float] = deque(maxlen=_DIFFERENCES)

    @property
    def begun(self) -> bool:
        """Whether any step was taken in."""
        return bool(self._recent)

    def advance(self, steps: FloatArray) -> None:
        """Takes in steps, none below `top`, in order."""
        if not len(steps):
            return
        if not self._recent:
            self.first = float(steps[0])
            previous = steps[0]
        else:
            previous = self.top
        tail = steps[-_REMEMBERED:]
        before = float(steps[-_REMEMBERED - 1]) if len(steps) > _REMEMBERED else float(previous)
        widths = np.diff(tail, prepend=before)
        self._widths.extend(widths[widths > 0].tolist())
        self._recent.extend(tail.tolist())
        self.top = float(steps[-1])

    def note_late(self, step: float) -> None:
        """Takes in one step below `top`."""
        self._recent.append(step)

    @property
    def interval(self) -> float:
        """The median of the last differences between steps; 1 before there were two."""
        if not self._widths:
            return 1.0
        ordered = sorted(self._widths)
        return ordered[len(ordered) // 2]

    def has_seen(self, step: float) -> bool:
        """Whether `step` is among the newest steps."""
        return step in self._recent


class StepTally:
    """Which steps an attempt logged, as runs of equal distance: exact counts in little memory.

    >>> tally = StepTally()
    >>> tally.add(np.array([1.0, 2.0, 3.0, 10.0, 20.0]))
    >>> tally.add(np.array([20.0, 30.0]))
    >>> tally.count, tally.steps().tolist()
    (6, [1.0, 2.0, 3.0, 10.0, 20.0, 30.0])
    """

    def __init__(self) -> None:
        self.count = 0
        self._last = -np.inf
        self._runs: list[list[float]] = []  # [first, width, how many]

    def add(self, steps: FloatArray) -> None:
        """Takes in steps, in order; those not above the last one are not counted again."""
        if len(steps) > 1:
            top = np.maximum.accumulate(np.concatenate(([self._last], steps)))[:-1]
            steps = steps[steps > top]
        elif len(steps) and steps[0] <= self._last:
            return
        if not len(steps):
            return
        self.count += len(steps)
        widths = np.diff(steps)
        breaks = np.flatnonzero(widths[1:] != widths[:-1]) + 1 if len(widths) > 1 else np.empty(0, np.int64)
        begin = 0
        for end in (*breaks.tolist(), len(steps) - 1):
            self._extend(float(steps[begin]), float(widths[end - 1]) if end > begin else 0.0, end - begin + 1)
            begin = end + 1
        if begin < len(steps):
            self._extend(float(steps[begin]), 0.0, len(steps) - begin)
        self._last = float(steps[-1])

    def _extend(self, first: float, width: float, many: int) -> None:
        if many < 1:
            return
        if self._runs:
            run = self._runs[-1]
            gap = first - (run[0] + run[1] * (run[2] - 1))
            if run[2] == 1 and many == 1:
                run[1], run[2] = gap, 2.0
                return
            if gap == run[1] and (many == 1 or width == gap):
                run[2] += many
                return
        self._runs.append([first, width, float(many)])

    def steps(self, newest: int | None = None) -> FloatArray:
        """(count,) the steps, ascending; or only the `newest` of them, without a look at the others."""
        left = self.count if newest is None else newest
        parts: list[FloatArray] = []
        for first, width, many in reversed(self._runs):
            if left <= 0:
                break
            skip = max(int(many) - left, 0)
            parts.append(first + width * np.arange(skip, many))
            left -= int(many) - skip
        return np.concatenate(parts[::-1]) if parts else np.empty(0)

    @property
    def outline(self) -> tuple[float, ...]:
        """Tells tallies apart: the count, the number of runs, the first step and the last."""
        return (self.count, len(self._runs), self._runs[0][0], self._last) if self._runs else (0,)


class DistinctSteps:
    """How many different steps several attempts logged. Asked again, it looks only at what was added to the newest.

    >>> first, second, distinct = StepTally(), StepTally(), DistinctSteps()
    >>> first.add(np.arange(10.0))
    >>> second.add(np.array([8.0, 9.0, 10.0]))
    >>> distinct.count([first, second])
    11
    >>> second.add(np.array([11.0]))
    >>> distinct.count([first, second])
    12
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[float, ...], ...] = ()
        self._older: FloatArray = np.empty(0)
        self._begun = np.nan
        self._seen = 0
        self._fresh = 0

    def count(self, tallies: Sequence[StepTally]) -> int:
        """The number of different steps of `tallies`, of which only the last may grow from call to call."""
        *older, newest = tallies
        if not older:
            return newest.count
        known = tuple(tally.outline for tally in older)
        begun = newest.outline[2] if newest.count else np.nan
        if known != self._known:
            self._known, self._older = known, np.unique(np.concatenate([tally.steps() for tally in older]))
            self._seen = self._fresh = 0
        if begun != self._begun or newest.count < self._seen:
            self._begun = begun
            self._seen = self._fresh = 0
        added = newest.steps(newest.count - self._seen)
        place = np.minimum(np.searchsorted(self._older, added), len(self._older) - 1)
        self._fresh += int((self._older[place] != added).sum()) if len(self._older) else len(added)
        self._seen = newest.count
        return len(self._older) + self._fresh
