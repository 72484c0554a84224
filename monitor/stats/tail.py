"""The newest values of a series, kept without touching each: for what is looked at once in a long while."""

from __future__ import annotations

from typing import Final

import numpy as np

from trainmon.tails.record import FloatArray

_FEW_ROWS: Final = 512


class Tail:
    """The last `size` (step, value) pairs. Costs a slice a frame, and now and then a copy, until somebody looks.

    >>> tail = Tail(3)
    >>> tail.extend(np.array([1.0, 2.0]), np.array([5.0, 6.0]))
    >>> tail.extend(np.array([3.0, 4.0]), np.array([7.0, 8.0]))
    >>> tail.steps.tolist(), tail.values.tolist(), tail.by_step(3.0)
    ([2.0, 3.0, 4.0], [6.0, 7.0, 8.0], {3.0: 7.0, 4.0: 8.0})
    """

    __slots__ = ("_count", "_parts", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._parts: list[tuple[FloatArray, FloatArray]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def extend(self, steps: FloatArray, values: FloatArray) -> None:
        """Takes in (n,) steps and values; only the part that is kept is copied, so that no frame is held alive."""
        if not len(steps):
            return
        if len(steps) >= self.size:
            self._parts, self._count = [], 0
        self._parts.append((steps[-self.size :].copy(), values[-self.size :].copy()))
        self._count += len(self._parts[-1][0])
        if self._count > self.size + self.size // 4:
            self._gather()
        while len(self._parts) > 1 and len(self._parts[-2][0]) <= min(len(self._parts[-1][0]), _FEW_ROWS):
            # An array takes as much room as a dozen of values: two of one size become one, so that few are left.
            (steps, values), (later_steps, later_values) = self._parts[-2:]
            self._parts[-2:] = [(np.concatenate([steps, later_steps]), np.concatenate([values, later_values]))]

    def clear(self) -> None:
        """Forgets everything."""
        self._parts, self._count = [], 0

    def before(self, step: float) -> None:
        """Drops the pairs at the end that lie at `step` or beyond: a roll-back abandons them."""
        steps, values = self._gather()
        kept = len(steps)
        while kept and steps[kept - 1] >= step:
            kept -= 1
        self._parts, self._count = [(steps[:kept], values[:kept])], kept

    def _gather(self) -> tuple[FloatArray, FloatArray]:
        if not self._parts:
            return np.empty(0), np.empty(0)
        steps = np.concatenate([part[0] for part in self._parts])[-self.size :]
        values = np.concatenate([part[1] for part in self._parts])[-self.size :]
        self._parts, self._count = [(steps, values)], len(steps)
        return steps, values

    @property
    def steps(self) -> FloatArray:
        """(n,) steps, oldest first."""
        return self._gather()[0]

    @property
    def values(self) -> FloatArray:
        """(n,) values, oldest first."""
        return self._gather()[1]

    def by_step(self, first: float = -np.inf) -> dict[float, float]:
        """Step -> value from the step `first` on; the newest where a step came twice."""
        steps, values = self._gather()
        later = steps >= first
        return dict(zip(steps[later].tolist(), values[later].tolist(), strict=True))
