"""What a team said of its runs' episodes, read from the folder that they share: one file for each user and host."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import msgspec

from trainmon.monitor.finding import Episode
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.text import printable

SCHEMA: Final = "trainmon.shared/1"
SUFFIX: Final = ".acks.jsonl"
LONGEST_LINE: Final = 4096
MOST_FILES: Final = 500
_MOST_BYTES: Final = 1 << 20  # of one file, its end
_MOST_MARKS: Final = 50_000
_HOST: Final = re.compile(r"^(?:ssh://[^/]*|[^/:]+:)(?=/)")

What = Literal["acknowledge", "snooze"]


class Line(msgspec.Struct):
    """One line of a file: what was done with which episode of which log. Times in seconds since 1970 (UTC)."""

    schema: str
    what: What
    episode: str
    log: str
    at: float
    until: float = 0.0


class SharedBook:
    """The files of `folder`. `own`: the name of the file that this program writes, whose lines are by nobody else.
    `complain` is told, once, of what cannot be read."""

    def __init__(self, folder: Path, complain: Callable[[str], None], own: str = "") -> None:
        self._folder, self._complain, self._own = folder, complain, own
        self._sizes: dict[str, tuple[int, int]] = {}
        self._said: dict[tuple[str, str], dict[str, tuple[Line, str]]] = {}
        self._known: set[str] = set()

    def read(self) -> None:
        """Takes in the lines of every file that has changed. Raises OSError where the folder cannot be listed."""
        with os.scandir(self._folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIX))
        if len(names) > MOST_FILES:
            self._complain(f"shared-state: {self._folder}: over {MOST_FILES} files; the rest is not read")
        for name in names[:MOST_FILES]:
            try:
                self._read_file(name)
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                self._complain(f"shared-state: {printable(name, 80)}: {reason}; left out")

    def said_of(self, run: RunSnapshot, episode: Episode) -> Iterable[tuple[Line, str]]:
        """What was said of an episode of `run`, and by whom ("" for this program itself)."""
        if episode.id not in self._known:
            return ()
        return self._said.get((episode.id, place(log_of(run, episode))), {}).values()

    def _read_file(self, name: str) -> None:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(self._folder / name, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ValueError("not a plain file")
            if self._sizes.get(name) == (found.st_size, found.st_mtime_ns):
                return
            begin = max(0, found.st_size - _MOST_BYTES)
            file.seek(begin)
            data = file.read(_MOST_BYTES)
        if begin:
            data = data[data.find(b"\n") + 1 :]
        by = "" if name == self._own else _owner(found.st_uid)
        for raw in data[: data.rfind(b"\n") + 1].splitlines():
            if len(raw) <= LONGEST_LINE and (line := parsed(raw)) is not None:
                self._keep(line, by)
        self._sizes[name] = (found.st_size, found.st_mtime_ns)

    def _keep(self, line: Line, by: str) -> None:
        if len(self._said) < _MOST_MARKS:
            self._known.add(line.episode)
            of_log = self._said.setdefault((line.episode, line.log), {})
            before = of_log.get(line.what)
            if before is None or (line.what == "snooze" and line.at > before[0].at):
                of_log[line.what] = (line, by)


def with_shared(run: RunSnapshot, folder: Path) -> tuple[RunSnapshot, dict[str, tuple[str, float]], list[str]]:
    """`run` with its episodes marked that the team acknowledged in `folder`; by episode id who did and when (seconds
    since 1970); and what could not be read. Raises OSError where the folder cannot be listed."""
    problems: dict[str, None] = {}
    book = SharedBook(folder, lambda problem: problems.setdefault(problem))
    book.read()
    who: dict[str, tuple[str, float]] = {}
    for episode in run.episodes:
        for line, by in book.said_of(run, episode):
            if line.what == "acknowledge":
                who[episode.id] = (by, line.at)
    episodes = (replace(each, acknowledged=each.acknowledged or each.id in who) for each in run.episodes)
    return replace(run, episodes=tuple(episodes)), who, list(problems)


def place(path: str) -> str:
    """Where a log is, the same for all who read it: without the host it is reached by, links followed.

    >>> place("login1:/scratch/a.log"), place("ssh://ann@login1:22/scratch/a.log")
    ('/scratch/a.log', '/scratch/a.log')
    """
    bare = _HOST.sub("", path)
    return os.path.realpath(path) if bare == path else os.path.normpath(bare)


def log_of(run: RunSnapshot, episode: Episode) -> str:
    """The log of the episode; of the run, where it is the job's."""
    return episode.path or next((file.path for file in run.files), run.target)


def parsed(raw: bytes) -> Line | None:
    """The line, None for what is none of this version."""
    try:
        line = msgspec.json.decode(raw, type=Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return line if line.schema == SCHEMA and math.isfinite(line.at) and math.isfinite(line.until) else None


def _owner(uid: int) -> str:
    """Who owns a file: the name, the number where there is none."""
    try:
        import pwd

        return printable(pwd.getpwuid(uid).pw_name, 40)
    except (ImportError, KeyError):
        return f"user {uid}"
