"""Line ends in bulk: `bytes.count` looks at one byte at a time, numpy at many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.record import IntArray

_NEWLINE = 10
_FEW_BYTES = 2048
_WORD = 8
_MANTISSA_BITS, _EXPONENT_OF_ONE = 52, 1023


def count_newlines(data: bytes | bytearray | memoryview) -> int:
    r"""How many ``\n`` there are.

    >>> count_newlines(b"a\n\nb"), count_newlines(b"\n" * 5000)
    (2, 5000)
    """
    if len(data) < _FEW_BYTES:
        return bytes(data).count(b"\n")
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))


def places_of(found: NDArray[np.bool_]) -> IntArray:
    """The places where `found` (n,) is true, quick where few are: eight at a time are passed over.

    >>> places_of(np.array([False] * 9 + [True, False, True])).tolist()
    [9, 11]
    """
    whole = len(found) // _WORD * _WORD
    words = found[:whole].view("<u8")
    at = np.flatnonzero(words != 0)
    held = words[at]
    if (held & (held - np.uint64(1))).any():  # two in eight
        return np.flatnonzero(found)
    # A power of two is told by its exponent.
    inside = ((held.astype(np.float64).view(np.int64) >> _MANTISSA_BITS) - _EXPONENT_OF_ONE) // _WORD
    places: IntArray = at * _WORD + inside
    return np.concatenate((places, np.flatnonzero(found[whole:]) + whole)) if whole < len(found) else places


def newline_places(data: bytes) -> IntArray:
    r"""(n,) the places of the ``\n`` in `data`.

    >>> newline_places(b"a\n\nb\n").tolist()
    [1, 2, 4]
    """
    return places_of(np.frombuffer(data, np.uint8) == _NEWLINE)
