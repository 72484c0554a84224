"""Targets that name jobs, from the answers of Slurm to the runs and their states."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from tests.monitor.slurm.answers import NOW, Scripted, accounts, me, row, text_form, version
from tests.monitor.slurm.test_answers import At
from trainmon.monitor.judge import judge
from trainmon.monitor.session import Monitor
from trainmon.monitor.slurm.everywhere import Jobs
from trainmon.monitor.slurm.runner import TIMED_OUT, Answer
from trainmon.monitor.snapshot import RunSnapshot, State
from trainmon.tails.clock import SystemClock


def log(path: Path, first: int, last: int, at: float, end: str = "") -> None:
    lines = [f"step {step} | loss {6 - step / 100:.3f} | grad_norm 1.0\n" for step in range(first, last + 1)]
    path.write_text("".join(lines) + end, encoding="utf-8")
    os.utime(path, (NOW + at, NOW + at))


LIMIT = "slurmstepd: error: *** JOB 10 ON n1 CANCELLED AT 2027-01-15T07:20:00 DUE TO TIME LIMIT ***\n"


def told(**more: str) -> dict[str, str]:
    return {
        "JobID": "10", "JobIDRaw": "10", "User": "ann", "State": "TIMEOUT", "ExitCode": "0:0",
        "Submit": "2027-01-15T05:00:00", "Start": "2027-01-15T06:20:00", "End": "2027-01-15T07:20:00",
        "Timelimit": "01:00:00", "NodeList": "n1", "AllocTRES": "cpu=8,gres/gpu=8", "JobName": "pre",
    } | more  # fmt: skip


def judged(runner: Scripted, cwd: Path, *targets: str) -> list[RunSnapshot]:
    clock = At()
    return list(judge(list(targets), cwd=cwd, clock=clock, jobs=Jobs(clock, runner=runner)).runs)


def test_the_earlier_jobs_of_a_chain_are_found_in_the_accounts(tmp_path: Path) -> None:
    place = str(tmp_path)
    log(tmp_path / "train-10.log", 1, 60, -2400.0, LIMIT)
    log(tmp_path / "train-12.log", 41, 90, -5.0)
    rows = row(
        jobarrayid="12", jobid="12", name="pre", workdir=place, stdout=f"{place}/train-%j.log", stderr="",
        command="", tres="gres/gpu=8",
    )  # fmt: skip
    runner = Scripted(id=me(), squeue=version("slurm 20.11.8", text_form(rows)), sacct=accounts(told(WorkDir=place)))
    [run] = judged(runner, tmp_path, "slurm:12")
    assert run.name == "pre-12"
    assert [job.id for job in run.job_chain] == ["10", "12"]
    assert sorted(Path(file.path).name for file in run.files) == ["train-10.log", "train-12.log"]
    assert run.state is State.RUNNING  # the limit that ended the first job is not the run's end
    assert run.attempts == ((1.0, 60.0), (41.0, 90.0))
    assert run.goodput is not None
    assert (run.goodput.steps_lost, run.goodput.downtime_s) == (20.0, 600.0)
    assert run.goodput.gpu_hours == pytest.approx(8 * (3600 + 1800) / 3600)


def test_my_jobs_are_also_those_that_ended_within_a_day(tmp_path: Path) -> None:
    place = str(tmp_path)
    log(tmp_path / "slurm-10.out", 1, 60, -2400.0, LIMIT)
    log(tmp_path / "train-12.log", 41, 90, -5.0)
    rows = row(jobarrayid="12", jobid="12", name="other", workdir=place, stdout=f"{place}/train-%j.log", stderr="")
    lost = [
        {"JobID": "8", "JobIDRaw": "8", "State": "RUNNING"},
        {"JobID": "9", "JobIDRaw": "9", "JobName": "no output"},
    ]
    many = [
        {"JobID": str(one), "JobIDRaw": str(one), "Submit": "2027-01-14T05:00:00", "JobName": "old"}
        for one in range(1000, 1500)
    ]
    runner = Scripted(
        id=me(),
        squeue=version("slurm 20.11.8", text_form(rows)),
        sacct=accounts(told(WorkDir=place), *(told(**one) for one in (*lost, *many))),
    )
    clock = At()
    summary = judge(["slurm:me"], cwd=tmp_path, clock=clock, jobs=Jobs(clock, runner=runner))
    assert sorted((run.name, run.state) for run in summary.runs) == [
        ("other-12", State.RUNNING), ("pre-10", State.TIME_LIMIT)
    ]  # fmt: skip
    assert not summary.problems
    recent = [words for words in runner.asked if words[0] == "sacct" and not any("--name" in word for word in words)]
    assert [word for word in recent[0] if "time" in word] == ["--starttime=2027-01-14T08:00:00"]
    assert len(recent) == 1


def test_files_that_carry_the_jobs_number_are_the_jobs(tmp_path: Path) -> None:
    for name in ("out-12.log", "metrics-12.jsonl", "out-112.log", "out-12_3.log"):
        log(tmp_path / name, 1, 50, -5.0)
    rows = row(workdir="/nowhere", stdout=f"{tmp_path}/out-%j.log", stderr=f"{tmp_path}/err-%j.log")
    runner = Scripted(id=me(), squeue=version("slurm 20.11.8", text_form(rows)), sacct=accounts())
    [run] = judged(runner, tmp_path, "slurm:12")
    names = {Path(file.path).name for file in run.files}
    assert names == {"out-12.log", "err-12.log", "metrics-12.jsonl"}


def test_a_job_named_and_its_log_named_are_one_run(tmp_path: Path) -> None:
    log(tmp_path / "out.log", 1, 50, -5.0)
    rows = row(workdir="/nowhere", stdout=f"{tmp_path}/out.log", stderr="")
    runner = Scripted(id=me(), squeue=version("slurm 20.11.8", text_form(rows)), sacct=accounts())
    [run] = judged(runner, tmp_path, "slurm:12", str(tmp_path / "out.log"))
    assert [job.id for job in run.job_chain] == ["12"]


def test_all_of_my_jobs_and_none_of_others(tmp_path: Path) -> None:
    rows = [
        row(jobarrayid=str(n), jobid=str(n), workdir="/nowhere", stdout=f"{tmp_path}/{n}.log", stderr="", username=user)
        for n, user in ((12, "ann"), (13, "bob"), (14, "ann"))
    ]
    runner = Scripted(id=me(), squeue=version("slurm 20.11.8", text_form(*rows)), sacct=accounts())
    assert [run.name for run in judged(runner, tmp_path, "slurm:me")] == ["pre train-12", "pre train-14"]


def test_a_slurm_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    log(tmp_path / "out.log", 1, 50, 0.0)
    hangs = threading.Event()

    def never(words: list[str]) -> Answer:
        hangs.wait(60)
        return Answer(TIMED_OUT)

    session = Monitor([str(tmp_path)], cwd=tmp_path, jobs=Jobs(SystemClock(), runner=Scripted(squeue=never)))
    session.start()
    try:
        deadline = time.monotonic() + 30
        while not (runs := session.latest().runs) or runs[0].last_step != 50:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert runs[0].job is None
    finally:
        session.stop()
        hangs.set()


def test_a_slurm_that_is_slow_to_answer_is_waited_for(tmp_path: Path) -> None:
    log(tmp_path / "out.log", 1, 50, 0.0)
    rows = row(
        workdir="/nowhere", stdout=f"{tmp_path}/out.log", stderr="", starttime="2020-01-01T00:00:00", endtime="N/A"
    )
    answer, may_answer = text_form(rows), threading.Event()

    def slow(words: list[str]) -> Answer:
        may_answer.wait(60)
        return answer(words)

    runner = Scripted(id=me(), squeue=version("slurm 20.11.8", slow), sacct=accounts())
    session = Monitor(["slurm:12"], cwd=tmp_path, jobs=Jobs(SystemClock(), runner=runner))
    session.start()
    try:
        deadline = time.monotonic() + 30
        while "looked for" not in session.latest().status:  # it went on without the answer
            assert time.monotonic() < deadline
            time.sleep(0.05)
        may_answer.set()
        _until(session, State.RUNNING)
    finally:
        may_answer.set()
        session.stop()


def test_a_session_learns_of_a_job_and_of_its_end(tmp_path: Path) -> None:
    log(tmp_path / "out.log", 1, 50, 0.0)
    os.utime(tmp_path / "out.log")
    clock = SystemClock()
    began = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(clock.wall() - 60))
    rows = row(workdir="/nowhere", stdout=f"{tmp_path}/out.log", stderr="", starttime=began, endtime="N/A")
    runner = Scripted(id=me(), squeue=version("slurm 20.11.8", text_form(rows)), sacct=accounts())
    jobs = Jobs(clock, runner=runner)
    session = Monitor(["slurm:12"], cwd=tmp_path, jobs=jobs)
    session.start()
    try:
        _until(session, State.RUNNING)
        ended = row(workdir="/nowhere", stdout=f"{tmp_path}/out.log", stderr="", starttime=began, state="NODE_FAIL")
        runner.programs["squeue"] = version("slurm 20.11.8", text_form(ended))
        jobs.look(again=True)
        run = _until(session, State.NODE_FAIL)
        assert not run.live
    finally:
        session.stop()


def _until(session: Monitor, state: State) -> RunSnapshot:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        runs = session.latest().runs
        if runs and runs[0].state is state:
            return runs[0]
        time.sleep(0.05)
    raise AssertionError(f"never {state}: {[(run.state, run.state_reason) for run in session.latest().runs]}")


@pytest.mark.parametrize(("target", "where"), [("slurm:me", "this machine"), ("me@far:slurm:12", "me@far")])
def test_where_there_is_no_squeue_is_named(tmp_path: Path, target: str, where: str) -> None:
    clock = At()
    jobs = Jobs(clock, runner=Scripted(), there=lambda address: Scripted())
    assert list(jobs.jobs_of(target)[1]) == [
        f"{target}: there is no squeue on {where}; name a host that has Slurm (HOST:slurm:me), or the job's log file"
    ]
