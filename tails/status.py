"""What is known of one file that is read: shown in status lines and in ``check --json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trainmon.tails.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FileStatus:
    """`watched_by` is "inotify", "poll" or "stdin"; `problem` one clear line, "" when all is well.

    `newest_age_s`: seconds since the newest byte was written (by mtime or arrival), None when unknown. `filesystem`:
    the type of the one that the file lies on ("nfs4"), "" when unknown. `owner`: login name of a settings file's owner.
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
    filesystem: str = ""
    owner: str = ""

    @property
    def counted(self) -> str:
        """What was read of it; a binary file has no lines to count.

        >>> FileStatus("a.log", "generic", 9, 9, 4, 1, 2).counted, FileStatus("a", "tfevents", 9, 9, 0, 7, 0).counted
        ('4 lines, 1 record, 2 unreadable', '7 records')
        """
        lines = f"{_number_of(self.lines, 'line')}, " if self.lines or not self.records else ""
        unreadable = f", {self.unreadable} unreadable" if self.unreadable else ""
        return f"{lines}{_number_of(self.records, 'record')}{unreadable}"

    def watched(self, waited_s: float = 0.0) -> str:
        """How the file is watched and how old its newest byte is, `waited_s` after this was known.

        >>> FileStatus("a.log", "stdout", 9, 9, 1, 1, 0, "poll", newest_age_s=70.0, filesystem="nfs4").watched(2.0)
        'polled on nfs4, newest byte 72 s old'
        """
        way = _WAYS.get(self.watched_by, self.watched_by) or "not watched"
        where = f" on {self.filesystem}" if self.filesystem and self.watched_by == "poll" else ""
        age = "" if self.newest_age_s is None else f", newest byte {_age(self.newest_age_s + waited_s)} old"
        return f"{way}{where}{age}"


_WAYS = {"inotify": "inotify", "poll": "polled"}


def ways_of(files: Iterable[FileStatus]) -> str:
    """How many files are watched in which way, in words.

    >>> near = FileStatus("a.log", "stdout", 9, 9, 1, 1, 0, "inotify")
    >>> far = FileStatus("b.log", "stdout", 9, 9, 1, 1, 0, "poll", filesystem="nfs4")
    >>> ways_of([near, far, far]), ways_of([near]), ways_of([far, far])
    ('3 files: 2 polled (nfs4), 1 watched by inotify', '1 file, watched by inotify', '2 files, polled (nfs4)')
    """
    ways = Counter((file.watched_by, file.filesystem if file.watched_by == "poll" else "") for file in files)
    ways.pop(("", ""), None)
    parts = [
        (count, f"{_TOLD.get(way, f'read by {way}')}{f' ({where})' if where else ''}")
        for (way, where), count in ways.most_common()
    ]
    if len(parts) < 2:
        return f"{_number_of(parts[0][0], 'file')}, {parts[0][1]}" if parts else ""
    return f"{sum(ways.values())} files: {', '.join(f'{count} {told}' for count, told in parts)}"


_TOLD = {
    "inotify": "watched by inotify",
    "poll": "polled",
    "stdin": "read from standard input",
    "ssh": "followed over ssh",
}


def _number_of(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _age(seconds: float) -> str:
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class LogLine:
    """A raw line for the log pane, already printable; `kind` is "text", "metric", "note" or "error"."""

    path: str
    line_no: int
    text: str
    kind: str = "text"
    step: float | None = None
