"""What silence means: measured against the run's own rhythm, never against a file's age alone."""

from __future__ import annotations

from typing import Final

from trainmon.monitor.job.pauses import Expected
from trainmon.monitor.job.state import JobState, Pulse, duration, seconds
from trainmon.monitor.snapshot import State
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Note

# A silence that a screen should explain: so many usual gaps long, and long enough for somebody to look twice.
_NOTED_GAPS: Final = 3.0
_NOTED_S: Final = 5.0
_PATIENT: Final = 3.0  # a pause that was learned may take so many times its longest


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the run is: (first, last) step, planned steps, and the last error it outlived."""

    steps: tuple[float, float] | None
    total: float | None
    outlived: str | None = None

    @property
    def where(self) -> str:
        """In words: "step 300 of 1000"."""
        text = "no step yet" if self.steps is None else f"step {self.steps[1]:.15g}"
        return text if self.total is None else f"{text} of {self.total:.15g}"


def silence_limit_s(has_steps: bool, gap_p99_s: float | None, limits: Thresholds) -> float:
    """METRICS.md: max(10 x the 99th percentile of the run's own gaps, 10 min); 30 min while starting up."""
    if not has_steps:
        return limits["silence.starting_seconds"]
    return max(limits["silence.gaps"] * (gap_p99_s or 0.0), limits["silence.seconds"])


def patience_s(has_steps: bool, pulse: Pulse, expected: Expected | None, limits: Thresholds) -> float:
    """How long the run may say nothing: as `silence_limit_s`, longer where it writes in bursts or is known to pause."""
    limit = silence_limit_s(has_steps, pulse.gap_p99_s, limits)
    if pulse.burst_s is not None:
        limit = max(limit, limits["silence.gaps"] * pulse.burst_s)
    return max(limit, _PATIENT * expected.longest_s) if expected is not None else limit


def by_silence(
    progress: Progress,
    pulse: Pulse,
    limits: Thresholds,
    *,
    expected: Expected | None = None,
    saving: Note | None = None,
    runs: str = "",
) -> JobState:
    """The state of a run whose log does not say how it ended.

    `expected`: the pause that the run is used to make at this step; `saving`: the line that says a checkpoint is being
    written; `runs`: who says that the job runs ("Slurm"), "" when nobody does.
    """
    where, outlived = progress.where, progress.outlived
    has_steps = progress.steps is not None
    if pulse.age_s is None:
        if runs:
            state = State.RUNNING if has_steps else State.STARTING
            return JobState(state, f"{where}; {runs} says that it runs", outlived=outlived)
        return JobState(State.UNKNOWN, f"{where}; the log does not say how it ended", outlived=outlived)
    age = pulse.age_s
    limit = patience_s(has_steps, pulse, expected, limits)
    quiet = f"no new data for {duration(age)}"
    is_known = bool(runs) or pulse.seen_growing
    if is_known and age <= limit and (explained := _explained(where, pulse, expected, saving, outlived)):
        return explained
    if age <= limit / 2:
        state = State.RUNNING if has_steps else State.STARTING
        return JobState(state, f"{where}, newest data {duration(age)} old", outlived=outlived)
    if not is_known:
        return JobState(State.UNKNOWN, f"{where}; {quiet}; whether the job still runs is not known", outlived=outlived)
    job = f"while {runs} says that it runs" if runs else ""
    usual = f" (longest usual gap {seconds(pulse.gap_p99_s)})" if pulse.gap_p99_s is not None else ""
    if age <= limit:
        return JobState(State.SLOW, "; ".join(filter(None, (where, quiet + usual, job))), outlived=outlived)
    over = f"{quiet}, limit {duration(limit)}{usual}"
    return JobState(State.HUNG, "; ".join(filter(None, (where, over, job))), outlived=outlived)


def _explained(
    where: str, pulse: Pulse, expected: Expected | None, saving: Note | None, outlived: str | None
) -> JobState | None:
    """A silence that the run is known to make: saving, evaluating, or a buffer that fills."""
    age = pulse.age_s or 0.0
    if age <= max(_NOTED_GAPS * (pulse.gap_s or 0.0), _NOTED_S):
        return None
    if expected is not None and age <= _PATIENT * expected.longest_s:
        words = f"{where}; a pause of {duration(age)}, usually {duration(expected.usual_s)} {expected.why}"
        return JobState(expected.state, words, outlived=outlived)
    if saving is not None:
        words = f"{where}; saving for {duration(age)}, line {saving.line_no}: {saving.text}"
        return JobState(State.CHECKPOINTING, words, None, saving, outlived=outlived)
    if pulse.burst_s is not None and age <= _PATIENT * pulse.burst_s:
        words = (
            f"{where}; records come about {pulse.burst_records or 0:.0f} at a time, up to {duration(pulse.burst_s)}"
            f" apart (a buffered writer, e.g. without PYTHONUNBUFFERED=1); newest data {duration(age)} old"
        )
        return JobState(State.BUFFERED, words, outlived=outlived)
    return None
