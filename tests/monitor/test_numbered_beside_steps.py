"""Records without a step beside a file of the run that logs the loss by step: their numbers are no steps."""

from __future__ import annotations

import json
from pathlib import Path

from trainmon.monitor.judge import judge
from trainmon.tails.clock import SystemClock


def written(folder: Path, *, with_steps: bool) -> Path:
    losses = [3.0 - step / 100 + (step % 7) / 50 for step in range(60)]
    lines = [f"{{'loss': {loss:.4f}, 'grad_norm': 0.4, 'epoch': {n / 60:.2f}}}\n" for n, loss in enumerate(losses)]
    (folder / "train.log").write_text("".join(lines))
    if with_steps:
        records = [{"current_steps": 10 * n + 10, "total_steps": 600, "loss": loss} for n, loss in enumerate(losses)]
        (folder / "trainer_log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return folder


def test_they_are_not_counted_and_that_is_said(tmp_path: Path) -> None:
    run = judge([str(written(tmp_path, with_steps=True))], cwd=tmp_path, clock=SystemClock()).runs[0]
    assert (run.first_step, run.last_step, run.step_count) == (10, 600, 60)
    assert any("train.log: 60 records without a step are not counted" in problem for problem in run.problems)
    told = next(problem for problem in run.problems if "not counted" in problem)
    assert "only it has gradient norm" in told.lower()
    assert "learning rate" not in told


def test_what_the_other_file_logs_too_is_not_called_lost(tmp_path: Path) -> None:
    written(tmp_path, with_steps=True)
    log = tmp_path / "trainer_log.jsonl"
    rows = [json.loads(line) | {"grad_norm": 0.4} for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = judge([str(tmp_path)], cwd=tmp_path, clock=SystemClock()).runs[0]
    assert not any("only it has" in problem for problem in run.problems)


def test_alone_they_are_numbered(tmp_path: Path) -> None:
    run = judge([str(written(tmp_path, with_steps=False))], cwd=tmp_path, clock=SystemClock()).runs[0]
    assert run.step_count == 60
    assert not any("without a step are not counted" in problem for problem in run.problems)
