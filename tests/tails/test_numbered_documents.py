"""Runs that write a JSON document for each step or epoch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.tails.clock import SystemClock
from trainmon.tails.discover import RunFile, discover
from trainmon.tails.read_once import open_source
from trainmon.tails.run_owners import RunOwners
from trainmon.tails.tail import Tail

LOSS = SignalKey("loss.train")


def write(folder: Path, name: str, record: dict[str, object], indent: int | None = None) -> None:
    (folder / name).write_text(json.dumps(record, indent=indent) + "\n")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("name", "key", "offset"),
    [("step_{}.json", "step", 0), ("metrics_epoch_{}.json", "epoch", 0), ("{:05}.json", "epoch", 1)],
)
def test_a_document_a_step_is_one_run(tmp_path: Path, name: str, key: str, offset: int, indent: int | None) -> None:
    for number in range(1, 13):
        write(tmp_path, name.format(number), {key: number + offset, "loss": 3 - number / 20, "lr": 0.1}, indent)
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].steps.tolist() == [float(number + offset) for number in range(1, 13)]
    assert run.series[LOSS].values.tolist() == [3 - number / 20 for number in range(1, 13)]
    assert len(run.attempts) == 1


@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("step_{}.json", [{"step": 7, "loss": 2.5}, {"step": 7, "loss": 2.25}]),  # what is named is no step
        ("step_{}.json", [{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.25, "lr": 0.1}]),
        ("seed_{}.json", [{"epoch": 1, "loss": 2.5}, {"epoch": 2, "loss": 2.25}]),
        ("part_{}.json", [{"loss": 2.5, "val_loss": 2.5}, {"loss": 2.25, "val_loss": 2.5}]),
        ("log_{}.json", [{"log_history": [{"step": 1, "loss": 2.5}]}, {"log_history": [{"step": 2, "loss": 2.5}]}]),
    ],
)
def test_others_stay_runs_of_their_own(tmp_path: Path, name: str, records: list[dict[str, object]]) -> None:
    for number, record in enumerate(records, 1):
        write(tmp_path, name.format(number), record)
    assert not any(file.is_series for run in discover([], tmp_path).runs for file in run.files)


def test_a_document_that_is_named_is_read_alone(tmp_path: Path) -> None:
    for number in (10, 20, 30):
        write(tmp_path, f"step_{number}.json", {"step": number, "loss": 2.5})
    (run,) = judge(["step_20.json"], cwd=tmp_path).runs
    assert run.series[LOSS].steps.tolist() == [20.0]


@pytest.mark.parametrize("torn", ["", '{"step": 10, "loss": 2'])
@pytest.mark.parametrize("first", [7, 8, 9])
def test_a_document_that_comes_later_goes_on_with_the_run(tmp_path: Path, first: int, torn: str) -> None:
    moved: list[tuple[Path, Path]] = []
    owners = RunOwners(tmp_path)

    def found() -> RunFile:
        (run,) = discover([], tmp_path).runs
        name, fresh, _ = owners.take(run, lambda old, new: moved.append((old, new)))
        assert (list(owners.runs), len(fresh)) == ([name], 0 if moved else 1)
        return run.files[0]

    for number in range(first, 10):
        write(tmp_path, f"step_{number}.json", {"step": number, "loss": 2.5})
    (tmp_path / "step_10.json").write_text(torn)
    tail = open_source(found(), SystemClock(), lambda head, source: None, must_reopen=False)
    assert isinstance(tail, Tail)
    assert [step for block in tail.poll().parsed.blocks for step in block.steps] == list(map(float, range(first, 10)))
    write(tmp_path, "step_10.json", {"step": 10, "loss": 2.5})
    found()
    assert moved == [(tmp_path / "step_9.json", tmp_path / "step_10.json")]
    tail.move_to(moved[0][1])
    assert [step for block in tail.finish().parsed.blocks for step in block.steps] == [10.0]
