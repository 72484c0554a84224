"""A process as the job: --pid."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from trainmon.monitor.job.process import Process
from trainmon.monitor.judge import job_watch, judge
from trainmon.monitor.snapshot import State
from trainmon.tails.clock import SystemClock


def until(process: Process, *states: str) -> str:
    deadline = time.monotonic() + 20
    while process.look().state not in states and time.monotonic() < deadline:
        time.sleep(0.05)
    return process.look().state


def test_a_process_lives_stops_and_goes(tmp_path: Path) -> None:
    log = tmp_path / "train (1) log.txt"
    with log.open("wb") as out:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=out)
    try:
        process = Process(child.pid, SystemClock())
        assert process.is_there
        assert until(process, "RUNNING") == "RUNNING"
        job = process.look()
        assert (job.stdout, job.id) == (str(log), f"pid {child.pid}")
        assert job.started_at is not None
        assert abs(SystemClock().wall() - job.started_at) < 60
        child.send_signal(signal.SIGSTOP)
        assert until(process, "STOPPED") == "STOPPED"
    finally:
        child.kill()
    assert until(process, "ZOMBIE") == "ZOMBIE"
    child.wait()
    assert process.look().state == "GONE"


def test_nobody_has_this_pid() -> None:
    assert not Process(2**22 + 1, SystemClock()).is_there


def test_a_run_whose_process_is_gone_is_over(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {step} loss {3 - step / 100:.3f} lr 1e-4\n" for step in range(50)), encoding="utf-8")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    jobs = job_watch(SystemClock(), is_on=False, pid=child.pid)
    [run] = judge([str(log)], cwd=tmp_path, jobs=jobs).runs
    assert run.state is State.RUNNING
    assert run.job is not None
    assert run.job.id == f"pid {child.pid}"
    child.kill()
    child.wait()
    [run] = judge([str(log)], cwd=tmp_path, jobs=jobs).runs
    assert run.state is State.UNKNOWN
    assert "is gone" in run.state_reason
    assert not run.live


def test_of_several_runs_the_one_that_the_process_writes_is_its_own(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        text = "".join(f"step {step} loss {3 - step / 100:.3f}\n" for step in range(50))
        (tmp_path / name).write_text(text, encoding="utf-8")
    with (tmp_path / "b.log").open("ab") as out:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=out)
    try:
        jobs = job_watch(SystemClock(), is_on=False, pid=child.pid)
        runs = judge([str(tmp_path)], cwd=tmp_path, jobs=jobs).runs
        assert {run.name: run.job is not None for run in runs} == {"a.log": False, "b.log": True}
    finally:
        child.kill()
        child.wait()
