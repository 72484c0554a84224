"""The x axis that series logged on the same rows share: step, time, attempt and how many values a point stands for."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.growable import Growable
from trainmon.monitor.rows import BoolArray
from trainmon.tails.record import FloatArray, IntArray


class Axis:
    """Points in log order. A point is one row, or a bin of several once it was thinned.

    `members`: how many series share it; `width`: how many values the older points were last merged by. Attempts cost
    nothing while there is one, counts while all are 1.
    """

    __slots__ = ("_attempt", "_attempts", "_counts", "_steps", "_times", "members", "width")

    def __init__(
        self,
        steps: FloatArray,
        times: FloatArray,
        attempts: IntArray,
        counts: IntArray | None = None,
        room: int = 0,
    ) -> None:
        self._steps = Growable(steps, room)
        self._times = Growable(times, room)
        self._attempt = int(attempts[0]) if len(attempts) else -1
        uniform = bool((attempts == self._attempt).all())
        self._attempts = None if uniform else Growable(attempts, room)
        self._counts = None if counts is None else Growable(counts, room)
        self.members = 0
        self.width = 1

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        parts = (self._steps, self._times, self._attempts, self._counts)
        return sum(part.nbytes for part in parts if part is not None)

    @property
    def steps(self) -> FloatArray:
        """(n,) step of each point; a bin's is its first."""
        return self._steps.view()

    @property
    def times(self) -> FloatArray:
        """(n,) seconds, NaN where unknown."""
        return self._times.view()

    @property
    def attempts(self) -> IntArray:
        """(n,) attempt of each point."""
        if self._attempts is None:
            return np.broadcast_to(np.int64(self._attempt), (len(self),))
        return self._attempts.view()

    @property
    def counts(self) -> IntArray:
        """(n,) how many logged values each point stands for."""
        if self._counts is None:
            return np.broadcast_to(np.int64(1), (len(self),))
        return self._counts.view()

    def append(self, steps: FloatArray, times: FloatArray, attempt: int) -> None:
        """Adds raw points of one attempt."""
        if not len(self):
            self._attempt = attempt
        elif self._attempts is None and attempt != self._attempt:
            self._attempts = Growable(np.array(self.attempts))
        if self._attempts is not None:
            self._attempts.append(np.full(len(steps), attempt))
        if self._counts is not None:
            self._counts.append(np.ones(len(steps), np.int64))
        self._steps.append(steps)
        self._times.append(times)

    def copy(self) -> Axis:
        """The same points for series that part from the others."""
        counts = None if self._counts is None else self._counts.view()
        axis = Axis(self.steps, self.times, self.attempts, counts)
        axis.width = self.width
        return axis

    def bins(self, width: int, raw_from: int, keep: BoolArray) -> IntArray:
        """First index of each bin when points before `raw_from` are merged `width` values at a time.

        Bins lie at fixed places of the series (multiples of `width` values), never cross an attempt, and leave the
        points where `keep` is true alone.
        """
        n = len(self)
        starts = np.cumsum(self.counts) - self.counts
        place = starts // width
        alone = keep.copy()
        alone[raw_from:] = True
        first = np.ones(n, np.bool_)
        attempts = self.attempts
        first[1:] = (place[1:] != place[:-1]) | (attempts[1:] != attempts[:-1]) | alone[1:] | alone[:-1]
        return np.flatnonzero(first)

    def binned(self, firsts: IntArray, width: int, room: int = 0) -> Axis:
        """The axis with points merged as `bins` gave them for `width`, with room for so many."""
        counts = np.add.reduceat(self.counts, firsts)
        axis = Axis(self.steps[firsts], self.times[firsts], self.attempts[firsts], counts, room)
        axis.width = width
        return axis
