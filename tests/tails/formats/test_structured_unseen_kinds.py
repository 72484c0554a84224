"""Kinds of structured logs that real repositories hold: how their steps and losses are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tails.formats.structured import column, read_lines, steps
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.jsonl import JsonLines

LOSS, HELD_OUT = SignalKey("loss.train"), SignalKey("eval.nll")


def judged(folder: Path, name: str, text: str) -> RunSnapshot:
    (folder / name).write_text(text)
    (run,) = judge([name], cwd=folder).runs
    return run


def values(run: RunSnapshot, key: SignalKey) -> list[float]:
    series = run.series.get(key)
    return [] if series is None else series.values.tolist()


def test_how_many_steps_an_iteration_takes_is_no_step() -> None:
    rows = [{"iteration": i, "train_steps": 300, "loss": 2.5} for i in range(12, 18)]
    parsed = read_lines(JsonLines("m.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert steps(parsed) == [12.0, 13.0, 14.0, 15.0, 16.0, 17.0]


def test_the_optimisers_step_wins_although_it_stands_still_for_a_while() -> None:
    rows = [{"iter": i, "global_step": i // 4, "loss": 2.5} for i in range(40)]
    parsed = read_lines(JsonLines("m.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert steps(parsed) == [float(i // 4) for i in range(40)]


@pytest.mark.parametrize("key", ["environment_steps", "rollout", "episode_num"])
def test_counters_of_reinforcement_learning_are_steps(key: str) -> None:
    rows = [{key: 10 * i, "max_steps": 900, "reward": 0.5} for i in range(1, 5)]
    parsed = read_lines(JsonLines("m.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert steps(parsed) == [10.0, 20.0, 30.0, 40.0]


def test_a_data_frames_rows_are_numbered_under_no_name() -> None:
    text = ",train_loss\n" + "".join(f"{row},{2.5 - row / 100}\n" for row in range(10))
    assert CsvTable.sniff(text.encode()) > 0.5
    parsed = read_lines(CsvTable("m.csv"), text.encode())
    assert steps(parsed) == list(map(float, range(10)))
    assert len(column(parsed, "train_loss")) == 10


def test_lists_called_train_and_val_are_losses_where_the_file_is_one_of_losses(tmp_path: Path) -> None:
    text = json.dumps({"train": [3, 2, 1.5], "val": [3.5, 2.5, 2]})
    run = judged(tmp_path, "loss_history.json", text)
    assert (values(run, LOSS), values(run, HELD_OUT)) == ([3, 2, 1.5], [3.5, 2.5, 2])
    (tmp_path / "other").mkdir()
    assert LOSS not in judged(tmp_path / "other", "history.json", text).series


def test_lists_of_losses_in_the_plural(tmp_path: Path) -> None:
    run = judged(tmp_path, "history.json", json.dumps({"train_losses": [3, 2, 1.5], "val_losses": [3.5, 2.5, 2]}))
    assert (values(run, LOSS), values(run, HELD_OUT)) == ([3, 2, 1.5], [3.5, 2.5, 2])


def test_the_final_loss_on_held_out_data_and_a_gans_losses_are_no_training_loss(tmp_path: Path) -> None:
    run = judged(tmp_path, "runs.jsonl", '{"epoch": 1, "final_val_loss": 2.5, "G_loss": 1.5, "D_loss": 0.5}\n' * 2)
    assert LOSS not in run.series
    assert values(run, HELD_OUT)


def test_a_zero_that_stands_for_no_evaluation_is_none(tmp_path: Path) -> None:
    rows = [f"{step},{2 - step / 100},{2.25 - step / 100 if step % 10 == 0 else 0:.6f}" for step in range(41)]
    run = judged(tmp_path, "log.csv", "step,loss,val_loss\n" + "\n".join(rows) + "\n")
    assert len(values(run, LOSS)) == 41
    assert values(run, HELD_OUT) == [2.25, 2.15, 2.05, 1.95, 1.85]
