"""Records that processes write between Slurm's word that they are stopped and their end are no run that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot, State
from trainmon.tails.clock import SystemClock

ANNOUNCED = "slurmstepd-n1: error: *** JOB 5 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\n"


def run_of(tmp_path: Path, *parts: str) -> RunSnapshot:
    (tmp_path / "train.log").write_text("".join(parts))
    return judge([str(tmp_path / "train.log")], cwd=tmp_path, clock=SystemClock()).runs[0]


def steps(first: int, last: int) -> str:
    return "".join(f"step {n} | loss {6 - n / 100:.4f} | grad_norm 1.01 | lr 1.0e-4\n" for n in range(first, last + 1))


@pytest.mark.parametrize("behind", [0, 1, 3])
def test_they_do_not_take_the_word_back(tmp_path: Path, behind: int) -> None:
    run = run_of(tmp_path, steps(1, 20), ANNOUNCED, steps(21, 20 + behind))
    assert run.state is State.PREEMPTED
    assert "DUE TO PREEMPTION" in (run.root_error or "")
    assert run.last_step == 20 + behind


@pytest.mark.parametrize("behind", [0, 1, 3])
@pytest.mark.parametrize("rest", ["", "slurmstepd-n1: error: *** JOB 5 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n"])
def test_nor_the_word_of_memory(tmp_path: Path, behind: int, rest: str) -> None:
    killed = "slurmstepd-n1: error: StepId=5.batch exceeded memory limit (220393472 > 209715200), being killed\n"
    run = run_of(tmp_path, steps(1, 20), killed, steps(21, 20 + behind), rest)
    assert run.state is State.OOM
    assert "exceeded memory limit" in (run.root_error or "")


def test_a_run_that_goes_on_does(tmp_path: Path) -> None:
    assert run_of(tmp_path, steps(1, 20), ANNOUNCED, steps(21, 60)).state is not State.PREEMPTED


def test_a_start_behind_it_does(tmp_path: Path) -> None:
    again = "[2026-01-01 00:05:00] torchrun --nproc-per-node 8 train.py\n"
    assert run_of(tmp_path, steps(1, 20), ANNOUNCED, again, steps(21, 22)).state is not State.PREEMPTED


def test_what_others_say_is_the_end_only_when_nothing_follows(tmp_path: Path) -> None:
    error = "RuntimeError: one sample could not be read\n"
    assert run_of(tmp_path, steps(1, 20), error, steps(21, 22)).state is not State.CRASHED
