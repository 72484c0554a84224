"""JSON objects with a checksum as their last member: a byte that a disk has flipped is noticed, and never believed."""

from __future__ import annotations

import zlib
from typing import Final

_LENGTH: Final = len(', "crc32": "00000000"}\n')


class DamagedError(ValueError):
    """The bytes are not those that were written."""


def sealed(document: bytes) -> bytes:
    r"""The JSON object `document`, which has members, with the checksum of all before it as its last one; a whole line.

    >>> sealed(b'{"a": 1}')
    b'{"a": 1, "crc32": "7aa88204"}\n'
    """
    head = document.rstrip().removesuffix(b"}").rstrip()
    return head + _seal(head)


def require_whole(raw: bytes) -> None:
    """Raises DamagedError where `raw` is not what `sealed` gave."""
    if raw[-_LENGTH:] != _seal(raw[:-_LENGTH]):
        raise DamagedError("its checksum is missing or that of other bytes")


def _seal(head: bytes) -> bytes:
    return b', "crc32": "%08x"}\n' % zlib.crc32(head)
