"""Which jobs are one run, and which job wrote a log."""

from __future__ import annotations

import os
from pathlib import Path

from tests.monitor.slurm.answers import NOW
from trainmon.monitor.slurm.chains import chains
from trainmon.monitor.slurm.match import Index, KnownRun, match, starts_of
from trainmon.monitor.slurm.scheduler import Board
from trainmon.monitor.snapshot import JobInfo


def job(identity: str, state: str, start: float | None, end: float | None = None, **told: object) -> JobInfo:
    usual: dict[str, object] = {
        "name": "pre", "user": "ann", "work_dir": "/w", "command": "/w/job.sh", "stdout": f"/w/slurm-{identity}.out",
        "started_at": None if start is None else NOW + start, "ended_at": None if end is None else NOW + end,
        "submitted_at": NOW - 9000.0,
    }  # fmt: skip
    return JobInfo(identity, state, **(usual | told))  # type: ignore[arg-type]


def ids(*jobs: JobInfo) -> list[list[str]]:
    return [[one.id for one in chain] for chain in chains(jobs)]


def test_a_job_that_was_stopped_is_continued_by_the_same_script() -> None:
    first = job("10", "TIMEOUT", -3000, -2000)
    assert ids(job("11", "RUNNING", -1900), first) == [["10", "11"]]
    assert ids(first, job("11", "PENDING", None)) == [["10", "11"]]


def test_jobs_that_began_within_a_second_stand_by_their_numbers() -> None:
    started = [job(number, "COMPLETED", -100, -100) for number in ("10", "9", "100_2", "11", "100_10")]
    assert [one.id for one in starts_of(started, Board())] == ["9", "10", "11", "100_2", "100_10"]


def test_a_job_that_finished_is_not_continued_by_another_try() -> None:
    first = job("10", "COMPLETED", -3000, -2000)
    assert ids(first, job("11", "RUNNING", -1900)) == [["10"], ["11"]]
    assert ids(first, job("11", "RUNNING", -1900, dependency="afterok:10")) == [["10", "11"]]
    assert ids(first, job("11", "RUNNING", -1900, dependency="singleton")) == [["10", "11"]]
    assert ids(first, job("11", "RUNNING", -1900, stdout="/w/slurm-10.out")) == [["10", "11"]]


def test_preparing_data_is_no_attempt_of_the_training() -> None:
    first = job("10", "COMPLETED", -3000, -2000, name="tokenize", command="/w/tok.sh")
    assert ids(first, job("11", "RUNNING", -1900, dependency="afterok:10")) == [["10"], ["11"]]


def test_what_ran_at_one_time_or_belongs_to_another_is_another_run() -> None:
    first = job("10", "TIMEOUT", -3000, -2000)
    assert ids(first, job("11", "RUNNING", -2500)) == [["10"], ["11"]]
    assert ids(first, job("11", "RUNNING", -1900, user="bob")) == [["10"], ["11"]]
    assert ids(first, job("11", "RUNNING", -1900, command="/w/other.sh")) == [["10"], ["11"]]
    assert ids(job("10_1", "TIMEOUT", -3000, -2000), job("10_2", "RUNNING", -1900)) == [["10_1"], ["10_2"]]


def board(*jobs: JobInfo) -> Index:
    return Index(Board({one.id: one for one in jobs}, user="ann", answered_at=NOW))


def written(path: Path, text: str, at: float) -> KnownRun:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (NOW + at, NOW + at))
    run = KnownRun("run", (str(path),))
    run.look()
    return run


def test_a_log_is_its_jobs_by_the_path_of_the_output(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    mine = job("10", "RUNNING", -3000, stdout=str(path))
    assert [one.id for one in match(written(path, "step 1\n", -5), board(mine, job("11", "RUNNING", -3000)))] == ["10"]


def test_a_link_to_the_output_is_the_output(tmp_path: Path) -> None:
    real = tmp_path / "real.log"
    real.write_text("x", encoding="utf-8")
    link = tmp_path / "link.log"
    link.symlink_to(real)
    run = KnownRun("run", (str(link),))
    run.look()
    assert [one.id for one in match(run, board(job("10", "RUNNING", -9e8, stdout=str(real))))] == ["10"]


def test_a_log_is_its_jobs_by_what_it_prints_and_by_its_name(tmp_path: Path) -> None:
    jobs = board(job("4711", "RUNNING", -3000), job("12", "FAILED", -9000, -8000))
    assert [one.id for one in match(written(tmp_path / "a.log", "SLURM_JOB_ID=4711\n", -5), jobs)] == ["4711"]
    assert [one.id for one in match(written(tmp_path / "pre-4711.log", "step 1\n", -5), jobs)] == ["4711"]
    assert [one.id for one in match(written(tmp_path / "slurm-12.out", "step 1\n", -8100), jobs)] == ["12"]
    assert match(written(tmp_path / "other.log", "step 4711 loss 12\n", -5), jobs) == ()


def test_a_log_that_does_not_fit_in_time_is_another_jobs(tmp_path: Path) -> None:
    jobs = board(job("12", "FAILED", -9000, -8000))
    assert match(written(tmp_path / "slurm-12.out", "step 1\n", -90_000), jobs) == ()
    assert match(written(tmp_path / "slurm-12.out", "step 1\n", -5), jobs) == ()


def test_the_number_of_another_users_job_is_no_evidence(tmp_path: Path) -> None:
    jobs = board(job("12", "RUNNING", -9000, user="bob", work_dir="/elsewhere"))
    assert match(written(tmp_path / "slurm-12.out", "SLURM_JOB_ID=12\n", -5), jobs) == ()


def test_a_log_of_an_earlier_job_waits_with_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "slurm-10.out"
    first = job("10", "TIMEOUT", -3000, -2000, stdout=str(path))
    waiting = match(written(path, "step 1\n", -2000), board(first, job("11", "PENDING", None)))
    assert [one.id for one in waiting] == ["10", "11"]
    elsewhere = match(written(path, "step 1\n", -2000), board(first, job("11", "RUNNING", -1900)))
    assert [one.id for one in elsewhere] == ["10"]
