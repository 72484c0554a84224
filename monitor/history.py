"""What was judged before: verdicts and episodes of runs seen, in one private SQLite file of this user.

So that a fault that comes back over runs (the same node, rank, layer or data source) can be named. Nothing of it is
ever needed: a file that cannot be read or written is said so, once, and left alone. Each row has a checksum; one that
does not agree with it is left out and counted.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trainmon import version
from trainmon.monitor.amount import named
from trainmon.monitor.failed_nodes import failed_nodes
from trainmon.monitor.finding import Episode, Severity, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.own_files import own_folder
from trainmon.tails.quick_dataclass import dataclass

SCHEMA_VERSION = 2
_BUSY_S = 2.0
_MOST_RUNS = 20_000  # the oldest are dropped
_MOST_EPISODES = 200  # of one run, the loudest
_TABLES = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, place TEXT NOT NULL UNIQUE, name TEXT NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL,
    state TEXT NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL, last_step REAL, nodes TEXT NOT NULL,
    faults INTEGER, seal INTEGER
);
CREATE INDEX run_seen ON run (last_seen);
CREATE TABLE episode (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE, id TEXT NOT NULL, check_id TEXT NOT NULL,
    kind TEXT NOT NULL, signal TEXT NOT NULL, labels TEXT NOT NULL, severity INTEGER NOT NULL, first_step REAL NOT NULL,
    last_step REAL NOT NULL, recovered INTEGER NOT NULL, what TEXT NOT NULL, seal INTEGER,
    PRIMARY KEY (run, id)
) WITHOUT ROWID;
"""
# Text as the bytes that lie on the disk: these may be no text any more.
_RUN_SEAL = (
    "seal(CAST(place AS BLOB), CAST(name AS BLOB), CAST(verdict AS BLOB), CAST(reason AS BLOB), CAST(state AS BLOB),"
    " first_seen, last_seen, last_step, CAST(nodes AS BLOB), faults)"
)
_EPISODE_SEAL = (
    "seal(run, CAST(id AS BLOB), CAST(check_id AS BLOB), CAST(kind AS BLOB), CAST(signal AS BLOB),"
    " CAST(labels AS BLOB), severity, first_step, last_step, recovered, CAST(what AS BLOB))"
)
_WHOLE_RUNS = f"(SELECT * FROM run WHERE seal = {_RUN_SEAL})"
_COUNT = "(SELECT count(*) FROM episode WHERE run = run.id)"
_WHOLE_EPISODES = f"(SELECT * FROM episode WHERE seal = {_EPISODE_SEAL})"

Where = tuple[tuple[str, str], ...]

_NOT_KEPT = "no history is kept (--no-history says nothing of it)"


class HistoryError(OSError):
    """The history cannot be used; the message names the file and what to do."""


