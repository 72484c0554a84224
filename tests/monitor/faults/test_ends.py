"""How a job ends, and what a restart does to it, in the lines of a trainer nobody wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.monitor.faults.shape import Plan, judged
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.snapshot import State

N = 600


def said(first: int, last: int, plan: Plan, *, factor: float = 1.0, seed: int = 0) -> list[str]:
    """Lines of updates first..last; `factor` on the loss."""
    noise = np.random.default_rng(seed).normal(0, 0.008, plan.n)
    lines = []
    for i in range(first, last + 1):
        loss = factor * (1.9 + 8.0 * (i + 30) ** -0.35) * np.exp(noise[i % plan.n])
        clock = f"2026-03-01 10:{i // 60 % 60:02d}:{i % 60:02d}"
        norm, rate = 0.45 + 0.1 * noise[i % plan.n], 4e-4 * min(i / 120, 1)
        numbers = f"xent {loss:.5f} | gnorm {norm:.4f} | lr {rate:.3e} | 812.{i % 10} ms/update"
        lines.append(f"{clock} | update {i:>6}/9000 | {numbers}")
    return lines


TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 8, in <module>', "KeyError: 'shard_00017'"]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79 GiB"
CANCELLED = "slurmstepd: error: *** STEP 4711.0 ON node17 CANCELLED AT 2026-03-01T10:09:59 DUE TO"
NCCL = "[rank5]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=991, OpType=ALLREDUCE) ran for 600029 "
ENDS = {
    "crashed": (TRACEBACK, State.CRASHED, Verdict.FAIL),
    "out of memory": ([OOM], State.OOM, Verdict.FAIL),
    "preempted": ([f"{CANCELLED} PREEMPTION ***"], State.PREEMPTED, Verdict.WARN),
    "out of time": ([f"{CANCELLED} TIME LIMIT ***"], State.TIME_LIMIT, Verdict.WARN),
    "a collective timed out": ([f"{NCCL}milliseconds before timing out."], State.CRASHED, Verdict.FAIL),
}


@pytest.mark.parametrize(("lines", "state", "verdict"), list(ENDS.values()), ids=list(ENDS))
def test_the_end_is_named(lines: list[str], state: State, verdict: Verdict, tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    path.write_text("\n".join([*said(1, N, Plan(0)), *lines]) + "\n")
    run = judged(path)
    assert run.state is state
    job = next(check for check in run.checks if check.id == "job.state")
    assert job.verdict is verdict
    assert job.next
    loud = [one for one in run.episodes if one.severity >= Severity.WARN]
    assert {one.check for one in loud} == {"job.state"}
    assert [incident.pages for incident in run.incidents if incident.severity >= Severity.WARN] == [
        verdict is Verdict.FAIL
    ]
    assert loud[0].first_step == N


def test_a_finished_run_passes(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    lines = [line.replace("/9000", f"/{N}") for line in said(1, N, Plan(0))]
    path.write_text("\n".join([*lines, "training finished in 0:09:59"]) + "\n")
    run = judged(path)
    assert (run.state, run.verdict) == (State.FINISHED, Verdict.PASS)
    assert not any(incident.pages for incident in run.incidents)


def test_a_restart_that_does_not_repeat_what_it_gave(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    again = said(401, 900, Plan(0), seed=5)
    path.write_text("\n".join([*said(1, N, Plan(0)), "resuming from ckpt_400", *again]) + "\n")
    run = judged(path)
    assert len(run.attempts) == 2
    replays = next(check for check in run.checks if check.id == "run.restarts")
    assert replays.verdict is Verdict.WARN
    assert not any(incident.pages for incident in run.incidents)


def test_a_restart_whose_loss_stands_higher(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    path.write_text(
        "\n".join([*said(1, N, Plan(0)), "resuming from ckpt_600", *said(601, 1100, Plan(0), factor=1.3)]) + "\n"
    )
    run = judged(path)
    rewarm = next(check for check in run.checks if check.id == "run.rewarm")
    assert rewarm.verdict is Verdict.WARN
    assert "601" in rewarm.what


def test_a_run_that_stood_still_for_hours_and_went_on(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    later = [line.replace("2026-03-01 10:", "2026-03-01 14:") for line in said(601, 1100, Plan(0))]
    path.write_text("\n".join([*said(1, N, Plan(0)), *later]) + "\n")
    run = judged(path)
    (stall,) = [one for one in run.episodes if one.kind == "stall"]
    assert (stall.severity, stall.first_step, stall.recovered) == (Severity.WARN, 600, True)
    assert "nothing was logged for 4 h 0 min after step 600" in stall.what
    assert not any(incident.pages for incident in run.incidents)


def test_a_job_that_was_stopped_while_it_hung(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    path.write_text("\n".join([*said(1, N, Plan(0)), f"2026-03-01 18:00:00 | {CANCELLED} TIME LIMIT ***"]) + "\n")
    run = judged(path)
    assert run.state is State.TIME_LIMIT
    assert any(one.kind == "stall" and "then the job was stopped" in one.what for one in run.episodes)
