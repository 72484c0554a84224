"""What the fleet list knows of one run: plain values for columns, sorting and filtering."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, State, TriageStep
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tui.rates import of_one_card

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
    """NaN stands for what is not known. `memory` and `mfu` are shares of one; `explained_by` the triage
    step; `per_card`: the tokens a second are one card's."""

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
    fingerprint: Hashable = None
    came_s: float | None = None
    per_card: bool = False

    def age_at(self, now_s: float) -> float:
        """Seconds since the newest data at `now_s`, on the clock of `came_s`, at which the snapshot came."""
        return self.age_s if self.came_s is None else self.age_s + max(0.0, now_s - self.came_s)

    @property
    def progress(self) -> float:
        """Share of the planned steps, NaN when either is not known."""
        return min(1.0, self.step / self.total) if self.total > 0 else math.nan


_READ = ("loss.train", "spike.score", "sys.tokens_per_second", "sys.memory_share", "sys.peak_memory", "sys.mfu")


def row_of(run: RunSnapshot, came_s: float | None = None) -> Row:
    """The values of `run`, in one pass over its series; nothing is computed from whole series. `came_s`: see `Row`."""
    largest = dict.fromkeys(_READ, math.nan)
    fastest = None
    for key, view in run.series.items():
        if key.signal in largest and not view.last <= largest[key.signal]:
            largest[key.signal] = view.last
            fastest = view if key.signal == "sys.tokens_per_second" else fastest
    loss = run.series.get(SignalKey("loss.train"))
    row = Row(
        id=RunId(run.name, run.target),
        run=run,
        step=_known(run.last_step),
        total=_known(run.total_steps),
        loss=largest["loss.train"] if loss is None else loss.last,
        z=largest["spike.score"],
        tokens_per_second=largest["sys.tokens_per_second"],
        memory=largest["sys.memory_share"],
        memory_bytes=largest["sys.peak_memory"],
        mfu=largest["sys.mfu"],
        age_s=_known(run.age_s),
        eta_s=_known(run.eta_s),
        explained_by=explanation(run),
        trouble=trouble_of(run),
        came_s=came_s,
        per_card=fastest is not None and of_one_card(run, fastest),
    )
    return replace(row, fingerprint=_fingerprint(row))


def _fingerprint(row: Row) -> Hashable:
    """Changes when the row must be drawn anew: a session may publish new objects that say the same."""
    run, why = row.run, row.explained_by
    loss = run.series.get(SignalKey("loss.train"))
    curve = (loss.count, loss.steps.size, loss.bad_steps.size, repr(loss.last)) if loss is not None else ()
    numbers = (row.step, row.total, row.z, row.tokens_per_second, row.memory, row.memory_bytes, row.mfu, row.eta_s)
    reason = (why.id, why.what, why.episodes) if why else (run.verdict_reason,)
    job = (run.job.time_left_s if run.job else None, run.goodput)
    return (row.id, run.state, run.verdict, min(run.progress, 1.0), reason, curve, repr(numbers), job)


def _known(value: float | None) -> float:
    return math.nan if value is None else value


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
