"""The live session: reader threads feed one engine thread, which publishes snapshots for the screens.

The screens call `latest`, `acknowledge`, `snooze`, `request_log` and `stop` from their own thread; none of
them waits for a file or for the engine. Everything that changes a run happens on the engine thread.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Final

from trainmon.monitor.asked import Asked
from trainmon.monitor.blank import blank_run
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.in_turn import SLICE_S, Round, Waiting
from trainmon.monitor.judge import engine_of
from trainmon.monitor.log_lines import LogLines, context_of
from trainmon.monitor.log_search import LogSearch
from trainmon.monitor.logbook_watch import LogbookWatch
from trainmon.monitor.pace import Pace
from trainmon.monitor.read_again import ReadAgain
from trainmon.monitor.record_events import record_events
from trainmon.monitor.room import budget_of, watched_points
from trainmon.monitor.runs_in_file import name_of
from trainmon.monitor.settings import Settings
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.watched import REJUDGE_S, WatchedRun, unjudged
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.discover import RunFiles
from trainmon.tails.give_way import KEYS
from trainmon.tails.intake import Intake, IntakeItem
from trainmon.tails.status import ways_of

if TYPE_CHECKING:
    from trainmon.monitor.slurm.everywhere import Jobs

# A screen draws at most 10 times a second: twice as often, and no new value waits for more than half a frame.
PUBLISH_INTERVAL_S: Final = 0.05
# Making snapshots takes at most this share of a core, however many runs are read at once: of those that somebody looks
# at, and of all others.
PUBLISH_SHARE: Final = 0.25
# Working out verdicts of runs that go on as before takes at most this share of a core for the runs that somebody
# looks at, as much for all others, and is put off no longer.
JUDGING_SHARE: Final = 0.0025
_LONGEST_REJUDGE_S: Final = 30.0
# Long histories wait so long for the screen to draw their previews, which two threads at work would put off.
PATIENCE_S: Final = 10.0
# While a history is read what is drawn is its preview, and what moves is how far it is read.
LOADING_INTERVAL_S: Final = 0.4
# Silences and file states move on without new data; once a second is as fine as they are shown.
HEARTBEAT_S: Final = 1.0
# One turn of the engine works at most this long before it publishes, so that loading never looks frozen.
TURN_BUDGET_S: Final = 0.1
_CONTEXT_LINES: Final = 250  # on either side of a place in the log that a screen asks for: some pages
# A turn of the engine over many runs may take seconds, never this long.
_ALIVE_S: Final = 30.0


def watched_by(runs: Iterable[RunSnapshot]) -> str:
    """How the files are watched, for the status line: "4 files: 3 watched by inotify, 1 polled (nfs4)"."""
    return ways_of(file for run in runs for file in run.files)


class Monitor:
    """Watches targets until `stop`; reading begins at once, judging with `start`. `stdin_fd` is what `-` reads.

    `jobs`: who says what the runs' jobs do; it is started and stopped with the session. `previews`: long logs are drawn
    by some of their records until they are read.
    """

    def __init__(
        self,
        targets: list[str],
        *,
        cwd: Path,
        clock: Clock | None = None,
        limits: Thresholds | None = None,
        stdin_fd: int = 0,
        on_record: Callable[[dict[str, object]], None] | None = None,
        jobs: Jobs | None = None,
        previews: bool = False,
    ) -> None:
        self._clock = clock or SystemClock()
        self._limits = limits or Thresholds()
        self._cwd = cwd
        self._jobs = jobs
        if jobs is not None:
            jobs.start()  # first: the search for targets asks it
        self._intake = Intake(
            targets,
            cwd=cwd,
            clock=self._clock,
            follow=True,
            stdin_fd=stdin_fd,
            jobs=jobs,
            previews=previews,
        )
        self._waiting = Waiting(self._intake.get)
        self._log_lines = LogLines(self._intake)
        if jobs is not None:
            jobs.call_when_answered(self._intake.rescan)
        self._attempts: dict[str, int] = {}
        self._runs: dict[str, WatchedRun] = {}
        self._parents: dict[str, str] = {}  # of a run that shares its files, the run that they were found as
        self._known: dict[str, RunFiles] = {}
        self._reading_again = ReadAgain(
            self._clock, lambda run, stretch: self._asked.ask(run, lambda found: found.show_stretch(stretch))
        )
        self._snapshots: dict[str, RunSnapshot] = {}
        self._told_read: set[str] = set()  # of which there was a snapshot since their histories were read
        self._engines: dict[str, RunEngine] = {}
        self._on_record = on_record
        self._asked = Asked(self._intake.wake)
        self._attended: frozenset[str] | None = None
        self._pace = Pace()
        self._records = 0
        self._on_new: Callable[[], None] | None = None
        self._blank: RunSnapshot | None = None
        self._stopping = threading.Event()
        self._failure = ""
        self._due_at_s = self._others_at_s = self._beat_at_s = 0.0
        self._round = Round(PUBLISH_SHARE)
        self._is_scanned = False
        self._began_s = self._worked_at_s = self._clock.monotonic()
        self._latest = FleetSnapshot((), reading=True, status="looking for runs")
        self._book = LogbookWatch(self._clock, self._asked.ask)
        self._thread = threading.Thread(target=self._work, name="trainmon-engine", daemon=True)

    def start(self) -> None:
        """Begins to judge."""
        self._began_s = self._clock.monotonic()
        self._book.start()
        self._thread.start()

    def latest(self) -> FleetSnapshot:
        """The newest snapshot; the same object while nothing changed."""
        return self._latest

    def call_when_new(self, call: Callable[[], None]) -> None:
        """Has `call` called, by the engine's thread, whenever there is another snapshot."""
        self._on_new = call

    def attend(self, runs: frozenset[str]) -> None:
        """Says which runs somebody looks at closely: their news is read and told at once.

        That of the others comes together, every few seconds when much is written, so that many runs cost little.
        Before the first call all are attended to.
        """
        if runs != self._attended:
            self._attended = runs
            self._asked.ask("")
        if any(run.preview for run in self._latest.runs):
            self._intake.read_histories()

    def written_s(self, path: str) -> float | None:
        """See `Intake.written_s`."""
        return self._intake.written_s(path)

    def is_alive(self) -> bool:
        """Whether the engine is at work: false when it has hung or failed, so that nothing is judged any more."""
        return not self._failure and self._clock.monotonic() - self._worked_at_s < _ALIVE_S

    def acknowledge(self, run: str, episode_id: str) -> None:
        """Marks an episode as seen."""
        self._asked.ask(run, lambda watched: watched.engine.acknowledge(episode_id))

    def snooze(self, run: str, episode_id: str, seconds: float) -> None:
        """Silences an episode for `seconds`."""
        until = self._clock.wall() + seconds
        self._asked.ask(run, lambda watched: watched.engine.snooze(episode_id, until))

    def request_log(self, run: str, path: str, line_no: int) -> None:
        """Asks the reader for the lines around `line_no`; they come in a later snapshot's `log_context`."""
        lines = self._log_lines.around(path, line_no, _CONTEXT_LINES)
        lines.add_done_callback(lambda done: self._asked.ask(run, context_of(done, path, line_no)))

    def look_closely(self, run: str, first: float, last: float) -> None:
        """Has what was thinned of the steps from `first` to `last` read again; it comes in a later snapshot."""
        self._asked.ask(run, partial(self._read_again, run, first, last))

    def _read_again(self, run: str, first: float, last: float, watched: WatchedRun) -> None:
        again = watched.stretch_to_read(first, last)
        if again is not None:
            self._reading_again.ask(run, again)

    def search_log(self, path: str, line_no: int, words: str | None, by: int) -> LogSearch:
        """Looks for `words` (None: an error) in the whole file, after (by = 1) or before (-1) the line, in a thread."""
        return self._log_lines.search(path, line_no, words, by)

    def stop(self) -> None:
        """Ends the threads; returns without waiting for a reader that hangs on its mount."""
        self._stopping.set()
        self._intake.wake()
        self._book.stop()
        self._intake.stop()
        if self._jobs is not None:
            self._jobs.stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=1.0)

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self._turn()
                self._publish_when_due()
                self._worked_at_s = self._clock.monotonic()
            except Exception as error:  # the engine thread's top: the screen says so and keeps what it has
                self._failure = f"internal error, data may be incomplete: {type(error).__name__}: {error}"
                self._tell(replace(self._latest, problems=(*self._intake.problems, self._failure)))
                self._clock.sleep(HEARTBEAT_S)

    def _turn(self) -> None:
        """Takes what came, waiting for it until the next snapshot is due."""
        if self._asked.answer(self._runs):  # what somebody asks about is looked at
            self._others_at_s = 0.0
        now = self._clock.monotonic()
        deadline = now + self._budget_s
        timeout_s = 0.0 if self._round else max(min(self._next_due_s(), self._beat_at_s) - now, 0.0)
        close = None if self._attended is None else {self._parents.get(name, name) for name in self._attended}
        is_close = (lambda _: True) if close is None else close.__contains__
        has_news = False
        while (item := self._waiting.next(timeout_s, is_close)) is not None:
            timeout_s = 0.0
            KEYS.give()
            self._take(item)
            has_news = has_news or (close is not None and item.run_name in close and item.run_name in self._told_read)
            now = self._clock.monotonic()
            if now >= deadline or (has_news and now >= self._due_at_s):
                return

    @property
    def _budget_s(self) -> float:
        """How long one kind of work may take before the next has its turn."""
        return SLICE_S if self._round and self._attended else TURN_BUDGET_S

    def _next_due_s(self) -> float:
        """When what is new is to be told."""
        if any(run.dirty and self._is_attended(name) for name, run in self._runs.items()):
            return self._due_at_s
        is_dirty = any(run.dirty for run in self._runs.values())
        return max(self._round.due_s, self._others_at_s) if is_dirty and not self._round else math.inf

    def _is_attended(self, name: str) -> bool:
        """Whether news of the run is told at once; so it is until its whole history was told."""
        return self._attended is None or name in self._attended or name not in self._told_read

    def _take(self, item: IntakeItem) -> None:
        watched = self._run(item.run_name)
        try:
            self._tell_attempt(item.path, watched)
            watched.take(item)
            self._records += sum(map(len, item.update.parsed.blocks))
        except Exception as error:  # the top of one run's work: it says so, the others go on
            watched.fail(error)
        for label, other in watched.others.items():
            name = name_of(item.run_name, label)
            if self._runs.setdefault(name, other) is other:
                self._parents[name] = item.run_name

    def _tell_attempt(self, path: str, watched: WatchedRun) -> None:
        """Has the engine told which start of a job writes a file that is new."""
        if path not in self._attempts:
            known = (file for run in self._intake.runs for file in run.files if str(file.path) == path)
            file = next(known, None)
            self._attempts[path] = file.attempt if file is not None else 0
            if self._attempts[path]:
                watched.engine.tell_attempt(path, self._attempts[path])

    def _run(self, name: str) -> WatchedRun:
        if name not in self._runs:
            self._runs[name] = WatchedRun(partial(self._engine_for, name), self._clock)
        return self._runs[name]

    def _engine_for(self, name: str, settings: Settings, label: str) -> RunEngine:
        known = (run for run in self._intake.runs if run.name == name)
        files = next(known, RunFiles(name, name, ()))
        engine = engine_of(files, self._clock, self._limits, settings, label)
        name = engine.name
        if self._on_record is not None:
            engine.on_frame = record_events(name, self._on_record)
        self._engines[name] = engine
        count = len(self._engines)
        for each in self._engines.values():
            each.limit_memory(budget_of(count), watched_points(count))
        return engine

    def _publish_when_due(self) -> None:
        began = self._clock.monotonic()
        is_beat = began >= self._beat_at_s
        if is_beat or began >= self._next_due_s():
            if is_beat:
                self._beat_at_s = began + HEARTBEAT_S
                self._keep_pace(began)
                if began - self._began_s > PATIENCE_S:
                    self._intake.read_histories()
            used_s = -thread_time()  # not the time that passes: other threads hold the interpreter meanwhile
            self._publish()
            used_s += thread_time()
            is_preview = any(run.previewed for run in self._runs.values())
            least_s = LOADING_INTERVAL_S if is_preview else PUBLISH_INTERVAL_S
            self._due_at_s = began + max(least_s, used_s / PUBLISH_SHARE)
            if not self._round and began >= max(self._others_at_s, self._round.due_s):
                self._others_at_s = began + self._pace.interval_s
                self._round.begin((name for name in self._runs if not self._is_attended(name)), began)
        if self._round and self._round.go(self._visit, self._budget_s) and not self._attended:
            self._tell_fleet()  # else with the next of what is looked at, or at the next beat

    def _keep_pace(self, now_s: float) -> None:
        """Has the readers look as closely at each file as somebody looks at its run."""
        if self._attended is None:
            return
        is_busy = not all(run.is_read for run in self._runs.values())
        interval_s = self._pace.note(now_s, is_busy=is_busy, records=self._records)
        for name, run in self._runs.items():
            sharing = len(self._attended) if name in self._attended else len(self._runs)
            run.rejudge_s = min(max(REJUDGE_S, run.judging_s * sharing / JUDGING_SHARE), _LONGEST_REJUDGE_S)
        self._intake.attend(frozenset(self._parents.get(name, name) for name in self._attended), interval_s)

    def _publish(self) -> None:
        """Publishes a fleet with new snapshots of those runs that somebody looks at and that say something else now."""
        self._is_scanned = self._intake.is_scanned  # asked first: what the scan found must be among the runs
        for files in self._intake.runs:
            self._know(files)
        for name, watched in self._runs.items():
            is_close = self._is_attended(name)
            if (is_close and (watched.dirty or watched.looks_else())) or name not in self._snapshots:
                self._renew(name, watched)
        self._tell_fleet()

    def _visit(self, name: str) -> None:
        """Renews the snapshot of a run that nobody looks at closely, if it says something else now."""
        watched = self._runs[name]
        if watched.dirty or watched.looks_else(closely=False):
            self._renew(name, watched)

    def _renew(self, name: str, watched: WatchedRun) -> None:
        KEYS.give()
        self._snapshots[name] = self._snapshot(name, watched)
        if watched.is_read:
            self._told_read.add(name)

    def _tell_fleet(self) -> None:
        fleet = FleetSnapshot(
            tuple(self._snapshots.values()),
            problems=(
                *self._intake.problems,
                *(self._jobs.problems if self._jobs is not None else ()),
                *((self._book.problem,) if self._book.problem else ()),
                *((self._failure,) if self._failure else ()),
            ),
            status=watched_by(self._snapshots.values()) if self._runs else self._intake.discovery.searched,
            taken_at=self._clock.wall(),
            reading=not self._is_scanned or not all(run.is_read for run in self._runs.values()),
        )
        if not fleet.says_as(self._latest):
            self._tell(fleet)

    def _know(self, files: RunFiles) -> None:
        """Tells everybody about the run's files, when they are others than before, and learns what its jobs do."""
        watched = self._run(files.name)
        if self._known.get(files.name) is not files:
            self._known[files.name] = files
            paths = [str(file.path) for file in files.files if file.role != "config"]
            watched.expect(paths)
            self._book.know(files.name, paths)
            if self._jobs is not None:
                self._jobs.know(files, self._cwd)
        if self._jobs is not None:
            watched.learn_jobs(self._jobs.jobs_for(files.name))

    def _tell(self, fleet: FleetSnapshot) -> None:
        self._latest = fleet
        if self._on_new is not None:
            self._on_new()

    def _snapshot(self, name: str, watched: WatchedRun) -> RunSnapshot:
        try:
            if watched.is_untouched:
                self._blank = self._blank or blank_run(self._clock, self._limits)
                return watched.snapshot_as(self._blank, name, self._known[name].target)
            watched.settle()
            made = watched.snapshot(live=True, with_scores=watched.is_read)
            remarks = self._book.of(name)
            return replace(made, remarks=remarks) if remarks else made
        except Exception as error:  # as in `_take`: the last good snapshot stays, and says what happened
            watched.fail(error)
            watched.dirty = False
            last = self._snapshots.get(name)
            if last is None:
                watched.forget()
                return watched.snapshot(live=True)
            told = replace(last, problems=(watched.failure, *last.problems), revision=last.revision + 1)
            return unjudged(told, watched.failure)
