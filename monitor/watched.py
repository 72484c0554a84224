"""One run under watch: its engine, its files' states, its last lines, and the rhythm in which its data comes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import thread_time

from trainmon.monitor.assemble import assemble
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Verdict
from trainmon.monitor.freshen import freshened
from trainmon.monitor.job.judging import Pulse, patience_s
from trainmon.monitor.job.rhythm import Rhythm
from trainmon.monitor.runs_in_file import first_label, labels_in, of_run, words
from trainmon.monitor.settings import Settings
from trainmon.monitor.snapshot import JobInfo, RunSnapshot, State
from trainmon.monitor.unread import while_read
from trainmon.monitor.zoomed import Again, Stretch, wanted
from trainmon.tails.clock import Clock
from trainmon.tails.reader import IntakeItem
from trainmon.tails.record import Parsed
from trainmon.tails.status import FileStatus, LogLine
from trainmon.tails.stretch import MOST_BYTES, StepIndex
from trainmon.tails.text import printable

_KEPT_LINES = 2000
_SAME_MTIME_S = 1.0  # ages are measured at different moments
_CLOSE, _FAR = 0.1, 0.4  # by so much of itself an age that is told may be wrong; lists tell their own
_LEAST_AGE_S = 1.0  # ages are shown in whole seconds
_NEARLY = 0.999
_FLUSHED_S = 300.0  # whatever a writer holds back (event files: two minutes) is written after so long a silence
_ROW_S = 3.0  # a row may be expected in so many seconds
# Verdicts are worked out at least so often; at once when anything is found. Numbers are shown as they come.
REJUDGE_S = 0.9

Make = Callable[[Settings, str], RunEngine]  # of a run, or of one of several in its files: from settings and label


class WatchedRun:
    """Gathers what arrives for one run and gives snapshots of it.

    `others`: the other runs that its files hold, by their label there (`label` is that of such a one).
    """

    def __init__(self, make: Make, clock: Clock, label: str = "") -> None:
        self.settings = Settings()
        self.label = label
        self.others: dict[str, WatchedRun] = {}
        self._first_label = self._in_file = ""
        self._make = make
        self._engine: RunEngine | None = None
        self.files: dict[str, FileStatus] = {}
        self.problems: dict[str, str] = {}
        self.log_context: tuple[LogLine, ...] = ()
        self.log_context_for: tuple[str, int] | None = None
        self.revision, self.dirty, self.failure = 0, True, ""
        self._expected = 0
        self._clock = clock
        self._rhythm = Rhythm()
        self._lines: deque[LogLine] = deque(maxlen=_KEPT_LINES)
        self._caught_up: set[str] = set()
        self._ended: set[str] = set()
        self._seen_growing = False
        self._last_arrival_s: float | None = None
        self._stated_at_s: dict[str, float] = {}
        self._looks_else_at_s = self._lasts_until_s = self._differs_at_s = math.inf
        self.jobs: tuple[JobInfo, ...] = ()
        self._last: RunSnapshot | None = None
        self.rejudge_s, self.judging_s = REJUDGE_S, 0.0  # the second of processor time, the last time
        self._preview: RunEngine | None = None
        self._judged_at_s, self._has_new_rows = -math.inf, False  # the latter since then
        self._places: dict[str, StepIndex] = {}
        self._stretch: Stretch | None = None
        self._judged: tuple[object, ...] = ()

    @property
    def engine(self) -> RunEngine:
        """The engine, made at its first use with the settings known by then."""
        if self._engine is None:
            self._engine = self._make(self.settings, self.label)
        return self._engine

    def expect(self, logs: Sequence[str]) -> None:
        """The paths of the run's logs, as far as they were found; until each was read once, the run is being read."""
        if len(logs) == self._expected:
            return
        if not self._stated_at_s:
            self.files = {path: FileStatus(path, "", 0, 0, 0, 0, 0) for path in logs}
        self._expected = len(logs)
        self.dirty = True
        for other in self.others.values():
            other.expect(logs)

    @property
    def is_read(self) -> bool:
        """Whether every log that is known was read to its end once."""
        return len(self._caught_up) >= self._expected

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is known of the run but the names of its logs."""
        nothing_came = not self._stated_at_s and self._engine is None and self._preview is None
        return nothing_came and not (self.jobs or self.problems or self.failure or self.log_context_for)

    def learn_jobs(self, jobs: tuple[JobInfo, ...]) -> None:
        """What a scheduler (or /proc) says of the run's jobs, oldest start first."""
        if jobs != self.jobs:
            self.jobs = jobs
            self._judged_at_s = -math.inf
            self.dirty = True

    def fail(self, error: Exception) -> None:
        """The run's engine raised: what it holds is no longer sure and nothing more is given to it."""
        words = f"{type(error).__name__}: {printable(str(error), 200)}"
        self.failure = f"internal error, this run is no longer judged ({words}); please report it"
        self.dirty = True

    def forget(self) -> None:
        """Begins with an engine that knows nothing: the one there is cannot even say what it holds."""
        self._engine = None
        self._last = None

    def take(self, item: IntakeItem) -> None:
        """Takes what one poll of one file gave."""
        if item.role == "config":
            self._take_settings(item)
            return
        if item.preview is not None:
            self._take_preview(item.path, item.preview)
            return
        if self.label:
            item = of_run(item, self.label)
        elif labels := labels_in(item.update.parsed):
            self._meet(labels, item.update.parsed)
        self._take_own(of_run(item, "") if self.others else item)
        for other in self.others.values():
            other.take(item)

    def _take_own(self, item: IntakeItem) -> None:
        path, parsed, status = item.path, item.update.parsed, item.status
        now = self._clock.monotonic()
        caught_up = path in self._caught_up
        if item.update.restarted:
            self._places.pop(path, None)
        for block in parsed.blocks:
            self._rhythm.add(block, now, live=caught_up)
            self._places.setdefault(path, StepIndex()).add(block)
        if caught_up and not item.update.is_empty and self._has_grown(path, status, now):
            self._seen_growing = True
            self._last_arrival_s = now
        if status.read_bytes >= status.size_bytes:
            self._caught_up.add(path)
        if item.is_ended:
            self._ended.add(path)
            self._caught_up.add(path)
        self.files[path] = status
        self._stated_at_s[path] = now
        self._keep(item.update.lines)
        self.dirty = True
        if not item.update.is_empty and not self.failure:  # at last: should it raise, the log is shown all the same
            self._has_new_rows = True
            self.engine.feed(path, parsed, item.update.restarted)

    def _meet(self, labels: Sequence[str], parsed: Parsed) -> None:
        """Makes known the other runs that a file holds."""
        self._first_label = first_label(parsed) or self._first_label
        for label in labels:
            if label not in self.others:
                other = self.others[label] = WatchedRun(self._make, self._clock, label)
                other.settings, other.files = self.settings, dict(self.files)
                other._caught_up, other._ended = set(self._caught_up), set(self._ended)
                other._stated_at_s, other._expected = dict(self._stated_at_s), self._expected
        every = [self._first_label, *self.others]
        self._in_file = words(every, self._first_label)
        for label, other in self.others.items():
            other._in_file = words(every, label)

    def _has_grown(self, path: str, status: FileStatus, now: float) -> bool:
        """Whether the file was written to since it was told of: what a reader held back (a last line) is no news."""
        before = self.files.get(path)
        if before is None or before.read_bytes != status.read_bytes or status.newest_age_s is None:
            return True
        written_s = now - status.newest_age_s
        return before.newest_age_s is None or written_s > self._stated_at_s[path] - before.newest_age_s + _SAME_MTIME_S

    def _take_preview(self, path: str, parsed: Parsed) -> None:
        """Has the preview drawn until the history is read. It goes through an engine of its own, without detectors."""
        if self._preview is None:
            self._preview = RunEngine("", "", clock=self._clock, detectors=())
        self._preview.feed(path, replace(parsed, blocks=[block for block in parsed.blocks if not block.run]))
        self._preview.settle()
        self.dirty = True

    @property
    def previewed(self) -> bool:
        """Whether a preview stands for the history."""
        return self._preview is not None and not self.is_read

    def stretch_to_read(self, first: float, last: float) -> Again | None:
        """What has to be read again so that the steps from `first` to `last` are drawn by their own values; None where
        nothing is thinned there, where that was read already, or where it would be too much."""
        if self.others or self.label:
            return None  # a stretch from the midst of the file does not say whose it is
        ends = wanted(self._last.series, first, last) if self._last is not None and self.is_read else None
        if ends is None:
            return None
        spans = {path: index.span(*ends, self.files[path].read_bytes) for path, index in self._places.items()}
        places = {path: span for path, span in spans.items() if span is not None}
        size = sum(end - begin for begin, end in places.values())
        return Again(*ends, places) if places and size <= MOST_BYTES else None

    def show_stretch(self, stretch: Stretch) -> None:
        """From now on these values stand in the place of the bins that they were thinned to."""
        self._stretch = stretch

    def _as_read(self, made: RunSnapshot) -> RunSnapshot:
        """`made`, as far as it may be told: before all is read nothing passes, and a preview is drawn."""
        if self._stretch is not None:
            made = replace(made, series=self._stretch.put_into(made.series))
        if self.is_read:
            self._preview = None
            return made
        made = while_read(made)
        if self._preview is None:
            return made
        steps, series = self._preview.steps, self._preview.series_views(with_scores=False)
        if steps is None or not series:
            return made
        return replace(made, series=series, first_step=steps.first, last_step=steps.last, preview=True)

    def _take_settings(self, item: IntakeItem) -> None:
        self.dirty = True
        if item.status.problem:
            self.problems[item.path] = item.status.problem
        if item.config is None:
            return
        if self._engine is not None:
            self.problems[item.path] = f"{item.path} has changed; start trainmon again to use it"
            return
        self.settings.read(item.path, item.config, item.status.owner)
        self.problems.update(self.settings.problems)

    def _keep(self, lines: Sequence[LogLine]) -> None:
        for line in lines:
            # A progress bar redraws its line: the newest drawing stands for it.
            if self._lines and (self._lines[-1].path, self._lines[-1].line_no) == (line.path, line.line_no):
                self._lines.pop()
            self._lines.append(line)

    @property
    def progress(self) -> float:
        """Share of the known bytes that were read, 0 to 1; below 1 until all files were seen."""
        size = sum(max(file.size_bytes, file.read_bytes) for file in self.files.values())
        share = sum(file.read_bytes for file in self.files.values()) / size if size else 1.0
        if self.is_read:
            return share
        return min(share * min(len(self._stated_at_s) / self._expected, 1.0), _NEARLY)

    def _silent_s(self) -> float | None:
        """Seconds since the newest data."""
        now = self._clock.monotonic()
        ages = [
            file.newest_age_s + now - self._stated_at_s[path]
            for path, file in self.files.items()
            if file.newest_age_s is not None and path in self._stated_at_s
        ]
        if self._last_arrival_s is not None:
            ages.append(now - self._last_arrival_s)
        return min(ages, default=None)

    def pulse(self) -> Pulse:
        """How the data arrives, now."""
        return self._rhythm.pulse(self._silent_s(), seen_growing=self._seen_growing)

    def settle(self) -> None:
        """Shows also what waits for other files, once all were read."""
        if self.is_read and self._engine is not None and not self.failure:
            self._engine.settle(is_final=(self._silent_s() or 0.0) > _FLUSHED_S)

    def finish(self) -> None:
        """All was read: what waits is decided, of the other runs in the files too."""
        self.engine.settle(is_final=True)
        for other in self.others.values():
            other.finish()

    def whole(self, jobs: Sequence[JobInfo] = (), *, with_scores: bool = True) -> RunSnapshot:
        """The snapshot of a run that was read to its end, with those of the other runs in its files."""
        self.learn_jobs(tuple(jobs))
        made = self.snapshot(live=False, with_scores=with_scores)
        others = tuple(other.snapshot(live=False, with_scores=with_scores) for other in self.others.values())
        return replace(made, others=others) if others else made

    def snapshot_as(self, blank: RunSnapshot, name: str, target: str) -> RunSnapshot:
        """That of a run that `is_untouched`: `blank`, which is one of another such run, under its own name. Hundreds of
        runs are listed at once in this way; an engine for each, only to say that nothing is known, takes seconds."""
        self.dirty = False
        self.revision += 1
        files = tuple(self.files.values())
        return replace(blank, name=name, target=target, files=files, progress=self.progress, revision=self.revision)

    def looks_else(self, *, closely: bool = True) -> bool:
        """Whether time alone has changed what a snapshot says: its state, a snooze, or (`closely`) ages it tells."""
        return self._clock.monotonic() >= (self._looks_else_at_s if closely else self._differs_at_s)

    def snapshot(self, *, live: bool, with_scores: bool = True) -> RunSnapshot:
        """All that is known now. Clears `dirty`. `live`: it is followed. `with_scores`: as for `assemble`."""
        live = live and not (self._ended and len(self._ended) >= self._expected)
        self.dirty = False
        self.revision += 1
        engine = self._engine
        if engine is None:  # settings may still come: until the first record, what there is to say needs no engine
            engine = self._make(self.settings, self.label)
        pulse = self.pulse()
        now = self._clock.monotonic()
        if live and self._last is not None and self._is_as_judged(engine, now):
            # The next row tells the verdicts along; only where none comes they are told alone.
            row_s = _ROW_S if self._has_new_rows else 0.0
            self._looks_else_at_s = self._differs_at_s = self._stands_until_s() + row_s
            self._last = freshened(
                self._last,
                engine,
                tuple(self.files.values()),
                self._lines,
                age_s=pulse.age_s,
                progress=self.progress,
                revision=self.revision,
                log_context=self.log_context,
                log_context_for=self.log_context_for,
                with_scores=with_scores,
            )
            return unjudged(self._as_read(self._last), self.failure)
        self._judged_at_s, self._judged = now, self._signs(engine)
        self._has_new_rows = False
        self._looks_else_at_s = self._lasts_until_s = now + _lasts_s(pulse, engine, _CLOSE) if live else math.inf
        self._differs_at_s = now + _lasts_s(pulse, engine, _FAR) if live else math.inf
        began_s = thread_time()
        self._last = assemble(
            engine,
            tuple(self.files.values()),
            tuple(self._lines),
            pulse,
            live=live,
            progress=self.progress,
            problems=self.told_problems(),
            revision=self.revision,
            log_context=self.log_context,
            log_context_for=self.log_context_for,
            with_scores=with_scores,
            jobs=self.jobs,
            now=self._clock.wall(),
        )
        self.judging_s = thread_time() - began_s
        return unjudged(self._as_read(self._last), self.failure)

    @property
    def log_tail(self) -> tuple[LogLine, ...]:
        """The newest raw lines."""
        return tuple(self._lines)

    def told_problems(self) -> tuple[str, ...]:
        """What is odd about the files and settings, one line each."""
        problems = [file.problem for file in self.files.values() if file.problem]
        return (*filter(None, (self.failure, self._in_file)), *self.problems.values(), *problems)

    def _stands_until_s(self) -> float:
        """Until when verdicts may stand in which nothing was found: while rows come, and while none does."""
        return self._judged_at_s + self.rejudge_s if self._has_new_rows else self._lasts_until_s

    def _is_as_judged(self, engine: RunEngine, now: float) -> bool:
        """Whether verdicts of a moment ago may stand for now: the run goes on, and nothing happened in it."""
        assert self._last is not None
        return (
            now < self._stands_until_s()
            and self._last.live
            and self._last.state is State.RUNNING
            and self._signs(engine) == self._judged
        )

    def _signs(self, engine: RunEngine) -> tuple[object, ...]:
        """What, once it is another, has the run judged anew at once."""
        return engine.events, self.told_problems(), self.is_read


def unjudged(made: RunSnapshot, failure: str) -> RunSnapshot:
    """`made` as what it is once its engine has failed: a FAIL stands, but nothing passes any more."""
    if not failure or made.verdict is Verdict.FAIL:
        return made
    return replace(made, verdict=Verdict.NO_DATA, verdict_reason=failure)


def _lasts_s(pulse: Pulse, engine: RunEngine, part: float) -> float:
    """How long a snapshot stays true when nothing comes: its words tell the age of the data to that part of it."""
    if pulse.age_s is None:
        return engine.next_wake_s
    patience = patience_s(engine.steps is not None, pulse, None, engine.limits)
    until = [limit - pulse.age_s for limit in (patience / 2, patience) if limit >= pulse.age_s]
    return max(min([*until, max(_LEAST_AGE_S, pulse.age_s * part), engine.next_wake_s]), _LEAST_AGE_S)
