"""Records without a step beside a file of the run that logs the loss by step: their numbers are no steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.monitor.logs import GRAD, Line, engine, parsed, train
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.judge import judge
from trainmon.tails.clock import SystemClock


def written(folder: Path, *, with_steps: bool, by: float = 1.0) -> Path:
    losses = [3.0 - step / 100 + (step % 7) / 50 for step in range(60)]
    lines = [f"{{'loss': {loss:.4f}, 'grad_norm': 0.4, 'epoch': {n / 60:.2f}}}\n" for n, loss in enumerate(losses)]
    (folder / "train.log").write_text("".join(lines))
    if with_steps:
        records = [
            {"current_steps": 10 * n + 10, "total_steps": 600, "loss": loss * by} for n, loss in enumerate(losses)
        ]
        (folder / "trainer_log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return folder


def test_of_other_losses_they_are_not_counted_and_that_is_said(tmp_path: Path) -> None:
    run = judge([str(written(tmp_path, with_steps=True, by=1.2))], cwd=tmp_path, clock=SystemClock()).runs[0]
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


def test_where_the_losses_are_the_same_they_stand_at_those_steps(tmp_path: Path) -> None:
    run = judge([str(written(tmp_path, with_steps=True))], cwd=tmp_path, clock=SystemClock()).runs[0]
    assert (run.first_step, run.last_step, run.step_count) == (10, 600, 60)
    assert not any("not counted" in problem for problem in run.problems)
    view = run.series[GRAD]
    assert view.steps.tolist() == [10.0 * number + 10 for number in range(60)]


def loss_at(step: int) -> float:
    return 3.0 - step / 1000 + (step % 7) / 50


def beside(steps: list[int], *, size: int, first: str = "bare", every: int = 1, missing: int = -1) -> RunEngine:
    """Both files fed in turn, `size` records at a time."""
    stepped = [train(step, loss_at(step)) for step in steps]
    bare = [
        Line({"loss": round(loss_at(step), 4), "grad_norm": step / 100})
        for number, step in enumerate(steps)
        if number % every == 0 and number != missing
    ]
    files = {"bare": bare, "steps": stepped}
    order = (first, *(name for name in files if name != first))
    made = engine(sources=("bare", "steps"))
    for at in range(0, len(steps), size):
        for name in order:
            piece = files[name][at : at + size]
            made.feed(name, parsed(piece, at + 1, name))
        made.settle()
    made.settle()
    return made


@pytest.mark.parametrize("size", [1, 7, 16, 100])
@pytest.mark.parametrize("first", ["bare", "steps"])
def test_they_stand_there_however_the_files_grow(size: int, first: str) -> None:
    steps = list(range(10, 1010, 10))
    made = beside(steps, size=size, first=first)
    view = made.series_views()[GRAD]
    assert dict(zip(view.steps.tolist(), view.values.tolist(), strict=True)) == {step: step / 100 for step in steps}
    assert made.steps is not None
    assert made.steps.count == 100
    assert made.attempts == ((10.0, 1000.0),)
    assert not made.problems


def test_a_record_that_is_in_one_file_alone_moves_no_other() -> None:
    view = beside(list(range(10, 1010, 10)), size=100, missing=30).series_views()[GRAD]
    assert dict(zip(view.steps.tolist(), view.values.tolist(), strict=True)) == {
        step: step / 100 for step in range(10, 1010, 10) if step != 310
    }


def test_every_tenth_record_is_found() -> None:
    view = beside(list(range(10, 4010, 10)), size=400, every=10).series_views()[GRAD]
    assert view.steps.tolist() == list(range(10, 4010, 100))
