"""The older parts of a log on another host (train.log.2.gz, train.log.1), which lay there before it was looked at.

As `history` does for a local log: they are read once, the oldest first, before the log itself. Which names are parts is
told by `parts.parts_among`; a part is known by its device and inode, so that a rotation meanwhile, which gives each
another name, is followed. Answers come when they come: nothing here waits for one, `wake` is called when there is one.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from trainmon.tails.clock import Clock
from trainmon.tails.opening import explain, show
from trainmon.tails.parts import Part, may_have_parts, parts_among
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.address import RemotePath
from trainmon.tails.ssh.answer import Piece, Status
from trainmon.tails.ssh.ask import Ask, AskBeside, AskPiece, HostDownError, is_gone
from trainmon.tails.ssh.host import Host
from trainmon.tails.ssh.part import blocks_of
from trainmon.tails.ssh.unpack import Unpacker

T = TypeVar("T")

_LEAST_BYTES = 4 << 10
_FIRST_BYTES = 256 << 10
_MOST_BYTES = 1 << 20
_QUICK_S, _SLOW_S = 0.1, 0.4  # an answer that takes longer holds up new lines
_PACKED_TIMES = 8  # what a packed part unpacks to, about
_MOST_SEARCHES = 20


@dataclass(slots=True)
class _There:
    part: Part
    status: Status

    @property
    def identity(self) -> tuple[int, int]:
        return self.status.identity

    @property
    def size_about(self) -> int:
        return self.status.size * (_PACKED_TIMES if self.part.is_packed else 1)


class RotatedParts:
    """Gives the parts' bytes. The reader's thread calls `poll` until `is_done`."""

    def __init__(self, remote: RemotePath, host: Host, clock: Clock, wake: Callable[[], None]) -> None:
        options = host.master.options
        rate = options.rate or 2 * _MOST_BYTES
        self.problem = ""
        self.is_done = not may_have_parts(os.path.basename(remote.path))
        self._remote = remote
        self._host = host
        self._clock = clock
        self._wake = wake
        self._history = options.history_bytes
        self._most_bytes = min(max(rate // 2, _LEAST_BYTES), _MOST_BYTES)
        self._piece_bytes = min(_FIRST_BYTES, self._most_bytes)
        self._names: Future[tuple[bytes, ...]] | None = None
        self._stats: list[tuple[Part, Future[Piece]]] | None = None
        self._searches = 0
        self._before: list[_There] | None = None  # what was to be read before a rotation gave it other names
        self._left: list[_There] | None = None  # to be read, the oldest first
        self._piece: Future[Piece] | None = None
        self._asked_at = 0.0
        self._data = b""
        self._given = 0
        self._starts: list[tuple[int, _There]] = []  # where in the whole each part begins that was read
        self._begin_part()

    @property
    def has_news(self) -> bool:
        """Whether a poll would get on."""
        if self.is_done:
            return False
        if self._stats is not None:
            return all(answer.done() for _, answer in self._stats)
        waits_for = self._piece if self._left is not None else self._names
        return bool(self._data) or waits_for is None or waits_for.done()

    @property
    def left_bytes(self) -> int:
        """How much is still to come, about."""
        if self.is_done:
            return 0
        return max(sum(there.size_about for there in self._left or ()) - self._offset, 0)

    def poll(self, present: tuple[int, int] | None, budget: int) -> bytes:
        """The next bytes, if they are there; none and `is_done` at the end. `present`: the identity of the log."""
        while not self.is_done and not self._data:
            try:
                if not (self._search(present) if self._left is None else self._advance(self._left, budget)):
                    return b""
            except HostDownError:  # asked again once the connection is back
                self._names = self._stats = self._piece = None
                return b""
        data, self._data = self._data[:budget], self._data[budget:]
        self._given += len(data)
        return data

    def blocks(self, offset: int) -> Iterator[bytes]:
        """The bytes of the parts from `offset` on, read again; blocks. None of a part that has moved since."""
        ends = [*(start for start, _ in self._starts[1:]), self._given]
        for (start, there), end in zip(self._starts, ends, strict=False):
            if offset >= end:
                continue
            skip = max(offset - start, 0)
            remote = self._remote.at(there.part.path)
            if not there.part.is_packed:
                yield from blocks_of(self._host, remote, skip, there.identity)
                continue
            unpacker = Unpacker()
            for packed in blocks_of(self._host, remote, 0, there.identity):
                unpacker.give(packed)
                while data := unpacker.take(_MOST_BYTES):
                    if data[skip:]:
                        yield data[skip:]
                    skip = max(skip - len(data), 0)

    # -- which parts there are -----------------------------------------------------------------------------------

    def _search(self, present: tuple[int, int] | None) -> bool:
        """Gets on with looking for parts; False while there is nothing to do but wait."""
        if self._stats is None:
            if self._names is None:
                self._searches += 1
                self._names = self._ask(AskBeside(self._remote.path))
            if not self._names.done():
                return False
            names = sorted(os.path.basename(os.fsdecode(path)) for path in self._names.result())
            self._names = None
            parts = parts_among(*os.path.split(self._remote.path), names)
            self._stats = [(part, self._ask(AskPiece(part.path, 0, 0))) for part in parts]
        if not all(answer.done() for _, answer in self._stats):
            return False
        pieces = [(part, answer.result()) for part, answer in self._stats]
        self._stats = None
        found = [_There(part, piece.status) for part, piece in pieces if piece.status and _is_log(piece.status)]
        if self._before is None:
            self._left = self._wanted(found, present)
        else:
            self._left = self._still_wanted(found, self._before)
        return True

    def _wanted(self, found: list[_There], present: tuple[int, int] | None) -> list[_There]:
        """Not what the log's own follower reads, nor what was rotated after that; not more than is asked for."""
        for place, there in enumerate(found):
            if there.identity == present:
                found = found[:place]
                break
        if self._history is None:
            return found
        room, kept = self._history, len(found)
        while kept and found[kept - 1].size_about <= room:
            kept -= 1
            room -= found[kept].size_about
        if kept:
            self.problem = f"{self._name(found[kept - 1])} and what is older were left out (--ssh-history)"
        return found[kept:]

    def _still_wanted(self, found: list[_There], before: list[_There]) -> list[_There]:
        """After a rotation: what is still to be read, by the names it has now."""
        now = {there.identity: there for there in found} if self._searches <= _MOST_SEARCHES else {}
        lost = [there for there in before if there.identity not in now]
        if lost:
            self.problem = f"{self._name(lost[0])}: packed or deleted before it was read; that is missing here"
            if lost[0] is before[0]:
                self._begin_part()
        return [now[there.identity] for there in before if there.identity in now]

    # -- their bytes ---------------------------------------------------------------------------------------------

    def _begin_part(self) -> None:
        self._offset = 0  # of the part as it lies there
        self._is_whole = False
        self._unpacker = Unpacker()

    def _advance(self, left: list[_There], budget: int) -> bool:
        """Takes what came, asks for the next piece; False while there is nothing to do but wait."""
        if not left:
            self.is_done = True
            return True
        there = left[0]
        if data := self._unpacker.take(budget):
            self._data = data
            return True
        if self._is_whole and there.part.is_packed:
            self._unpacker.give(b"")
        if self._is_whole or self._unpacker.is_ended:
            if self._unpacker.problem:
                self.problem = f"{self._name(there)}: {self._unpacker.problem}; read up to there"
            left.pop(0)
            self._begin_part()
            return True
        if self._piece is None:
            self._asked_at = self._clock.monotonic()
            question = AskPiece(there.part.path, self._offset, self._piece_bytes)
            self._piece = self._host.ask_in_turn(question)
            self._piece.add_done_callback(lambda _: self._wake())
        if not self._piece.done():
            return False
        piece, self._piece = self._piece.result(), None
        self._take(there, piece)
        return True

    def _take(self, there: _There, piece: Piece) -> None:
        if (
            is_gone(piece.error)
            or piece.error == errno.EAGAIN
            or (piece.status is not None and piece.status.identity != there.identity)
        ):
            self._before, self._left = self._left, None  # a rotation gave it another name
            return
        if piece.error:
            self.problem = explain(
                self._remote.at(there.part.path).name, OSError(piece.error, os.strerror(piece.error))
            )
        if not self._offset:
            self._starts.append((self._given, there))
        self._offset += len(piece.data)
        self._is_whole = len(piece.data) < self._piece_bytes
        if there.part.is_packed:
            self._unpacker.give(piece.data)
        else:
            self._data = piece.data
        took_s = self._clock.monotonic() - self._asked_at
        if took_s < _QUICK_S:
            self._piece_bytes = min(2 * self._piece_bytes, self._most_bytes)
        elif took_s > _SLOW_S:
            self._piece_bytes = max(self._piece_bytes // 2, _LEAST_BYTES)

    def _ask(self, question: Ask[T]) -> Future[T]:
        answer = self._host.ask_in_turn(question)
        answer.add_done_callback(lambda _: self._wake())
        return answer

    def _name(self, there: _There) -> str:
        return show(self._remote.at(there.part.path).name)


def _is_log(status: Status) -> bool:
    return stat.S_ISREG(status.mode or 0) and status.size > 0
