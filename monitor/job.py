"""The state of the job, told by the log's own last words and by silence against the run's rhythm.

Deng's first triage step. Nothing here asks a scheduler; what cannot be known is said to be unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trainmon.monitor.finding import Verdict
from trainmon.monitor.snapshot import State
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Note, NoteKind

# What broke the job, and what somebody or something else did to it.
_BROKEN: dict[NoteKind, State] = {
    NoteKind.CUDA_OOM: State.OOM,
    NoteKind.HOST_OOM: State.OOM,
    NoteKind.NCCL_TIMEOUT: State.CRASHED,
    NoteKind.INIT_TIMEOUT: State.CRASHED,
    NoteKind.XID: State.CRASHED,
    NoteKind.SEGFAULT: State.CRASHED,
    NoteKind.TRACEBACK: State.CRASHED,
    NoteKind.ERROR: State.CRASHED,
    NoteKind.NODE_FAIL: State.NODE_FAIL,
    NoteKind.SIGKILL: State.CRASHED,
}
_STOPPED: dict[NoteKind, State] = {
    NoteKind.TIME_LIMIT: State.TIME_LIMIT,
    NoteKind.PREEMPTED: State.PREEMPTED,
    NoteKind.CANCELLED: State.CANCELLED,
    NoteKind.KEYBOARD_INTERRUPT: State.CANCELLED,
    NoteKind.SIGTERM: State.CANCELLED,
    NoteKind.SIGHUP: State.CANCELLED,
}
# Where several lines tell of it, the more telling one names the cause (a time limit is also a cancel and a SIGTERM).
_TELLING = (
    NoteKind.NODE_FAIL,
    NoteKind.CUDA_OOM,
    NoteKind.HOST_OOM,
    NoteKind.XID,
    NoteKind.NCCL_TIMEOUT,
    NoteKind.INIT_TIMEOUT,
    NoteKind.SEGFAULT,
    NoteKind.TRACEBACK,
    NoteKind.ERROR,
    NoteKind.SIGKILL,
    NoteKind.TIME_LIMIT,
    NoteKind.PREEMPTED,
    NoteKind.CANCELLED,
    NoteKind.KEYBOARD_INTERRUPT,
    NoteKind.SIGTERM,
    NoteKind.SIGHUP,
)
_VERDICT: dict[State, Verdict] = {
    State.FINISHED: Verdict.PASS,
    State.RUNNING: Verdict.PASS,
    State.STARTING: Verdict.PASS,
    State.CHECKPOINTING: Verdict.PASS,
    State.EVALUATING: Verdict.PASS,
    State.BUFFERED: Verdict.PASS,
    State.SLOW: Verdict.WARN,
    State.TIME_LIMIT: Verdict.WARN,
    State.PREEMPTED: Verdict.WARN,
    State.REQUEUED: Verdict.WARN,
    State.CANCELLED: Verdict.WARN,
    State.HUNG: Verdict.FAIL,
    State.CRASHED: Verdict.FAIL,
    State.OOM: Verdict.FAIL,
    State.NODE_FAIL: Verdict.FAIL,
}
# Errors of a program that has only just started: they cannot come from the job that was stopped before them.
_START_UP = ("SyntaxError", "IndentationError", "ModuleNotFoundError", "ImportError")
_GOT_SIGNAL = re.compile(r"SignalException: .*got signal: (\d+)")
_SIGNALS = {1: NoteKind.SIGHUP, 2: NoteKind.KEYBOARD_INTERRUPT, 9: NoteKind.SIGKILL, 15: NoteKind.SIGTERM}
ENDED = frozenset(
    (
        State.FINISHED,
        State.TIME_LIMIT,
        State.PREEMPTED,
        State.CANCELLED,
        State.CRASHED,
        State.OOM,
        State.NODE_FAIL,
    )
)


@dataclass(frozen=True, slots=True)
class JobState:
    """`root_error`: the log's words for what ended the job, or the last error it outlived; None without one."""

    state: State
    reason: str
    root_error: str | None = None
    evidence: Note | None = None

    @property
    def verdict(self) -> Verdict:
        """METRICS.md's row "end of the job"; a state that is not known judges nothing."""
        return _VERDICT.get(self.state, Verdict.NO_DATA)

    @property
    def ended(self) -> bool:
        """Whether the job is known to be over."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class Pulse:
    """How a run's data arrives. `age_s`: since the newest byte; `gap_p99_s`: of the run's own record gaps.

    `seen_growing`: whether bytes arrived while we looked. None where not known.
    """

    age_s: float | None
    gap_p99_s: float | None
    seen_growing: bool


def job_state(
    notes: Iterable[Note],
    last_record_line: dict[str, int],
    steps: tuple[float, float] | None,
    total_steps: float | None,
    pulse: Pulse,
    limits: Thresholds,
) -> JobState:
    """What the job is doing, with its evidence.

    `last_record_line`: source -> line of its last training record; only what was said after it can have ended the job.
    """
    ordered = sorted((_understood(note) for note in notes), key=lambda note: (note.source, note.line_no))
    closing = [note for note in ordered if note.line_no >= last_record_line.get(note.source, 0)]
    cause = _cause(closing)
    reached = steps is not None and total_steps is not None and steps[1] >= total_steps - (steps[0] == 0)
    finished = next((note for note in reversed(closing) if note.kind in (NoteKind.FINISHED, NoteKind.EARLY_STOP)), None)
    if finished is not None and (cause is None or cause.line_no < finished.line_no or cause.source != finished.source):
        return JobState(State.FINISHED, f"the log says so: {finished.text}", _outlived(ordered), finished)
    if cause is not None and not (reached and cause.kind in (NoteKind.TRACEBACK, NoteKind.SIGTERM, NoteKind.ERROR)):
        state = {**_BROKEN, **_STOPPED}[cause.kind]
        phrase = _PHRASE.get(state)
        where = f"{phrase} ({_place(cause)})" if phrase else _place(cause)
        return JobState(state, f"{where}: {cause.text}", cause.text, cause)
    if reached:
        return JobState(
            State.FINISHED, f"step {steps[1]:.15g} of {total_steps:.15g}" if steps else "", _outlived(ordered)
        )
    return _by_silence(steps, total_steps, pulse, limits, _outlived(ordered))


_PHRASE = {
    State.OOM: "out of memory",
    State.NODE_FAIL: "node failure",
    State.TIME_LIMIT: "time limit reached",
    State.PREEMPTED: "preempted",
    State.CANCELLED: "stopped from outside",
}


def _place(note: Note) -> str:
    where = f"line {note.line_no}"
    return f"after step {note.step:.15g}, {where}" if note.step is not None else where


def _understood(note: Note) -> Note:
    """A traceback whose exception is a signal tells of that signal, not of a fault in the program."""
    if note.kind not in (NoteKind.TRACEBACK, NoteKind.ERROR):
        return note
    if note.text.startswith("KeyboardInterrupt"):
        return replace(note, kind=NoteKind.KEYBOARD_INTERRUPT)
    found = _GOT_SIGNAL.search(note.text)
    kind = _SIGNALS.get(int(found.group(1))) if found else None
    return replace(note, kind=kind) if kind is not None else note


def _cause(notes: Sequence[Note]) -> Note | None:
    """The note that ended the job: what broke first wins, unless somebody had stopped the job before it.

    Launches after a failure open new chapters; the first chapter that something broke in tells the cause, since
    what a relaunch dies of at once is often a consequence.
    """
    stopped: Note | None = None
    for chapter in _chapters(notes):
        ended = _chapter_cause(chapter)
        if ended is not None and ended.kind in _BROKEN:
            return ended
        stopped = ended or stopped
    return stopped


def _chapters(notes: Sequence[Note]) -> list[list[Note]]:
    """The notes that may end a job, cut where a new launch follows a failure."""
    chapters: list[list[Note]] = [[]]
    for note in notes:
        if note.kind is NoteKind.LAUNCH:
            if chapters[-1]:
                chapters.append([])
        elif not note.teardown and (note.kind in _BROKEN or note.kind in _STOPPED):
            if chapters[-1] and note.text.startswith(_START_UP):
                chapters.append([])
            chapters[-1].append(note)
    return chapters


def _chapter_cause(fatal: Sequence[Note]) -> Note | None:
    if not fatal:
        return None
    broken = [note for note in fatal if note.kind in _BROKEN]
    stopped = [note for note in fatal if note.kind in _STOPPED]
    if broken and not (stopped and _before(stopped[0], broken[0])):
        return min(broken[:20], key=lambda note: _TELLING.index(note.kind))
    return min(stopped or broken, key=lambda note: (_TELLING.index(note.kind), not _is_specific(note)))


def _is_specific(note: Note) -> bool:
    return "*** JOB" in note.text or "SignalException" in note.text


def _before(first: Note, second: Note) -> bool:
    return first.source == second.source and first.line_no < second.line_no


def _outlived(notes: Sequence[Note]) -> str | None:
    """The last error the run went on after."""
    errors = [note for note in notes if note.kind in _BROKEN and not note.teardown]
    return errors[-1].text if errors else None


def _by_silence(
    steps: tuple[float, float] | None,
    total_steps: float | None,
    pulse: Pulse,
    limits: Thresholds,
    outlived: str | None,
) -> JobState:
    where = "no step yet" if steps is None else f"step {steps[1]:.15g}"
    if total_steps is not None:
        where += f" of {total_steps:.15g}"
    if pulse.age_s is None:
        return JobState(State.UNKNOWN, f"{where}; the log does not say how it ended", outlived)
    patience = silence_limit_s(steps is not None, pulse.gap_p99_s, limits)
    quiet = f"no new data for {duration(pulse.age_s)}"
    if pulse.age_s <= patience / 2:
        state = State.RUNNING if steps is not None else State.STARTING
        return JobState(state, f"{where}, newest data {duration(pulse.age_s)} old", outlived)
    if not pulse.seen_growing:
        return JobState(State.UNKNOWN, f"{where}; {quiet}; whether the job still runs is not known", outlived)
    if pulse.age_s <= patience:
        return JobState(State.SLOW, f"{where}; {quiet} (usual gap {duration(pulse.gap_p99_s)})", outlived)
    return JobState(State.HUNG, f"{where}; {quiet}, limit {duration(patience)}", outlived)


def silence_limit_s(has_steps: bool, gap_p99_s: float | None, limits: Thresholds) -> float:
    """METRICS.md: max(10 x the 99th percentile of the run's own gaps, 10 min); 30 min while starting up."""
    if not has_steps:
        return limits["silence.starting_seconds"]
    return max(limits["silence.gaps"] * (gap_p99_s or 0.0), limits["silence.seconds"])


def duration(seconds: float | None) -> str:
    """Seconds for a person.

    >>> duration(0.4), duration(42), duration(3725), duration(200000), duration(None)
    ('0 s', '42 s', '1 h 2 min', '2 d 7 h', 'unknown')
    """
    if seconds is None:
        return "unknown"
    whole = int(max(seconds, 0))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole < 600 else f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
