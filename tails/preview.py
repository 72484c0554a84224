"""A long log at a glance: its head, pieces from all along it, and its tail, read in the time that a short one takes.

What comes of it is drawn while the history is read, and never judged: between the pieces anything may have happened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trainmon.tails.formats.base import FramedFormat, LineFormat
from trainmon.tails.ingest import Detect, Ingest
from trainmon.tails.logpane import LogPane
from trainmon.tails.opening import NotRegular, close, open_regular
from trainmon.tails.record import Parsed

# A log that is read sooner than one has looked needs no preview.
LEAST_BYTES: Final = 4 << 20
_HEAD_BYTES: Final = 64 << 10
_TAIL_BYTES: Final = 64 << 10
_PIECES: Final = 200
_PIECE_BYTES: Final = 2 << 10
_MOST_LINE_BYTES: Final = 64 << 10
_FRAMED_PIECES: Final = 64
_FRAMED_PIECE_BYTES: Final = 2 << 10


def preview(path: Path, source: str, detect: Detect) -> Parsed | None:
    """What stands in some places of the log at `path`; None where that makes no curve.

    So it is for short logs, for documents, and for records that no step tells the place of.
    Line numbers and offsets are those of the pieces, not of the file. Raises nothing: what is wrong with the file is
    told by who reads it.
    """
    try:
        fd, status = open_regular(path)
    except (NotRegular, OSError):
        return None
    try:
        if status.st_size < LEAST_BYTES:
            return None
        ingest = Ingest(source, detect, LogPane(source, 1))
        head = os.pread(fd, _HEAD_BYTES, 0)
        is_framed = isinstance(detect(head, source), FramedFormat)
        parsed = ingest.feed(head if is_framed else _whole_lines(head, is_first=True), is_at_end=True)
        if isinstance(ingest.format, LineFormat):
            parsed.add(ingest.feed(b"".join(_pieces(fd, status.st_size)), is_at_end=True))
        elif isinstance(ingest.format, FramedFormat) and ingest.format.glimpse_every:
            for glimpse in _glimpses(ingest.format, fd, status.st_size):
                parsed.add(glimpse)
        else:
            return None
    except OSError:
        return None
    finally:
        close(fd)
    parsed.notes.clear()
    has_steps = any((block.steps == block.steps).any() for block in parsed.blocks)
    return parsed if has_steps else None


def _glimpses(framed: FramedFormat, fd: int, size: int) -> Iterator[Parsed]:
    """Pieces from all along a file of frames, and its tail."""
    every = framed.glimpse_every
    for number in range(1, _FRAMED_PIECES + 1):
        is_tail = number == _FRAMED_PIECES
        at = max(size - _TAIL_BYTES, 0) if is_tail else size * number // _FRAMED_PIECES
        at = -(-at // every) * every
        yield framed.glimpse(os.pread(fd, _TAIL_BYTES if is_tail else _FRAMED_PIECE_BYTES, at), at)


def _pieces(fd: int, size: int) -> list[bytes]:
    """Whole lines behind the head: `_PIECES` from all along, the tail."""
    tail_at = size - _TAIL_BYTES
    pieces = []
    for number in range(1, _PIECES):
        at = _HEAD_BYTES + (tail_at - _HEAD_BYTES) * number // _PIECES
        pieces.append(_piece(fd, at))
    pieces.append(_whole_lines(os.pread(fd, _TAIL_BYTES, tail_at), is_first=False))
    return pieces


def _piece(fd: int, at: int) -> bytes:
    """Some whole lines behind `at`: at least one, unless lines are very long."""
    size = _PIECE_BYTES
    while size <= _MOST_LINE_BYTES:
        if lines := _whole_lines(os.pread(fd, size, at), is_first=False):
            return lines
        size *= 4
    return b""


def _whole_lines(data: bytes, *, is_first: bool) -> bytes:
    """`data` without the ends of lines that were cut.

    >>> _whole_lines(b"cut\\nwhole\\ncut", is_first=False)
    b'whole\\n'
    """
    begin = 0 if is_first else data.find(b"\n") + 1
    end = data.rfind(b"\n") + 1
    return data[begin:end] if is_first or begin else b""
