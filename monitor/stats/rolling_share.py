"""Share of the last W values for which something held (D4)."""

from __future__ import annotations

from collections import deque


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

    @property
    def value(self) -> float:
        """The share, 0..1; NaN before the first answer."""
        return self._hits / len(self._answers) if self._answers else float("nan")
