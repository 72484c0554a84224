"""Lines that differ in how wide their numbers are: known by their skeleton, read many at once.

A line with each run of digits cut to one ``0`` and each run of blanks to one is its skeleton. The n-th run of digits is
the same number, or the same part of one, in all lines of a skeleton.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.digits import MAX_DIGITS, MAX_POWER, POWERS
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import FloatArray, IntArray

_SHAPE = lazy(rb"([-+]?)(\d*)(\.?)(\d*)(?:[eE]([-+]?)(\d+))?")
_RUN = lazy(rb"\d+")
_SPACE, _ZERO, _NEWLINE = 32, 48, 10
_LONGEST = 19  # digits; a longer run overflows
_DIGITS = np.arange(256) - _ZERO
_IS_DIGIT = (_DIGITS >= 0) & (_DIGITS <= 9)


def skeletons(outlines: bytes) -> list[bytes]:
    r"""The skeleton of each line of `outlines`, in which every digit is a ``0``.

    >>> skeletons(b"step   00 loss 0.000\nstep 000  loss 0.0\n")
    [b'step 0 loss 0.0', b'step 0 loss 0.0', b'']
    """
    raw = np.frombuffer(outlines, np.uint8)
    if not len(raw):
        return [b""]
    again = (raw[1:] == raw[:-1]) & ((raw[1:] == _ZERO) | (raw[1:] == _SPACE))
    bones: bytes = raw[np.concatenate([[True], ~again])].tobytes()
    return bones.split(b"\n")


class _Number:
    """Which runs of digits make up one number."""

    __slots__ = ("exponent", "exponent_sign", "fraction", "sign", "whole")

    def __init__(self, match: re.Match[bytes], runs: dict[int, int]) -> None:
        self.sign = -1.0 if match[1] == b"-" else 1.0
        self.whole = runs[match.start(2)] if match[2] else -1
        self.fraction = runs[match.start(4)] if match[4] else -1
        self.exponent = runs[match.start(6)] if match[6] else -1
        self.exponent_sign = -1 if match[5] == b"-" else 1


class Skeleton:
    """Reads the numbers at `spans` of lines with the skeleton of `line`. Raises ValueError when one is no plain number.

    >>> line = b"step 7 loss 2.5e-01"
    >>> Skeleton(line, [(5, 6), (12, 19)]).read([b"step 123 loss 1.25e+00", b"step 9 loss 3.0e-10"]).tolist()
    [[123.0, 1.25], [9.0, 3e-10]]
    """

    def __init__(self, line: bytes, spans: list[tuple[int, int]]) -> None:
        runs = {match.start(): place for place, match in enumerate(_RUN.finditer(line))}
        self._runs = len(runs)
        self._numbers: list[_Number] = []
        for start, end in spans:
            match = _SHAPE.fullmatch(line, start, end)
            if match is None or not (match[2] or match[4]):
                raise ValueError(line[start:end])
            self._numbers.append(_Number(match, runs))

    def read(self, lines: list[bytes]) -> FloatArray | None:
        """(lines, spans) float64, bit for bit what `float` gives; None when a line has another skeleton."""
        text = b"\n" + b"\n".join(lines) + b"\n" * (_LONGEST + 1)
        raw = np.frombuffer(text, np.uint8)
        digit = _IS_DIGIT[raw]
        edges = np.flatnonzero(digit[1:] != digit[:-1]) + 1
        if len(edges) != 2 * self._runs * len(lines):
            return None
        starts = edges[::2].reshape(len(lines), self._runs)
        lengths = edges[1::2].reshape(len(lines), self._runs) - starts
        out = np.empty((len(lines), len(self._numbers)))
        for at, number in enumerate(self._numbers):
            out[:, at] = self._number(number, raw, starts, lengths, text)
        return out

    def _number(
        self, number: _Number, raw: NDArray[np.uint8], starts: IntArray, lengths: IntArray, text: bytes
    ) -> FloatArray:
        mantissa: FloatArray = np.zeros(len(starts))
        digits = np.zeros(len(starts), np.int64)
        decimals: IntArray = digits
        if number.whole >= 0:
            digits = lengths[:, number.whole]
            mantissa = _integers(raw, starts[:, number.whole], digits)
        if number.fraction >= 0:
            decimals = lengths[:, number.fraction]
            digits = digits + decimals
            scale = POWERS[np.minimum(decimals, MAX_POWER)]
            mantissa = mantissa * scale + _integers(raw, starts[:, number.fraction], decimals)
        power = -decimals
        is_odd = digits > MAX_DIGITS
        if number.exponent >= 0:
            exponent = _integers(raw, starts[:, number.exponent], lengths[:, number.exponent])
            power = power + (number.exponent_sign * np.minimum(exponent, 1e6)).astype(np.int64)
            is_odd = is_odd | (np.abs(power) > MAX_POWER) | (lengths[:, number.exponent] > MAX_DIGITS)
        size = POWERS[np.minimum(np.abs(power), MAX_POWER)]
        values = np.where(power < 0, mantissa / size, mantissa * size) * number.sign
        for row in np.flatnonzero(is_odd).tolist():
            values[row] = number.sign * float(self._text(number, row, starts, lengths, text))
        return np.asarray(values)

    @staticmethod
    def _text(number: _Number, row: int, starts: IntArray, lengths: IntArray, text: bytes) -> bytes:
        """A number as it was written, without its sign."""
        runs = [run for run in (number.whole, number.fraction, number.exponent) if run >= 0]
        start = int(starts[row, runs[0]]) - (number.whole < 0)
        return text[start : int(starts[row, runs[-1]] + lengths[row, runs[-1]])]


def _integers(raw: NDArray[np.uint8], starts: IntArray, lengths: IntArray) -> FloatArray:
    """(n,) runs of digits as numbers; exact up to 15 digits."""
    longest = min(int(lengths.max(initial=0)), _LONGEST)
    values: FloatArray = np.zeros(len(starts))
    if int(lengths.min(initial=_LONGEST)) == longest:
        for at in range(longest):
            values = values * 10 + _DIGITS[raw[starts + at]]
        return values
    for at in range(longest):
        values = np.where(lengths > at, values * 10 + _DIGITS[raw[starts + at]], values)
    return values


class RowValues(Mapping[str, float | None]):
    """The metrics of one line: row `row` of `matrix`, which belongs to all lines read with it."""

    __slots__ = ("matrix", "names", "row")

    def __init__(self, names: tuple[str, ...], matrix: FloatArray, row: int) -> None:
        self.names = names
        self.matrix = matrix
        self.row = row

    def __getitem__(self, key: str) -> float:
        if key not in self.names:
            raise KeyError(key)
        return float(self.matrix[self.row, self.names.index(key)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def of_rank(self, rank: str) -> RowValues:
        """The same with the rank in each name."""
        return RowValues(_of_rank(self.names, rank), self.matrix, self.row)


@lru_cache(maxsize=4096)
def _of_rank(names: tuple[str, ...], rank: str) -> tuple[str, ...]:
    """`names` with the rank in each; the same tuple each time."""
    return tuple(f"{name}{{rank={rank}}}" for name in names)
