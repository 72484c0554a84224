"""What the screens and commands are given: immutable, published whole, latest wins.

Everything here is frozen. Arrays are append-only views that no one writes to again; drawing code may slice
them freely and must not modify them.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from operator import is_

from trainmon.monitor.finding import CheckResult, Episode, Incident, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.logbook import Remark
from trainmon.monitor.setting_changes import SettingChange
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, IntArray, Note
from trainmon.tails.status import FileStatus, LogLine


class State(StrEnum):
    """Job states of CLI.md."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    CHECKPOINTING = "checkpointing"
    EVALUATING = "evaluating"
    SLOW = "slow"
    BUFFERED = "buffered"
    HUNG = "hung"
    FINISHED = "finished"
    CRASHED = "crashed"
    OOM = "oom"
    TIME_LIMIT = "time_limit"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    CANCELLED = "cancelled"
    NODE_FAIL = "node_fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SeriesView:
    """One series for drawing. Arrays are parallel, in log order, (n,) each.

    `low` and `high` bound what each point stands for (equal to `values` where the point is one raw value);
    `attempts` numbers the attempt of each point; `bad_steps` are the steps at which NaN, Inf or null was
    logged. `step_index` is None unless the log has no step, then it says what the x axis counts ("line").
    """

    key: SignalKey
    unit: str
    steps: FloatArray
    values: FloatArray
    low: FloatArray
    high: FloatArray
    attempts: IntArray
    bad_steps: FloatArray
    count: int
    last: float
    raw_key: str = ""
    derived: str = ""
    times: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class TriageStep:
    """One step of the walk of METRICS.md: id in TRIAGE_ORDER, question, verdict, evidence, what next.

    `explains` is set on the first step that explains the symptom. `signals` are the charts to open as evidence.
    """

    id: str
    title: str
    verdict: Verdict
    what: str
    why: str
    next: str
    signals: tuple[SignalKey, ...] = ()
    episodes: tuple[str, ...] = ()
    explains: bool = False


TRIAGE_ORDER = ("job", "loss", "gradients", "step_time", "memory", "experts", "layers")


@dataclass(frozen=True, slots=True)
class JobInfo:
    """What a scheduler (or /proc) says of a run's job. None and "" stand for what it did not say.

    `id`: 4711, 4711_3 (array), 4711+1 (het job), or "pid 123". `state`, `reason`: the scheduler's own words. Times are
    seconds since the epoch; `ends_at` is when the time limit is reached, `start_estimate` when a queued job is expected
    to start, `asked_at` when all this was said. `exit_code` and `signal` are those of the batch script.
    `sources`: field -> the command that told it.
    """

    id: str
    state: str
    name: str = ""
    user: str = ""
    reason: str = ""
    nodes: str = ""
    submitted_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    ends_at: float | None = None
    start_estimate: float | None = None
    time_left_s: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    work_dir: str = ""
    command: str = ""
    restarts: int | None = None
    dependency: str = ""
    gpus: float | None = None
    asked_at: float = 0.0
    sources: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkAtRisk:
    """What would be lost if the time limit came before the next checkpoint.

    `steps`: trained since the last checkpoint by the time the limit is reached; `next_checkpoint_s`: until the next
    one is due at the present pace.
    """

    time_left_s: float
    next_checkpoint_s: float
    last_checkpoint: float | None
    steps: float


@dataclass(frozen=True, slots=True)
class Goodput:
    """What restarts cost. `share`: of all steps trained, those that still count; `downtime_s`: between attempts.

    `downtime_s` and `gpu_hours` are None where nothing tells them.
    """

    steps_trained: float
    steps_lost: float
    restarts: int
    downtime_s: float | None = None
    gpu_hours: float | None = None

    @property
    def share(self) -> float:
        """Useful steps of all that were trained."""
        return 1.0 - self.steps_lost / self.steps_trained if self.steps_trained else 1.0


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """All that is known of one run at one moment. `name` is unique within a fleet.

    `log_context` holds the raw lines around the (path, line number) of `log_context_for`, the last place a
    screen asked for; empty with `log_context_for` set when that place cannot be read any more.
    `job`: the scheduler's word on the job that writes now (or wrote last), `job_chain`: all jobs and attempts of the
    run, oldest first; None and empty where no scheduler knows of it.
    `preview`: the history is still being read, and `series`, `first_step` and `last_step` are those of some records of
    all of the log. They are for drawing; no verdict is made of them.
    `others`: the snapshots of the other runs that the files hold, until they are listed beside it.
    `rhythm`: the numbers that the job's state rests on where silence tells it, one a line, for people.
    """

    name: str
    target: str
    state: State
    state_reason: str
    verdict: Verdict
    verdict_reason: str
    first_step: float | None
    last_step: float | None
    step_count: int
    total_steps: float | None
    step_key: str
    eta_s: float | None
    age_s: float | None
    live: bool
    root_error: str | None
    attempts: tuple[tuple[float, float], ...]
    series: dict[SignalKey, SeriesView]
    episodes: tuple[Episode, ...]
    incidents: tuple[Incident, ...]
    checks: tuple[CheckResult, ...]
    not_checked: tuple[tuple[str, str], ...]
    triage: tuple[TriageStep, ...]
    actions: tuple[str, ...]
    files: tuple[FileStatus, ...]
    notes: tuple[Note, ...]
    log_tail: tuple[LogLine, ...]
    facts: dict[str, float | str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    outlived_error: str | None = None
    progress: float = 1.0
    revision: int = 0
    rl: bool = False
    thresholds_source: str = "defaults, not calibrated"
    limits: Thresholds = field(default_factory=Thresholds)
    remarks: tuple[Remark, ...] = ()
    setting_changes: tuple[SettingChange, ...] = ()
    log_context: tuple[LogLine, ...] = ()
    log_context_for: tuple[str, int] | None = None
    job: JobInfo | None = None
    job_chain: tuple[JobInfo, ...] = ()
    at_risk: WorkAtRisk | None = None
    goodput: Goodput | None = None
    preview: bool = False
    others: tuple[RunSnapshot, ...] = ()
    rhythm: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """Every run, plus what concerns no single run (targets that cannot be read, what was searched)."""

    runs: tuple[RunSnapshot, ...]
    problems: tuple[str, ...] = ()
    status: str = ""
    taken_at: float = 0.0
    reading: bool = False

    def says_as(self, before: FleetSnapshot) -> bool:
        """Whether nothing but the time differs; runs are compared by identity."""
        same_runs = len(self.runs) == len(before.runs) and all(map(is_, self.runs, before.runs))
        told = (self.problems, self.status, self.reading)
        return same_runs and told == (before.problems, before.status, before.reading)
