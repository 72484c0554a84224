"""A sum with weights that decay by age, many values at once."""

from __future__ import annotations

import numpy as np

from trainmon.tails.record import FloatArray

_LENGTH = 32
_LEAST_KEEP = 0.5  # a smaller one raised to the length of a block leaves the range of floats


class DecayingSum:
    """S_n = sum of keep^(n - i) x_i. `extend` gives, to the last bit, what `update` gives value by value.

    Values are gathered in blocks of 32, each a running sum of x_i / keep^i; a recurrence from one value to the next
    could not be taken many at once.

    >>> one, many = DecayingSum(0.9), DecayingSum(0.9)
    >>> xs = np.arange(100.0)
    >>> for x in xs.tolist():
    ...     one.update(x)
    >>> many.extend(xs)
    >>> one.value == many.value, round(DecayingSum(0.5, start=4.0).value, 6)
    (True, 4.0)
    """

    __slots__ = ("_at", "_begun", "_fall", "_gathered", "_lift", "keep")

    def __init__(self, keep: float, start: float = 0.0) -> None:
        if not 0 <= keep < 1:
            raise ValueError("what is kept lies in [0, 1)")
        self.keep = keep
        ages = np.arange(_LENGTH if keep >= _LEAST_KEEP else 1)
        self._lift: list[float] = (keep ** -ages.astype(np.float64)).tolist() if keep else [1.0]
        self._fall: list[float] = (keep ** ages.astype(np.float64)).tolist() if keep else [1.0]
        self._begun = start
        self._gathered = 0.0
        self._at = 0

    def update(self, x: float) -> None:
        """Takes one value in."""
        self._gathered += x * self._lift[self._at]
        self._at += 1
        if self._at == len(self._lift):
            self._close(self._gathered)

    def extend(self, values: FloatArray) -> None:
        """Takes (n,) values in, one after the other."""
        length = len(self._lift)
        first = min(-self._at % length, len(values))
        whole = (len(values) - first) // length
        for x in values[:first].tolist():
            self.update(x)
        if whole:
            blocks = values[first : first + whole * length].reshape(whole, length)
            with np.errstate(over="ignore", invalid="ignore"):  # as floats overflow in `update`: without a word
                sums = np.add.accumulate(blocks * np.array(self._lift), axis=1)[:, -1].tolist()
            for gathered in sums:
                self._close(gathered)
        for x in values[first + whole * length :].tolist():
            self.update(x)

    @property
    def value(self) -> float:
        """The sum now."""
        return self._fall[self._at - 1] * (self.keep * self._begun + self._gathered) if self._at else self._begun

    def _close(self, gathered: float) -> None:
        self._begun = self._fall[-1] * (self.keep * self._begun + gathered)
        self._gathered = 0.0
        self._at = 0
