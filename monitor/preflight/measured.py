"""What the log of a run tells of its settings where no file says them: by its values, steps, times and notes."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.inventory import cadence_steps
from trainmon.monitor.preflight.plan import Plan
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.step_unit import counted
from trainmon.tails.record import FloatArray, NoteKind

_RATE: Final = SignalKey("optim.lr")
_BEGINS: Final = 0.01  # a log that begins within this share of the run saw how the rate began ...
_FEW_STEPS: Final = 20.0  # ... or within so many steps
_ENDS: Final = 0.98  # and one that reaches this share of it, how it ended
_AT_PEAK: Final = 0.99


def measure(plan: Plan, run: RunSnapshot) -> None:
    """Fills in what `plan` is not told from the log of `run`; what a file or the command line says stays."""
    view = run.series.get(SignalKey("sys.step_time"))
    if view is not None and np.isfinite(view.values).any() and counted(run.facts) == "steps":
        plan.derive("step_time_s", float(np.nanmedian(view.values)), "the log's median step")
    saved = [note.step for note in run.notes if note.kind is NoteKind.CHECKPOINT_SAVED and note.step is not None]
    gaps = [later - earlier for earlier, later in pairwise(saved) if later > earlier]
    if gaps:
        plan.derive("checkpoint_interval", float(np.median(gaps)), "the checkpoints in the log")
    plan.derive("dead_time_s", _dead_time(run), "the gap between attempts in the log")
    if run.step_key != "line":  # counted lines are no steps
        _cadences(plan, run)
        if not run.rl:  # the published rates are those of pretraining
            _learning_rate(plan, run)


def _cadences(plan: Plan, run: RunSnapshot) -> None:
    loss = run.series.get(SignalKey("loss.train"))
    if loss is not None:
        plan.derive("log_interval", cadence_steps(loss.steps), "the steps in the log")
    held_out = [cadence_steps(view.steps) for key, view in run.series.items() if key.signal.startswith("eval.")]
    intervals = [interval for interval in held_out if interval]
    if intervals and "evals_per_epoch" not in plan.values and "eval_strategy" not in plan.values:
        plan.derive("eval_interval", min(intervals), "the evaluations in the log")


def _learning_rate(plan: Plan, run: RunSnapshot) -> None:
    """Peak, warm-up and end of the rate that was logged, where the log goes back to the run's beginning."""
    view = run.series.get(_RATE)
    if view is None or run.last_step is None or plan.number("peak_lr") is not None:
        return
    known = np.isfinite(view.values) & (view.attempts == view.attempts[0]) if len(view.values) else np.empty(0, bool)
    steps, rates = view.steps[known], view.values[known]
    length = plan.number("total_steps") or run.last_step
    if not len(rates) or steps[0] > max(_FEW_STEPS, _BEGINS * length) or not rates.max() > 0:
        return
    at_peak = int(np.argmax(rates >= _AT_PEAK * rates.max()))
    if at_peak == len(rates) - 1 and len(rates) > 1:
        return  # still rising: neither peak nor warm-up is known
    plan.derive("peak_lr", float(rates.max()), "the rates in the log")
    if "warmup_ratio" not in plan.values:
        plan.derive("warmup_steps", float(steps[at_peak]) if at_peak else 0.0, "the rates in the log")
    if not {"schedule", "min_lr", "decay_steps", "decay_ratio"} & plan.values.keys():
        _end(plan, run, view.values[np.isfinite(view.values)])


def _end(plan: Plan, run: RunSnapshot, rates: FloatArray) -> None:
    total, last = plan.number("total_steps"), run.last_step
    if not total or last is None or last < _ENDS * total:
        return
    if rates[-1] >= _AT_PEAK * rates.max():
        plan.values["schedule"], plan.said["schedule"] = "constant", "the rates in the log"
    else:
        plan.values["min_lr"], plan.said["min_lr"] = float(rates[-1]), "the rates in the log"


def _dead_time(run: RunSnapshot) -> float | None:
    """Median seconds from the last record of an attempt to the first of the next; None where the log does not tell."""
    view = run.series.get(SignalKey("loss.train"))
    if view is None or view.times is None:
        return None
    known = np.isfinite(view.times)
    times, attempts = view.times[known], view.attempts[known]
    gaps = []
    for number in np.unique(attempts)[1:].tolist():
        before, after = times[attempts < number], times[attempts == number]
        if before.size and after.size and after.min() > before.max():
            gaps.append(float(after.min() - before.max()))
    return float(np.median(gaps)) if gaps else None
