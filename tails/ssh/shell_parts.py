"""Parts of files that a reader in POSIX sh was asked for, and the packets in which they come."""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.answer import Piece, Status, piece_of, settled, stat_or_errno
from trainmon.tails.ssh.frame import POURED, BadAnswer, Frame

Then = Callable[[Piece, list[bytes]], None]

FIRST_BYTES = 4096  # the first piece has at least so many, if there are: what shows whether the file goes on
_FIRST = 0x40000000  # their numbers begin behind this


@dataclass(slots=True)
class _Asked:
    """A part on its way: `left` bytes have not come, `pieces` have; `head` where it was asked for by its path."""

    then: Then
    left: int
    pieces: list[bytes]
    head: Piece | None = None


class Parts:
    """What was asked for and has not come. An answer is given whole: only its end says whether the file stayed."""

    def __init__(self) -> None:
        self._next = _FIRST
        self._asked: dict[int, _Asked] = {}

    def expect(self, length: int, then: Then) -> int:
        """The number for a part of `length` bytes; `then` is called with its status or errno, and its bytes.

        Of a part that is asked for by its path (K) the bytes are those of the `Piece`, and `length` is 0.
        """
        self._next += 1
        self._asked[self._next] = _Asked(then, length, [])
        return self._next

    def take(self, frame: Frame) -> bool:
        """Takes a packet; False when it is of no part. Raises BadAnswer where more comes than was asked for."""
        asked = self._asked.get(frame.number)
        if asked is None or frame.kind not in (POURED, "K", "k"):
            return False
        if frame.kind == POURED:
            asked.left -= len(frame.payload)
            if asked.left < 0:
                raise BadAnswer("it sent more bytes of a file than were asked for")
            if asked.pieces and len(asked.pieces[0]) < FIRST_BYTES:
                asked.pieces[0] += frame.payload
            else:
                asked.pieces.append(frame.payload)
        elif frame.kind == "K":
            asked.head = piece_of(frame.payload)
            if asked.head.error or not asked.head.status or not stat.S_ISREG(asked.head.status.mode or 0):
                self._end(frame.number, asked.head)
        elif asked.head is not None:
            self._end(frame.number, settled(asked.head, frame.payload))
        elif asked.pieces:
            after = stat_or_errno(frame.payload) if frame.payload else errno.ENOENT
            self._end(frame.number, Piece(0, after) if isinstance(after, Status) else Piece(after or errno.EIO))
        return True

    def _end(self, number: int, piece: Piece) -> None:
        asked = self._asked.pop(number)
        asked.then(piece, asked.pieces)
