"""One state out of the scheduler's word, the log's last words and silence; each told apart, with its evidence."""

from __future__ import annotations

import pytest

from tests.monitor.slurm.answers import NOW
from trainmon.monitor.finding import Verdict
from trainmon.monitor.job.judging import JobState, Pulse, job_state
from trainmon.monitor.snapshot import JobInfo, State
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Note, NoteKind

LOG = "train.log"


def note(kind: NoteKind, text: str = "words", line: int = 60) -> Note:
    return Note(LOG, line, line * 80, kind, text, step=10.0)


def job(state: str = "RUNNING", **told: object) -> JobInfo:
    usual: dict[str, object] = {"started_at": NOW - 7200.0, "asked_at": NOW - 30.0, "submitted_at": NOW - 9000.0}
    return JobInfo("12", state, **(usual | told))  # type: ignore[arg-type]


def state(
    told: JobInfo | None, *notes: Note, age_s: float | None = 20.0, last: float | None = 10.0, total: float = 100.0
) -> JobState:
    steps = None if last is None else (0.0, last)
    pulse = Pulse(age_s, 5.0, seen_growing=False, gap_s=2.0)
    return job_state(notes, {LOG: 50}, steps, total, pulse, Thresholds(), job=told, now=NOW)


@pytest.mark.parametrize(
    ("told", "notes", "age_s", "expected"),
    [
        (job("PENDING", started_at=None, reason="Priority"), [], None, State.QUEUED),
        (job("PENDING", started_at=None, restarts=2), [], 900.0, State.REQUEUED),
        (job("REQUEUE_HOLD", started_at=None), [], 900.0, State.REQUEUED),
        (job("SPECIAL_EXIT", started_at=None), [], 900.0, State.REQUEUED),
        (job("CONFIGURING"), [], None, State.STARTING),
        (job("RUNNING"), [], 5.0, State.RUNNING),
        (job("RUNNING"), [], 400.0, State.SLOW),
        (job("RUNNING"), [], 1300.0, State.HUNG),
        (job("SUSPENDED"), [], 1300.0, State.SLOW),
        (job("COMPLETING"), [], 5.0, State.RUNNING),
        (job("COMPLETED", ended_at=NOW - 60.0, exit_code=0), [], 60.0, State.FINISHED),
        (job("FAILED", ended_at=NOW - 60.0, exit_code=1), [], 60.0, State.CRASHED),
        (job("FAILED", ended_at=NOW - 60.0, exit_code=143), [], 60.0, State.CANCELLED),
        (job("CANCELLED", ended_at=NOW - 60.0), [], 60.0, State.CANCELLED),
        (job("CANCELLED", ended_at=NOW - 60.0, started_at=None), [], None, State.CANCELLED),
        (job("TIMEOUT", ended_at=NOW - 60.0), [], 60.0, State.TIME_LIMIT),
        (job("DEADLINE", ended_at=NOW - 60.0), [], 60.0, State.TIME_LIMIT),
        (job("PREEMPTED", ended_at=NOW - 60.0), [], 60.0, State.PREEMPTED),
        (job("NODE_FAIL", ended_at=NOW - 60.0), [], 60.0, State.NODE_FAIL),
        (job("BOOT_FAIL", ended_at=NOW - 60.0), [], 60.0, State.NODE_FAIL),
        (job("OUT_OF_MEMORY", ended_at=NOW - 60.0), [], 60.0, State.OOM),
        (job("FAILED", ended_at=NOW - 60.0, exit_code=1), [note(NoteKind.CUDA_OOM)], 60.0, State.OOM),
        (job("COMPLETED", ended_at=NOW - 60.0, exit_code=0), [note(NoteKind.TRACEBACK)], 60.0, State.CRASHED),
        (job("TIMEOUT", ended_at=NOW - 60.0), [note(NoteKind.NCCL_TIMEOUT)], 60.0, State.CRASHED),
        (job("CANCELLED", ended_at=NOW - 60.0), [note(NoteKind.TRACEBACK)], 60.0, State.CRASHED),
        (job("TIMEOUT", ended_at=NOW - 60.0), [note(NoteKind.CANCELLED)], 60.0, State.TIME_LIMIT),
        (job("COMPLETED", ended_at=NOW - 60.0, exit_code=0), [note(NoteKind.SIGTERM)], 60.0, State.CANCELLED),
        (job("RUNNING"), [note(NoteKind.TRACEBACK)], 60.0, State.CRASHED),
        (job("RUNNING", restarts=1), [note(NoteKind.CANCELLED)], 60.0, State.RUNNING),
        (job("RUNNING"), [note(NoteKind.FINISHED)], 60.0, State.FINISHED),
        (job("GONE", ended_at=None), [], 60.0, State.UNKNOWN),
        (job("GONE", ended_at=None), [note(NoteKind.CUDA_OOM)], 60.0, State.OOM),
        (job("WHAT_IS_THIS"), [], 5.0, State.RUNNING),
    ],
)
def test_states(told: JobInfo, notes: list[Note], age_s: float | None, expected: State) -> None:
    found = state(told, *notes, age_s=age_s)
    assert found.state is expected
    assert found.reason


