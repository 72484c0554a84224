"""What is known of one file that is read: shown in status lines and in ``check --json``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileStatus:
    """`watched_by` is "inotify", "poll" or "stdin"; `problem` one clear line, "" when all is well.

    `newest_age_s`: seconds since the newest byte was written (by mtime or arrival), None when unknown.
    """

    path: str
    format: str
    size_bytes: int
    read_bytes: int
    lines: int
    records: int
    unreadable: int
    watched_by: str = ""
    problem: str = ""
    newest_age_s: float | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """A raw line for the log pane, already printable; `kind` is "text", "metric", "note" or "error"."""

    path: str
    line_no: int
    text: str
    kind: str = "text"
    step: float | None = None
