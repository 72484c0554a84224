"""What is said to the reader there, and what its packets mean for the files that are watched.

`PythonSide` talks to a reader that watches by itself and sends what is new. `ShellSide` does the same over one that
only answers: it asks for the status of all files in turns, and for the parts that are new.
"""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Callable
from typing import Protocol

from trainmon.tails.clock import Clock
from trainmon.tails.ssh.answer import (
    Piece,
    Status,
    data_of,
    difference_of,
    number,
    piece_of,
    stat_or_errno,
    status_of,
)
from trainmon.tails.ssh.frame import Frame, word
from trainmon.tails.ssh.remote_file import Question, RemoteFile

Send = Callable[[bytes], None]

PING_S = 10.0
TICK_BUSY_S = 0.1  # while something is written, and where a look is quick
TICK_HOT_S = 0.25
BUSY_FOR_S = 5.0
_LOOK_SHARE = 0.2  # of the time between two looks that one may take
TICK_COLD_S = 2.0
HOT_FOR_S = 30.0
_OVERLAP_BYTES = 1024
_PART_BYTES = (1 << 20) - _OVERLAP_BYTES
_HEAD_BYTES = 4096
_SECOND_NS = 1_000_000_000
_TICKS = 0x60000000  # numbers of ticks begin here
_PARTS = 0x40000000  # and those of parts


class Side(Protocol):
    """The interface of both."""

    def watch(self, file: RemoteFile) -> None:
        """Looks after the file from now on."""
        ...

    def unwatch(self, file: RemoteFile) -> None:
        """Forgets it."""
        ...

    def ask(self, file: RemoteFile, question: Question) -> None:
        """Asks for what follows an offset."""
        ...

    def grant(self, file: RemoteFile, amount: int) -> None:
        """Lets it send more."""
        ...

    def take(self, frame: Frame, now: float) -> bool:
        """Takes a packet; False when it is not about a watched file."""
        ...

    def beat(self, now: float) -> float:
        """Does what is due; when there is something to do next."""
        ...


class PythonSide:
    """A reader in Python."""

    def __init__(self, send: Send, files: dict[int, RemoteFile]) -> None:
        self._send = send
        self._files = files
        self._ping_at = 0.0

    def watch(self, file: RemoteFile) -> None:
        """Looks after the file from now on."""
        self._send(b"w %d %s\n" % (file.number, word(file.path)))

    def unwatch(self, file: RemoteFile) -> None:
        """Forgets it."""
        self._send(b"u %d\n" % file.number)

    def ask(self, file: RemoteFile, question: Question) -> None:
        """Asks for what follows an offset."""
        self._send(b"r %d %s\n" % (file.number, question.words()))

    def grant(self, file: RemoteFile, amount: int) -> None:
        """Lets it send more."""
        self._send(b"g %d %d\n" % (file.number, amount))

    def take(self, frame: Frame, now: float) -> bool:
        """Takes a packet; False when it is not about a watched file."""
        if frame.kind not in "SDX":
            return False
        file = self._files.get(frame.number)
        if file is None:  # forgotten meanwhile
            return True
        if frame.kind == "D":
            file.answer_data(*data_of(frame.payload))
        elif frame.kind == "X":
            turn, status, first = difference_of(frame.payload)
            file.answer_differs(turn, status, first, now)
        else:
            answer = stat_or_errno(frame.payload)
            if isinstance(answer, Status):
                file.answer_stat(answer)
            else:
                file.answer_errno(answer)
        return True

    def beat(self, now: float) -> float:
        """Does what is due; when there is something to do next."""
        if now >= self._ping_at:
            self._ping_at = now + PING_S
            self._send(b"p 0\n")
        return self._ping_at


class _Polled:
    """What the shell side keeps of one file."""

    def __init__(self) -> None:
        self.told: Status | int | None = None
        self.question: Question | None = None
        self.credit = 0
        self.offset = 0
        self.tail = b""
        self.head_is_checked = False
        self.is_asking = False
        self.is_wanted = False
        self.check_again_at = 0.0
        self.first_tick = 0  # the first one that looks at it


