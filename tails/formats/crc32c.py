"""Masked CRC-32C as TensorFlow and LevelDB write it, for many byte strings at once.

The check sum is linear over GF(2): each byte adds, by exclusive or, what it would give with zeros behind it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_CELLS = 1 << 22  # bytes looked up at once


@lru_cache(maxsize=1)
def _base() -> Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


class _Contributions:
    """`rows[d][b]`: what byte `b` gives with `d` bytes behind it; grown as longer strings come."""

    def __init__(self) -> None:
        self._rows = np.zeros((0, 256), np.uint32)

    def upto(self, length: int) -> Words:
        """(length, 256), the row of the last byte of a string first."""
        have = len(self._rows)
        if length > have:
            rows = np.zeros((max(length, 2 * have), 256), np.uint32)
            rows[:have] = self._rows
            base = _base()
            for index in range(have, len(rows)):
                before = rows[index - 1] if index else None
                rows[index] = base if before is None else (before >> 8) ^ base[before & 0xFF]
            self._rows = rows
        return self._rows[:length]


_CONTRIBUTIONS = _Contributions()


def contributions(length: int) -> Words:
    """(length, 256) what each byte value adds at each place of a string of `length`, its first byte first.

    The sum of a string is the exclusive or of what its bytes add, its first four bytes turned over, turned over.
    """
    return _CONTRIBUTIONS.upto(length)[::-1]


def masked_crcs(raw: NDArray[np.uint8], starts: NDArray[np.int64], length: int) -> Words:
    """(n,) masked CRC-32C of the `length` bytes of `raw` (at least 4) from each of `starts`.

    >>> hex(int(masked_crcs(np.frombuffer(b"123456789", np.uint8), np.array([0]), 9)[0]))
    '0xc78ab0e5'
    """
    table = contributions(length)
    out = np.empty(len(starts), np.uint32)
    place = np.arange(length)
    step = max(1, _CELLS // length)
    for at in range(0, len(starts), step):
        window = raw[starts[at : at + step, None] + place].copy()
        window[:, :4] ^= 0xFF  # the initial value of all ones
        out[at : at + step] = np.bitwise_xor.reduce(table[place, window], axis=1)
    return mask(~out)


def mask(crc: Words) -> Words:
    """The stored form of a CRC, which may itself be part of what a CRC is taken of."""
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK_DELTA)


def crc_of(data: bytes) -> int:
    """The masked CRC-32C of one byte string of any length."""
    base = _base()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = int(base[(crc ^ byte) & 0xFF]) ^ (crc >> 8)
    return int(mask(np.array([crc ^ 0xFFFFFFFF], np.uint32))[0])
