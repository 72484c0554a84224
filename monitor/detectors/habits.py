"""What a series is used to: the levels it has had, and the rhythm of its lone slow values."""

from __future__ import annotations

import math

import numpy as np

from trainmon.tails.record import FloatArray

LEVEL_VALUES = 50  # a level is the median of so many values
LEVELS_KEPT = 400
NEAR = 1.2
HABIT = 0.05


class Rhythm:
    """The steps at which lone slow steps came: checkpoints and evaluations come at a fixed distance."""

    def __init__(self) -> None:
        self.period = 0.0
        self._last = math.nan
        self._gap = math.nan

    def expects(self, step: float) -> bool:
        """Takes one slow step in; whether it lies on the rhythm learned from those before."""
        gap = step - self._last
        known = self.period > 0 and abs(gap / self.period - round(gap / self.period)) * self.period <= self._slack
        if abs(gap - self._gap) <= max(2.0, 0.02 * gap):
            self.period = gap
        self._last, self._gap = step, gap
        return known

    @property
    def _slack(self) -> float:
        return max(2.0, 0.02 * self.period)


class Levels:
    """The levels that a series has had: medians of every 50 values, the whole run long, thinned when there are many."""

    def __init__(self) -> None:
        self.medians: list[float] = []
        self._every = 1
        self.buffer: list[float] = []
        self._blocks = 0

    def extend(self, values: FloatArray) -> None:
        """Takes values in."""
        at = min(-len(self.buffer) % LEVEL_VALUES, len(values))
        self._fill(values[:at])
        whole = (len(values) - at) // LEVEL_VALUES
        if whole:
            blocks = values[at : at + whole * LEVEL_VALUES].reshape(whole, LEVEL_VALUES)
            for median in np.sort(blocks, axis=1)[:, LEVEL_VALUES // 2].tolist():
                self._add(median)
        self._fill(values[at + whole * LEVEL_VALUES :])

    def _fill(self, values: FloatArray) -> None:
        """Takes in values of one block."""
        self.buffer += values.tolist()
        if len(self.buffer) == LEVEL_VALUES:
            self.close()

    def update(self, x: float) -> None:
        """Takes one value in."""
        self.buffer.append(x)
        if len(self.buffer) == LEVEL_VALUES:
            self.close()

    def close(self) -> None:
        """Takes in `buffer`, which is to be filled with `LEVEL_VALUES` values."""
        self._add(sorted(self.buffer)[LEVEL_VALUES // 2])
        self.buffer.clear()

    def _add(self, median: float) -> None:
        self._blocks += 1
        if not self._blocks % self._every:
            self.medians.append(median)
        if len(self.medians) >= LEVELS_KEPT:
            del self.medians[::2]
            self._every *= 2

    def knows(self, level: float, *, up: bool) -> bool:
        """Whether one in 20 values was at `level`, 20% short of it or beyond, but for the first 50 and newest 100."""
        before = self.medians[1:-2]
        near = sum(1 for m in before if (m >= level / NEAR if up else m <= level * NEAR))
        return near >= max(1, HABIT * len(before))
