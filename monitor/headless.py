"""``trainmon watch --headless``: the same session without a screen, one JSON object a line."""

from __future__ import annotations

import math
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from trainmon.monitor import check
from trainmon.monitor import prometheus as prometheus_file
from trainmon.monitor.document import dumps, episode_entry
from trainmon.monitor.finding import Episode, Severity
from trainmon.monitor.job.judging import ENDED
from trainmon.monitor.judge import is_one_unjudged
from trainmon.monitor.session import Monitor
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.record import Note

if TYPE_CHECKING:
    from trainmon.monitor.sinks.outward import Outward
    from trainmon.monitor.sinks.settings import AlertSettings
    from trainmon.monitor.slurm.everywhere import Jobs

_LOOK_INTERVAL_S = 0.2
_CALM = ("run", "state", "note")  # events that only tell how things go
# How long a run that said it ended must be quiet before it is believed, without --until-idle.
ENDED_QUIET_S = 10.0


class EventStream:
    """Turns successive snapshots into events, each said once: run, state, note, episode.

    An episode is said again when it changed, and a last time with `withdrawn` when it was taken back.
    """

    def __init__(self, emit: Callable[[dict[str, object]], None]) -> None:
        self._emit = emit
        self._states: dict[str, str] = {}
        self._episodes: dict[tuple[str, str], Episode] = {}
        self._notes: set[tuple[str, str, int, str]] = set()
        self._problems: set[str] = set()
        self._announced: set[str] = set()
        self._read: set[str] = set()

    def take(self, fleet: FleetSnapshot) -> None:
        """Emits what `fleet` says for the first time."""
        for problem in fleet.problems:
            if problem not in self._problems:
                self._problems.add(problem)
                self._emit({"event": "problem", "text": problem})
        for run in fleet.runs:
            self._run(run)

    def _run(self, run: RunSnapshot) -> None:
        if run.name not in self._announced:
            self._announced.add(run.name)
            self._emit(
                {"event": "run", "run": run.name, "target": run.target, "files": [file.path for file in run.files]}
            )
        for problem in run.problems:
            if problem not in self._problems:
                self._problems.add(problem)
                self._emit({"event": "problem", "run": run.name, "text": problem})
        if run.progress < 1.0 and run.name not in self._read:
            return  # what a log seems to say in its middle is not what it says
        self._read.add(run.name)
        if self._states.get(run.name) != run.state.value:
            self._states[run.name] = run.state.value
            self._emit(
                {
                    "event": "state",
                    "run": run.name,
                    "state": run.state.value,
                    "reason": run.state_reason,
                    "step": run.last_step,
                }
            )
        for note in run.notes:
            self._note(run.name, note)
        for episode in run.episodes:
            if self._episodes.get((run.name, episode.id)) != episode:
                self._episodes[run.name, episode.id] = episode
                self._emit({"event": "episode", "run": run.name, **episode_entry(episode)})
        standing = {episode.id for episode in run.episodes}
        for name, identity in [key for key in self._episodes if key[0] == run.name and key[1] not in standing]:
            gone = self._episodes.pop((name, identity))
            self._emit({"event": "episode", "run": name, **episode_entry(gone), "withdrawn": True})

    def _note(self, name: str, note: Note) -> None:
        identity = (name, note.source, note.line_no, note.kind.value)
        if identity in self._notes:
            return
        self._notes.add(identity)
        self._emit(
            {
                "event": "note",
                "run": name,
                "path": note.source,
                "line": note.line_no,
                "kind": note.kind.value,
                "text": note.text,
                "step": note.step,
            }
        )