@dataclass(frozen=True, slots=True)
class Past:
    """One run as it was last seen. `place`: the real path of its first log; times in UTC seconds."""

    place: str
    name: str
    verdict: str
    reason: str
    state: str
    first_seen: float
    last_seen: float
    last_step: float | None
    episodes: int


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A fault that came in several runs: of which check, kind and signal, at which rank, layer, source or node."""

    check: str
    kind: str
    signal: str
    where: Where
    runs: tuple[str, ...]
    last_seen: float

    @property
    def words(self) -> str:
        """One line.

        >>> Recurrence("sys.straggler", "straggler", "sys.straggler", (("rank", "5"),), ("a", "b"), 0.0).words
        'straggler ratio at rank 5: straggler, in 2 runs'
        """
        where = ", ".join(f"{name} {value}" for name, value in self.where)
        at = f" at {where}" if where else ""
        return f"{named(SignalKey(self.signal))}{at}: {self.kind.replace('_', ' ')}, in {len(self.runs)} runs"


def document(runs: Iterable[Past], again: Iterable[Recurrence], problems: Iterable[str] = ()) -> dict[str, object]:
    """``trainmon.history/1``."""
    fields = ("place", "name", "verdict", "reason", "state", "first_seen", "last_seen", "last_step", "episodes")
    return {
        "schema": "trainmon.history/1",
        "version": version(),
        "runs": [{name: getattr(run, name) for name in fields} for run in runs],
        "recurrences": [
            {
                "check": each.check,
                "kind": each.kind,
                "signal": each.signal,
                "where": dict(each.where),
                "runs": list(each.runs),
                "last_seen": each.last_seen,
            }
            for each in again
        ],
        "problems": list(problems),
    }


class History:
    """The file ``history.sqlite3`` in `folder` (the XDG data folder)."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            folder = own_folder("data")
        self.path = folder / "history.sqlite3"

    def record(self, runs: Iterable[RunSnapshot], now: float) -> None:
        """Keeps what `runs` say now, in place of what they said before. Raises HistoryError."""
        judged = [run for run in runs if run.verdict is not Verdict.NO_DATA and run.files]
        if not judged:
            return
        with self._open(_NOT_KEPT) as base:
            for run in judged:
                _put(base, run, now)
            kept = "SELECT id FROM run ORDER BY last_seen DESC LIMIT ?"
            base.execute(f"DELETE FROM run WHERE id NOT IN ({kept})", (_MOST_RUNS,))

    # Ordered by the rows themselves (+): an index may be damaged where they are whole.

    def runs(self, limit: int = 50, words: str = "") -> list[Past]:
        """The runs seen last, newest first; with `words` those whose name or path holds them. Raises HistoryError."""
        with self._open() as base:
            rows = base.execute(
                "SELECT place, name, verdict, reason, state, first_seen, last_seen, last_step,"
                f" (SELECT count(*) FROM {_WHOLE_EPISODES} WHERE run = whole.id AND severity >= 1)"
                f" FROM {_WHOLE_RUNS} AS whole"
                " WHERE instr(lower(name || ' ' || place), lower(?)) > 0 ORDER BY +last_seen DESC, +place LIMIT ?",
                (words, limit),
            )
            return [Past(*row) for row in rows]

    def recurrences(self, least: int = 2) -> list[Recurrence]:
        """Faults of at least WARN that came at the same place in at least `least` runs, or on the same node when the
        job broke; the most frequent first. Raises HistoryError."""
        found: dict[tuple[str, str, str, Where], tuple[dict[str, None], float]] = {}
        with self._open() as base:
            rows = base.execute(
                f"SELECT check_id, kind, signal, labels, name, nodes, last_seen, place FROM {_WHOLE_EPISODES} AS one"
                f" JOIN {_WHOLE_RUNS} AS whole ON whole.id = one.run WHERE severity >= ?"
                " ORDER BY +last_seen DESC, +place, one.id",
                (int(Severity.WARN),),
            )
            for check, kind, signal, labels, name, nodes, seen, place in rows:
                for where in _places(labels, nodes):
                    runs, last = found.setdefault((check, kind, signal, where), ({}, seen))
                    runs.setdefault(f"{name}\0{place}")
                    found[check, kind, signal, where] = (runs, max(last, seen))
        many = [
            Recurrence(check, kind, signal, where, tuple(run.split("\0")[0] for run in runs), last)
            for (check, kind, signal, where), (runs, last) in found.items()
            if len(runs) >= least
        ]
        return sorted(many, key=lambda each: (-len(each.runs), not each.where, -each.last_seen))

    def problems(self) -> list[str]:
        """A line where it is damaged; such rows are left out of all that is told. Raises HistoryError."""
        with self._open() as base:
            (found,) = base.execute("PRAGMA quick_check(1)").fetchone()
            (short,) = base.execute(f"SELECT count(*) FROM run WHERE faults IS NOT {_COUNT}").fetchone()
            (runs,) = base.execute(f"SELECT count(*) FROM run WHERE seal IS NOT {_RUN_SEAL}").fetchone()
            (faults,) = base.execute(f"SELECT count(*) FROM episode WHERE seal IS NOT {_EPISODE_SEAL}").fetchone()
        if runs + faults:
            return [f"{self.path}: damaged: {runs} runs and {faults} faults are left out; is the disk well?"]
        if found != "ok" or short:
            return [f"{self.path}: damaged: not all that was kept may be here; is the disk well?"]
        return []

    @contextmanager
    def _open(self, outcome: str = "the history cannot be read") -> Iterator[sqlite3.Connection]:
        """A connection to a file that is ours and of this version; made anew when there is none. `outcome`: what
        comes of it when that fails."""
        try:
            base, begin = self._connected(), "BEGIN IMMEDIATE"
        except (OSError, sqlite3.Error) as error:
            if outcome == _NOT_KEPT:
                raise self._failed(error, outcome) from None
            base, begin = self._connected_to_read(outcome), "BEGIN"
        try:
            base.create_function("seal", -1, _seal, deterministic=True)
            base.execute("PRAGMA foreign_keys = ON")
            base.execute(begin)
            self._prepare(base)
            yield base
            base.execute("COMMIT")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged file's names, told in SQLite's own error too
            raise self._failed(error, outcome) from None
        finally:
            base.close()

    def _connected(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._require_ours(os.O_RDWR | os.O_CREAT)
        return sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)

    def _connected_to_read(self, outcome: str) -> sqlite3.Connection:
        """Where nothing can be written (a home that is read-only): what is there, and nothing where no file is."""
        try:
            self._require_ours(os.O_RDONLY)
            place = f"{self.path.absolute().as_uri()}?mode=ro"
            return sqlite3.connect(place, uri=True, timeout=_BUSY_S, isolation_level=None)
        except FileNotFoundError:
            return sqlite3.connect(":memory:", isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error, outcome) from None

    def _require_ours(self, flags: int) -> None:
        """Raises OSError unless the file is a plain one of this user, or not there; one that is made is private."""
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
                raise OSError(errno.EPERM, "is not a plain file of this user")
        finally:
            os.close(descriptor)

    def _prepare(self, base: sqlite3.Connection) -> None:
        (version,) = base.execute("PRAGMA user_version").fetchone()
        if version == 0:
            for statement in _TABLES.split(";"):
                base.execute(statement)
            base.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        elif version == 1:  # it had no checksums yet
            base.execute("ALTER TABLE run ADD COLUMN faults INTEGER")
            base.execute("ALTER TABLE run ADD COLUMN seal INTEGER")
            base.execute("ALTER TABLE episode ADD COLUMN seal INTEGER")
            base.execute(f"UPDATE run SET faults = {_COUNT}")
            base.execute(f"UPDATE run SET seal = {_RUN_SEAL}")
            base.execute(f"UPDATE episode SET seal = {_EPISODE_SEAL}")
            base.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        elif version != SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"is of version {version}, this trainmon knows {SCHEMA_VERSION}")

    def _failed(self, error: Exception, outcome: str) -> HistoryError:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return HistoryError(f"{self.path}: {words}; {outcome}")


