r"""Packets of the far side, and words that are sent there.

A packet is a header of 20 bytes, ``K IIIIIIII LLLLLLLL\n`` (kind, number of what it answers and length of the payload,
both in hexadecimal), and then its payload, any bytes. What is sent there are lines of words apart by single spaces;
in a path every byte but a harmless few is written as ``\0ooo``, which printf's ``%b`` and the reader undo.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from trainmon.tails.quick_dataclass import dataclass

HEADER_BYTES = 20
MAX_PAYLOAD_BYTES = 4 << 20
MAX_POURED_BYTES = 16 << 20  # of a packet of `POURED`
POURED = "P"  # part of a file as it lies there: given on in pieces, as they come
LONG_BYTES = 64 << 10  # from here on the rest of a packet is read to where it belongs, and not copied there

_HEADER = re.compile(rb"([A-Za-z]) ([0-9a-f]{8}) ([0-9a-f]{8})\n")
_SPECIAL = re.compile(rb"[^A-Za-z0-9_./+=:,@-]")


class BadAnswer(ValueError):  # noqa: N818 - what the far side said
    """The far side sent what the reader never sends."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One packet."""

    kind: str
    number: int
    payload: bytes


class _Long:
    """A long packet of which a part has come: `rest` is the place of what has not, in its payload."""

    def __init__(self, kind: str, number: int, length: int) -> None:
        self.kind, self.number = kind, number
        self.payload = bytearray(length)
        self.rest = memoryview(self.payload)


class FrameBuffer:
    r"""Cuts a stream of bytes into packets; holds no more than one packet and what was given last.

    >>> buffer = FrameBuffer()
    >>> buffer.add(b"S 00000001 00000002\nok" + b"h 0000")
    >>> list(buffer.take())
    [Frame(kind='S', number=1, payload=b'ok')]
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._place = 0
        self._long: _Long | None = None
        self._poured = 0  # the packet whose pieces come now,
        self._left = 0  # and how much of it has not come
        self._pieces: list[Frame] = []

    def rest(self) -> memoryview | None:
        """Where the next bytes belong when they are those of a long packet: to be read into, and told by `filled`."""
        return None if self._long is None else self._long.rest

    def filled(self, count: int) -> None:
        """So many bytes were read into `rest`."""
        if self._long is not None:
            self._long.rest = self._long.rest[count:]

    def add(self, data: bytes | bytearray | memoryview) -> None:
        """Takes in the next bytes."""
        if self._long is not None:
            count = min(len(data), len(self._long.rest))
            self._long.rest[:count] = data[:count]
            self.filled(count)
            data = data[count:]
        elif self._left and data:
            piece, data = data[: self._left], data[self._left :]
            self._left -= len(piece)
            self._pieces.append(Frame(POURED, self._poured, bytes(piece)))  # of bytes as they came no copy is made
        if self._place:
            del self._data[: self._place]
            self._place = 0
        self._data += data

    def take(self) -> Iterator[Frame]:
        """The packets that are whole, and pieces of long ones of `POURED`, each a packet of its own here.

        Raises BadAnswer where no packet begins, or one would be too long.
        """
        pieces, self._pieces = self._pieces, []
        yield from pieces
        if self._left:
            return
        if self._long is not None:
            if len(self._long.rest):
                return
            whole, self._long = self._long, None
            yield Frame(whole.kind, whole.number, bytes(whole.payload))
        while len(self._data) - self._place >= HEADER_BYTES:
            match = _HEADER.match(self._data, self._place)
            if match is None:
                raise BadAnswer("it sent something that is no packet of the reader")
            kind, number, length = match.group(1).decode(), int(match.group(2), 16), int(match.group(3), 16)
            del match  # its hold on the buffer would forbid cutting it
            if length > (MAX_POURED_BYTES if kind == POURED else MAX_PAYLOAD_BYTES):
                raise BadAnswer(f"it announced a packet of {length} bytes")
            begin = self._place + HEADER_BYTES
            if len(self._data) < begin + length:
                if length < LONG_BYTES:
                    return
                came = bytes(memoryview(self._data)[begin:])
                self._data.clear()
                self._place = 0
                if kind == POURED:
                    self._poured, self._left = number, length - len(came)
                    yield Frame(kind, number, came)
                else:
                    self._long = _Long(kind, number, length)
                    self.add(came)
                return
            self._place = begin + length
            yield Frame(kind, number, bytes(memoryview(self._data)[begin : begin + length]))


def word(path: str | bytes) -> bytes:
    r"""`path` as one word of a line. A relative one begins with ``./``, so that none is ever taken for an option.

    >>> word("/runs/it's"), word("-rf *")
    (b'/runs/it\\0047s', b'./-rf\\0040\\0052')
    """
    raw = path if isinstance(path, bytes) else os.fsencode(path)
    return escaped(raw if raw.startswith(b"/") else b"./" + raw)


def escaped(raw: bytes) -> bytes:
    r"""`raw` without a space, a line end or any character that a shell knows.

    >>> escaped(b"a b;c")
    b'a\\0040b\\0073c'
    """
    return _SPECIAL.sub(lambda match: b"\\0%03o" % match.group()[0], raw)
