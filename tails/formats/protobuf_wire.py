"""Just enough of protobuf's wire format to read messages whose field numbers are known."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")


class WireError(ValueError):
    """The bytes are no message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at` and the place behind it. Raises `WireError` when it is cut off or too long."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def signed(value: int) -> int:
    """A varint as the int64 it stands for.

    >>> signed(2**64 - 1)
    -1
    """
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def zigzag(value: int) -> int:
    """A varint as the sint64 it stands for."""
    return (value >> 1) ^ -(value & 1)


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: number, wire type, and where the value begins and ends.

    Raises `WireError` when the bytes are no message.

    >>> list(fields(bytes([0x08, 0x96, 0x01, 0x12, 0x01, 0x41])))
    [(1, 0, 1, 3), (2, 2, 5, 6)]
    """
    at, end = start, len(data) if end is None else end
    while at < end:
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            _, stop = varint(data, at)
        elif kind == FIXED64:
            stop = at + 8
        elif kind == FIXED32:
            stop = at + 4
        elif kind == LENGTH:
            size, at = varint(data, at)
            stop = at + size
        else:
            raise WireError
        if stop > end:
            raise WireError
        yield number, kind, at, stop
        at = stop


def double_at(data: bytes, at: int) -> float:
    """The double at `at`."""
    value: float = _DOUBLE.unpack_from(data, at)[0]
    return value


def text(data: bytes, start: int, end: int) -> str:
    """A string field."""
    return data[start:end].decode("utf-8", "replace")
