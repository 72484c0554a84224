"""The noise of a mean over several values of a series that has a slope and whose noise may be autocorrelated."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from trainmon.tails.record import FloatArray

KEPT = 60
FEWEST = {5: 4, 10: 4, 20: 8}  # size of a batch -> third differences until it counts
CAUTION = 1.5  # while there are few batches


class _Batches:
    """Means of `size` values in a row; from four of them a third difference, in which slope and bend drop out."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.sum = 0.0
        self.count = 0
        self.means: deque[float] = deque(maxlen=4)
        self.thirds: deque[float] = deque(maxlen=KEPT)
        self._variance: float | None = None

    def update(self, x: float) -> None:
        self.sum += x
        self.count += 1
        if self.count < self.size:
            return
        self._close(self.sum)

    def _close(self, total: float) -> None:
        self.means.append(total / self.size)
        self.sum, self.count = 0.0, 0
        if len(self.means) == 4:
            a, b, c, d = self.means
            self.thirds.append(abs(a - 3 * b + 3 * c - d))
            self._variance = None

    def extend(self, values: FloatArray) -> None:
        """Takes (n,) values in. Totals are running sums, as `update` adds up; only the newest ones are kept."""
        first = min(-self.count % self.size, len(values))
        whole = (len(values) - first) // self.size
        for x in values[:first].tolist():
            self.update(x)
        if whole:
            blocks = values[first : first + whole * self.size].reshape(whole, self.size)[-(KEPT + 4) :]
            for total in np.add.accumulate(blocks, axis=1)[:, -1].tolist():
                self._close(total)
        for x in values[first + whole * self.size :].tolist():
            self.update(x)

    @property
    def variance(self) -> float:
        """Of one value as a batch mean of independent ones would have it: size times the variance of a batch mean."""
        if self._variance is None:
            ranked = sorted(self.thirds)
            sigma = 1.4826 * ranked[len(ranked) // 2] / math.sqrt(20)
            self._variance = self.size * sigma * sigma
        return self._variance


class BatchNoise:
    """Long-run variance by batch means: Var(mean of n) = V / n for n well above the correlation length.

    V is `size` times the variance of means over `size` values, taken from third differences of neighbouring means
    (variance 20), so that level, slope and bend of the series drop out and a kink in it hardly moves their median.
    Of the sizes 5, 10 and 20 the larger V counts: positive autocorrelation makes small batches too quiet.

    >>> noise = BatchNoise()
    >>> for i in range(400):
    ...     noise.update(0.01 * i + (1.0 if i % 7 in (0, 2, 3) else -1.0))
    >>> noise.sigma(20, 20) < 0.5
    True
    >>> BatchNoise().sigma(8, 20)
    inf
    """

    def __init__(self) -> None:
        self._batches = tuple(_Batches(size) for size in FEWEST)

    def update(self, x: float) -> None:
        """Takes one value in."""
        for batches in self._batches:
            batches.update(x)

    def extend(self, values: FloatArray) -> None:
        """Takes (n,) values in, one after the other."""
        for batches in self._batches:
            batches.extend(values)

    def interrupt(self) -> None:
        """What comes does not continue what was: no batch spans the gap."""
        for batches in self._batches:
            batches.sum, batches.count = 0.0, 0
            batches.means.clear()

    def sigma(self, first: int, second: int) -> float:
        """Of the difference between the means of `first` and of `second` values; infinite while it is unknown."""
        known = [batches for batches in self._batches if len(batches.thirds) >= FEWEST[batches.size]]
        if not known:
            return math.inf
        variance = max(batches.variance for batches in known)
        caution = 1.0 if len(known) > 1 else CAUTION
        return caution * math.sqrt(variance * (1 / first + 1 / second))
