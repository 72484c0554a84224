"""The live session: reader threads feed one engine thread, which publishes snapshots for the screens.

The screens call `latest`, `acknowledge`, `snooze`, `request_log` and `stop` from their own thread; none of
them waits for a file or for the engine. Everything that changes a run happens on the engine thread.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from trainmon.monitor.engine import RunEngine
from trainmon.monitor.frame import Frame
from trainmon.monitor.judge import engine_of
from trainmon.monitor.settings import Settings
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.watched import WatchedRun
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.discover import RunFiles
from trainmon.tails.intake import Intake, IntakeItem
from trainmon.tails.reader import Lines

# A screen draws at most 10 times a second; half of that is the least at which a curve still looks live.
PUBLISH_INTERVAL_S: Final = 0.2
# Ages and job states move on without new data; once a second is as fine as they are shown.
HEARTBEAT_S: Final = 1.0
# One turn of the engine works at most this long before it publishes, so that loading never looks frozen.
TURN_BUDGET_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class _Request:
    run: str
    apply: Callable[[WatchedRun], None]


def record_events(run: str, emit: Callable[[dict[str, object]], None]) -> Callable[[Frame], None]:
    """A listener that gives one ``record`` event for each row of the frames it hears."""

    def hear(frame: Frame) -> None:
        logged = {key: set(frame.logged(key).tolist()) for key in frame.columns}
        for index, step in enumerate(frame.steps.tolist()):
            values = {str(key): float(column[index]) for key, column in frame.columns.items() if index in logged[key]}
            emit({"event": "record", "run": run, "attempt": frame.attempt, "step": step, "values": values})

    return hear


def _context(lines: Lines, path: str, line_no: int) -> Callable[[WatchedRun], None]:
    found = tuple(lines.result()) if not lines.cancelled() and lines.exception() is None else ()

    def apply(watched: WatchedRun) -> None:
        watched.log_context, watched.log_context_for = found, (path, line_no)

    return apply


def watched_by(runs: Iterable[RunSnapshot]) -> str:
    """How the files are watched, for the status line: "3 files by inotify, 1 by polling"."""
    ways = Counter(file.watched_by for run in runs for file in run.files if file.watched_by)
    words = {"poll": "polling"}
    parts = [f"{count} by {words.get(way, way)}" for way, count in ways.most_common()]
    return f"{sum(ways.values())} files: {', '.join(parts)}" if parts else ""


class Monitor:
    """Watches targets until `stop`; reading begins at once, judging with `start`. `stdin_fd` is what `-` reads."""

    def __init__(
        self,
        targets: list[str],
        *,
        cwd: Path,
        clock: Clock | None = None,
        limits: Thresholds | None = None,
        stdin_fd: int = 0,
        on_record: Callable[[dict[str, object]], None] | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._limits = limits or Thresholds()
        self._intake = Intake(targets, cwd=cwd, clock=self._clock, follow=True, stdin_fd=stdin_fd)
        self._runs: dict[str, WatchedRun] = {}
        self._snapshots: dict[str, RunSnapshot] = {}
        self._on_record = on_record
        self._requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._failure = ""
        self._latest = FleetSnapshot((), reading=True, status="looking for runs")
        self._thread = threading.Thread(target=self._work, name="trainmon-engine", daemon=True)

    def start(self) -> None:
        """Begins to judge."""
        self._thread.start()

    def latest(self) -> FleetSnapshot:
        """The newest snapshot; the same object while nothing changed."""
        return self._latest

    def acknowledge(self, run: str, episode_id: str) -> None:
        """Marks an episode as seen."""
        self._requests.put(_Request(run, lambda watched: watched.engine.acknowledge(episode_id)))

    def snooze(self, run: str, episode_id: str, seconds: float) -> None:
        """Silences an episode for `seconds`."""
        until = self._clock.wall() + seconds
        self._requests.put(_Request(run, lambda watched: watched.engine.snooze(episode_id, until)))

    def request_log(self, run: str, path: str, line_no: int) -> None:
        """Asks the reader for the lines around `line_no`; they come in a later snapshot's `log_context`."""
        lines = self._intake.request_lines(path, line_no)
        lines.add_done_callback(lambda done: self._requests.put(_Request(run, _context(done, path, line_no))))

    def stop(self) -> None:
        """Ends the threads; returns without waiting for a reader that hangs on its mount."""
        self._stopping.set()
        self._intake.stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=1.0)

    def _work(self) -> None:
        published_s = -HEARTBEAT_S
        while not self._stopping.is_set():
            try:
                changed = self._turn()
                now = self._clock.monotonic()
                waited = now - published_s
                if (changed and waited >= PUBLISH_INTERVAL_S) or waited >= HEARTBEAT_S:
                    self._publish(everything=waited >= HEARTBEAT_S)
                    published_s = now
            except Exception as error:  # the engine thread's top: the screen says so and keeps what it has
                self._failure = f"internal error, data may be incomplete: {type(error).__name__}: {error}"
                self._latest = replace(self._latest, problems=(*self._intake.problems, self._failure))
                self._clock.sleep(HEARTBEAT_S)

    def _turn(self) -> bool:
        while not self._requests.empty():
            request = self._requests.get()
            if request.run in self._runs:
                request.apply(self._runs[request.run])
                self._runs[request.run].dirty = True
        deadline = self._clock.monotonic() + TURN_BUDGET_S
        timeout_s = PUBLISH_INTERVAL_S
        while self._clock.monotonic() < deadline:
            items = self._intake.get(timeout_s)
            if not items:
                break
            timeout_s = 0.0
            for item in items:
                self._take(item)
        return any(run.dirty for run in self._runs.values())

    def _take(self, item: IntakeItem) -> None:
        watched = self._runs.get(item.run_name)
        if watched is None:
            watched = self._runs[item.run_name] = WatchedRun(partial(self._engine_for, item.run_name), self._clock)
        watched.take(item)

    def _engine_for(self, name: str, settings: Settings) -> RunEngine:
        known = (run for run in self._intake.runs if run.name == name)
        files = next(known, RunFiles(name, name, ()))
        engine = engine_of(files, self._clock, self._limits, settings)
        if self._on_record is not None:
            engine.on_frame = record_events(name, self._on_record)
        return engine

    def _publish(self, *, everything: bool) -> None:
        for name, watched in self._runs.items():
            if watched.dirty or everything or name not in self._snapshots:
                if everything and not watched.dirty:
                    watched.engine.settle()
                self._snapshots[name] = watched.snapshot(live=True)
        reading = not self._intake.is_scanned or any(run.progress < 1.0 for run in self._snapshots.values())
        status = watched_by(self._snapshots.values()) if self._runs else self._intake.discovery.searched
        problems = (*self._intake.problems, *((self._failure,) if self._failure else ()))
        self._latest = FleetSnapshot(
            tuple(self._snapshots.values()),
            problems=problems,
            status=status,
            taken_at=self._clock.wall(),
            reading=reading,
        )