class ShellSide:
    """A reader in POSIX sh: it is asked, in turns and only for what changed."""

    def __init__(self, send: Send, files: dict[int, RemoteFile], clock: Clock) -> None:
        self._send = send
        self._files = files
        self._clock = clock
        self._polled: dict[int, _Polled] = {}
        self._next = _PARTS
        self._parts: dict[int, Callable[[Piece], None]] = {}
        self._pending: dict[int, Piece] = {}
        self._tick = _TICKS
        self._tick_at = 0.0
        self._is_ticking = False
        self._ticked_at = 0.0
        self._took_s = TICK_HOT_S
        self._known = b"\n"
        self._changed_at = clock.monotonic()

    def watch(self, file: RemoteFile) -> None:
        """Looks after the file from now on."""
        polled = self._polled[file.number] = _Polled()
        polled.first_tick = self._tick + 1
        self._send(b"w %d %s\n" % (file.number, word(file.path)))
        self._tick_at = 0.0

    def unwatch(self, file: RemoteFile) -> None:
        """Forgets it."""
        self._polled.pop(file.number, None)
        self._send(b"u %d\n" % file.number)

    def ask(self, file: RemoteFile, question: Question) -> None:
        """Asks for what follows an offset."""
        polled = self._polled.get(file.number)
        if polled is not None:
            polled.question, polled.credit = question, question.credit
            polled.offset, polled.tail = question.offset, question.tail[-_OVERLAP_BYTES:]
            polled.head_is_checked = not question.head
            polled.is_wanted = True
            self._serve(file, polled)

    def grant(self, file: RemoteFile, amount: int) -> None:
        """Lets it send more."""
        polled = self._polled.get(file.number)
        if polled is not None:
            polled.credit += amount
            self._serve(file, polled)

    def take(self, frame: Frame, now: float) -> bool:
        """Takes a packet; False when it is not about a watched file."""
        if frame.kind == "T" and frame.number == self._tick:
            self._is_ticking = False
            self._took_s = now - self._ticked_at
            if frame.payload != b"=":
                self._known = frame.payload
            if frame.payload != b"=" or any(polled.is_wanted for polled in self._polled.values()):
                self._learn(self._known, now)
            return True
        if frame.number not in self._parts or frame.kind not in "Kk":
            return False
        if frame.kind == "K":
            piece = piece_of(frame.payload)
            if piece.error or not piece.status or not stat.S_ISREG(piece.status.mode or 0):
                self._parts.pop(frame.number)(piece)
            else:
                self._pending[frame.number] = piece
        else:
            before = self._pending.pop(frame.number, None)
            if before is not None:
                self._parts.pop(frame.number)(settled(before, frame.payload))
        return True

    def beat(self, now: float) -> float:
        """Does what is due; when there is something to do next."""
        for place, polled in self._polled.items():
            if polled.check_again_at and now >= polled.check_again_at and place in self._files:
                polled.check_again_at, polled.is_wanted = 0.0, True
                self._serve(self._files[place], polled)
        if now >= self._tick_at and not self._is_ticking:
            self._is_ticking = True
            self._ticked_at = now
            self._tick_at = now + self._pace_s(now - self._changed_at)
            self._tick += 1
            self._send(b"t %d\n" % self._tick)
        return self._tick_at if not self._is_ticking else now + TICK_COLD_S

    def _pace_s(self, still_s: float) -> float:
        """Seconds between two looks, when nothing has changed for `still_s`."""
        if still_s >= HOT_FOR_S:
            return TICK_COLD_S
        if still_s >= BUSY_FOR_S:
            return TICK_HOT_S
        return min(max(self._took_s / _LOOK_SHARE, TICK_BUSY_S), TICK_HOT_S)

    # -- what changed ------------------------------------------------------------------------------------------

    def _learn(self, payload: bytes, now: float) -> None:
        heads, _, lines = payload.partition(b"\n")
        here = [number(each) for each in heads.split(b" ") if each]
        stats = [status_of(line.split(b" ")) for line in lines.split(b"\n") if line]
        if len(here) != len(stats):  # a file went away just then; the next turn tells
            return
        known = dict(zip(here, stats, strict=True))
        for place, polled in list(self._polled.items()):
            file = self._files.get(place)
            if file is None or polled.first_tick > self._tick:
                continue
            answer = known.get(place, errno.ENOENT)
            if answer == polled.told and not polled.is_wanted:
                continue
            if answer != polled.told:
                self._changed_at = now
            polled.told = answer
            if isinstance(answer, int):
                file.answer_errno(answer)
            elif stat.S_ISREG(answer.mode or 0):
                polled.is_wanted = polled.question is not None
                self._serve(file, polled)
            else:
                file.answer_stat(answer)

    def _serve(self, file: RemoteFile, polled: _Polled) -> None:
        """Asks for the next part, with some of what is known before it, so that it shows whether the file goes on."""
        question = polled.question
        if question is None or polled.is_asking or not isinstance(polled.told, Status):
            return
        if not polled.is_wanted and polled.told.size <= polled.offset:
            return
        if not polled.credit:
            file.answer_stat(polled.told)
            return
        polled.is_asking, polled.is_wanted = True, False
        if polled.told.size < polled.offset or not polled.head_is_checked:
            self._part(file, 0, _HEAD_BYTES, lambda piece: self._head_came(file, polled, question, piece))
            return
        begin = polled.offset - len(polled.tail)
        length = len(polled.tail) + min(polled.credit, _PART_BYTES)
        self._part(file, begin, length, lambda piece: self._part_came(file, polled, question, piece))

    def _part(self, file: RemoteFile, offset: int, length: int, then: Callable[[Piece], None]) -> None:
        self._next += 1
        self._parts[self._next] = then
        self._send(b"k %d %s %d %d\n" % (self._next, word(file.path), offset, length))

    def _head_came(self, file: RemoteFile, polled: _Polled, question: Question, piece: Piece) -> None:
        polled.is_asking = False
        if not self._is_current(file, polled, question, piece):
            return
        assert piece.status is not None
        if piece.status.size < polled.offset or piece.data[: len(question.head)] != question.head:
            self._differs(file, polled, question, piece.status, piece.data)
            return
        polled.head_is_checked = polled.is_wanted = True
        self._serve(file, polled)

    def _part_came(self, file: RemoteFile, polled: _Polled, question: Question, piece: Piece) -> None:
        polled.is_asking = False
        if not self._is_current(file, polled, question, piece):
            return
        status, overlap = piece.status, len(polled.tail)
        assert status is not None
        if status.size < polled.offset or piece.data[:overlap] != polled.tail:
            polled.head_is_checked = False
            polled.is_wanted = polled.is_asking = True
            self._part(file, 0, _HEAD_BYTES, lambda first: self._differs_as(file, polled, question, first))
            return
        if isinstance(polled.told, Status) and status.identity != polled.told.identity and question.head:
            polled.head_is_checked = False  # another file whose end looks the same
            polled.told, polled.is_wanted = status, True
            self._serve(file, polled)
            return
        data = piece.data[overlap:]
        at = polled.offset
        polled.offset += len(data)
        polled.credit -= len(data)
        polled.tail = (polled.tail + data)[-_OVERLAP_BYTES:]
        polled.told = status
        if data and status.mtime_ns % _SECOND_NS == 0:  # coarse time stamps: a change may not show in them
            polled.check_again_at = self._clock.monotonic() + 1.5
        file.answer_data(question.turn, status, at, data)
        if data and polled.offset < status.size:
            self._serve(file, polled)

    def _differs_as(self, file: RemoteFile, polled: _Polled, question: Question, piece: Piece) -> None:
        polled.is_asking = False
        if self._is_current(file, polled, question, piece):
            assert piece.status is not None
            self._differs(file, polled, question, piece.status, piece.data)

    def _differs(self, file: RemoteFile, polled: _Polled, question: Question, status: Status, first: bytes) -> None:
        polled.question = None
        file.answer_differs(question.turn, status, first, self._clock.monotonic())

    def _is_current(self, file: RemoteFile, polled: _Polled, question: Question, piece: Piece) -> bool:
        """Whether an answer is to the question as it stands, and could be read."""
        if polled.question is not question:
            self._serve(file, polled)
            return False
        if piece.error == errno.EAGAIN:  # it changed while it was read: once more, next turn
            polled.told, polled.is_wanted = None, True
            return False
        if piece.error:
            polled.told = piece.error
            file.answer_errno(piece.error)
            return False
        if piece.status is None or not stat.S_ISREG(piece.status.mode or 0):
            polled.told = None
            return False
        return True


def settled(before: Piece, after: bytes) -> Piece:
    """A part with its padding taken off: what the file still held when it had been read, if it is the same file."""
    if not re.fullmatch(rb"[0-9a-f. ]+", after):
        return Piece(errno.ENOENT)
    status = status_of(after.split(b" "))
    assert before.status is not None
    if status.identity != before.status.identity or status.size < before.status.size:
        return Piece(errno.EAGAIN)
    return before
