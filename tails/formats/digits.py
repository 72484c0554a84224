"""Numbers at fixed places of many lines, turned to float64 together; bit for bit what `float` gives.

A number of up to 15 digits is an exact integer in a double, and so is each power of ten up to 22: one division or
product of the two is the correctly rounded value (Clinger, "How to read floating point numbers accurately", 1990).
What lies outside of that is left to `float`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import FloatArray

_SHAPE = lazy(rb"([-+]?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?)(\d{1,3}))?")
MAX_DIGITS = 15
MAX_POWER = 22
POWERS = np.array([10.0**power for power in range(MAX_POWER + 1)])
_FEW = 6  # rows for which the vectors are not worth their set-up
_ZERO = 48


class NumberAt:
    """The number at bytes `start` to `end` of lines of one outline. `is_plain`: lines are read together.

    >>> number = NumberAt(b"loss: 0.000E-00 |", 6, 15)
    >>> number.read([b"loss: 2.125E-01 |", b"loss: 9.007E+00 |"][:1])
    array([0.2125])
    """

    def __init__(self, outline: bytes, start: int, end: int) -> None:
        self.start, self.end = start, end
        match = _SHAPE.fullmatch(outline, start, end)
        self.is_plain = match is not None and 0 < len(match[2] + (match[3] or b"")) <= MAX_DIGITS
        if match is None or not self.is_plain:
            return
        self._sign = -1.0 if match[1] == b"-" else 1.0
        self._places = [*range(*match.span(2)), *(range(*match.span(3)) if match[3] else ())]
        self._weights = 10.0 ** np.arange(len(self._places) - 1, -1, -1)
        self._decimals = len(match[3] or b"")
        self._exponent = list(range(*match.span(5))) if match[5] else []
        self._exponent_weights = 10 ** np.arange(len(self._exponent) - 1, -1, -1)
        self._exponent_sign = -1 if match[4] == b"-" else 1

    def read(self, lines: list[bytes], matrix: NDArray[np.uint8] | None = None) -> FloatArray:
        """(lines,) float64. `matrix`: the same lines as (lines, bytes) uint8, if there are enough of them."""
        if matrix is None or not self.is_plain:
            start, end = self.start, self.end
            return np.array([float(line[start:end]) for line in lines])
        mantissa = (matrix[:, self._places] - float(_ZERO)) @ self._weights * self._sign
        if not self._exponent:
            return np.asarray(mantissa / POWERS[self._decimals])
        exponent = (matrix[:, self._exponent].astype(np.int64) - _ZERO) @ self._exponent_weights
        power = exponent * self._exponent_sign - self._decimals
        size = np.minimum(np.abs(power), MAX_POWER)
        values = np.where(power < 0, mantissa / POWERS[size], mantissa * POWERS[size])
        for row in np.flatnonzero(np.abs(power) > MAX_POWER).tolist():
            values[row] = float(lines[row][self.start : self.end])
        return np.asarray(values)


def read_numbers(numbers: list[NumberAt], lines: list[bytes]) -> FloatArray:
    """(lines, numbers) float64; all lines are of one outline."""
    matrix: NDArray[np.uint8] | None = None
    if len(lines) > _FEW:
        matrix = np.frombuffer(b"".join(lines), np.uint8).reshape(len(lines), -1)
    out = np.empty((len(lines), len(numbers)))
    for at, number in enumerate(numbers):
        out[:, at] = number.read(lines, matrix)
    return out
