"""What was told and acknowledged of which episode, kept over a restart: nobody is told of the same again in the hour.

One small JSON file in the user's XDG state folder for each directory and choice of sinks, private to the user, with a
checksum. What it cannot read is said and begins anew, which may send one message twice and loses none.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from trainmon.monitor.sinks.event import AlertEvent, Rank
from trainmon.monitor.sinks.worker import Say, Worker
from trainmon.tails.clock import Clock
from trainmon.tails.own_files import own_folder, read_private, write_private
from trainmon.tails.sealed import require_whole, sealed

if TYPE_CHECKING:
    from trainmon.monitor.sinks.settings import AlertSettings

SCHEMA: Final = "trainmon.told/1"
_MOST_BYTES: Final = 4_000_000
_MOST: Final = 5_000  # the newest are kept
_GATHER_S: Final = 0.2

Name = tuple[str, str, str]  # run, target, episode


class Told(msgspec.Struct, frozen=True):
    """An episode that somebody was told of and that is not over: how loudly, and when (wall seconds)."""

    run: str
    target: str
    episode: str
    rank: int
    peak: int
    at: float

    @property
    def name(self) -> Name:
        """Which episode of which run."""
        return self.run, self.target, self.episode


class Marked(msgspec.Struct, frozen=True):
    """An episode that the user acknowledged or silenced (`snoozed_until`, 0 for not), and when; wall seconds."""

    run: str
    target: str
    episode: str
    at: float
    acknowledged: bool = False
    snoozed_until: float = 0.0

    @property
    def name(self) -> Name:
        """Which episode of which run."""
        return self.run, self.target, self.episode


class _Kept(msgspec.Struct):
    schema: str = SCHEMA
    told: tuple[Told, ...] = ()
    marked: tuple[Marked, ...] = ()


def told_file(directory: Path, wanted: AlertSettings, folder: Path | None = None) -> Path:
    """The file for what these sinks were told of the runs watched in `directory`: other sinks heard nothing of it."""
    sinks = (wanted.bell, wanted.desktop, str(wanted.log), wanted.on_alert, wanted.notify)
    digest = hashlib.sha256(os.fsencode(f"{directory.resolve()}\0{sinks!r}")).hexdigest()[:20]
    return (own_folder("state") if folder is None else folder) / "told" / f"{digest}.json"


class ToldBook:
    """Reads `path` when it is made; writes it, on a thread of its own, when something is told."""

    def __init__(self, path: Path, say: Say, clock: Clock) -> None:
        self._path = path
        self._say = say
        self._lock = threading.Lock()
        kept = _read(path, say)
        self._told: dict[Name, Told] = {one.name: one for one in kept.told}
        self._marked: dict[Name, Marked] = {one.name: one for one in kept.marked}
        self._worker: Worker[None] = Worker("told", self._write, say, clock=clock, gather_s=_GATHER_S)

    def before(self) -> dict[Name, Told]:
        """What had been told when the program began."""
        with self._lock:
            return dict(self._told)

    def marked(self) -> dict[Name, Marked]:
        """What had been acknowledged or silenced when the program began."""
        with self._lock:
            return dict(self._marked)

    def mark(self, marked: Sequence[Marked]) -> None:
        """These were acknowledged or silenced now. Returns at once."""
        with self._lock:
            for one in marked:
                self._marked.pop(one.name, None)
                self._marked[one.name] = one
            while len(self._marked) > _MOST:
                del self._marked[next(iter(self._marked))]
        self._worker.put(None)

    def note(self, events: Sequence[AlertEvent]) -> None:
        """These go out now. Returns at once."""
        with self._lock:
            for event in events:
                for episode in event.episodes:
                    name = (event.run, event.target, episode.id)
                    self._told.pop(name, None)
                    if event.is_over:
                        self._marked.pop(name, None)
                    else:
                        self._told[name] = Told(*name, int(event.rank), int(event.peak), event.at)
            while len(self._told) > _MOST:
                del self._told[next(iter(self._told))]
        self._worker.put(None)

    def close(self, patience_s: float) -> None:
        """Writes what waits."""
        self._worker.close(patience_s)

    def _write(self, asked: list[None]) -> float | None:
        del asked
        with self._lock:
            kept = _Kept(told=tuple(self._told.values()), marked=tuple(self._marked.values()))
        try:
            write_private(self._path, sealed(msgspec.json.encode(kept)))
        except OSError as error:
            self._say(f"{self._path}: {error.strerror or error}; after a restart alerts may be told twice")
        return None


def _read(path: Path, say: Say) -> _Kept:
    try:
        raw = read_private(path, _MOST_BYTES)
        kept = msgspec.json.decode(raw, type=_Kept)
        if kept.schema != SCHEMA:
            raise ValueError(f"{kept.schema[:40]!r} is of another version")
        require_whole(raw)
        ranks = {int(rank) for rank in Rank}
        if not all({one.rank, one.peak} <= ranks for one in kept.told):
            raise ValueError("a rank that there is not")
    except FileNotFoundError:
        return _Kept()
    except (OSError, ValueError, msgspec.MsgspecError) as error:  # no ValueErrors before msgspec 0.21
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)[:80]
        say(f"{path}: {words}; what was told before is not known, alerts may be told twice")
        return _Kept()
    return kept
