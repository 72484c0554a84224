"""What a file held after the last byte that was read, once another one has taken its place: looked for beside it.

A rotation gives the older file another name in the same directory (the same inode), or copies it to ``NAME.1`` before
it empties the file. Both are told by content: what was read must be in it, in its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from trainmon.tails.ssh.answer import Piece
from trainmon.tails.ssh.remote_file import Question

MAX_REST_BYTES = 64 << 20
_PIECE_BYTES = 512 << 10
_MAX_CANDIDATES = 4

AskPart = Callable[[bytes, int, int, Callable[[Piece], None]], None]
AskNames = Callable[[bytes, Callable[[list[bytes], list[tuple[int, int]]], None]], None]


class OlderFile:
    """Looks once; `done` gets the rest of the older file, None when it is not there. All on the host's thread."""

    def __init__(
        self,
        path: str,
        question: Question,
        ask_part: AskPart,
        ask_names: AskNames,
        done: Callable[[bytes | None], None],
    ) -> None:
        self._path = os.fsencode(path)
        self._question = question
        self._ask_part = ask_part
        self._ask_names = ask_names
        self._done = done
        self._candidates: list[bytes] = []
        self._rest: list[bytes] = []
        self._size = 0

    def begin(self) -> None:
        """Starts to look."""
        if not self._question.head:
            self._done(None)
            return
        folder = os.path.dirname(self._path) or b"."  # noqa: PTH120 - bytes
        self._ask_names(folder, lambda names, ids: self._choose(folder, names, ids))

    def _choose(self, folder: bytes, names: list[bytes], identities: list[tuple[int, int]]) -> None:
        own = os.path.basename(self._path)  # noqa: PTH119 - bytes
        same = [
            name
            for name, identity in zip(names, identities, strict=True)
            if identity == self._question.identity and name != own
        ]
        copies = [own + ending for ending in (b".1", b".0", b".old", b".bak") if own + ending in names]
        chosen = list(dict.fromkeys(same + copies))[:_MAX_CANDIDATES]
        self._candidates = [folder + b"/" + name for name in chosen]
        self._try_next()

    def _try_next(self) -> None:
        if not self._candidates:
            self._done(None)
            return
        path = self._candidates.pop(0)
        length = len(self._question.head)
        self._ask_part(path, 0, length, lambda piece: self._check_head(path, piece))

    def _check_head(self, path: bytes, piece: Piece) -> None:
        if piece.error or piece.data != self._question.head:
            self._try_next()
            return
        tail = self._question.tail
        begin = self._question.offset - len(tail)
        self._ask_part(path, begin, len(tail) + _PIECE_BYTES, lambda part: self._check_tail(path, part))

    def _check_tail(self, path: bytes, piece: Piece) -> None:
        tail = self._question.tail
        if piece.error or piece.data[: len(tail)] != tail:
            self._try_next()
            return
        self._take(path, piece.data[len(tail) :])

    def _take(self, path: bytes, data: bytes) -> None:
        self._rest.append(data)
        self._size += len(data)
        if not data or self._size >= MAX_REST_BYTES:
            self._done(b"".join(self._rest))
            return
        at = self._question.offset + self._size
        self._ask_part(path, at, _PIECE_BYTES, lambda piece: self._take(path, piece.data))
