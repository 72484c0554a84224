"""A log that was compressed when it was done, read as it is: ``train.log.gz``, ``metrics.jsonl.xz``.

It is read once, from its start, and again from its start when another file takes its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from trainmon.tails.clock import Clock
from trainmon.tails.document import MAX_DOCUMENT_BYTES, DocumentReader
from trainmon.tails.follow import FileEvent, FollowUpdate
from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.ingest import Detect
from trainmon.tails.looks import HEAD_BYTES, Doubt, Look, content_looks_like_log
from trainmon.tails.opening import NotRegular, explain, require_regular, show
from trainmon.tails.parts import Part, PartReader
from trainmon.tails.tail import Tail

_PIECE: Final = 1 << 20


def _part(path: str | Path) -> Part:
    return Part(os.fspath(path), (0, "", 0), is_packed=True)


def shows_training(path: str, look: Look) -> bool:
    """Whether the first 64 KiB that a packed file unpacks to are those of a log that is called as `look` says."""
    head = b""
    try:
        with closing(PartReader(_part(path))) as reader:
            while len(head) < HEAD_BYTES and (data := reader.read(HEAD_BYTES - len(head))):
                head += data
    except (OSError, NotRegular):
        return False
    if look.doubt is Doubt.NONE:
        return bool(head)
    return content_looks_like_log(lambda size, place: head[place : place + size], len(head), look.doubt)


class PackedFile:
    """What a `Follower` is to a plain file; sizes and offsets are those of the unpacked text, once they are known."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.problem = ""
        self.size = 0
        self.mtime: float | None = None
        self.offset = 0
        self._reader: PartReader | None = None
        self._signature: tuple[int, int, int] | None = None
        self._is_whole = False
        self._unread = b""

    @property
    def is_open(self) -> bool:
        """Whether a descriptor is held: while it is being read."""
        return self._reader is not None

    def poll(self, budget_bytes: int) -> FollowUpdate:
        """The next bytes, at most `budget_bytes`."""
        events: tuple[FileEvent, ...] = ()
        try:
            if self._look():
                events = (FileEvent.REPLACED,) if self.offset else ()
                self.offset, self._is_whole = 0, False
                self.release()
            if self._is_whole:
                return FollowUpdate(b"", self.offset, events, is_at_end=True)
            if self._reader is None:
                self._reader = PartReader(_part(self.path))
            at, data = self.offset, self._reader.read(budget_bytes)
        except NotRegular as error:
            self.problem = str(error)
            return FollowUpdate(b"", self.offset, events, is_at_end=True)
        except OSError as error:
            self.problem = explain(self.path, error)
            return FollowUpdate(b"", self.offset, events, is_at_end=True)
        self.offset += len(data)
        self.size = max(self._reader.size, self.offset)
        self.problem = f"{show(self.path)}: {self._reader.problem}" if self._reader.problem else ""
        if not data:
            self._is_whole, self.size = True, self.offset
            self.release()
        return FollowUpdate(data, at, events, more=bool(data), is_at_end=not data)

    def _look(self) -> bool:
        """Whether another file lies there than the one that is read. Raises OSError, NotRegular."""
        status = os.stat(self.path)
        require_regular(self.path, status)
        self.mtime = status.st_mtime
        signature = (status.st_ino, status.st_size, status.st_mtime_ns)
        before, self._signature = self._signature, signature
        return before is not None and before != signature

    def unread(self, count: int) -> None:
        """Zeros at the end of a packed file are what is in it: they are not read again."""

    def release(self) -> None:
        """Gives the descriptor back, unless it is still being read."""
        if self._reader is not None and (self._is_whole or not self.offset):
            self._reader.close()
            self._reader = None

    def blocks(self, offset: int) -> Iterator[bytes]:
        """The bytes from `offset` on, unpacked again."""
        try:
            with closing(PartReader(_part(self.path))) as reader:
                yield from reader.blocks(offset)
        except (OSError, NotRegular):
            return


class PackedDocument(DocumentReader):
    """A packed document."""

    def _content(self, fd: int) -> bytes:
        del fd
        with closing(PartReader(_part(self.path))) as reader:
            pieces, size = [], 0
            while size <= MAX_DOCUMENT_BYTES and (data := reader.read(_PIECE)):
                pieces.append(data)
                size += len(data)
        return b"".join(pieces) if size <= MAX_DOCUMENT_BYTES else b""


class PackedTail(Tail):
    """A packed log, whatever its format."""

    def __init__(self, path: Path, *, clock: Clock, detect: Detect) -> None:
        super().__init__(path, clock=clock, detect=detect, follower=PackedFile(path))

    def _open_document(self, document: DocumentFormat) -> DocumentReader:
        return PackedDocument(self.path, document, self._clock)
