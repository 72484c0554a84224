"""The state of the job: by the scheduler's word, the log's own last words, and silence against the run's rhythm.

Deng's first triage step. What cannot be known is said to be unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from trainmon.monitor.job.last_words import BROKEN, STOPPED, cause_of, habits, in_order, is_left_alone, named, outlived
from trainmon.monitor.job.launchers import report_of
from trainmon.monitor.job.pauses import Expected
from trainmon.monitor.job.process import judged as judged_by_process
from trainmon.monitor.job.silence import Progress, by_silence, patience_s, silence_limit_s
from trainmon.monitor.job.state import ENDED, JobState, Pause, Pulse, duration
from trainmon.monitor.slurm.verdict import judged as judged_by_slurm
from trainmon.monitor.snapshot import JobInfo, State
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import Note, NoteKind

__all__ = ["ENDED", "JobState", "Pause", "Pulse", "duration", "job_state", "patience_s", "silence_limit_s"]

_PHRASE = {
    State.OOM: "out of memory",
    State.NODE_FAIL: "node failure",
    State.TIME_LIMIT: "time limit reached",
    State.PREEMPTED: "preempted",
    State.CANCELLED: "stopped from outside",
}

_FARTHEST = 1.5  # beyond so many times the total, it was the total of something else
# What a run whose steps are all done may print on its way out, unless it could not write its last checkpoint.
_AT_EXIT = (NoteKind.TRACEBACK, NoteKind.SIGTERM, NoteKind.ERROR)
_FINISHES = (NoteKind.FINISHED, NoteKind.EARLY_STOP)
_STILL_DYING_LINES = 3  # more is a run that goes on
_ANNOUNCED = lazy(r"slurmstepd.*(?:\*\*\* (?:JOB|STEP) \S+ ON .*CANCELLED AT|exceeded memory limit .*being killed)")
# A label of C++'s or torchrun's, rulers and boxes before the words, and marks behind them.
_MARKS = lazy(
    r"^\s*(?:(?:what\(\):|traceback :|[=#*~|\u2500-\u257f]{1,200})\s+)?"
    r"|(?<=[^\s;,=#*~|])[\s;,=#*~|\u2500-\u257f]{1,500}$"
)
_NOT_WRITTEN = lazy(r"No space left|[Qq]uota exceeded|Read-only file system|Input/output error|Stale file handle")


def job_state(
    notes: Iterable[Note],
    last_record_line: dict[str, int],
    steps: tuple[float, float] | None,
    total_steps: float | None,
    pulse: Pulse,
    limits: Thresholds,
    *,
    job: JobInfo | None = None,
    expected: Expected | None = None,
    now: float | None = None,
    left: Collection[str] = (),
) -> JobState:
    """What the job is doing, with its evidence.

    `last_record_line`: source -> line of its last training record; only what was said after it can have ended the job.
    `job`: what a scheduler or /proc says, and `now` the wall-clock time to hold its times against; `expected`: the
    pause that the run is used to make at this step. `left`: sources that earlier starts wrote; what they say last is
    not how the run ended.
    """
    notes = tuple(notes)
    ordered = in_order(note for note in notes if note.source not in left)
    usual = habits(ordered, last_record_line)
    closing = [
        note
        for note in ordered
        if _may_end(note, last_record_line.get(note.source, 0), ordered) and named(note) not in usual
    ]
    last_error = outlived(ordered, last_record_line)
    words = _by_words(closing, last_error, steps, total_steps, last_record_line)
    saving = next((note for note in reversed(closing) if _is_saving(note)), None)
    last_error = last_error or outlived(in_order(notes), last_record_line)
    progress = Progress(steps, total_steps, last_error)

    def silence(fresh_s: float | None, runs: str = "") -> JobState:
        if fresh_s is None:
            return by_silence(progress, pulse, limits, expected=expected, saving=saving, runs=runs)
        begun = Progress(None, total_steps, progress.outlived)
        return by_silence(begun, replace(pulse, age_s=fresh_s), limits, runs=runs)

    if job is None:
        return words or silence(None)
    judged, who = (judged_by_process, "/proc") if job.id.startswith("pid ") else (judged_by_slurm, "Slurm")
    at = job.asked_at if now is None else now
    return judged(job, words, lambda fresh_s: silence(fresh_s, who), now=at, age_s=pulse.age_s)


def _may_end(note: Note, last_record_line: int, ordered: Collection[Note]) -> bool:
    """Whether the job may have ended with `note`: no record came after it, or only those of processes that Slurm had
    announced to stop and that had not yet died."""
    if note.line_no >= last_record_line:
        return True
    return (
        note.line_no >= last_record_line - _STILL_DYING_LINES
        and _ANNOUNCED.search(note.text) is not None
        and not any(
            other.kind is NoteKind.LAUNCH and other.source == note.source and other.line_no > note.line_no
            for other in ordered
        )
    )


def _is_saving(note: Note) -> bool:
    return note.kind is NoteKind.CHECKPOINT_SAVED and "saving" in note.text.lower()


def _by_words(
    closing: list[Note],
    last_error: str | None,
    steps: tuple[float, float] | None,
    total_steps: float | None,
    trained: Collection[str],
) -> JobState | None:
    """The end that the log tells of; None when it tells of none. `trained`: the sources that hold training records."""
    ends = {note.source: note for note in closing if note.kind in _FINISHES}
    cause = cause_of([note for note in closing if note.source not in ends or note.line_no > ends[note.source].line_no])
    failed = report_of(closing)
    if cause is not None and failed is not None and _is_stopped_for(cause, failed.note):
        cause = None
    reached = (
        steps is not None
        and total_steps is not None
        and total_steps - (steps[0] == 0) <= steps[1] <= _FARTHEST * total_steps
    )
    finished = next(reversed(ends.values()), None)
    if finished is not None and (cause is None or not _is_end_of_all(cause, finished, ends, trained)):
        return JobState(
            State.FINISHED, f"the log says so: {quoted(finished.text)}", None, finished, outlived=last_error
        )
    is_over = reached and cause is not None and cause.kind in _AT_EXIT and not _NOT_WRITTEN.search(cause.text)
    if cause is not None and not is_over:
        state = {**BROKEN, **STOPPED}[cause.kind]
        phrase = _PHRASE.get(state)
        where = f"{phrase} ({_place(cause)})" if phrase else _place(cause)
        said = quoted(cause.text)
        return JobState(state, f"{where}: {said}", said, cause)
    if reached:
        reason = f"step {steps[1]:.15g} of {total_steps:.15g}" if steps else ""
        return JobState(State.FINISHED, reason, outlived=last_error)
    if failed is not None:
        said = f"{_place(failed.note)}: {failed.words or failed.note.text}; what the worker died of is "
        said += f"in {failed.error_file}" if failed.error_file else "not in this log"
        return JobState(State.CRASHED, said, quoted(failed.words) or None, failed.note)
    return None


def _is_end_of_all(cause: Note, finished: Note, ends: Collection[str], trained: Collection[str]) -> bool:
    """Whether the job failed with `cause`, though a file says that it `finished`. `ends`: the files that say so."""
    if cause.source in ends:
        return True
    if cause.kind not in BROKEN or is_left_alone(cause):
        return False
    if cause.time is not None and finished.time is not None and cause.time_kind is finished.time_kind:
        return cause.time >= finished.time
    return cause.source in trained  # a rank that had trained; what only tells of errors may tell of earlier ones


def _is_stopped_for(cause: Note, failed: Note) -> bool:
    """Whether somebody stopped the job because a worker had failed, as launchers do."""
    stopped = cause.kind in (NoteKind.CANCELLED, NoteKind.SIGTERM)
    return stopped and failed.source == cause.source and failed.line_no < cause.line_no


def quoted(text: str) -> str:
    """A log's words without the marks around them, fit for the middle of a sentence.

    >>> quoted("=== Training completed ===;;"), quoted("  what():  HIP error: x"), quoted("Saved!")
    ('Training completed', 'HIP error: x', 'Saved!')
    """
    return _MARKS.sub("", text) or text


def _place(note: Note) -> str:
    where = f"line {note.line_no}"
    return f"after step {note.step:.15g}, {where}" if note.step is not None else where
