"""A column of seconds since the start that goes by the name of a duration is not judged as one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from trainmon.monitor.finding import Verdict
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot

IDS = ("sys.step_time", "sys.jitter", "sys.throughput")


def judged(folder: Path, seconds: list[float]) -> RunSnapshot:
    rng = random.Random(3)
    lines = ["step,loss,tokens,seconds"]
    lines += [f"{step},{4 - step / 900 + rng.gauss(0, 0.02):.4f},4096,{s:.2f}" for step, s in enumerate(seconds, 1)]
    (folder / "history.csv").write_text("\n".join(lines) + "\n")
    return judge([str(folder)], cwd=folder).runs[0]


@pytest.mark.parametrize("begin", [0.0, 1800.0], ids=["from the start", "begun before the log"])
def test_the_time_since_the_start_is_no_step_time(tmp_path: Path, begin: float) -> None:
    rng = random.Random(5)
    now, seconds = begin, []
    for _ in range(900):
        now += rng.uniform(0.8, 1.2)
        seconds.append(now)
    run = judged(tmp_path, seconds)
    assert run.verdict is Verdict.PASS, run.verdict_reason
    verdicts = {check.id: (check.verdict, check.what) for check in run.checks if check.id in IDS}
    assert {verdict for verdict, _ in verdicts.values()} == {Verdict.NO_DATA}, verdicts
    assert "time since the start" in verdicts["sys.step_time"][1]


def test_a_step_time_that_rises_for_good_is_told(tmp_path: Path) -> None:
    rng = random.Random(5)
    seconds = [rng.uniform(0.9, 1.1) + max(0, step - 400) / 100 for step in range(900)]
    run = judged(tmp_path, seconds)
    verdicts = {check.id: check.verdict for check in run.checks}
    assert verdicts["sys.step_time"] in (Verdict.WARN, Verdict.FAIL)
