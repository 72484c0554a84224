"""The scheduler's word and the log's, brought together into one state with the evidence of both."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from trainmon.monitor.job.state import JobState, duration
from trainmon.monitor.slurm import fields
from trainmon.monitor.snapshot import JobInfo, State

_BROKEN: Final = frozenset((State.CRASHED, State.OOM, State.NODE_FAIL))
_ENDS: Final[dict[str, State]] = {
    "COMPLETED": State.FINISHED,
    "FAILED": State.CRASHED,
    "LAUNCH_FAILED": State.CRASHED,
    "RECONFIG_FAIL": State.NODE_FAIL,
    "CANCELLED": State.CANCELLED,
    "REVOKED": State.CANCELLED,
    "TIMEOUT": State.TIME_LIMIT,
    "DEADLINE": State.TIME_LIMIT,
    "PREEMPTED": State.PREEMPTED,
    "NODE_FAIL": State.NODE_FAIL,
    "BOOT_FAIL": State.NODE_FAIL,
    "OUT_OF_MEMORY": State.OOM,
}
_REQUEUED: Final = frozenset(("REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"))
_PAUSED: Final = frozenset(("SUSPENDED", "STOPPED"))
_SIGNALS: Final = {1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_NO_OUTPUT: Final = 53  # what Slurm itself gives a batch job whose files it cannot open; no program dies of it
# Reasons that do not pass by waiting.
_BLOCKED: Final = (
    "DependencyNeverSatisfied", "JobHeld", "BadConstraints", "InvalidAccount", "InvalidQOS", "AccountNotAllowed",
    "QOSNotAllowed", "PartitionTimeLimit", "PartitionNodeLimit", "launch_failed_requeued_held", "launch failed",
    "JobHoldMaxRequeue",
)  # fmt: skip
_STALE_S: Final = 300.0
_CLOCKS_DIFFER_S: Final = 60.0

# Given how long the job has run without a word of its own, or None where the log's own age counts.
Silence = Callable[[float | None], JobState]


def judged(job: JobInfo, words: JobState | None, silence: Silence, *, now: float, age_s: float | None) -> JobState:
    """The run's state.

    `words`: what the log's last words say, None when they say nothing of an end; `silence`: what silence says of a job
    that runs; `age_s`: of the newest byte. A job that has ended is judged as ended however young its log is, and a job
    that runs is not taken for dead because its log is old.
    """
    state = job.state
    if state in fields.ENDED:
        found = _ended(job, words)
    elif state == "PENDING" or state in _REQUEUED:
        found = _waiting(job, words, now)
    elif state == "CONFIGURING":
        found = JobState(State.STARTING, f"{_who(job)}: its nodes are being made ready")
    elif state in _PAUSED:
        found = JobState(State.SLOW, f"{_who(job)}: suspended by the scheduler; it goes on when it is resumed")
    else:
        found = _running(job, words, silence, now, age_s)
    if now - job.asked_at > _STALE_S and not found.ended:
        found = replace(found, reason=f"{found.reason} (Slurm was last heard {duration(now - job.asked_at)} ago)")
    if found.error is None and words is not None and words.error is not None:
        found = replace(found, root_error=words.root_error, outlived=words.outlived)
    return found


def _who(job: JobInfo) -> str:
    reason = f" ({job.reason})" if job.reason else ""
    return f"Slurm job {job.id} {job.state}{reason}"


def how_it_exited(job: JobInfo) -> str:
    """In words: "exit code 1", "signal 9 (SIGKILL)"; "" when nothing is known or all was well.

    >>> how_it_exited(JobInfo("4", "FAILED", exit_code=137)), how_it_exited(JobInfo("4", "FAILED", signal=11))
    ('exit code 137 (SIGKILL)', 'signal 11 (SIGSEGV)')
    """
    if job.signal == _NO_OUTPUT:
        folder = os.path.dirname(job.stdout)
        return f"signal 53: Slurm could not open its output; is there a directory {folder or 'for it'} on the node?"
    if job.signal:
        return f"signal {job.signal}" + (f" ({_SIGNALS[job.signal]})" if job.signal in _SIGNALS else "")
    if not job.exit_code:
        return ""
    name = _SIGNALS.get(job.exit_code - 128)
    return f"exit code {job.exit_code}" + (f" ({name})" if name else "")


def _ended(job: JobInfo, words: JobState | None) -> JobState:
    exited = how_it_exited(job)
    who = _who(job) + (f", {exited}" if exited else "")
    if job.state == "GONE":
        if words is not None:
            return replace(words, reason=f"{words.reason}; Slurm no longer knows job {job.id}", is_over=True)
        reason = f"Slurm no longer knows job {job.id}, and the log does not say how it ended"
        return JobState(State.UNKNOWN, reason, is_over=True)
    state = _ENDS.get(job.state, State.UNKNOWN)
    if job.state == "CANCELLED" and _never_ran(job):
        # What it waited for stays behind as its reason.
        by = f" ({job.reason})" if job.reason.startswith("by ") else ""
        return JobState(state, f"Slurm job {job.id} CANCELLED{by}, before it started")
    if words is None:
        return JobState(_refined(state, job), who, is_over=True)
    if words.state in _BROKEN:
        # What broke comes first; the time limit or the scancel that ended a hung job is its consequence.
        hidden = "; the script hid the failure" if state is State.FINISHED else ""
        return replace(words, reason=f"{words.reason} [{who}{hidden}]", is_over=True)
    if words.state is State.FINISHED and state is State.CRASHED:
        return replace(words, reason=f"{words.reason} [{who}: something failed behind the training]", is_over=True)
    if words.state is state:
        return replace(words, reason=f"{words.reason} [{who}]", is_over=True)
    if state is State.FINISHED and words.state is not State.FINISHED:
        # A script that was told to stop, saved and left in order.
        return replace(words, reason=f"{words.reason} [{who}]", is_over=True)
    reason = f"{who}; the log: {words.reason}"
    return replace(words, state=_refined(state, job), reason=reason, is_over=True, is_blocked=False)


def _never_ran(job: JobInfo) -> bool:
    """Whether it was ended while it waited; squeue gives such a job the moment of its end as its start."""
    return job.started_at is None or (not job.nodes and job.started_at == job.ended_at)


def _refined(state: State, job: JobInfo) -> State:
    """A failure that was a signal from outside is one that somebody sent."""
    asked_to_stop = job.signal in (2, 15) or job.exit_code in (130, 143)
    return State.CANCELLED if state is State.CRASHED and asked_to_stop else state


def _waiting(job: JobInfo, words: JobState | None, now: float) -> JobState:
    again = bool(job.restarts) or job.state in _REQUEUED
    parts = [job.reason] if job.reason else []  # first: a list has room for little
    if job.restarts:
        parts.append(f"restart {job.restarts}")
    if job.dependency:
        parts.append(f"waits for {job.dependency}")
    if job.start_estimate is not None and job.start_estimate > now:
        parts.append(f"start expected in {duration(job.start_estimate - now)}")
    elif job.submitted_at is not None and now > job.submitted_at:
        parts.append(f"for {duration(now - job.submitted_at)} now")
    is_blocked = job.reason.startswith(_BLOCKED)
    if is_blocked:
        parts.append("this does not pass by waiting")
    if words is not None and words.error and again:
        parts.append(f"its last start ended with: {words.error}")
    state = State.REQUEUED if again else State.QUEUED
    reason = f"{', '.join(parts)} [Slurm job {job.id} {job.state}]".lstrip()
    return JobState(state, reason, words.error if words and again else None, is_blocked=is_blocked)


def _running(job: JobInfo, words: JobState | None, silence: Silence, now: float, age_s: float | None) -> JobState:
    ran_s = now - job.started_at if job.started_at is not None else None
    if ran_s is not None and (age_s is None or age_s > ran_s + _CLOCKS_DIFFER_S):
        # Nothing in the log is of this start: it is as silent as it is old.
        again = f" (restart {job.restarts})" if job.restarts else ""
        found = silence(max(ran_s, 0.0))
        return replace(found, reason=f"{_who(job)}{again}: {found.reason}")
    if words is None or job.restarts:
        return silence(None)
    if words.state in _BROKEN:
        return replace(words, reason=f"{words.reason} [Slurm still counts job {job.id} as {job.state}]")
    if words.state is State.FINISHED:
        return replace(words, reason=f"{words.reason} [Slurm job {job.id} is still {job.state}]")
    # Somebody stopped something, and Slurm was asked after that: whatever it was, the job goes on.
    was_asked_since = age_s is None or now - age_s < job.asked_at
    return silence(None) if was_asked_since else words
