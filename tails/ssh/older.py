"""What a file held after the last byte that was read, once another one has taken its place: looked for beside it.

A rotation gives the older file another name in the same directory (the same inode), or copies it to ``NAME.1`` before
it empties the file; then it may be packed. It is told by content: what was read must be in it, in its place. After
several rotations (the connection was down for long) the parts that were begun after it are read too, in the order in
which they were written, up to the file that has taken the place: that one is read next, and is a part itself when it
was rotated meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable

from trainmon.tails.parts import parts_among
from trainmon.tails.ssh.answer import Entry, Piece
from trainmon.tails.ssh.packed_part import PackedPart
from trainmon.tails.ssh.remote_file import Question

MAX_REST_BYTES = 64 << 20
_PIECE_BYTES = 512 << 10
_MAX_CANDIDATES = 6
_MAX_LOOKS = 5
_MOST_PACKED_BYTES = 256 << 20
_PART = re.compile(rb"[.-]\d[\d.:_T-]*(?:\.gz)?")  # NAME.1, NAME-20260131, NAME.2.gz

AskPart = Callable[[bytes, int, int, Callable[[Piece], None]], None]
AskEntries = Callable[[bytes, Callable[[list[Entry]], None]], None]


class OlderFile:
    """Looks once; `done` gets the rest of the older file, None when it is not there. All on the host's thread."""

    def __init__(
        self,
        path: str,
        question: Question,
        present: tuple[int, int],
        ask_part: AskPart,
        ask_entries: AskEntries,
        done: Callable[[bytes | None], None],
    ) -> None:
        self._path = os.fsencode(path)
        self._question = question
        self._present = present
        self._ask_part = ask_part
        self._ask_entries = ask_entries
        self._done = done
        self._entries: list[Entry] = []
        self._ages: dict[bytes, tuple[int, str, int]] = {}  # of parts by their names, the oldest first
        self._candidates: list[Entry] = []
        self._later: list[Entry] = []
        self._folder = os.path.dirname(self._path) or b"."
        self._rest: list[bytes] = []
        self._size = 0
        self._looks = 0

    def begin(self) -> None:
        """Starts to look."""
        self._looks += 1
        self._rest, self._size = [], 0
        self._ask_entries(self._folder, self._choose)

    def _has_moved(self, entry: Entry, piece: Piece) -> bool:
        """Whether its name leads to another file by now: a rotation while we look. Then all is looked at again."""
        is_gone = piece.error in (errno.ENOENT, errno.EAGAIN)
        if not is_gone and (piece.status is None or piece.status.identity == entry.status.identity):
            return False
        if self._looks >= _MAX_LOOKS:
            return False
        self.begin()
        return True

    def _choose(self, entries: list[Entry]) -> None:
        own = os.path.basename(self._path)
        known = {entry.name: entry for entry in entries if entry.name != own}
        self._entries = [entry for name, entry in known.items() if _PART.fullmatch(name.removeprefix(own))]
        same = [entry for entry in known.values() if entry.status.identity == self._question.identity]
        # While a part is packed, the packed one grows beside it.
        self._entries = [
            entry for entry in self._entries if entry.name.removesuffix(b".gz") not in known or not _is_packed(entry)
        ]
        parts = parts_among("", os.fsdecode(own), sorted(os.fsdecode(entry.name) for entry in self._entries))
        self._ages = {os.fsencode(part.path): part.age for part in parts}
        copies = sorted(self._entries, key=lambda entry: (_is_packed(entry), -entry.status.mtime_ns))
        copies += [known[own + ending] for ending in (b".old", b".bak") if own + ending in known]
        if not self._question.head:  # nothing of it was read: only itself will do
            copies = []
        chosen = {entry.name: entry for entry in (*same, *copies)}
        self._candidates = list(chosen.values())[:_MAX_CANDIDATES]
        self._try_next()

    def _try_next(self) -> None:
        if not self._candidates:
            self._done(None)
            return
        entry = self._candidates.pop(0)
        if _is_packed(entry):
            self._unpack(entry, self._question, lambda rest: self._found_packed(entry, rest))
            return
        length = len(self._question.head)
        self._ask_part(self._at(entry), 0, length, lambda piece: self._check_head(entry, piece))

    def _at(self, entry: Entry) -> bytes:
        return self._folder + b"/" + entry.name

    def _check_head(self, entry: Entry, piece: Piece) -> None:
        if self._has_moved(entry, piece):
            return
        if piece.error or piece.data != self._question.head:
            self._try_next()
            return
        tail = self._question.tail
        begin = self._question.offset - len(tail)
        self._ask_part(self._at(entry), begin, len(tail) + _PIECE_BYTES, lambda part: self._check_tail(entry, part))

    def _check_tail(self, entry: Entry, piece: Piece) -> None:
        if self._has_moved(entry, piece):
            return
        tail = self._question.tail
        if piece.error or piece.data[: len(tail)] != tail:
            self._try_next()
            return
        self._later = self._between(entry)
        rest = piece.data[len(tail) :]
        self._take(entry, self._question.offset + len(rest), rest)

    def _between(self, entry: Entry) -> list[Entry]:
        """The parts that were written after `entry` and before the present file, the oldest first."""
        until_ns = min((e.status.mtime_ns for e in self._entries if e.status.identity == self._present), default=None)
        later = [
            each
            for each in self._entries
            if each.status.mtime_ns > entry.status.mtime_ns and each.status.identity != entry.status.identity
            if until_ns is None or each.status.mtime_ns < until_ns
            if not _is_packed(each) or self._is_later(each, entry)
        ]
        return sorted(later, key=lambda each: each.status.mtime_ns)

    def _is_later(self, each: Entry, entry: Entry) -> bool:
        """Whether its name says so: when a part was packed says nothing of when it was written."""
        if each.name not in self._ages or entry.name not in self._ages:
            return False
        return self._ages[each.name] > self._ages[entry.name]

    def _take(self, entry: Entry, offset: int, data: bytes) -> None:
        """Keeps a piece of `entry` that ends at `offset`, and goes on behind it, or with the next part."""
        self._keep(data)
        if not data or self._size >= MAX_REST_BYTES:
            self._take_next()
        else:
            self._ask_part(self._at(entry), offset, _PIECE_BYTES, lambda piece: self._go_on(entry, offset, piece))

    def _keep(self, data: bytes) -> None:
        self._rest.append(data)
        self._size += len(data)

    def _take_next(self) -> None:
        if self._size >= MAX_REST_BYTES or not self._later:
            self._done(b"".join(self._rest))
            return
        entry = self._later.pop(0)
        if _is_packed(entry):
            self._unpack(entry, None, self._took_packed)
        else:
            self._ask_part(self._at(entry), 0, _PIECE_BYTES, lambda piece: self._go_on(entry, 0, piece))

    # -- packed parts --------------------------------------------------------------------------------------------

    def _unpack(self, entry: Entry, known: Question | None, then: Callable[[bytes | None], None]) -> None:
        packed = PackedPart(known, MAX_REST_BYTES - self._size)

        def took(piece: Piece, offset: int) -> None:
            if self._has_moved(entry, piece):
                return
            packed.give(piece.data)
            if piece.error or packed.is_other or packed.is_full or len(piece.data) < _PIECE_BYTES:
                then(packed.rest())
            else:
                ask(offset + len(piece.data))

        def ask(offset: int) -> None:
            self._ask_part(self._at(entry), offset, _PIECE_BYTES, lambda piece: took(piece, offset))

        if entry.status.size > _MOST_PACKED_BYTES:
            then(None)
        else:
            ask(0)

    def _found_packed(self, entry: Entry, rest: bytes | None) -> None:
        if rest is None:
            self._try_next()
            return
        self._later = self._between(entry)
        self._took_packed(rest)

    def _took_packed(self, rest: bytes | None) -> None:
        self._keep(rest or b"")
        self._take_next()

    def _go_on(self, entry: Entry, offset: int, piece: Piece) -> None:
        if not self._has_moved(entry, piece):
            self._take(entry, offset + len(piece.data), piece.data)


def _is_packed(entry: Entry) -> bool:
    return entry.name.endswith(b".gz")
