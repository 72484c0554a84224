"""How many different steps a run logged, over all its attempts, in little memory however long it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.stats.distinct import distinct
from trainmon.tails.record import FloatArray

# Stretches that are kept as they were logged; beyond twice as many the older ones are evened out.
MOST_RUNS: Final = 1024
_MOST_LATE: Final = 1 << 14  # steps that are kept once one is out of order, until they are put in order


class StepTally:
    """Which steps were logged, as runs of equal distance. The count is exact.

    So are the steps, unless their distance changes all the time: of more than 2,048 runs the older ones are joined two
    by two, the steps up to `exact_from` then lie evenly between those that are known. A step that comes out of order is
    counted like any other, unless it lies up to `exact_from`: there it is taken for one of the others.

    >>> tally = StepTally()
    >>> tally.add(np.array([1.0, 2.0, 3.0, 10.0, 20.0]))
    >>> tally.add(np.array([20.0, 30.0]))
    >>> tally.count, tally.steps().tolist(), tally.steps(2.5, 20.0).tolist()
    (6, [1.0, 2.0, 3.0, 10.0, 20.0, 30.0], [3.0, 10.0, 20.0])
    >>> tally.add(np.array([2.0, 4.0]))
    >>> tally.count, tally.steps(2.5, 10.0).tolist()
    (7, [3.0, 4.0, 10.0])
    """

    def __init__(self, runs: Iterable[Sequence[float]] = ()) -> None:
        self._runs = [list(run) for run in runs]  # [first, width, how many]
        self._late: list[FloatArray] = []  # from the first that is out of order on, not yet put in order
        self._many_late = 0
        self.inserted = 0  # steps so far that came out of order
        self._count = int(sum(run[2] for run in self._runs))
        self.exact_from = -math.inf
        self.last = _end(self._runs[-1]) if self._runs else -math.inf

    def __deepcopy__(self, _memo: dict[int, Any]) -> StepTally:
        """Runs that are not the last one never change: they are shared."""
        other = StepTally(self._runs[-1:])
        other._runs[:0] = self._runs[:-1]
        other._count, other.exact_from, other.last = self._count, self.exact_from, self.last
        other._late, other._many_late, other.inserted = list(self._late), self._many_late, self.inserted
        return other

    @property
    def count(self) -> int:
        """How many different steps there are."""
        self._look_for_late()
        return self._count

    @property
    def first(self) -> float:
        """The first step; infinite while there is none."""
        self._look_for_late()
        return self._runs[0][0] if self._runs else math.inf

    def add(self, steps: FloatArray) -> None:
        """Takes in steps, as they come; none is counted twice."""
        if not len(steps):
            return
        if not self._late:
            top = np.maximum.accumulate(np.concatenate(([self.last], steps)))[:-1] if len(steps) > 1 else self.last
            if not (steps < top).any():
                self._add_rising(steps[steps > top])
                return
        # Those that follow fill the gaps, as a rule: one by one each would make a run of its own.
        self._late.append(steps.copy())
        self._many_late += len(steps)
        if self._many_late >= _MOST_LATE:
            self._look_for_late()

    def _look_for_late(self) -> None:
        """Puts steps that are out of order where they belong, if they are not there."""
        if not self._late:
            return
        steps, self._late, self._many_late = distinct(np.concatenate(self._late)), [], 0
        newer = steps[steps > self.last]
        steps = self._missing(steps[(steps <= self.last) & (steps > self.exact_from)])
        if len(steps):
            self.inserted += len(steps)
            behind = self.steps(float(steps[0]))
            self._runs = [list(each) for each in self._between(-math.inf, _below(float(steps[0])))]
            self._count = int(sum(each[2] for each in self._runs))
            newer = distinct(np.concatenate((steps, behind, newer)))
        self._add_rising(newer)

    def _missing(self, steps: FloatArray) -> FloatArray:
        """Those of `steps` that no run holds."""
        if not len(steps):
            return steps
        firsts, widths, many = np.array(self._runs, np.float64).T
        run = np.searchsorted(firsts, steps, "right") - 1
        place = np.round((steps - firsts[run]) / np.where(widths[run] > 0, widths[run], 1.0))
        near = firsts[run] + widths[run] * np.minimum(place, many[run] - 1)
        is_new: NDArray[np.bool_] = (run < 0) | (near != steps)
        return steps[is_new]

    def _add_rising(self, steps: FloatArray) -> None:
        if not len(steps):
            return
        self._count += len(steps)
        widths = np.diff(steps)
        breaks = np.flatnonzero(widths[1:] != widths[:-1]) + 1 if len(widths) > 1 else np.empty(0, np.int64)
        begin = 0
        for end in (*breaks.tolist(), len(steps) - 1):
            self._extend(float(steps[begin]), float(widths[end - 1]) if end > begin else 0.0, end - begin + 1)
            begin = end + 1
        if begin < len(steps):
            self._extend(float(steps[begin]), 0.0, len(steps) - begin)
        self.last = float(steps[-1])

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
        if len(self._runs) >= 2 * MOST_RUNS:
            self._even_out()

    def _even_out(self) -> None:
        older, newer = self._runs[:MOST_RUNS], self._runs[MOST_RUNS:]
        joined = []
        for one, two in zip(older[::2], older[1::2], strict=True):
            many = one[2] + two[2]
            joined.append([one[0], (_end(two) - one[0]) / (many - 1), many])
        self._runs = joined + newer
        self.exact_from = _end(joined[-1])

    def steps(self, low: float = -math.inf, high: float = math.inf) -> FloatArray:
        """(n,) the steps from `low` to `high`, ascending."""
        self._look_for_late()
        parts = [first + width * np.arange(many) for first, width, many in self._between(low, high)]
        return np.concatenate(parts) if parts else np.empty(0)

    def newest(self, many: int) -> FloatArray:
        """(many,) the highest steps, without a look at the others."""
        self._look_for_late()
        parts: list[FloatArray] = []
        for first, width, count in reversed(self._runs):
            if many <= 0:
                break
            skip = max(int(count) - many, 0)
            parts.append(first + width * np.arange(skip, count))
            many -= int(count) - skip
        return np.concatenate(parts[::-1]) if parts else np.empty(0)

    def joined(self, newer: StepTally) -> StepTally:
        """The steps that this one or `newer` logged. What lies in both is looked at step by step, the rest is not."""
        # Where either is evened out, what the newer one logged again is taken to be the same steps.
        self._look_for_late()
        newer._look_for_late()
        exact = max(self.exact_from, newer.exact_from)
        both = max(newer.first, exact)
        union = StepTally(self._between(-math.inf, _below(both)))
        union.add(distinct(np.concatenate((self.steps(both), newer.steps(both, self.last)))))
        for first, width, many in newer._between(_above(max(self.last, union.last)), math.inf):
            union._count += int(many)
            union._extend(first, width, int(many))
            union.last = first + width * (many - 1)
        union.exact_from = max(union.exact_from, min(exact, union.last))
        return union

    def _between(self, low: float, high: float) -> list[tuple[float, float, float]]:
        """The runs cut to what lies from `low` to `high`."""
        found = []
        for first, width, many in reversed(self._runs):
            if first > high:
                continue
            if first + width * (many - 1) < low:
                break
            if width:
                skip = max(math.ceil((low - first) / width), 0) if low > first else 0
                skip += first + width * skip < low
                end = min(many, math.floor((high - first) / width) + 1) if high < math.inf else many
                end -= first + width * (end - 1) > high
            else:
                skip, end = 0, 1
            if end > skip:
                found.append((first + width * skip, width if end - skip > 1 else 0.0, float(end - skip)))
        return found[::-1]

    @property
    def outline(self) -> tuple[float, ...]:
        """Tells tallies apart: the count, the number of runs, the first step and the last."""
        self._look_for_late()
        return (self.count, len(self._runs), self.first, self.last) if self._runs else (0,)


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
        self._union = StepTally()
        self._again: FloatArray = np.empty(0)
        self._begun = math.nan
        self._inserted = 0
        self._seen = 0
        self._fresh = 0

    def count(self, tallies: Sequence[StepTally]) -> int:
        """The number of different steps of `tallies`, of which only the last may grow from call to call."""
        *older, newest = tallies
        if not older:
            return newest.count
        known = tuple(tally.outline for tally in older)
        if known != self._known:
            goes_on = self._known and known[: len(self._known)] == self._known
            union = self._union if goes_on else StepTally()
            for tally in older[len(self._known) if goes_on else 0 :]:
                union = union.joined(tally)
            self._known, self._union = known, union
            self._begun = math.nan
        is_in_order = newest.count >= self._seen and newest.inserted == self._inserted
        if newest.first != self._begun or not is_in_order:
            self._begun, self._inserted = newest.first, newest.inserted
            self._again = self._union.steps(newest.first)
            self._seen = self._fresh = 0
        added = newest.newest(newest.count - self._seen)
        self._seen = newest.count
        self._fresh += self._new_among(added)
        return self._union.count + self._fresh

    def _new_among(self, added: FloatArray) -> int:
        added = added[added > self._union.exact_from]
        if not len(self._again):
            return len(added)
        place = np.minimum(np.searchsorted(self._again, added), len(self._again) - 1)
        return int((self._again[place] != added).sum())


def _end(run: Sequence[float]) -> float:
    return run[0] + run[1] * (run[2] - 1)


def _below(step: float) -> float:
    return math.nextafter(step, -math.inf)


def _above(step: float) -> float:
    return math.nextafter(step, math.inf)