def test_a_job_that_has_ended_is_over_however_young_its_log() -> None:
    assert state(job("TIMEOUT", ended_at=NOW - 1.0), age_s=0.1).ended
    assert state(job("GONE"), age_s=0.1).ended


def test_a_job_that_has_just_begun_is_not_hung_by_the_age_of_an_older_log() -> None:
    found = state(job(started_at=NOW - 100.0, restarts=1), note(NoteKind.CANCELLED), age_s=90_000.0)
    assert found.state is State.STARTING
    assert "restart 1" in found.reason


def test_a_start_that_says_nothing_for_an_hour_is_hung() -> None:
    found = state(job(started_at=NOW - 3600.0), age_s=None, last=None)
    assert (found.state, found.verdict) == (State.HUNG, Verdict.FAIL)


def test_the_reason_names_both_witnesses() -> None:
    found = state(
        job("FAILED", ended_at=NOW - 60.0, exit_code=1, reason="NonZeroExitCode"), note(NoteKind.TRACEBACK, "E")
    )
    assert found.reason == "after step 10, line 60: E [Slurm job 12 FAILED (NonZeroExitCode), exit code 1]"
    assert (found.root_error, found.evidence) == ("E", note(NoteKind.TRACEBACK, "E"))


def test_what_does_not_pass_by_waiting_is_a_warning() -> None:
    stuck = state(job("PENDING", started_at=None, reason="DependencyNeverSatisfied", dependency="afterok:11"))
    assert (stuck.state, stuck.verdict) == (State.QUEUED, Verdict.WARN)
    assert state(job("PENDING", started_at=None, reason="Resources")).verdict is Verdict.PASS


def test_the_start_estimate_is_told() -> None:
    found = state(job("PENDING", started_at=None, reason="Priority", start_estimate=NOW + 7200.0))
    assert "start expected in 2 h 0 min" in found.reason


def test_what_was_heard_long_ago_is_said_to_be_old() -> None:
    assert "last heard 20 min ago" in state(job(asked_at=NOW - 1200.0)).reason


def test_without_a_scheduler_an_old_log_is_unknown() -> None:
    assert state(None, age_s=90_000.0).state is State.UNKNOWN


def test_an_output_that_could_not_be_opened_is_told_as_that() -> None:
    """Slurm itself says signal 53 then, which is no signal that a newcomer knows."""
    found = state(job("FAILED", ended_at=NOW - 60.0, signal=53, stdout="/w/logs/12.out", reason="JobLaunchFailure"))
    assert found.state is State.CRASHED
    assert "could not open its output; is there a directory /w/logs on the node?" in found.reason


@pytest.mark.parametrize("started", [None, NOW - 60.0])
def test_a_job_that_was_cancelled_while_it_waited_never_began(started: float | None) -> None:
    """squeue gives it the moment of its end as its start, and what it waited for as its reason."""
    told = job("CANCELLED", started_at=started, ended_at=NOW - 60.0, reason="Priority")
    assert state(told, age_s=None, last=None).reason == "Slurm job 12 CANCELLED, before it started"
    ran = job("CANCELLED", started_at=NOW - 60.0, ended_at=NOW - 60.0, nodes="n1", reason="by user 7")
    assert state(ran, age_s=None, last=None).reason == "Slurm job 12 CANCELLED (by user 7)"
