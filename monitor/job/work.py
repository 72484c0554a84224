"""What a job's time limit and a run's restarts cost: work at risk, goodput."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.state import duration
from trainmon.monitor.slurm.fields import ENDED
from trainmon.monitor.snapshot import Goodput, JobInfo, SeriesView, WorkAtRisk
from trainmon.monitor.stats.middle import median
from trainmon.tails.record import Note, NoteKind

_RECENT: Final = 50
_LEAST_STEPS: Final = 20
RISK_ID: Final = "job.risk"


def step_time_s(series: Mapping[SignalKey, SeriesView]) -> float | None:
    """The usual time of a step lately."""
    view = series.get(SignalKey("sys.step_time"))
    if view is None:
        return None
    recent = view.values[-_RECENT:]
    recent = recent[np.isfinite(recent)]
    return median(recent) if len(recent) else None


def pace_by_job(
    job: JobInfo | None, attempts: Sequence[tuple[float, float]], stride: float, now: float
) -> float | None:
    """Seconds a step by the time that the job has run, for a log without times; None with fewer than 20 steps.

    The job's start-up is part of it, so it is rather too long than too short.
    """
    if job is None or job.started_at is None or job.state in ENDED or not attempts:
        return None
    first, last = attempts[-1]
    steps, ran_s = last - first + stride, now - job.started_at
    return ran_s / steps if steps >= _LEAST_STEPS and ran_s > 0 else None


def stride_of(series: Mapping[SignalKey, SeriesView]) -> float:
    """Steps from one record of the loss (or of whatever is logged most) to the next."""
    view = series.get(SignalKey("loss.train")) or max(series.values(), key=lambda one: one.count, default=None)
    if view is None or len(view.steps) < 2:
        return 1.0
    distances = np.diff(view.steps[-1000:])
    distances = distances[distances > 0]
    return median(distances) if len(distances) else 1.0


def work_at_risk(
    job: JobInfo | None,
    notes: Iterable[Note],
    interval: float | None,
    last_step: float | None,
    pace_s: float | None,
    eta_s: float | None,
) -> WorkAtRisk | None:
    """What the time limit would cost; None when it costs nothing, or it cannot be told.

    `interval`: steps from one checkpoint to the next where it is known beforehand; `pace_s`: seconds a step.
    """
    if job is None or job.time_left_s is None or last_step is None or not pace_s:
        return None
    if eta_s is not None and eta_s <= job.time_left_s:
        return None
    saved = [step for step in _saved(notes) if step <= last_step]
    every = _interval(saved, interval)
    if every is None:
        return None
    last = saved[-1] if saved else None
    base = last if last is not None else last_step - last_step % every
    behind = max(every - (last_step - base), 0.0)
    next_s = behind * pace_s
    if next_s <= job.time_left_s:
        # There is a checkpoint still to come; what follows the last one before the limit is what every limit costs.
        return None
    unsaved = last_step - (last if last is not None else 0.0) + job.time_left_s / pace_s
    return WorkAtRisk(job.time_left_s, next_s, last, unsaved)


def _saved(notes: Iterable[Note]) -> list[float]:
    """The steps of the checkpoints."""
    return sorted({note.step for note in notes if note.kind is NoteKind.CHECKPOINT_SAVED and note.step is not None})


def _interval(saved: Sequence[float], known: float | None) -> float | None:
    if len(saved) >= 2:
        return median(np.diff(saved[-20:]))
    return known if known and known > 0 else None


def risk_check(
    job: JobInfo | None,
    risk: WorkAtRisk | None,
    notes: Iterable[Note],
    interval: float | None,
    last_step: float | None,
    pace_s: float | None,
    eta_s: float | None,
) -> CheckResult | None:
    """The check of a job that runs under a time limit; None for any other. Arguments as of `work_at_risk`."""
    if job is None or job.time_left_s is None:
        return None
    left = f"{duration(job.time_left_s)} left of the job's time limit"
    if risk is not None:
        since = (
            "no checkpoint yet" if risk.last_checkpoint is None else f"last saved at step {risk.last_checkpoint:.15g}"
        )
        return CheckResult(
            RISK_ID,
            "Work at Risk",
            Verdict.WARN,
            f"{left}, the next checkpoint is due in {duration(risk.next_checkpoint_s)}: about {risk.steps:.0f} steps"
            f" would be lost ({since})",
            next="save a checkpoint before the limit (sbatch --signal=B:USR1@300 tells the script five minutes before),"
            " or ask for more time",
        )
    if eta_s is not None and eta_s <= job.time_left_s:
        words = f"{left}, all steps are done in {duration(eta_s)}"
        return CheckResult(RISK_ID, "Work at Risk", Verdict.PASS, words)
    if lacking := _lacking(_saved(notes), interval, last_step, pace_s):
        words = f"{left}; {lacking}, so what the limit would cost is not known"
        return CheckResult(RISK_ID, "Work at Risk", Verdict.NO_DATA, words)
    words = f"{left}, the next checkpoint comes before that"
    return CheckResult(RISK_ID, "Work at Risk", Verdict.PASS, words)


def _lacking(saved: Sequence[float], interval: float | None, last_step: float | None, pace_s: float | None) -> str:
    """What would have to be known; "" when all is."""
    if last_step is None:
        return "no step in the log yet"
    if _interval(saved, interval) is None:
        return "the log names no checkpoint" if not saved else "the log names one checkpoint only"
    return "" if pace_s else "the log has no step times or time stamps"


def goodput(
    attempts: Sequence[tuple[float, float]],
    stride: float,
    jobs: Sequence[JobInfo],
    world_size: float | None,
    now: float,
) -> Goodput | None:
    """What the run's restarts cost; None for a run of no step.

    `attempts`: (first, last) step of each; `jobs`: every start of a job of this run; `world_size`: GPUs where the
    scheduler does not say.

    >>> goodput([(1, 100), (91, 150), (51, 60)], 1.0, [], None, 0.0)
    Goodput(steps_trained=170.0, steps_lost=110.0, restarts=2, downtime_s=None, gpu_hours=None)
    """
    if not attempts:
        return None
    kept: list[tuple[float, float]] = []
    trained = 0.0
    for first, last in attempts:
        trained += last - first + stride
        kept = [(low, min(high, first - stride)) for low, high in kept if low < first]
        kept.append((first, last))
    useful = sum(high - low + stride for low, high in kept)
    return Goodput(
        steps_trained=trained,
        steps_lost=max(trained - useful, 0.0),
        restarts=len(attempts) - 1,
        downtime_s=_downtime_s(jobs),
        gpu_hours=_gpu_hours(jobs, world_size, now),
    )


def _downtime_s(jobs: Sequence[JobInfo]) -> float | None:
    """Between one start's end and the next start, as far as both are known; None with fewer than two starts."""
    starts = sorted((job for job in jobs if job.started_at is not None), key=lambda job: job.started_at or 0.0)
    if len(starts) < 2:
        return None
    gaps = [
        max((after.started_at or 0.0) - before.ended_at, 0.0)
        for before, after in pairwise(starts)
        if before.ended_at is not None
    ]
    return sum(gaps) if gaps else None


def _gpu_hours(jobs: Sequence[JobInfo], world_size: float | None, now: float) -> float | None:
    """GPUs times the time they were held; None when either is not known."""
    told = [
        ((job.ended_at if job.ended_at is not None else now) - job.started_at, job.gpus or world_size)
        for job in jobs
        if job.started_at is not None and job.state != "GONE"
    ]
    known = [(seconds, count) for seconds, count in told if count]
    return sum(max(seconds, 0.0) * count for seconds, count in known) / 3600.0 if known else None
