"""Raw lines for the log pane: the last ones as they come, any others from the disk through a sparse index."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import field
from pathlib import Path

from trainmon.tails.content import file_blocks
from trainmon.tails.lines import Chunk
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import NoteKind, Parsed
from trainmon.tails.status import LogLine
from trainmon.tails.text import printable

_MAX_HELD_BYTES = 8 << 20
_SPACING_BYTES = 256 << 10
_MAX_ENTRIES = 8192
_MAX_READ_BYTES = 256 << 20
_MAX_LINE_BYTES = 64 << 10
_SHOWN_BYTES = 8192
_LAST_BYTES = 512 << 10

# Kinds of notes that tell of no trouble.
MILD = frozenset(
    {
        NoteKind.CHECKPOINT_SAVED,
        NoteKind.RESUMED,
        NoteKind.LOSS_SCALE_OVERFLOW,
        NoteKind.SKIPPED_STEP,
        NoteKind.LAUNCH,
        NoteKind.FINISHED,
        NoteKind.EARLY_STOP,
        NoteKind.UNREADABLE,
        NoteKind.FILE,
    }
)

Kinds = dict[int, tuple[str, float | None]]


@dataclass(slots=True)
class _Held:
    """A chunk that no one asked the lines of yet, and what its format said with it."""

    chunk: Chunk
    lines: int
    said: list[Parsed] = field(default_factory=list)


class LogPane:
    """The last `keep` lines of a file. Chunks are kept as they are until `take` makes lines of them."""

    def __init__(self, path: str, keep: int) -> None:
        self.path = path
        self.lines: deque[LogLine] = deque(maxlen=keep)
        self._keep = keep
        self._chunks: deque[_Held] = deque()
        self._held_lines = 0
        self._held_bytes = 0

    def add(self, chunk: Chunk) -> None:
        """Notes the next chunk of the file."""
        held = _Held(chunk, chunk.data.count(b"\n") + 1)
        self._chunks.append(held)
        self._held_lines += held.lines
        self._held_bytes += len(chunk.data)
        while len(self._chunks) > 1 and (
            self._held_lines - self._chunks[0].lines > self._keep or self._held_bytes > _MAX_HELD_BYTES
        ):
            first = self._chunks.popleft()
            self._held_lines -= first.lines
            self._held_bytes -= len(first.chunk.data)

    def learn(self, parsed: Parsed) -> None:
        """Notes what the format made of the last chunk."""
        if self._chunks and (parsed.records or parsed.notes):
            self._chunks[-1].said.append(parsed)

    def take(self) -> tuple[LogLine, ...]:
        """The lines that came since the last `take`, at most `keep`; one whose number was given before is that
        line as it reads now."""
        if not self._chunks:
            return ()
        first = self._chunks[0].chunk.line_no
        last = self._chunks[-1].chunk.line_no + self._chunks[-1].lines
        said = [parsed for held in self._chunks for parsed in held.said]
        kinds = _kinds(said, max(first, last - self._keep), self._keep)
        fresh: dict[int, LogLine] = {}
        for held in self._chunks:
            for line_no, raw in _last_lines(held.chunk, self._keep):
                if raw or line_no not in fresh:
                    fresh[line_no] = _log_line(self.path, line_no, raw, kinds)
        new = tuple(fresh[line_no] for line_no in sorted(fresh))[-self._keep :]
        while self.lines and new and self.lines[-1].line_no >= new[0].line_no:
            self.lines.pop()
        self.lines.extend(new)
        self._chunks.clear()
        self._held_lines = 0
        self._held_bytes = 0
        return new


class LineIndex:
    """Line number -> byte offset of its start, one entry every 256 KiB or more; bounded."""

    def __init__(self) -> None:
        self._line_nos = [1]
        self._offsets = [0]
        self._spacing = _SPACING_BYTES
        self._is_at_line_start = True

    def add(self, chunk: Chunk) -> None:
        """Notes where `chunk` begins, if it begins a line."""
        if self._is_at_line_start and chunk.offset - self._offsets[-1] >= self._spacing:
            self._line_nos.append(chunk.line_no)
            self._offsets.append(chunk.offset)
            if len(self._offsets) > _MAX_ENTRIES:
                self._line_nos = self._line_nos[::2]
                self._offsets = self._offsets[::2]
                self._spacing *= 2
        self._is_at_line_start = chunk.data.endswith(b"\n")

    def before(self, line_no: int) -> tuple[int, int]:
        """The last entry at or before `line_no`: its line number and offset."""
        place = max(bisect_right(self._line_nos, line_no) - 1, 0)
        return self._line_nos[place], self._offsets[place]


def read_lines(
    path: str | Path,
    index: LineIndex,
    line_no: int,
    context: int,
    blocks: Callable[[int], Iterator[bytes]] | None = None,
    known: tuple[int, int] = (1, 0),
) -> list[LogLine]:
    """Lines `line_no` - `context` to `line_no` + `context` of the log as it is now; fewer where there are no more.

    Blocks on the file system: for a reader thread only. `blocks` gives what follows an offset; without it, that is
    read from the file at `path`. `known`: a line number and the offset at which that line begins, as far as the caller
    knows better than `index`. An unreadable file gives no lines.
    """
    first, last = max(line_no - context, 1), line_no + context
    number, offset = max(index.before(first), known if known[0] <= first else (1, 0))
    lines: list[LogLine] = []
    rest = b""
    read_bytes = 0
    with closing(_ended(blocks(offset) if blocks is not None else file_blocks(path, offset))) as source:
        for block in source:
            *whole, rest = (rest + block).split(b"\n")
            if not block and rest:
                whole = [rest]
            for raw in whole:
                if first <= number <= last:
                    lines.append(_log_line(str(path), number, _shown(raw), {}))
                number += 1
            read_bytes += len(block)
            if number > last or read_bytes > _MAX_READ_BYTES:
                break
            rest = _shortened(rest)
    return lines


def last_lines(path: str | Path, count: int, size: int, blocks: Callable[[int], Iterator[bytes]]) -> list[LogLine]:
    """The last `count` lines of a log of `size` bytes before all of it was read: numbered from the end, -1 the last.

    Blocks on the file system. Lines beyond the last half megabyte are left out.
    """
    offset = max(0, size - _LAST_BYTES)
    data = bytearray()
    with closing(_ended(blocks(offset))) as source:
        for block in source:
            data += block
            if len(data) > 2 * _LAST_BYTES:
                break
    lines = bytes(data).split(b"\n")
    if offset:
        del lines[0]  # it began before
    if lines and not lines[-1]:
        lines.pop()
    kept = lines[-count:]
    return [_log_line(str(path), place - len(kept), _shown(raw), {}) for place, raw in enumerate(kept)]


def _ended(blocks: Iterator[bytes]) -> Generator[bytes]:
    """`blocks`, and an empty one at the end."""
    yield from blocks
    yield b""


def _kinds(said: list[Parsed], first: int, limit: int) -> Kinds:
    kinds: Kinds = {}
    for parsed in said:
        for block in parsed.blocks:
            start = max(len(block) - limit, 0)
            for line_no, step in zip(block.lines[start:].tolist(), block.steps[start:].tolist(), strict=True):
                if line_no >= first:
                    kinds[line_no] = ("metric", step if step == step else None)
        for note in parsed.notes[-limit:]:
            if note.line_no >= first:
                kinds[note.line_no] = ("note" if note.kind in MILD else "error", note.step)
    return kinds


def _last_lines(chunk: Chunk, limit: int) -> list[tuple[int, bytes]]:
    """The last `limit` lines of `chunk` with their numbers, each as a terminal would have left it."""
    parts = chunk.data.rsplit(b"\n", limit + 1)
    line_no = chunk.line_no + chunk.data.count(b"\n") - len(parts) + 1
    if parts[-1] == b"":
        parts.pop()
    if len(parts) > limit:
        parts, line_no = parts[1:], line_no + 1
    return [(line_no + place, _shown(raw)) for place, raw in enumerate(parts)]


def _shown(raw: bytes) -> bytes:
    """The last frame of a line that was redrawn."""
    if b"\r" in raw:
        raw = raw.rstrip(b"\r\n")
        raw = raw[raw.rfind(b"\r") + 1 :]
    return raw


def _shortened(raw: bytes) -> bytes:
    """An unfinished line, so that one without an end stays small: its last frame, or its head."""
    if len(raw) <= _MAX_LINE_BYTES:
        return raw
    return raw[raw.rfind(b"\r", 0, len(raw) - 1) + 1 :][:_MAX_LINE_BYTES]


def _log_line(path: str, line_no: int, raw: bytes, kinds: Kinds) -> LogLine:
    text = raw[:_SHOWN_BYTES].replace(b"\0", b"").decode("utf-8", "replace")
    kind, step = kinds.get(line_no, ("text", None))
    return LogLine(path, line_no, printable(text), kind, step)
