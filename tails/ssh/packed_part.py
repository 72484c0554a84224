"""What a packed part holds behind what was read of the file before it was packed."""

from __future__ import annotations

from trainmon.tails.ssh.remote_file import Question
from trainmon.tails.ssh.unpack import Unpacker

_TAKE_BYTES = 1 << 20


class PackedPart:
    """Takes the packed bytes from their start in pieces. `known`: what was read of it, None for nothing.

    `is_other`: it does not begin with what was read. No more than `most` bytes are kept.
    """

    def __init__(self, known: Question | None, most: int) -> None:
        self._head = known.head if known is not None else b""
        self._tail = known.tail if known is not None else b""
        self._begin = known.offset - len(self._tail) if known is not None else 0
        self._most = most + len(self._tail)
        self._unpacker = Unpacker()
        self._first = b""
        self._seen = 0
        self._kept = bytearray()
        self.is_other = False

    @property
    def is_full(self) -> bool:
        """Whether as much is kept as may be."""
        return len(self._kept) >= self._most

    def give(self, packed: bytes) -> None:
        """The next packed bytes."""
        self._unpacker.give(packed)
        while not (self.is_other or self.is_full) and (data := self._unpacker.take(_TAKE_BYTES)):
            if len(self._first) < len(self._head):
                self._first += data[: len(self._head) - len(self._first)]
                self.is_other = not self._head.startswith(self._first)
            if self._seen + len(data) > self._begin:
                self._kept += data[max(self._begin - self._seen, 0) :]
            self._seen += len(data)

    def rest(self) -> bytes | None:
        """What follows what was read, once all was given; None when this is another file."""
        if self.is_other or self._first != self._head or self._kept[: len(self._tail)] != self._tail:
            return None
        return bytes(self._kept[len(self._tail) :])
