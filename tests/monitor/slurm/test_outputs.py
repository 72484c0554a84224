"""Jobs whose output goes nowhere, is no longer told, or is not there (yet)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.monitor.slurm.answers import NOW, Scripted, accounts, me, row, text_form, version
from tests.monitor.slurm.test_answers import At
from tests.monitor.slurm.test_watch import log, told
from trainmon.monitor.check import why_nothing
from trainmon.monitor.judge import Judgement, judge
from trainmon.monitor.slurm.everywhere import Jobs
from trainmon.monitor.slurm.runner import TIMED_OUT, Answer
from trainmon.monitor.snapshot import State


def judged(runner: Scripted, cwd: Path, *targets: str) -> Judgement:
    clock = At()
    return judge(list(targets), cwd=cwd, clock=clock, jobs=Jobs(clock, runner=runner))


def alive(*rows: bytes, **accounted: str) -> Scripted:
    history = [told(**accounted)] if accounted else []
    return Scripted(id=me(), squeue=version("slurm 21.08.5", text_form(*rows)), sacct=accounts(*history))


@pytest.mark.parametrize("target", ["slurm:12", "slurm:me"])
def test_a_job_without_output_is_what_it_writes_in_its_directory(tmp_path: Path, target: str) -> None:
    log(tmp_path / "train.log", 1, 50, -5.0)
    rows = row(workdir=str(tmp_path), stdout="/dev/null", stderr="/dev/null")
    [run] = judged(alive(rows), tmp_path, target).runs
    assert (run.name, run.job and run.job.id, run.last_step) == ("pre train-12", "12", 50.0)


def test_a_job_that_writes_to_its_standard_error_alone(tmp_path: Path) -> None:
    log(tmp_path / "err.log", 1, 50, -5.0)
    rows = row(workdir="/nowhere", stdout="/dev/null", stderr=f"{tmp_path}/err.log")
    [run] = judged(alive(rows), tmp_path, "slurm:12").runs
    assert (run.name, run.last_step) == ("pre train-12", 50.0)


def test_one_line_for_all_jobs_that_write_nowhere(tmp_path: Path) -> None:
    rows = [
        row(jobarrayid=f"12_{task}", jobid=str(20 + task), workdir=str(tmp_path), stdout="/dev/null", stderr="")
        for task in range(1, 9)
    ]
    found = judged(alive(*rows), tmp_path, "slurm:12")
    assert found.runs == ()
    [problem] = found.problems
    assert "the output of jobs 12_1, 12_2, 12_3, 12_4, 12_5 (+3 more) goes to /dev/null" in problem


def test_of_an_old_job_the_log_that_carries_its_number(tmp_path: Path) -> None:
    """Before 24.05 accounting does not keep the paths."""
    for name in ("pre-10.log", "pre-110.log", "other.log"):
        log(tmp_path / name, 1, 50, -2400.0)
    [run] = judged(alive(WorkDir=str(tmp_path)), tmp_path, "slurm:10").runs
    assert ([Path(file.path).name for file in run.files], run.state) == (["pre-10.log"], State.TIME_LIMIT)
    found = judged(alive(WorkDir=str(tmp_path), JobID="9", JobIDRaw="9"), tmp_path, "slurm:9")
    assert found.runs == ()
    assert found.problems == (
        f"slurm:9: Slurm no longer says where job 9 wrote, and no log in {tmp_path} carries the number;"
        " name the log file",
    )


def test_of_an_old_job_the_output_that_its_submission_named(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log(tmp_path / "logs" / "pre.out", 1, 50, -2400.0)
    line = "sbatch --hold -J pre -o logs/%x.out job.sh -o mine"
    found = judged(alive(WorkDir=str(tmp_path), SubmitLine=line), tmp_path, "slurm:10")
    assert [[Path(file.path).name for file in run.files] for run in found.runs] == [["pre.out"]]
    (tmp_path / "other").mkdir()
    nowhere = alive(WorkDir=f"{tmp_path}/other", SubmitLine="sbatch -o /dev/null job.sh")
    silent = judged(nowhere, tmp_path, "slurm:10")
    assert "the output of job 10 goes to /dev/null" in silent.problems[0]


def test_a_log_that_is_not_there_is_told_by_what_its_job_does(tmp_path: Path) -> None:
    rows = row(workdir="/nowhere", stdout=f"{tmp_path}/out.log", stderr="", state="PENDING", nodelist="")
    [run] = judged(alive(rows), tmp_path, "slurm:12").runs
    assert run.files[0].problem == f"{tmp_path}/out.log: not there yet: its job has not begun to write"
    over = alive(WorkDir=str(tmp_path), SubmitLine="sbatch -o out.log job.sh")
    [run] = judged(over, tmp_path, "slurm:10").runs
    assert "not there: its job has ended, and it was removed or never written" in run.files[0].problem


def test_a_job_that_wrote_no_error_is_no_problem(tmp_path: Path) -> None:
    log(tmp_path / "out.log", 1, 50, -5.0)
    (tmp_path / "err.log").touch()
    os.utime(tmp_path / "err.log", (NOW, NOW))
    rows = row(workdir="/nowhere", stdout=f"{tmp_path}/out.log", stderr=f"{tmp_path}/err.log")
    [run] = judged(alive(rows), tmp_path, "slurm:12").runs
    assert ({file.problem for file in run.files}, run.problems) == ({""}, ())


def test_what_is_not_there_is_said_once(tmp_path: Path) -> None:
    found = judged(alive(), tmp_path, str(tmp_path / "none.log"))
    assert {problem for run in found.runs for problem in (*run.problems, run.files[0].problem)} == {
        f"{tmp_path}/none.log: not there yet; check the spelling"
    }
    [run] = found.runs
    assert why_nothing(run) == f"{tmp_path}/none.log: not there yet; check the spelling"


def late(answer: Callable[[list[str]], Answer], misses: int) -> Callable[[list[str]], Answer]:
    """`answer`, after it was too late so many times."""
    missed = [Answer(TIMED_OUT)] * misses
    return lambda words: missed.pop() if missed else answer(words)


@pytest.mark.parametrize("misses", [0, 1])
def test_a_busy_controller_gets_a_second_chance(tmp_path: Path, misses: int) -> None:
    log(tmp_path / "out.log", 1, 50, -5.0)
    rows = row(workdir="/nowhere", stdout=f"{tmp_path}/out.log", stderr="")
    squeue = version("slurm 20.11.8", late(text_form(rows), misses))
    runner = Scripted(id=me(), squeue=late(squeue, 1 - misses), sacct=accounts())
    assert [run.name for run in judged(runner, tmp_path, "slurm:12").runs] == ["pre train-12"]


def test_accounts_that_do_not_answer_do_not_say_that_there_is_no_job(tmp_path: Path) -> None:
    log(tmp_path / "slurm-10.out", 1, 50, -2400.0)
    squeue = version("slurm 20.11.8", text_form())
    answers = accounts(told(WorkDir=str(tmp_path)))
    runner = Scripted(id=me(), squeue=squeue, sacct=late(answers, 1))
    assert [run.name for run in judged(runner, tmp_path, "slurm:10").runs] == ["pre-10"]
    found = judged(Scripted(id=me(), squeue=squeue, sacct=late(answers, 99)), tmp_path, "slurm:10")
    assert found.problems == (
        "slurm:10: squeue does not know job 10 and sacct: has not answered within 10 s; try again, or name the job's"
        " log file",
    )
