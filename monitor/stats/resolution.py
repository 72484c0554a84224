"""The last printed decimal place of a column, as seen so far."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainmon.tails.record import FloatArray

FULL_PRECISION = 12  # beyond this many places a float64 was not rounded for printing
_FEW = 16  # so many values are looked at one by one sooner than together
_ROUNDING = 2.0**-51  # two units in the last bit: how far the product with a power of ten may lie from a whole number


def decimals_of(x: float) -> int:
    """Digits after the decimal point in the shortest text that reads back as `x` (0 for whole numbers).

    >>> decimals_of(2.31), decimals_of(5.0), decimals_of(1.5e-05), decimals_of(3e20)
    (2, 0, 6, 0)
    """
    mantissa, _, exponent = repr(float(x)).partition("e")
    fraction = mantissa.partition(".")[2].rstrip("0")
    return max(0, len(fraction) - int(exponent or 0))


class PrintResolution:
    """The finest decimal place that a column has used so far, and half a unit of it.

    Values printed with few digits repeat, so that their median absolute deviation is 0; D6 floors it by
    `half_unit`, propagated through the logarithm. It depends on the values up to and including the present one
    and on nothing else, so it is the same whatever frames they came in.

    >>> stat = PrintResolution()
    >>> for x in [10.9, 10.85, 11.0]:
    ...     stat.update(x)
    >>> stat.decimals, stat.half_unit
    (2, 0.005)
    """

    __slots__ = ("decimals",)

    def __init__(self) -> None:
        self.decimals = 0

    @property
    def half_unit(self) -> float:
        """Half a unit in the last printed place; 0 when the column carries full precision."""
        return 0.5 * 10.0**-self.decimals if self.decimals < FULL_PRECISION else 0.0

    def update(self, x: float) -> None:
        """Takes one finite value in."""
        if self.decimals < FULL_PRECISION:
            scaled = x * 10.0**self.decimals
            if abs(scaled - round(scaled)) > _ROUNDING * abs(scaled):
                self.decimals = min(FULL_PRECISION, max(self.decimals, decimals_of(x)))

    def extend(self, values: FloatArray) -> Iterator[tuple[int, float]]:
        """Takes (n,) finite values in; gives (index, half_unit) at the start and wherever `half_unit` changes."""
        yield 0, self.half_unit
        if len(values) <= _FEW:
            yield from self._one_by_one(values.tolist())
            return
        start = 0
        while self.decimals < FULL_PRECISION and start < len(values):
            scaled = values[start:] * 10.0**self.decimals
            finer = np.flatnonzero(np.abs(scaled - np.rint(scaled)) > _ROUNDING * np.abs(scaled))
            if not len(finer):
                return
            start += int(finer[0])
            before = self.decimals
            self.decimals = min(FULL_PRECISION, max(before, decimals_of(float(values[start]))))
            if self.decimals != before:
                yield start, self.half_unit
            start += 1

    def _one_by_one(self, values: list[float]) -> Iterator[tuple[int, float]]:
        for index, x in enumerate(values):
            before = self.decimals
            self.update(x)
            if self.decimals != before:
                yield index, self.half_unit
