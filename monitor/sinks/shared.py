"""Acknowledgements of a team: what one of them has seen or silenced, the others need not be woken for.

A folder that all may write to holds one file for each user and host, to which only that user's program adds lines;
everyone reads all of them. Nothing else can be said there, and what is said is data: at worst an alert is silenced
that should not be, and who did that is told by the owner of the file.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from trainmon.monitor.document import dumps
from trainmon.monitor.finding import Episode
from trainmon.monitor.sinks.alert_log import append
from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.shared_book import (
    LONGEST_LINE,
    MOST_FILES,
    SCHEMA,
    SUFFIX,
    Line,
    SharedBook,
    What,
    log_of,
    place,
)
from trainmon.monitor.sinks.worker import Say
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.clock import Clock
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.sealed import sealed
from trainmon.tails.text import printable

LOOK_S: Final = 3.0
_LONGEST_SNOOZE_S: Final = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Mark:
    """What somebody did with an episode. `by` names the owner of the file, `until` is the end of a snooze."""

    what: str
    by: str
    run: str
    episode: str
    at: float
    until: float

    @property
    def words(self) -> str:
        """One printable line."""
        return f"{self.by} {'acknowledged' if self.what == 'acknowledge' else 'silenced'} {printable(self.run, 100)}"


class Marks(Protocol):
    """Who is told of other people's marks: the session. Called from a thread."""

    def acknowledge(self, run: str, episode_id: str) -> None:
        """Marks an episode as seen."""
        ...

    def snooze(self, run: str, episode_id: str, seconds: float) -> None:
        """Silences an episode."""
        ...


class SharedState:
    """`folder` is made where it is missing. `heard` is called, in a thread, for each mark that is new here.

    Raises SinkError where the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        marks: Marks,
        say: Say,
        clock: Clock,
        *,
        heard: Callable[[Mark], None] | None = None,
        writer: str | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            next(os.scandir(folder), None)
        except OSError as error:
            raise SinkError(f"shared-state: {folder}: {error.strerror or error}") from error
        self._folder = folder
        self._own = folder / f"{_own_name() if writer is None else writer}{SUFFIX}"
        self._marks, self._say, self._clock, self._heard = marks, say, clock, heard
        self._look_s = look_s
        self._outgoing: deque[tuple[What, str, str, float, float]] = deque()
        self._fleet: FleetSnapshot | None = None
        self._book = SharedBook(folder, self._complain, self._own.name)
        self._done: set[tuple[str, str, str, str, float]] = set()
        self._problems: set[str] = set()
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._work, name="trainmon-shared", daemon=True)
        self._thread.start()

    def look(self, fleet: FleetSnapshot) -> None:
        """The newest snapshot; returns at once."""
        self._fleet = fleet

    def acknowledged(self, run: RunSnapshot, episode: Episode) -> None:
        """Tells the others; returns at once."""
        self._tell("acknowledge", run, episode, 0.0)

    def snoozed(self, run: RunSnapshot, episode: Episode, until: float) -> None:
        """Tells the others; `until` in wall seconds. Returns at once."""
        self._tell("snooze", run, episode, until)

    def close(self, patience_s: float) -> None:
        """Writes what waits, and says how much of it could not be written in time."""
        self._is_stopping = True
        self._wake.set()
        self._thread.join(patience_s)
        if self._outgoing:
            self._complain(f"shared-state: {self._own}: {len(self._outgoing)} marks could not be written in time")

    def _tell(self, what: What, run: RunSnapshot, episode: Episode, until: float) -> None:
        self._outgoing.append((what, episode.id, log_of(run, episode), self._clock.wall(), until))
        self._wake.set()

    # In the thread -------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            is_last = self._is_stopping  # asked first: what was told before it is written in this round
            try:
                self._write()
                self._book.read()
                self._apply()
            except OSError as error:
                self._complain(f"shared-state: {self._folder}: {error.strerror or error}")
            if is_last:
                return
            self._wake.wait(self._look_s)
            self._wake.clear()

    def _complain(self, problem: str) -> None:
        if problem not in self._problems and len(self._problems) < MOST_FILES:
            self._problems.add(problem)
            self._say(problem)

    def _write(self) -> None:
        while self._outgoing:
            what, episode, path, at, until = self._outgoing[0]
            document = dumps(msgspec.to_builtins(Line(SCHEMA, what, episode, place(path), at, until)))
            line = sealed(document.encode())
            if len(line) > LONGEST_LINE:
                self._complain(f"shared-state: {printable(path, 100)}: too long a name to be shared by")
            else:
                append(self._own, line, self._clock, mode=0o644)
                with suppress(OSError):
                    self._own.chmod(0o644)  # whatever the user's mask: the team reads it
            self._outgoing.popleft()

    def _apply(self) -> None:
        """Marks the episodes of the newest snapshot of which something is said."""
        fleet, now = self._fleet, self._clock.wall()
        for run in fleet.runs if fleet is not None else ():
            for episode in run.episodes:
                for line, by in self._book.said_of(run, episode):
                    self._mark(run, episode, line, by, now)

    def _mark(self, run: RunSnapshot, episode: Episode, line: Line, by: str, now: float) -> None:
        done = (run.name, run.target, episode.id, line.what, line.until)
        if done in self._done:
            return
        self._done.add(done)
        if line.what == "acknowledge":
            if episode.acknowledged:
                return
            self._marks.acknowledge(run.name, episode.id)
        else:
            left_s = min(line.until - now, _LONGEST_SNOOZE_S)
            if left_s <= 0 or (episode.snoozed_until or 0.0) >= line.until - 1.0:
                return
            self._marks.snooze(run.name, episode.id, left_s)
        if self._heard is not None and by:  # one's own come back after a restart
            self._heard(Mark(line.what, by, run.name, episode.id, line.at, line.until))


def _own_name() -> str:
    """The same for every program of this user on this host, which append to it in one piece."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{user}@{socket.gethostname()}")[:100]
