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
from trainmon.tails.sealed import DamagedError, require_whole
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
    """One line of a file: what was done with which episode of which log. Times in seconds since 1970 (UTC).

    In the file it is sealed: a line that a disk or a hand has changed is told and never followed.
    """

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
        self._torn: set[str] = set()  # of which the end was no whole line when it was last read
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
                self._complain(f"{self._called(name)}: {reason}; left out")

    def said_of(self, run: RunSnapshot, episode: Episode) -> Iterable[tuple[Line, str]]:
        """What was said of an episode of `run`, and by whom ("" for this program itself)."""
        if episode.id not in self._known:
            return ()
        return self._said.get((episode.id, place(log_of(run, episode))), {}).values()

    def _called(self, name: str) -> str:
        return f"shared-state: {printable(str(self._folder / name), 200)}"

    def _read_file(self, name: str) -> None:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(self._folder / name, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ValueError("not a plain file")
            if self._sizes.get(name) == (found.st_size, found.st_mtime_ns):
                if name in self._torn:  # nobody is still at it
                    self._complain(f"{self._called(name)}: its last line is not whole; left out")
                return
            begin = max(0, found.st_size - _MOST_BYTES)
            file.seek(begin)
            data = file.read(_MOST_BYTES)
        if begin:
            self._complain(f"{self._called(name)}: only its newest MiB is read; move it away to begin a new one")
            data = data[data.find(b"\n") + 1 :]
        by = "" if name == self._own else _owner(found.st_uid)
        *lines, end = data.split(b"\n")
        self._keep_lines(name, lines, by)
        self._sizes[name] = (found.st_size, found.st_mtime_ns)
        (self._torn.add if end else self._torn.discard)(name)

    def _keep_lines(self, name: str, lines: Iterable[bytes], by: str) -> None:
        damaged, newer = 0, 0
        for raw in lines:
            try:
                self._keep(parsed(raw), by)
            except DamagedError:
                damaged += bool(raw)
            except ValueError:
                newer += 1
        for count, how in ((damaged, "not as trainmon wrote it"), (newer, "of another version of trainmon")):
            if count:
                self._complain(f"{self._called(name)}: lines left out, {how}: {count}; what they said is not known")

    def _keep(self, line: Line, by: str) -> None:
        if len(self._said) >= _MOST_MARKS and (line.episode, line.log) not in self._said:
            self._complain(f"shared-state: {self._folder}: over {_MOST_MARKS:,} marks; the rest is not read")
        else:
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
    book.read()  # a last line that is still the same half is one that nobody will end
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


def parsed(raw: bytes) -> Line:
    """The line, without its end. Raises DamagedError where it is not as it was written, ValueError where it is whole
    but of another version."""
    if len(raw) > LONGEST_LINE:
        raise DamagedError("longer than any")
    require_whole(raw + b"\n")
    try:
        line = msgspec.json.decode(raw, type=Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("a line of another version") from error
    if line.schema != SCHEMA or not (math.isfinite(line.at) and math.isfinite(line.until)):
        raise ValueError("a line of another version")
    return line


def _owner(uid: int) -> str:
    """Who owns a file: the name, the number where there is none."""
    try:
        import pwd

        return printable(pwd.getpwuid(uid).pw_name, 40)
    except (ImportError, KeyError):
        return f"user {uid}"
