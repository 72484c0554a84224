"""Median and median absolute deviation of the last W values, exact, without recomputing the window."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from itertools import islice


class RollingRobust:
    """Median and MAD (about that median, unscaled) of the last `window` values; METRICS.md D6's q_t and D_t.

    A sorted list gives the median at once. The MAD is the k-th smallest of two ascending runs of deviations
    (to the left and to the right of the median), found by bisection without building either. `within` answers
    the commoner question, "is the MAD below this?", with two bisects.

    Values must be finite. `update` costs O(log W) comparisons and one memory move of at most W pointers.

    >>> stat = RollingRobust(window=4)
    >>> for x in [1.0, 2.0, 4.0, 8.0, 16.0]:
    ...     stat.update(x)
    >>> stat.median, stat.mad
    (6.0, 3.0)
    >>> stat.within(3.5), stat.within(3.0)
    (True, False)
    """

    __slots__ = ("_order", "_sorted", "window")

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ValueError("a window holds at least 1 value")
        self.window = window
        self._order: deque[float] = deque()
        self._sorted: list[float] = []

    def __len__(self) -> int:
        return len(self._order)

    def update(self, x: float) -> None:
        """Takes one value in; the oldest leaves when the window is full."""
        order, ranked = self._order, self._sorted
        if len(order) == self.window:
            del ranked[bisect_left(ranked, order.popleft())]
        order.append(x)
        insort(ranked, x)

    def load(self, values: Sequence[float]) -> None:
        """Puts `values`, oldest first and at most `window` of them, in the place of all there is."""
        self._order = deque(values)
        self._sorted = sorted(values)

    def clear(self) -> None:
        """Forgets every value."""
        self._order.clear()
        self._sorted.clear()

    def values(self) -> list[float]:
        """The values, oldest first."""
        return list(self._order)

    def newest(self, count: int) -> list[float]:
        """The values that were taken in last, at most `count` of them, the newest first."""
        return list(islice(reversed(self._order), count))

    @property
    def last(self) -> float:
        """The value that was taken in last. Raises IndexError when empty."""
        return self._order[-1]

    @property
    def median(self) -> float:
        """The median, the mean of the two middle values when their number is even. NaN when empty."""
        ranked = self._sorted
        n = len(ranked)
        if not n:
            return float("nan")
        half = n >> 1
        return ranked[half] if n & 1 else (ranked[half - 1] + ranked[half]) / 2

    @property
    def mad(self) -> float:
        """The median of |x - median|, the mean of the two middle ones when even. NaN when empty."""
        n = len(self._sorted)
        if not n:
            return float("nan")
        if n & 1:
            return self._deviations(n >> 1)[0]
        one, next_one = self._deviations((n >> 1) - 1)
        return (one + next_one) / 2

    def quantile(self, share: float) -> float:
        """The value below which `share` (0..1) of the window lies, linearly interpolated as numpy does it."""
        ranked = self._sorted
        position = share * (len(ranked) - 1)
        low = int(position)
        if low + 1 >= len(ranked):
            return ranked[-1]
        return ranked[low] + (ranked[low + 1] - ranked[low]) * (position - low)

    def within(self, limit: float) -> bool:
        """Whether the MAD is below `limit` (strictly): two bisects when it is far from it, else the MAD itself."""
        ranked = self._sorted
        n = len(ranked)
        half = n >> 1
        middle = ranked[half] if n & 1 else (ranked[half - 1] + ranked[half]) / 2
        reach = limit + 1e-9 * limit + 1e-15 * abs(middle)  # rounding may only ever ask for the exact answer
        if bisect_left(ranked, middle + reach) - bisect_right(ranked, middle - reach) < (n + 1) >> 1:
            return False
        return self.mad < limit

    def _deviations(self, k: int) -> tuple[float, float]:
        """The k-th smallest (0-based) of |x - median| and the next larger one (infinite when there is none): k+1
        neighbours of the median, found by bisection, and the nearer of the two behind them."""
        ranked = self._sorted
        middle = self.median
        split = bisect_left(ranked, middle)
        left, right = split, len(ranked) - split
        # The k+1 nearest are ranked[split - i : split + k + 1 - i] for one i: the smallest whose next left
        # neighbour is farther than the last one taken on the right.
        low, high = max(0, k + 1 - right), min(left, k + 1)
        while low < high:
            i = (low + high) // 2
            if middle - ranked[split - i - 1] < ranked[split + k - i] - middle:
                low = i + 1
            else:
                high = i
        first, end = split - low, split + k + 1 - low
        farthest_left = middle - ranked[first] if low else 0.0
        farthest_right = ranked[end - 1] - middle if k + 1 > low else 0.0
        next_left = middle - ranked[first - 1] if first else math.inf
        next_right = ranked[end] - middle if end < len(ranked) else math.inf
        return max(farthest_left, farthest_right), min(next_left, next_right)
