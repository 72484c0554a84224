"""Share of the last W values for which something held (D4)."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.record import FloatArray

FEW = 16  # so many answers are counted one by one sooner than together


class RollingShare:
    """How many of the last `window` answers were yes, over how many there were: METRICS.md D4's clip rate.

    >>> stat = RollingShare(window=4)
    >>> for norm in [0.5, 2.0, 3.0, 0.1, 0.2]:
    ...     stat.update(norm > 1.0)
    >>> stat.value
    0.5
    """

    __slots__ = ("_answers", "_hits", "window")

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ValueError("a window holds at least 1 value")
        self.window = window
        self._answers: deque[bool] = deque()
        self._hits = 0

    def __len__(self) -> int:
        return len(self._answers)

    def update(self, x: bool) -> None:
        """Takes one answer in; the oldest leaves when the window is full."""
        if len(self._answers) == self.window:
            self._hits -= self._answers.popleft()
        self._answers.append(bool(x))
        self._hits += bool(x)

    def extend(self, answers: NDArray[np.bool_]) -> FloatArray:
        """Takes (n,) answers in, one after the other; gives the (n,) shares after each."""
        if len(answers) <= FEW:
            return np.array([self._after(answer) for answer in answers.tolist()])
        before = np.fromiter(self._answers, np.int64, len(self._answers))
        joined = np.concatenate([before, answers.astype(np.int64)])
        total = np.concatenate([[0], np.cumsum(joined)])
        ends = np.arange(len(before), len(joined)) + 1
        begins = np.maximum(ends - self.window, 0)
        self._answers = deque(joined[-self.window :].astype(bool).tolist())
        self._hits = sum(self._answers)
        shares: FloatArray = (total[ends] - total[begins]) / (ends - begins)
        return shares

    def clear(self) -> None:
        """Forgets every answer."""
        self._answers.clear()
        self._hits = 0

    def _after(self, answer: bool) -> float:
        self.update(answer)
        return self._hits / len(self._answers)

    @property
    def value(self) -> float:
        """The share, 0..1; NaN before the first answer."""
        return self._hits / len(self._answers) if self._answers else float("nan")
