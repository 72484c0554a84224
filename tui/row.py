"""What the fleet list knows of one run: plain values for columns, sorting and filtering."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from trainmon.monitor.finding import Verdict
from trainmon.monitor.snapshot import RunSnapshot, State, TriageStep
from trainmon.tui.slots import family

ENDED = frozenset(
    {
        State.FINISHED,
        State.CRASHED,
        State.OOM,
        State.TIME_LIMIT,
        State.PREEMPTED,
        State.CANCELLED,
        State.NODE_FAIL,
    }
)
FAILED = frozenset({State.CRASHED, State.OOM, State.NODE_FAIL, State.HUNG})
ALIVE = frozenset(
    {State.STARTING, State.RUNNING, State.CHECKPOINTING, State.EVALUATING, State.SLOW, State.BUFFERED, State.HUNG}
)


class RunId(NamedTuple):
    """What keeps a run the same run over snapshots."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Row:
    """NaN stands for what is not known. `memory` and `mfu` are shares of one; `explained_by` the triage step."""

    id: RunId
    run: RunSnapshot
    step: float
    total: float
    loss: float
    z: float
    tokens_per_second: float
    memory: float
    memory_bytes: float
    mfu: float
    age_s: float
    eta_s: float
    explained_by: TriageStep | None
    trouble: int

    @property
    def progress(self) -> float:
        """Share of the planned steps, NaN when either is not known."""
        return min(1.0, self.step / self.total) if self.total > 0 else math.nan


def row_of(run: RunSnapshot) -> Row:
    """The values of `run`; nothing is computed from whole series."""
    return Row(
        id=RunId(run.name, run.target),
        run=run,
        step=_known(run.last_step),
        total=_known(run.total_steps),
        loss=last_of(run, "loss.train"),
        z=max((view.last for view in family(run, "spike.score") if math.isfinite(view.last)), default=math.nan),
        tokens_per_second=last_of(run, "sys.tokens_per_second"),
        memory=last_of(run, "sys.memory_share"),
        memory_bytes=last_of(run, "sys.peak_memory"),
        mfu=last_of(run, "sys.mfu"),
        age_s=_known(run.age_s),
        eta_s=_known(run.eta_s),
        explained_by=explanation(run),
        trouble=trouble_of(run),
    )


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def last_of(run: RunSnapshot, signal: str) -> float:
    """The newest value of a signal; the largest where several labels report it; NaN when it is not there."""
    views = family(run, signal)
    return views[0].last if views else math.nan


def explanation(run: RunSnapshot) -> TriageStep | None:
    """The step of the walk that explains the verdict: the one that says so, else the first that is as bad."""
    if run.verdict not in (Verdict.WARN, Verdict.FAIL):
        return None
    for step in run.triage:
        if step.explains:
            return step
    return next((step for step in run.triage if step.verdict == run.verdict), None)


def trouble_of(run: RunSnapshot) -> int:
    """How far up the list the run belongs: open FAIL 5, FAIL 4, open WARN 3, WARN 2, alive 1, the rest 0."""
    unseen = any(not (one.recovered or one.acknowledged) for one in run.episodes)
    if run.verdict == Verdict.FAIL or run.state in FAILED:
        return 5 if unseen else 4
    if run.verdict == Verdict.WARN:
        return 3 if unseen else 2
    return 1 if run.state in ALIVE else 0
