"""The job's state as a value: what it is doing, how that is known, what it means for the verdict."""

from __future__ import annotations

from typing import Final

from trainmon.monitor.finding import Verdict
from trainmon.monitor.snapshot import State
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Note

_VERDICT: Final[dict[State, Verdict]] = {
    State.FINISHED: Verdict.PASS,
    State.RUNNING: Verdict.PASS,
    State.STARTING: Verdict.PASS,
    State.CHECKPOINTING: Verdict.PASS,
    State.EVALUATING: Verdict.PASS,
    State.BUFFERED: Verdict.PASS,
    State.QUEUED: Verdict.PASS,
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
ENDED: Final = frozenset(
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
    """`root_error`: the log's words for what ended the job; `outlived`: those for the last error that did not end it,
    an earlier start's or one that it went on after. None without one. `error`: the first of the two.

    `evidence`: the line of the log that told, if one did. `is_over`: nothing more will come, though how it ended may
    not be known. `is_blocked`: it waits for something that waiting does not bring.
    """

    state: State
    reason: str
    root_error: str | None = None
    evidence: Note | None = None
    is_over: bool = False
    is_blocked: bool = False
    outlived: str | None = None

    @property
    def verdict(self) -> Verdict:
        """METRICS.md's row "end of the job"; a state that is not known judges nothing."""
        if self.is_blocked:
            return Verdict.WARN
        return _VERDICT.get(self.state, Verdict.NO_DATA)

    @property
    def error(self) -> str | None:
        """What the log says went wrong last, whether the job ended by it or not."""
        return self.root_error or self.outlived

    @property
    def ended(self) -> bool:
        """Whether the job is known to be over."""
        return self.is_over or self.state in ENDED


@dataclass(frozen=True, slots=True)
class Pause:
    """A gap in the run's records much longer than its usual ones, behind the record of `step`."""

    step: float
    gap_s: float


@dataclass(frozen=True, slots=True)
class Pulse:
    """How a run's data arrives. `age_s`: since the newest byte; `gap_p99_s`: of the run's own record gaps.

    `seen_growing`: whether bytes arrived while we looked. None where not known. `gap_s`: the median gap; `pauses`: the
    newest long ones; `burst_s` and `burst_records`: the longest usual gap between arrivals, and how many records come
    at once, where they come in bursts (a writer's buffer, a slow mount), else None.
    """

    age_s: float | None
    gap_p99_s: float | None
    seen_growing: bool
    gap_s: float | None = None
    pauses: tuple[Pause, ...] = ()
    burst_s: float | None = None
    burst_records: float | None = None


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


def seconds(value: float | None) -> str:
    """Short ones with their digits: gaps of a fast run are less than a second.

    >>> seconds(0.12345), seconds(75.2), seconds(None)
    ('0.123 s', '1 min 15 s', 'unknown')
    """
    return f"{value:.3g} s" if value is not None and value < 60 else duration(value)
