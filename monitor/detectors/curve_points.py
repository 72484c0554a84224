"""A curve of any length as at most 256 points: memory does not grow with the run."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from trainmon.monitor.detectors.common import Finite, Place, place
from trainmon.monitor.frame import Frame
from trainmon.tails.record import FloatArray, IntArray

MOST_POINTS: Final = 256  # then neighbours are joined
_WORTH: Final = 2  # points that are made sooner at once
_FEW: Final = 32  # steps that are added up sooner one by one than by numpy


class Curve:
    """The loss of the newest run as at most 256 points: (mean step, median log loss, where it begins)."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float, Place]] = []
        self.join = 1
        self.usable = True
        self._begin: Place | None = None
        self._steps = 0.0
        self._values: list[float] = []

    def feed(self, frame: Frame, own: Finite, begin: int, end: int, look: float) -> int:
        """Values begin..end in order, up to the first that makes a point at or beyond step `look`; how far it came.

        A value below 0 makes the curve useless, a 0 is passed over.
        """
        where: slice | IntArray = slice(begin, end)
        if not (positive := own.values[begin:end] > 0).all():
            self.usable = self.usable and float(own.values[begin:end].min()) >= 0
            where = begin + np.flatnonzero(positive)
        rows, steps, values = own.rows[where], own.steps[where], own.values[where]
        at = 0
        while at < len(values):
            stop = at + self._close_many(frame, rows[at:], steps[at:], values[at:], look)
            if stop == at:
                stop = min(at + self.join - len(self._values), len(values))
                if not self._values:
                    self._begin = place(frame, int(rows[at]), float(values[at]))
                self._values += values[at:stop].tolist()
                self._add_up(steps[at:stop])
                if len(self._values) >= self.join:
                    self._close()
            at = stop
            if not self._values and steps[at - 1] >= look:
                return begin + at if isinstance(where, slice) else int(where[at - 1]) + 1
        return end

    def _close_many(self, frame: Frame, rows: IntArray, steps: FloatArray, values: FloatArray, look: float) -> int:
        """Makes the points that values alone fill, up to the first at or beyond step `look`; how many values."""
        size = self.join
        count = min(len(values) // size, MOST_POINTS - len(self.points))
        if self._values or count < _WORTH:
            return 0
        beyond = steps[size - 1 : count * size : size] >= look
        count = int(np.argmax(beyond)) + 1 if beyond.any() else count
        used = slice(count * size)
        ranked = np.sort(values[used].reshape(count, size), axis=1)
        sums = np.add.accumulate(steps[used].reshape(count, size), axis=1)[:, -1] + 0.0
        firsts = zip(rows[used][::size].tolist(), values[used][::size].tolist(), strict=True)
        begins = [place(frame, row, x) for row, x in firsts]
        middles = map(math.log, ranked[:, size // 2].tolist())
        self.points += zip((sums / size).tolist(), middles, begins, strict=True)
        self._join()
        return count * size

    def _add_up(self, steps: FloatArray) -> None:
        """A running sum: numpy's own adds up in another order."""
        if len(steps) > _FEW:
            self._steps = float(np.add.accumulate(np.concatenate([[self._steps], steps]))[-1])
            return
        for step in steps.tolist():
            self._steps += step

    def _close(self) -> None:
        count = len(self._values)
        assert self._begin is not None
        self.points.append((self._steps / count, math.log(sorted(self._values)[count // 2]), self._begin))
        self._values.clear()
        self._steps = 0.0
        self._join()

    def _join(self) -> None:
        if len(self.points) >= MOST_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, a[2]) for a, b in pairs]
            self.join *= 2

    @property
    def is_whole(self) -> bool:
        """Whether the newest value has closed a point."""
        return not self._values

    def clear(self) -> None:
        """Begins anew."""
        self.points, self.join, self._steps = [], 1, 0.0
        self._values.clear()
