r"""Bytes to whole lines.

What a line format is given: chunks of whole lines, each with the byte offset and the 1-based number of its
first line. A chunk ends after ``\n``, or after a ``\r`` that no ``\n`` follows (the end of a progress bar's
frame), so a line of 200,000 frames streams. Within a chunk nothing is split or altered, but:

- NUL bytes (the hole that a truncated file gets when its writer keeps its old offset) are dropped and counted,
- a byte-order mark at the start of the file is dropped; if it is UTF-16's, the file's text is passed on as UTF-8,
- a line of more than `limit` bytes without any end is kept by its head: the first `HEAD_BYTES`, ended by a
  ``\n`` of ours; the rest is dropped up to the line's end, and counted.

After each of these a new chunk begins, so that offset + index is the place in the file for every byte that
stands before the first change in its own line. Line numbers count ``\n`` only: a ``\r`` frame keeps the number
of its line. How the bytes are cut into feeds changes none of this.
"""

from __future__ import annotations

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.newlines import count_newlines
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.utf16 import Utf16

MAX_LINE_BYTES = 8 << 20  # a JSON record with lists by layer reaches megabytes; what is longer is no record
HEAD_BYTES = 64 << 10
_PIECE_BYTES = 1 << 20

_NULS = lazy(rb"\0+")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines: `data` begins at byte `offset` of the file and in line `line_no` (1-based)."""

    data: bytes
    offset: int
    line_no: int


@dataclass(frozen=True, slots=True)
class Loss:
    """Bytes that were not passed on: NULs (`is_hole`), or the rest of an over-long line."""

    line_no: int
    offset: int
    is_hole: bool


class LineSplitter:
    r"""Feeds of any size in, chunks of whole lines out.

    >>> splitter = LineSplitter()
    >>> splitter.feed(b"step 1\nste")
    [Chunk(data=b'step 1\n', offset=0, line_no=1)]
    >>> splitter.feed(b"p 2\r 50%\r")
    [Chunk(data=b'step 2\r', offset=7, line_no=2)]
    >>> splitter.feed(b"\n"), splitter.line_no
    ([Chunk(data=b' 50%\r\n', offset=14, line_no=2)], 3)
    """

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self.limit = limit
        self.line_no = 1
        self.nul_bytes = 0
        self.cut_lines = 0
        self.losses: list[Loss] = []  # where the first NULs were dropped, and each line that was cut; the owner clears
        self._utf16: Utf16 | None = None  # a file that begins with that byte-order mark
        self._is_begun = False
        self._held = b""  # the first byte of the file, while it may begin such a mark
        self._offset = 0
        self._pending = bytearray()  # the last line so far; a "\r" at its end is undecided
        self._pending_offset = 0
        self._is_start = True
        self._is_open = False  # something of the present line was passed on, its "\n" not yet seen
        self._is_skipping = False  # inside the dropped part of an over-long line
        self._skipped_cr = False

    @property
    def offset(self) -> int:
        """Of the next byte that will be fed."""
        held = self._utf16.held if self._utf16 is not None else self._held
        return self._offset + len(held)

    def skip(self, count: int) -> None:
        """Goes over a hole of `count` NUL bytes that was not read."""
        if count and not self.nul_bytes:
            self.losses.append(Loss(self.line_no, self._offset, is_hole=True))
        self.nul_bytes += count
        self._offset += count

    @property
    def pending(self) -> bytes:
        """The last line as far as it is there."""
        return bytes(self._pending)

    @property
    def lines(self) -> int:
        """Physical lines so far, a last one without its end included."""
        return self.line_no - 1 + bool(self._pending or self._is_open)

    def feed(self, data: bytes) -> list[Chunk]:
        """The whole lines that `data`, the next bytes of the file, completes."""
        out: list[Chunk] = []
        if not self._is_begun:
            data = self._begin(data)
        size = min(_PIECE_BYTES, self.limit)  # so that only a line begun in an earlier piece can be over-long
        for start in range(0, len(data), size):
            piece = data[start : start + size] if len(data) > size else data
            if self._utf16 is not None:
                self._feed_wide(piece, self._utf16, out)
            elif b"\0" in piece:
                self._feed_around_nuls(piece, out)
            else:
                self._feed_text(piece, out)
        return out

    @property
    def is_frame(self) -> bool:
        """Whether the last line as far as it is there comes after other frames of the same line."""
        return self._is_open

    def flush(self, end: bytes = b"\n") -> list[Chunk]:
        r"""The last line although no end was seen, closed by an `end` of ours. Feeding may go on after it."""
        if not self._pending:
            return []
        data = bytes(self._pending)
        self._pending.clear()
        out: list[Chunk] = []
        self._emit(data if data.endswith(b"\r") else data + end, self._pending_offset, 0, out)
        self._is_open = True
        return out

    def _begin(self, data: bytes) -> bytes:
        """The first bytes of the file without UTF-16's mark; none of them while they may be but half of it."""
        data, self._held = self._held + data, b""
        if len(data) < 2 and Utf16.may_begin(data):
            self._held = data
            return b""
        self._is_begun = bool(data)
        if not Utf16.may_begin(data[:2]):
            return data
        self._utf16 = Utf16(data[:2])
        self._offset += 2
        return data[2:]

    def _feed_wide(self, data: bytes, utf16: Utf16, out: list[Chunk]) -> None:
        for text, size in utf16.take(data):
            offset = self._offset
            self._feed_text(text.replace(b"\0", b""), out)
            self._offset = offset + size

    def _feed_around_nuls(self, data: bytes, out: list[Chunk]) -> None:
        position = 0
        for hole in _NULS.finditer(data):
            self._feed_text(data[position : hole.start()], out)
            position = hole.end()
            self.skip(position - hole.start())
        self._feed_text(data[position:], out)

    def _feed_text(self, text: bytes, out: list[Chunk]) -> None:
        end = self._offset + len(text)
        if self._is_skipping and text:
            text = self._skip(text)
        if self._pending and text:
            text = self._join(text, out)
        if text:
            self._pass_on(text, end - len(text), out)
        self._offset = end

    def _pass_on(self, text: bytes, offset: int, out: list[Chunk]) -> None:
        """Emits the whole lines of `text`, which begins a line, and keeps the rest."""
        cut = max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) + 1
        if cut:
            data = text[:cut] if cut < len(text) else text
            self._emit(data, offset, count_newlines(data), out)
        self._pending += text[cut:]
        self._pending_offset = offset + cut

    def _join(self, text: bytes, out: list[Chunk]) -> bytes:
        """Ends the pending line with what `text` has of it; returns what comes after that line."""
        if self._pending.endswith(b"\r"):
            length, end = -1, int(text.startswith(b"\n"))
        else:
            length, end = _first_end(text)
        if end < 0:
            self._pending += text
            if len(self._pending) - self._pending.endswith(b"\r") > self.limit:
                self._skipped_cr = self._pending.endswith(b"\r")
                self._is_skipping = True
                self._emit_head(out)
            return b""
        is_long = len(self._pending) + length > self.limit
        line = text[:end]
        if is_long:
            self._pending += text[: max(length, 0)]
            self._emit_head(out)
            self._end_line(line.endswith(b"\n"))
        else:
            data = bytes(self._pending) + line
            self._pending.clear()
            self._emit(data, self._pending_offset, int(data.endswith(b"\n")), out)
        return text[end:]

    def _skip(self, text: bytes) -> bytes:
        """Drops the rest of an over-long line; returns what comes after it."""
        if self._skipped_cr:
            self._skipped_cr = False
            self._is_skipping = False
            self._end_line(text.startswith(b"\n"))
            return text.removeprefix(b"\n") if text.startswith(b"\n") else text
        _, end = _first_end(text)
        if end < 0:
            self._skipped_cr = text.endswith(b"\r")
            return b""
        self._is_skipping = False
        self._end_line(text[:end].endswith(b"\n"))
        return text[end:]

    def _emit_head(self, out: list[Chunk]) -> None:
        head = bytes(self._pending[: min(HEAD_BYTES, self.limit)])
        self._pending.clear()
        self.cut_lines += 1
        self.losses.append(Loss(self.line_no, self._pending_offset, is_hole=False))
        self._emit(head + b"\n", self._pending_offset, 0, out)
        self._is_open = True

    def _emit(self, data: bytes, offset: int, newlines: int, out: list[Chunk]) -> None:
        if self._is_start:
            self._is_start = False
            if data.startswith(_BOM):
                data, offset = data[len(_BOM) :], offset + len(_BOM)
        out.append(Chunk(data, offset, self.line_no))
        self.line_no += newlines
        self._is_open = not data.endswith(b"\n")

    def _end_line(self, is_line_end: bool) -> None:
        if is_line_end:
            self.line_no += 1
            self._is_open = False


def _first_end(text: bytes) -> tuple[int, int]:
    r"""Length of the first line and the index after its end; (-1, -1) without a sure end (a last ``\r`` is none)."""
    newline = text.find(b"\n")
    frame = text.find(b"\r", 0, newline if newline >= 0 else len(text) - 1)
    if frame < 0:
        return newline, newline + 1 if newline >= 0 else -1
    return frame, frame + 2 if frame + 1 == newline else frame + 1
