"""What a time limit and restarts cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.finding import Verdict
from trainmon.monitor.job.work import goodput, pace_by_job, risk_check, work_at_risk
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.record import Note, NoteKind

SAVED = [Note("a", step, 0, NoteKind.CHECKPOINT_SAVED, "saved", step=float(step)) for step in (100, 200, 300)]
RUNNING = JobInfo("1", "RUNNING", time_left_s=600.0)


def test_work_is_at_risk_when_the_limit_comes_before_the_next_checkpoint() -> None:
    risk = work_at_risk(RUNNING, SAVED, None, 310.0, 10.0, 1e6)
    assert risk is not None
    assert (risk.next_checkpoint_s, risk.last_checkpoint, risk.steps) == (900.0, 300.0, 70.0)
    check = risk_check(RUNNING, risk, SAVED, None, 310.0, 10.0, 1e6)
    assert check is not None
    assert check.verdict is Verdict.WARN


def test_no_work_is_at_risk_when_a_checkpoint_or_the_end_comes_first() -> None:
    assert work_at_risk(RUNNING, SAVED, None, 350.0, 10.0, 1e6) is None
    assert work_at_risk(RUNNING, SAVED, None, 310.0, 10.0, 500.0) is None
    assert work_at_risk(JobInfo("1", "RUNNING"), SAVED, None, 310.0, 10.0, 1e6) is None


@pytest.mark.parametrize(
    ("notes", "interval", "last", "pace", "reason"),
    [
        ([], None, 310.0, 10.0, "the log names no checkpoint"),
        (SAVED[:1], None, 110.0, 10.0, "the log names one checkpoint only"),
        (SAVED, None, 310.0, None, "the log has no step times or time stamps"),
        ([], 100.0, None, 10.0, "no step in the log yet"),
    ],
)
def test_what_would_have_to_be_known_is_said(
    notes: list[Note], interval: float | None, last: float | None, pace: float | None, reason: str
) -> None:
    assert work_at_risk(RUNNING, notes, interval, last, pace, 1e6) is None
    check = risk_check(RUNNING, None, notes, interval, last, pace, None)
    assert check is not None
    assert check.verdict is Verdict.NO_DATA
    assert check.what == (f"10 min left of the job's time limit; {reason}, so what the limit would cost is not known")


def test_a_limit_behind_the_end_or_the_next_checkpoint_passes() -> None:
    done = risk_check(RUNNING, None, [], None, 310.0, 10.0, 500.0)
    saved = risk_check(RUNNING, None, SAVED, None, 350.0, 10.0, 1e6)
    assert done is not None
    assert saved is not None
    assert (done.verdict, saved.verdict) == (Verdict.PASS, Verdict.PASS)


def test_the_pace_of_a_log_without_times_is_that_of_the_job() -> None:
    job = JobInfo("1", "RUNNING", started_at=100.0)
    assert pace_by_job(job, [(1.0, 50.0), (41.0, 90.0)], 1.0, 600.0) == 10.0
    assert pace_by_job(job, [(1.0, 5.0)], 1.0, 600.0) is None
    assert pace_by_job(JobInfo("1", "FAILED", started_at=100.0), [(1.0, 50.0)], 1.0, 600.0) is None
    assert pace_by_job(None, [(1.0, 50.0)], 1.0, 600.0) is None


def test_a_known_interval_is_enough() -> None:
    assert work_at_risk(RUNNING, [], 100.0, 310.0, 10.0, 1e6) is not None


@given(st.lists(st.tuples(st.integers(1, 80), st.integers(0, 60)), min_size=1, max_size=6))
def test_lost_steps_are_those_that_were_trained_again(spans: list[tuple[int, int]]) -> None:
    attempts = [(float(first), float(first + length)) for first, length in spans]
    effective: set[int] = set()
    trained = 0
    for first, last in attempts:
        effective = {step for step in effective if step < first} | set(range(int(first), int(last) + 1))
        trained += int(last - first) + 1
    found = goodput(attempts, 1.0, [], None, 0.0)
    assert found is not None
    assert (found.steps_trained, found.steps_lost) == (trained, trained - len(effective))
    assert 0.0 < found.share <= 1.0


def test_downtime_and_gpu_hours_come_from_the_jobs() -> None:
    jobs = [
        JobInfo("1", "TIMEOUT", started_at=0.0, ended_at=3600.0, gpus=8.0),
        JobInfo("2", "RUNNING", started_at=5400.0, gpus=8.0),
    ]
    found = goodput([(1.0, 9.0)], 1.0, jobs, None, 7200.0)
    assert found is not None
    assert (found.downtime_s, found.gpu_hours) == (1800.0, 12.0)
    assert goodput([(1.0, 9.0)], 1.0, [], None, 7200.0).gpu_hours is None  # type: ignore[union-attr]
    by_world = goodput([(1.0, 9.0)], 1.0, [JobInfo("1", "RUNNING", started_at=0.0)], 4.0, 3600.0)
    assert by_world is not None
    assert by_world.gpu_hours == pytest.approx(4.0)
    assert np.isfinite(by_world.share)
