"""The step counter of one attempt of one source: where it stands, how wide its steps are, which it has seen."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from itertools import pairwise
from typing import Final

import numpy as np

from trainmon.tails.record import FloatArray

# How many of the newest steps are remembered: wide enough to know a step printed again by another worker.
_REMEMBERED: Final = 64
_DIFFERENCES: Final = 16
_WIDER: Final = 1.5


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

    def expect(self, step: float) -> None:
        """Tells the step that follows: the first interval, while none is known."""
        if not self._widths and step > self.top:
            self._widths.append(step - self.top)

    def note_late(self, step: float) -> None:
        """Takes in one step below `top`."""
        self._recent.append(step)
        self.first = min(self.first, step)

    @property
    def widths(self) -> int:
        """How many of the last differences the interval is told from."""
        return len(self._widths)

    @property
    def interval(self) -> float:
        """The median of the last differences between steps; 1 before there were two."""
        if not self._widths:
            return 1.0
        ordered = sorted(self._widths)
        return ordered[len(ordered) // 2]

    def is_skipped(self, step: float) -> bool:
        """Whether a step seems to be missing where `step` is: the newest steps lie wider apart there than elsewhere."""
        seen = sorted(set(self._recent))
        place = bisect_left(seen, step)
        if not 0 < place < len(seen):
            return False
        usual = min((after - before for before, after in pairwise(seen)), default=1.0)
        return seen[place] - seen[place - 1] > _WIDER * min(usual, min(self._widths, default=usual))

    def has_seen(self, step: float) -> bool:
        """Whether `step` is among the newest steps."""
        return step in self._recent