def run_headless(
    targets: list[str],
    *,
    cwd: Path,
    limits: Thresholds,
    records: bool,
    until_idle_s: float | None,
    quiet: bool = False,
    clock: Clock | None = None,
    jobs: Jobs | None = None,
    prometheus: Path | None = None,
    on_end: Callable[[Sequence[RunSnapshot]], None] | None = None,
    alerts: AlertSettings | None = None,
) -> int:
    """Watches until every run has ended, nothing came for `until_idle_s`, or SIGTERM; returns the exit status.

    `quiet`: of the events only those that somebody should look at. `prometheus`: a file that is kept up to date for
    the node exporter. `on_end` is given the runs as they were at last.
    `alerts`: who is told of what. Raises SinkError, before anything is watched, for what of it cannot be set up.
    """
    clock = clock or SystemClock()
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    previous = signal.signal(signal.SIGTERM, stop)
    lock = threading.Lock()

    def emit(event: dict[str, object]) -> None:
        if quiet and (event["event"] in _CALM or event.get("severity") == Severity.INFO.name):
            return
        with lock:
            sys.stdout.write(dumps(event) + "\n")
            if event["event"] != "record":  # records come by the thousand; `_follow` flushes them at its pace
                sys.stdout.flush()

    session = Monitor(
        targets,
        cwd=cwd,
        clock=clock,
        limits=limits,
        on_record=emit if records else None,
        jobs=jobs,
    )
    stream = EventStream(emit)
    exporter = _Exporter(prometheus, emit, clock)
    try:
        alerting = _alerting(alerts, session, emit, clock)
    except ValueError:
        session.stop()
        signal.signal(signal.SIGTERM, previous)
        raise

    def look(fleet: FleetSnapshot) -> None:
        stream.take(fleet)
        exporter.take(fleet)
        if alerting is not None:
            alerting.take(fleet)

    session.start()
    try:
        fleet = _follow(session, look, stopping, until_idle_s, clock)
        exporter.take(fleet, is_last=True)
        if on_end is not None:
            on_end(fleet.runs)
        if alerting is not None:
            alerting.close()
    finally:
        session.stop()
        signal.signal(signal.SIGTERM, previous)
    status = check.exit_status(fleet.runs, strict=False, named_unjudged=is_one_unjudged(targets, fleet.runs, cwd))
    verdicts = {run.name: run.verdict.value for run in fleet.runs}
    emit({"event": "end", "exit": status, "verdicts": verdicts, "complete": not fleet.reading})
    return status


def _alerting(
    alerts: AlertSettings | None, session: Monitor, emit: Callable[[dict[str, object]], None], clock: Clock
) -> Outward | None:
    """Imported when it is asked for. Raises SinkError."""
    if alerts is None:
        return None
    from trainmon.monitor.sinks.outward import Outward

    return Outward(alerts, session, emit, clock)


class _Exporter:
    """Keeps a Prometheus file up to date; what keeps it from that is said once, and tried again."""

    def __init__(self, path: Path | None, emit: Callable[[dict[str, object]], None], clock: Clock) -> None:
        self._path, self._emit, self._clock = path, emit, clock
        self._due_s = -math.inf
        self._problem = ""

    def take(self, fleet: FleetSnapshot, *, is_last: bool = False) -> None:
        """Writes when it is time to."""
        now = self._clock.monotonic()
        if self._path is None or (now < self._due_s and not is_last):
            return
        self._due_s = now + prometheus_file.INTERVAL_S
        try:
            prometheus_file.write(replace(fleet, taken_at=self._clock.wall()), self._path)
            self._problem = ""
        except OSError as error:
            problem = f"{self._path}: {error.strerror or error}; no figures are given to Prometheus meanwhile"
            if problem != self._problem:
                self._problem = problem
                self._emit({"event": "problem", "text": problem})


def _follow(
    session: Monitor,
    look: Callable[[FleetSnapshot], None],
    stopping: threading.Event,
    until_idle_s: float | None,
    clock: Clock,
) -> FleetSnapshot:
    newest: tuple[int, ...] = ()
    changed_s = clock.monotonic()
    while True:
        fleet = session.latest()
        look(fleet)
        sys.stdout.flush()
        bytes_read = tuple(file.read_bytes for run in fleet.runs for file in run.files)
        now = clock.monotonic()
        if bytes_read != newest or fleet.reading:
            newest, changed_s = bytes_read, now
        # A job's last words are not always its last: a requeued attempt may go on in the same file.
        ended = bool(fleet.runs) and not fleet.reading and all(map(_has_ended, fleet.runs))
        patience_s = until_idle_s if until_idle_s is not None else ENDED_QUIET_S if ended else math.inf
        is_idle = not fleet.reading and now - changed_s >= patience_s
        if stopping.is_set() or is_idle or _is_closed(fleet):
            return fleet
        stopping.wait(_LOOK_INTERVAL_S)


def _is_closed(fleet: FleetSnapshot) -> bool:
    """Whether nothing can come any more: standard input was all there is, and it was closed."""
    return bool(fleet.runs) and not fleet.reading and not any(run.live for run in fleet.runs)


def _has_ended(run: RunSnapshot) -> bool:
    """Whether the job is over, or nothing more can come (standard input was closed)."""
    return run.state in ENDED or not run.live
