"""Logs whose newest record stands on top, and columns of a document that are measured less often than others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.tails.formats.structured import column, steps
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.tails.formats import registry
from trainmon.tails.formats.newest_first import NewestFirst

LOSS, HELD_OUT = SignalKey("loss.train"), SignalKey("eval.nll")
STEPS = range(0, 600, 10)


def loss(step: int) -> float:
    return 2 + 3 / (1 + step / 100)


def rows(order: list[int]) -> dict[str, str]:
    return {
        "log.csv": "step,loss\n" + "".join(f"{step},{loss(step)}\n" for step in order),
        "log.tsv": "epoch\tstep\tloss\n" + "".join(f"0\t{step}\t{loss(step)}\n" for step in order),
        "log.jsonl": "".join(json.dumps({"step": step, "loss": loss(step)}) + "\n" for step in order),
        "log.json": json.dumps([{"step": step, "loss": loss(step)} for step in order]),
        "history.json": json.dumps({"log_history": [{"step": step, "loss": loss(step)} for step in order]}, indent=1),
    }


@pytest.mark.parametrize("name", rows([]))
def test_a_run_whose_newest_record_stands_on_top_is_one_run_from_its_beginning(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(rows(list(STEPS)[::-1])[name])
    (run,) = judge([name], cwd=tmp_path).runs
    assert run.series[LOSS].steps.tolist() == list(map(float, STEPS))
    assert run.series[LOSS].values.tolist() == [loss(step) for step in STEPS]
    assert (len(run.attempts), run.verdict) == (1, Verdict.PASS)


def test_its_rows_say_where_they_stand() -> None:
    data = rows(list(STEPS)[::-1])["log.csv"].encode()
    parsed = NewestFirst("log.csv").parse(data)
    (block,) = parsed.blocks
    assert steps(parsed) == list(map(float, STEPS))
    assert block.lines.tolist() == list(range(len(STEPS) + 1, 1, -1))
    text = data.splitlines(keepends=True)
    assert [data[at:].split(b"\n")[0] + b"\n" for at in block.offsets.tolist()] == text[:0:-1]


@pytest.mark.parametrize("order", [[50, 40, 30, 20, 10, 0, *STEPS], [*STEPS, 300, 310, 200, 210], [30, 20, 10]])
def test_restarts_are_not_taken_for_it(order: list[int]) -> None:
    for name in ("log.csv", "log.jsonl"):
        found = registry.detect(rows(order)[name].encode(), name)
        assert found is not None
        assert found.name != "newest first"


def test_a_restart_of_a_run_that_is_told_from_its_end_is_one(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(rows([*range(0, 600, 10), *range(500, 900, 10)][::-1])["log.csv"])
    (run,) = judge(["log.csv"], cwd=tmp_path).runs
    assert run.attempts == ((0.0, 590.0), (500.0, 890.0))


def test_a_column_that_is_measured_less_often_is_spread_over_the_others(tmp_path: Path) -> None:
    losses = [loss(step) for step in range(200)]
    document = {"train_loss": losses, "val_loss": losses[9::10], "lr": [0.1] * 378}
    (tmp_path / "history.json").write_text(json.dumps(document))
    (run,) = judge(["history.json"], cwd=tmp_path).runs
    assert run.step_key == "line"
    assert np.diff(run.series[LOSS].steps).tolist() == [1.0] * 199
    assert (run.series[HELD_OUT].steps - run.series[LOSS].steps[0]).tolist() == [10.0 * at - 1 for at in range(1, 21)]


def test_held_out_values_have_their_own_list_of_steps(tmp_path: Path) -> None:
    document = {"step": [*range(100)], "train_loss": [2.5] * 100, "val_steps": [0, 50, 99], "val_loss": [3, 2.5, 2]}
    (tmp_path / "history.json").write_text(json.dumps(document))
    (run,) = judge(["history.json"], cwd=tmp_path).runs
    assert run.series[HELD_OUT].steps.tolist() == [0.0, 50.0, 99.0]
    assert run.series[LOSS].count == 100


def test_columns_of_one_length_are_rows() -> None:
    document = registry.detect(b'{\n"train_loss": [3, 2],\n"val_loss": [3.5, 2.5]\n}\n', "h.json")
    assert document is not None
    parsed = document.parse(b'{\n"train_loss": [3, 2],\n"val_loss": [3.5, 2.5]\n}\n')  # type: ignore[attr-defined]
    assert (column(parsed, "train_loss"), column(parsed, "val_loss")) == ([3, 2], [3.5, 2.5])
