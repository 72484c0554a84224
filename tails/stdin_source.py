"""Standard input as a log: taken away from fd 0, so that the screen can have the terminal for its keys."""

from __future__ import annotations

import os
import select
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.document import Difference
from trainmon.tails.formats import registry
from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.ingest import Detect, Ingest
from trainmon.tails.logpane import LogPane
from trainmon.tails.record import Parsed
from trainmon.tails.status import FileStatus, LogLine
from trainmon.tails.tail import KEEP_LINES, QUIET_S, TailUpdate


def take_stdin() -> int:
    """A new descriptor for what fd 0 reads; fd 0 becomes the terminal (/dev/tty), or /dev/null without one.

    Raises OSError when fd 0 is closed.
    """
    fd = os.dup(0)
    os.set_inheritable(fd, False)
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        terminal = os.open(os.devnull, os.O_RDONLY)
    os.dup2(terminal, 0)
    os.close(terminal)
    return fd


def is_readable(fd: int, timeout_s: float = 0.0) -> bool:
    """Whether a read of `fd` would return at once (bytes, its end, or an error), waiting up to `timeout_s` for it."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(1000 * timeout_s))


class StdinTail:
    """What a `Tail` is to a file, for the pipe `fd`: the same interface. `poll` never blocks."""

    def __init__(
        self,
        fd: int,
        *,
        clock: Clock,
        detect: Detect = registry.detect,
        keep_lines: int = KEEP_LINES,
        source: str = "-",
    ) -> None:
        self.path = Path(source)
        self.watched_by = "stdin"
        self.fd = fd
        self.is_ended = False
        self._clock = clock
        self._source = source
        self._pane = LogPane(source, keep_lines)
        self._ingest = Ingest(source, detect, self._pane)
        self._read_bytes = 0
        self._newest_at: float | None = None
        self._quiet_since: float | None = None
        self._problem = ""
        self._difference = Difference()
        self._document = (0, 0, 0)
        try:
            os.fstat(fd)
            if os.isatty(fd):
                self._end("standard input is the terminal; pipe a log into it: COMMAND 2>&1 | trainmon watch -")
        except OSError:
            self._end("standard input is closed; pipe a log into it")

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """The last raw lines, printable."""
        return tuple(self._pane.lines)

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        return not self.is_ended

    def release(self) -> None:
        """A pipe cannot be opened again: nothing is given back."""

    def poll(self, budget_bytes: int = 1 << 20) -> TailUpdate:
        """Reads what is there now."""
        data = b""
        if not self.is_ended:
            try:
                if is_readable(self.fd):
                    data = os.read(self.fd, budget_bytes)
                    if not data:
                        self._end("")
            except OSError as error:
                self._end(f"standard input cannot be read ({error.strerror}); what came before it stands")
        self._read_bytes += len(data)
        if data:
            self._newest_at = self._clock.wall()
        more = bool(data) and is_readable(self.fd)
        parsed = self._ingest.feed(data, is_at_end=not more, is_final=self.is_ended)
        self._finish_when_quiet(data, parsed)
        return TailUpdate(parsed, False, more, () if more else self._pane.take())

    def finish(self) -> TailUpdate:
        """Gives all that is held back."""
        parsed = self._ingest.finish(is_final=True)
        if isinstance(self._ingest.format, DocumentFormat):
            whole = self._ingest.format.parse(self._ingest.head)
            self._document = (whole.records, whole.lines, whole.unreadable)
            parsed.add(self._difference.of(whole))
        return TailUpdate(parsed, lines=self._pane.take())

    def status(self) -> FileStatus:
        """What is known of the input now."""
        records, lines, unreadable = self._document
        return FileStatus(
            path=self._source,
            format=self._ingest.label,
            size_bytes=self._read_bytes,
            read_bytes=self._read_bytes,
            lines=lines or self._ingest.splitter.lines,
            records=records or self._ingest.records,
            unreadable=unreadable or self._ingest.unreadable,
            watched_by=self.watched_by,
            problem=self._problem or self._ingest.problem or self._emptiness(),
            newest_age_s=None if self._newest_at is None else max(self._clock.wall() - self._newest_at, 0.0),
        )

    def line_at(self, line_no: int, context: int = 10, known: tuple[int, int] = (1, 0)) -> list[LogLine]:
        """The lines around `line_no` that are still kept: a pipe cannot be read again."""
        del known
        return [line for line in self._pane.lines if abs(line.line_no - line_no) <= context]

    def _end(self, problem: str) -> None:
        self.is_ended = True
        self._problem = problem

    def _emptiness(self) -> str:
        return (
            "standard input: ended without a byte; pipe a log into it" if self.is_ended and not self._read_bytes else ""
        )

    def _finish_when_quiet(self, data: bytes, parsed: Parsed) -> None:
        now = self._clock.monotonic()
        if data:
            self._quiet_since = now
        elif self.is_ended and self._quiet_since is not None:
            self._quiet_since = None
            parsed.add(self.finish().parsed)
        elif self._quiet_since is not None and now - self._quiet_since >= QUIET_S:
            self._quiet_since = None
            if not self._ingest.is_document:
                parsed.add(self._ingest.finish(is_final=False))
