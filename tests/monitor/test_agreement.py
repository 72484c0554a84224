"""Files of one run whose losses contradict each other: told, and never mixed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.monitor.logs import Line, engine, parsed, train
from trainmon.monitor import inventory
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot


def write(folder: Path, *, level: float, of_metrics: int = 300, of_log: int = 300) -> RunSnapshot:
    """A log and a metric file side by side, the loss of the second `level` higher."""
    losses = [2 + 3 * math.exp(-step / 100) for step in range(1, 301)]
    log = [f"step {step} loss {losses[step - 1]:.4f} lr 0.001" for step in range(1, 301, 300 // of_log)]
    metrics = [
        json.dumps({"step": step, "loss": losses[step - 1] + level}) for step in range(1, 301, 300 // of_metrics)
    ]
    (folder / "train.log").write_text("\n".join(log) + "\n")
    (folder / "metrics.jsonl").write_text("\n".join(metrics) + "\n")
    (run,) = judge([str(folder)], cwd=folder).runs
    return run


def contradictions(run: RunSnapshot) -> list[str]:
    return [problem for problem in run.problems if "contradict" in problem]


def test_losses_that_contradict_each_other_are_told_in_every_report(tmp_path: Path) -> None:
    run = write(tmp_path, level=1.0)
    assert len(contradictions(run)) == 1
    assert "metrics.jsonl and train.log contradict each other: at 300 of 300 common steps" in contradictions(run)[0]
    assert "contradict each other" in inventory.text(run)


@pytest.mark.parametrize("level", [0.0, 0.001])
def test_losses_that_agree_but_for_their_digits_are_told_nothing_of(tmp_path: Path, level: float) -> None:
    assert not contradictions(write(tmp_path, level=level))


def test_one_loss_is_not_gone_on_with_from_the_file_that_contradicts_it(tmp_path: Path) -> None:
    run = write(tmp_path, level=1.0, of_metrics=30)  # the log has ten times as many values
    loss = run.series[SignalKey("loss.train")]
    shifts = {
        round(float(value) - (2 + 3 * math.exp(-step / 100)), 2)
        for step, value in zip(loss.steps.tolist(), loss.values.tolist(), strict=True)
    }
    assert len(shifts) == 1
    assert contradictions(run)


def test_a_value_is_not_lost_to_the_other_files_empty_cell_at_its_step() -> None:
    made = engine(sources=["a", "b"])
    made.feed("a", parsed([train(1, 3.0), train(2, 3.0), train(3, 3.0), Line({"val_loss": 2.5})], source="a"))
    made.feed("b", parsed([Line({"val_loss": 2.75}, 1.0), train(2, 3.0)], source="b"))
    made.settle()
    assert made.series_views()[SignalKey("eval.nll")].values.tolist() == [2.75]


@pytest.mark.parametrize(("bad", "told"), [(0, False), (1, True)])
def test_a_loss_that_only_the_file_that_is_not_judged_calls_nan_is_told(tmp_path: Path, bad: int, told: bool) -> None:
    for place, name in enumerate(("console.log", "train.log")):  # the first is judged
        lines = (
            f"step {step} loss {'nan' if place == bad and step >= 100 else f'{3 / step**0.1:.4f}'} lr 0.001"
            for step in range(1, 151)
        )
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (run,) = judge([str(tmp_path)], cwd=tmp_path).runs
    words = "the loss of train.log is not finite at 51 steps, from step 100 on, where that of console.log is"
    assert any(words in problem for problem in run.problems) is told
