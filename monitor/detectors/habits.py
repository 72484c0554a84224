"""What a series is used to: the levels it has had, and the rhythm of its lone slow values."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import numpy as np

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

LEVEL_VALUES = 50  # a level is the median of so many values
LEVELS_KEPT = 400
NEAR = 1.2
HABIT = 0.05
TOLD = 5  # a level that was told so often, and came back each time, is the run's way


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


@dataclass(frozen=True, slots=True)
class LevelsMark:
    """What `Levels` held at one moment."""

    medians: int
    every: int
    blocks: int
    buffer: tuple[float, ...]


class Levels:
    """The levels that a series has had: medians of every 50 values, the whole run long, thinned when there are many.

    What was told as a fault is no level that it has had, until it was told five times.

    >>> levels = Levels()
    >>> levels.extend(np.ones(400))
    >>> mark = levels.mark()
    >>> levels.extend(np.full(300, 2.0))
    >>> levels.knows(2.0, up=True), levels.take_back(mark, 2.0), levels.knows(2.0, up=True)
    (True, None, False)
    """

    def __init__(self) -> None:
        self.medians: list[float] = []
        self._every = 1
        self.buffer: list[float] = []
        self._blocks = 0
        self._told: deque[float] = deque(maxlen=4 * TOLD)

    def mark(self) -> LevelsMark:
        """Where `take_back` goes back to."""
        return LevelsMark(len(self.medians), self._every, self._blocks, tuple(self.buffer))

    def take_back(self, mark: LevelsMark, level: float) -> None:
        """The values since `mark` are told as a fault at `level`: forgets them, and counts the fault."""
        del self.medians[mark.medians * mark.every // self._every :]  # thinned since: fewer of them are left
        self._blocks, self.buffer = mark.blocks, list(mark.buffer)
        self._told.append(level)

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
        """Whether one in 20 values was at `level`, 20% short of it or beyond, but for the first 50 and newest 100.

        Or five faults there were told.
        """

        def near(levels: Iterable[float]) -> int:
            return sum(1 for m in levels if (m >= level / NEAR if up else m <= level * NEAR))

        before = self.medians[1:-2]
        return near(before) >= max(1, HABIT * len(before)) or near(self._told) >= TOLD
