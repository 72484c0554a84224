"""The scheduler's part of a snapshot and of the report: the job that counts now, work at risk, goodput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trainmon.monitor.finding import CheckResult
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.state import duration
from trainmon.monitor.job.work import goodput, pace_by_job, risk_check, step_time_s, stride_of, work_at_risk
from trainmon.monitor.slurm.fields import ENDED
from trainmon.monitor.snapshot import Goodput, JobInfo, RunSnapshot, SeriesView, WorkAtRisk
from trainmon.monitor.step_unit import counted
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

if TYPE_CHECKING:
    from trainmon.monitor.engine import RunEngine

_WAITS = ("PENDING", "REQUEUED", "REQUEUE_HOLD")


@dataclass(frozen=True, slots=True)
class Told:
    """What the run's jobs give to a snapshot. `stride`: steps from one record to the next."""

    job: JobInfo | None
    at_risk: WorkAtRisk | None
    goodput: Goodput | None
    checks: tuple[CheckResult, ...]
    stride: float


def current(jobs: Sequence[JobInfo]) -> JobInfo | None:
    """The job that counts now: one that runs, else one that waits behind those that ended, else the last that ended.

    >>> current([JobInfo("1", "TIMEOUT"), JobInfo("2", "RUNNING"), JobInfo("3", "PENDING")]).id
    '2'
    >>> current([JobInfo("1", "TIMEOUT"), JobInfo("3", "PENDING")]).id, current([])
    ('3', None)
    """
    open_ones = [job for job in jobs if job.state not in ENDED and job.ended_at is None]
    running = [job for job in open_ones if job.state not in _WAITS]
    if running:
        return running[-1]
    waiting = [job for job in open_ones if job.state in _WAITS]
    if waiting:
        return waiting[0]
    return jobs[-1] if jobs else None


def left_behind(jobs: Sequence[JobInfo]) -> frozenset[str]:
    """The outputs of earlier starts, as far as the one that counts now writes elsewhere."""
    job = current(jobs)
    if job is None:
        return frozenset()
    mine = {job.stdout, job.stderr}
    return frozenset(path for one in jobs for path in (one.stdout, one.stderr) if path and path not in mine)


def tell_of_jobs(
    engine: RunEngine,
    series: Mapping[SignalKey, SeriesView],
    jobs: Sequence[JobInfo],
    *,
    eta_s: float | None,
    now: float | None,
) -> Told:
    """What `jobs` mean for the run, at the wall-clock time `now`."""
    job = current(jobs)
    at = now if now is not None else (job.asked_at if job is not None else 0.0)
    if job is not None:
        left_s = job.ends_at - at if job.ends_at is not None and job.state not in ENDED else None
        job = replace(job, time_left_s=None if left_s is None else max(left_s, 0.0))
    interval, world = engine.facts.get("checkpoint_interval"), engine.facts.get("world_size")
    every = float(interval) if isinstance(interval, int | float) else None
    last = engine.steps.last if engine.steps is not None else None
    stride = stride_of(series)
    step_s = step_time_s(series) if counted(engine.facts) == "steps" else None
    pace_s = step_s or pace_by_job(job, engine.attempts, stride, at)
    risk = work_at_risk(job, engine.notes, every, last, pace_s, eta_s)
    check = risk_check(job, risk, engine.notes, every, last, pace_s, eta_s)
    good = None
    if jobs or (len(engine.attempts) > 1 and not engine.began_anew):  # else it is not known whether anything was lost
        size = float(world) if isinstance(world, int | float) else None
        good = goodput(engine.attempts, stride, jobs, size, at)
    return Told(job, risk, good, (check,) if check is not None else (), stride)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def job_lines(run: RunSnapshot) -> list[tuple[str, str]]:
    """What the report says of the job, as (heading, words)."""
    job = run.job
    lines: list[tuple[str, str]] = []
    if job is not None:
        parts = [f"{job.id} {printable(job.name, 80)}".strip(), job.state.lower()]
        if job.nodes:
            parts.append(f"on {printable(job.nodes, 120)}")
        if job.time_left_s is not None:
            parts.append(f"{duration(job.time_left_s)} left")
        if job.restarts:
            parts.append(f"{job.restarts} restarts" if job.restarts > 1 else "1 restart")
        if job.start_estimate is not None:
            parts.append(f"start expected {_date(job.start_estimate)}")
        if job.dependency and job.started_at is None:
            parts.append(f"depends on {printable(job.dependency, 120)}")
        told_by = job.sources.get("state", "")
        lines.append(("job", ", ".join(parts) + (f" ({told_by}, {_date(job.asked_at)})" if told_by else "")))
    if len(run.job_chain) > 1:
        shown = run.job_chain[-8:]
        more = f"{len(run.job_chain) - 8} earlier, " if len(run.job_chain) > 8 else ""
        lines.append(("jobs", f"{len(run.job_chain)}: {more}" + ", ".join(f"{one.id} {one.state}" for one in shown)))
    if (good := run.goodput) is not None and (good.restarts or good.gpu_hours is not None):
        lines.append(("goodput", goodput_words(good)))
    return lines


def goodput_words(good: Goodput) -> str:
    """In words.

    >>> goodput_words(Goodput(1000.0, 30.0, 2, 3725.0, 12.5))
    '97.0% of 1000 steps trained still count, 30 lost to 2 restarts, 1 h 2 min between starts, 12.5 GPU-hours'
    """
    parts = [f"{good.share:.1%} of {good.steps_trained:.15g} steps trained still count"]
    if good.restarts:
        restarts = "1 restart" if good.restarts == 1 else f"{good.restarts} restarts"
        parts.append(f"{good.steps_lost:.15g} lost to {restarts}")
    if good.downtime_s is not None:
        parts.append(f"{duration(good.downtime_s)} between starts")
    if good.gpu_hours is not None:
        parts.append(f"{good.gpu_hours:.1f} GPU-hours")
    return ", ".join(parts)


def job_document(run: RunSnapshot) -> dict[str, object]:
    """The scheduler's part of ``check --json``; every value None where nobody knows of a job."""
    risk, good = run.at_risk, run.goodput
    return {
        "job": None if run.job is None else job_entry(run.job),
        "job_chain": [job_entry(job) for job in run.job_chain],
        "at_risk": None
        if risk is None
        else {
            "time_left_s": risk.time_left_s,
            "next_checkpoint_s": risk.next_checkpoint_s,
            "last_checkpoint": risk.last_checkpoint,
            "steps": risk.steps,
        },
        "goodput": None
        if good is None
        else {
            "share": good.share,
            "steps_trained": good.steps_trained,
            "steps_lost": good.steps_lost,
            "restarts": good.restarts,
            "downtime_s": good.downtime_s,
            "gpu_hours": good.gpu_hours,
        },
    }


def job_entry(job: JobInfo) -> dict[str, object]:
    """One job: every field by its own name."""
    return {name: getattr(job, name) for name in JobInfo.__dataclass_fields__ if name != "sources"} | {
        "sources": dict(job.sources)
    }
