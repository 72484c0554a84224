"""trainmon from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trainmon


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    records = (f'{{"step": {step}, "loss": {3 - step / 1000}, "lr": 0.001}}\n' for step in range(1, 201))
    path.write_text("".join(records), encoding="utf-8")
    return path


def test_a_run_gives_its_series_and_its_verdict(log: Path) -> None:
    run = trainmon.read(log)
    view = run.series("loss.train")
    assert (run.name, run.verdict.value, view.count) == ("a.jsonl", "PASS", 200)
    assert np.array_equal(view.steps, np.arange(1.0, 201.0))
    assert view.values[-1] == 2.8
    assert {check.id for check in run.checks} >= {"loss.spike", "grad.norm", "job.state"}


def test_a_missing_signal_says_what_there_is(log: Path) -> None:
    with pytest.raises(KeyError, match=r"loss\.train"):
        trainmon.read(log).series("grad.norm")


def test_several_runs_are_read_all_at_once(log: Path) -> None:
    second = log.with_name("b.jsonl")
    second.write_text(log.read_text(encoding="utf-8").replace("0.001", "0.002"), encoding="utf-8")
    assert [run.name for run in trainmon.read_all(log, second)] == ["a.jsonl", "b.jsonl"]
    with pytest.raises(ValueError, match="2 runs"):
        trainmon.read(log, second)
    assert trainmon.check(log.parent) == {"a.jsonl": "PASS", "b.jsonl": "PASS"}


def test_nothing_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(trainmon.NothingToReadError, match="no such directory"):
        trainmon.read(f"{tmp_path}/gone/")


def test_a_table_for_pandas(log: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    table = trainmon.read(log).to_pandas("loss.train", "optim.lr")
    assert list(table.columns) == ["attempt", "step", "loss.train", "optim.lr"]
    assert len(table) == 200
