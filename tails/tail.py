"""One log file as it grows: follow, split, read. A `Tail` belongs to one thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Protocol

from trainmon.tails.clock import Clock
from trainmon.tails.document import DocumentReader
from trainmon.tails.follow import RESTARTS, FileEvent, FollowUpdate
from trainmon.tails.formats import registry
from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.history import History
from trainmon.tails.ingest import Detect, Ingest
from trainmon.tails.logpane import LogPane, last_lines, read_lines
from trainmon.tails.opening import show
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Note, NoteKind, Parsed, TimeKind
from trainmon.tails.status import FileStatus, LogLine

QUIET_S = 1.0
STILL_S = 5.0  # before a last line without its end may count as whole
KEEP_LINES = 2000

_WORDS = {
    FileEvent.TRUNCATED: "the file was truncated or written anew; reading it from its start",
    FileEvent.REPLACED: "the file was replaced by another one; reading that from its start",
    FileEvent.ROTATED: "the log was rotated; reading on in the new file",
    FileEvent.GONE: "the file was deleted or moved away",
}


@dataclass(frozen=True, slots=True)
class TailUpdate:
    """What one poll gave.

    `restarted`: the file was truncated or replaced before what `parsed` holds; line numbers and offsets begin
    anew. `more`: further bytes are there at once. `lines`: raw lines that came, the newest `keep_lines` at most
    and only once the end of the file is reached; a line number that was given before is the same line as it
    reads now (a progress bar).
    """

    parsed: Parsed
    restarted: bool = False
    more: bool = False
    lines: tuple[LogLine, ...] = field(default=())

    @property
    def is_empty(self) -> bool:
        """Whether nothing came."""
        parsed = self.parsed
        said = parsed.blocks or parsed.notes or parsed.facts or parsed.lines or parsed.unreadable
        return not (said or self.restarted or self.lines)


class Follows(Protocol):
    """What a tail needs of a follower, wherever the file lies; `Follower` says what each means."""

    path: str | Path

    @property
    def offset(self) -> int:
        """Bytes that were given."""

    @property
    def problem(self) -> str:
        """One line, "" when all is well."""

    @property
    def size(self) -> int:
        """Of the file, bytes."""

    @property
    def mtime(self) -> float | None:
        """When it was last written to, seconds since the epoch."""

    @property
    def is_open(self) -> bool:
        """Whether a descriptor is held."""

    def poll(self, budget_bytes: int) -> FollowUpdate:
        """What is new."""

    def unread(self, count: int) -> None:
        """Takes the last `count` bytes as not read."""

    def release(self) -> None:
        """Gives the descriptor back."""

    def blocks(self, offset: int) -> Iterator[bytes]:
        """The bytes from `offset` on, read again."""


class Tail:
    """Reads the log at `path` from its start and then what is added, in whatever format `detect` finds.

    `lines`: the last `keep_lines` raw lines. `watched_by` goes into the status as it is set. `follower`: for a file
    that is not on this machine.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock,
        detect: Detect = registry.detect,
        keep_lines: int = KEEP_LINES,
        must_reopen: bool = False,
        follower: Follows | None = None,
    ) -> None:
        self.path = Path(path)
        self.watched_by = ""
        self.filesystem = ""
        self._clock = clock
        self._detect = detect
        self._keep_lines = keep_lines
        self._source = str(path)
        self._follower: Follows = follower or History(self.path, clock, must_reopen=must_reopen)
        self._pane = LogPane(self._source, keep_lines)
        self._ingest = Ingest(self._source, detect, self._pane)
        self._document: DocumentReader | None = None
        self._quiet_since: float | None = None
        self._is_still = False  # what is held back after `QUIET_S` was given
        self._fed_to = 0
        self._stash: FollowUpdate | None = None

    @property
    def lines(self) -> deque[LogLine]:
        """The last raw lines, printable."""
        return self._pane.lines

    @property
    def is_open(self) -> bool:
        """Whether a descriptor is held between polls."""
        return self._follower.is_open

    def release(self) -> None:
        """Gives the descriptor back until the file changes."""
        self._follower.release()

    @property
    def gives_in_s(self) -> float | None:
        """Seconds until what is held back is given when nothing comes; None where nothing is held back."""
        if self._quiet_since is None:
            return None
        waits_s = STILL_S if self._is_still else QUIET_S
        return max(self._quiet_since + waits_s - self._clock.monotonic(), 0.0)

    def poll(self, budget_bytes: int = 1 << 20) -> TailUpdate:
        """Reads at most `budget_bytes` (a document: all of it). Never raises OSError."""
        if self._document is not None:
            return TailUpdate(self._document.poll())
        update, self._stash = self._stash or self._follower.poll(budget_bytes), None
        is_restart = bool(RESTARTS & set(update.events))
        if is_restart and not (rest := self._end_of_generation()).is_empty:
            self._stash = update
            return rest
        parsed = Parsed(notes=[self._note(_WORDS[event], update.offset) for event in update.events if event in _WORDS])
        data = self._without_trailing_nuls(update)
        parsed.add(self._ingest.skip(update.offset - self._fed_to))
        self._fed_to = update.offset + len(data)
        parsed.add(self._ingest.feed(data, is_at_end=update.is_at_end))
        if self._ingest.is_document:
            parsed.add(self._become_document())
            return TailUpdate(parsed, is_restart)
        self._finish_when_quiet(data, update, parsed)
        return TailUpdate(parsed, is_restart, update.more, () if update.more else self._pane.take())

    def finish(self) -> TailUpdate:
        """Gives all that is held back, a last line without its end too: no more will be read for now."""
        if self._document is not None:
            return TailUpdate(self._document.poll(is_final=True))
        parsed = self._ingest.finish(is_final=True)
        if self._ingest.is_document:
            parsed.add(self._become_document())
            assert self._document is not None
            parsed.add(self._document.poll(is_final=True))
        return TailUpdate(parsed, lines=self._pane.take())

    def status(self) -> FileStatus:
        """What is known of the file now."""
        reader = self._document
        mtime = reader.mtime if reader is not None else self._follower.mtime
        size = reader.size if reader is not None else self._follower.size
        return FileStatus(
            path=str(self.path),
            format=self._ingest.label,
            size_bytes=size,
            read_bytes=size if reader is not None else self._follower.offset,
            lines=reader.lines if reader is not None else self._ingest.splitter.lines,
            records=reader.records if reader is not None else self._ingest.records,
            unreadable=reader.unreadable if reader is not None else self._ingest.unreadable,
            watched_by=self.watched_by,
            problem=self._problem(size, mtime),
            newest_age_s=None if mtime is None else max(self._clock.wall() - mtime, 0.0),
            filesystem=self.filesystem,
        )

    def line_at(self, line_no: int, context: int = 10, known: tuple[int, int] = (1, 0)) -> list[LogLine]:
        """Line `line_no` with `context` lines on either side, read from the disk: never call it on the UI thread.

        A number below 0 counts from the end. `known`: see `read_lines`.
        """
        if line_no >= 0:
            return read_lines(self.path, self._ingest.index, line_no, context, self._follower.blocks, known)
        return last_lines(self.path, 2 * context, self.status().size_bytes, self._follower.blocks)

    def move_to(self, path: Path) -> None:
        """Reads on in `path`, a newer state of the same document (the next checkpoint's trainer_state.json)."""
        self.path = path
        if self._document is not None:
            self._document.path = path
        else:
            self._follower.release()
            self._follower.path = path

    def _problem(self, size: int, mtime: float | None) -> str:
        if self._document is not None:
            return self._document.problem
        problem = self._follower.problem or self._ingest.problem
        if not problem and mtime is not None and size == 0:
            return f"{show(self._source)}: empty; nothing was written to it yet"
        return problem

    def _end_of_generation(self) -> TailUpdate:
        """What is held back of the file as it was before a restart; begins a new generation."""
        parsed = self._ingest.finish(is_final=True)
        lines = self._pane.take()
        self._pane = LogPane(self._source, self._keep_lines)
        self._ingest = Ingest(self._source, self._detect, self._pane)
        self._fed_to = 0
        return TailUpdate(parsed, more=True, lines=lines)

    def _note(self, text: str, offset: int) -> Note:
        line_no = self._ingest.splitter.lines
        return Note(
            self._source,
            line_no,
            offset,
            NoteKind.FILE,
            text,
            time=self._clock.wall(),
            time_kind=TimeKind.ARRIVAL,
        )

    def _without_trailing_nuls(self, update: FollowUpdate) -> bytes:
        """Zeros at the end may be data that is not visible yet (network file systems): they are read again."""
        data = update.data
        if update.is_at_end and self._ingest.is_text and data.endswith(b"\0"):
            text = data.rstrip(b"\0")
            self._follower.unread(len(data) - len(text))
            return text
        return data

    def _finish_when_quiet(self, data: bytes, update: FollowUpdate, parsed: Parsed) -> None:
        now = self._clock.monotonic()
        if data or update.more:
            self._quiet_since, self._is_still = now, False
        elif self._quiet_since is not None and now - self._quiet_since >= (STILL_S if self._is_still else QUIET_S):
            is_still, self._is_still = self._is_still, True
            self._quiet_since = None if is_still else self._quiet_since
            # Not final where the file is gone either: a mount that is away comes back, and its writer ends the line.
            parsed.add(self._ingest.finish(is_final=False, is_still=is_still))

    def _become_document(self) -> Parsed:
        assert isinstance(self._ingest.format, DocumentFormat)
        self._follower.release()
        self._document = self._open_document(self._ingest.format)
        return self._document.poll()

    def _open_document(self, document: DocumentFormat) -> DocumentReader:
        return DocumentReader(self.path, document, self._clock)