def _places(labels: str, nodes: str) -> list[Where]:
    """Where an episode was: at its labels, and on each of the nodes of a job that broke."""
    told = tuple(sorted((str(name), str(value)) for name, value in json.loads(labels).items()))
    return [told] + [(("node", node),) for node in nodes.split()]


def _put(base: sqlite3.Connection, run: RunSnapshot, now: float) -> None:
    place = os.path.realpath(run.files[0].path)
    nodes = " ".join(sorted(failed_nodes(run)))
    row = (run.name, run.verdict.value, run.verdict_reason[:500], run.state.value, now, run.last_step, nodes)
    base.execute(
        "INSERT INTO run (name, verdict, reason, state, last_seen, last_step, nodes, place, first_seen)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (place) DO UPDATE SET name = excluded.name,"
        " verdict = excluded.verdict, reason = excluded.reason, state = excluded.state,"
        " last_seen = excluded.last_seen, last_step = excluded.last_step, nodes = excluded.nodes",
        tuple(_text(value) for value in (*row, place, now)),
    )
    (number,) = base.execute("SELECT id FROM run WHERE place = ?", (_text(place),)).fetchone()
    base.execute("DELETE FROM episode WHERE run = ?", (number,))
    loud = sorted(run.episodes, key=lambda episode: (-episode.severity, episode.first_step))[:_MOST_EPISODES]
    base.executemany(
        "INSERT OR IGNORE INTO episode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        [tuple(_text(value) for value in _row(number, episode)) for episode in loud],
    )
    base.execute(f"UPDATE run SET faults = {_COUNT} WHERE id = ?", (number,))
    base.execute(f"UPDATE run SET seal = {_RUN_SEAL} WHERE id = ?", (number,))
    base.execute(f"UPDATE episode SET seal = {_EPISODE_SEAL} WHERE run = ?", (number,))


def _seal(*values: object) -> int:
    """The checksum of a row, by its values as SQLite holds them."""
    return zlib.crc32(repr(values).encode())


def _row(run: int, episode: Episode) -> tuple[object, ...]:
    labels = json.dumps({str(name): str(value) for name, value in episode.signal.labels})
    return (
        *(run, episode.id, episode.check, episode.kind, episode.signal.signal, labels, int(episode.severity)),
        *(episode.first_step, episode.last_step, int(episode.recovered), episode.what[:500]),
    )


def _text(value: object) -> object:
    """What SQLite can hold: a path that is no UTF-8 is kept with its odd bytes escaped."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
