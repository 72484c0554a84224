"""Reads the JSON documents that a run writes, one a step, as one log (`numbered_documents`)."""

from __future__ import annotations

import os
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.document import MAX_DOCUMENT_BYTES, DocumentReader
from trainmon.tails.formats.base import DocumentFormat, Format
from trainmon.tails.formats.json_document import JsonDocument
from trainmon.tails.numbered_documents import content_of, shape_of
from trainmon.tails.opening import NotRegular
from trainmon.tails.tail import Tail

_MOST_BYTES = 1 << 20  # of each


class SeriesReader(DocumentReader):
    """The documents up to the one at `path`, one after the other, as one."""

    def _content(self, fd: int) -> bytes:
        del fd
        shape = shape_of(self.path)
        folder = self.path.parent
        numbered: dict[int, str] = {}
        for entry in os.scandir(folder):
            own = shape_of(folder / entry.name)
            if shape is not None and own is not None and own[:2] == shape[:2] and own[2] <= shape[2]:
                numbered[own[2]] = entry.path
        pieces: list[bytes] = []
        size = 0
        for number in sorted(numbered):
            try:
                pieces.append(content_of(numbered[number], _MOST_BYTES))
            except (NotRegular, FileNotFoundError):  # gone meanwhile
                continue
            size += len(pieces[-1])
            if size > MAX_DOCUMENT_BYTES:
                break
        return b"\n".join(pieces)


class SeriesTail(Tail):
    """The log of a run that writes a document a step."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        super().__init__(path, clock=clock, detect=_as_document)

    def _open_document(self, document: DocumentFormat) -> DocumentReader:
        return SeriesReader(self.path, document, self._clock)


def _as_document(head: bytes, source: str) -> Format:
    del head
    return JsonDocument(source)
