"""Numbers whose place says that they are held-out: one run, no restart, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tails.formats.binary_writers import event, simple, version
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.held_out_place import held_out_set, set_label
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot

LOSS, NLL = SignalKey("loss.train"), SignalKey("eval.nll")
EVENTS = "events.out.tfevents.1.host"


def events(path: Path, tags: dict[str, list[tuple[int, float]]], start: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = sorted((step, tag, value) for tag, values in tags.items() for step, value in values)
    path.write_bytes(version() + b"".join(event(step, simple(tag, value), wall=start) for step, tag, value in rows))


def curve(count: int, every: int = 1, level: float = 0.0) -> list[tuple[int, float]]:
    return [(step, 3 / (1 + step / 100) + level) for step in range(0, count, every)]


def the_run(folder: Path) -> RunSnapshot:
    (run,) = judge([str(folder)], cwd=folder).runs
    return run


def assert_one_attempt_with_evaluations(run: RunSnapshot, trained: int, evaluated: int) -> None:
    assert run.series[LOSS].steps.tolist() == sorted(set(run.series[LOSS].steps.tolist()))
    assert len(run.series[LOSS].values) == trained
    assert len(run.series[NLL].values) == evaluated
    assert run.series[NLL].values.min() > run.series[LOSS].values.min()
    assert len(run.attempts) == 1
    assert not any("contradict" in problem for problem in run.problems)


@pytest.mark.parametrize("later_s", [0.5, 5000.0])  # written beside the training, or all of it after its end
def test_keras_writes_one_directory_a_set(tmp_path: Path, later_s: float) -> None:
    events(tmp_path / "train" / EVENTS, {"epoch_loss": curve(40), "epoch_learning_rate": curve(40)}, 1.7e9)
    events(tmp_path / "validation" / EVENTS, {"epoch_loss": curve(40, level=1.5)}, 1.7e9 + later_s)
    run = the_run(tmp_path)
    assert_one_attempt_with_evaluations(run, 40, 40)
    assert len(run.series[SignalKey("optim.lr")].values) == 40


@pytest.mark.parametrize(("train", "val"), [("loss_train", "loss_val"), ("loss/train", "loss/val")])
def test_add_scalars_writes_one_directory_a_line_of_the_chart(tmp_path: Path, train: str, val: str) -> None:
    events(tmp_path / EVENTS, {"lr": [(step, 1e-3) for step in range(100)]}, 1.7e9)
    events(tmp_path / train / EVENTS, {"loss": curve(100)}, 1.7e9)
    events(tmp_path / val / EVENTS, {"loss": curve(100, 10, level=0.4)}, 1.7e9 + 900)
    assert_one_attempt_with_evaluations(the_run(tmp_path), 100, 10)


@pytest.mark.parametrize(
    ("train", "val"),
    [("train.csv", "val.csv"), ("train/metrics.csv", "valid/metrics.csv"), ("metrics.csv", "metrics_eval.csv")],
)
def test_a_table_for_each_set(tmp_path: Path, train: str, val: str) -> None:
    for name, rows in ((train, curve(100)), (val, curve(100, 10, level=0.4))):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("step,loss\n" + "".join(f"{step},{value}\n" for step, value in rows))
    assert_one_attempt_with_evaluations(the_run(tmp_path), 100, 10)


def test_two_held_out_sets_are_two_series(tmp_path: Path) -> None:
    for name, level in (("train", 0.0), ("valid", 0.4), ("test", 0.6)):
        rows = curve(100, 10 if level else 1, level)
        text = "".join(json.dumps({"step": step, "loss": value}) + "\n" for step, value in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    run = the_run(tmp_path)
    sets = [key for key in run.series if key.signal == "eval.nll"]
    assert sorted(len(run.series[key].values) for key in sets) == [10, 10]
    assert len(run.series[LOSS].values) == 100


def test_the_raw_key_says_the_place(tmp_path: Path) -> None:
    events(tmp_path / "train" / EVENTS, {"epoch_loss": curve(5)}, 1.7e9)
    events(tmp_path / "validation" / EVENTS, {"epoch_loss": curve(5, level=1)}, 1.7e9)
    run = the_run(tmp_path)
    assert (run.series[LOSS].raw_key, run.series[NLL].raw_key) == ("epoch_loss", "validation/epoch_loss")


@pytest.mark.parametrize(
    ("source", "others"),
    [
        ("test/metrics.csv", []),  # a run that is called test
        ("test.csv", ["metrics.csv"]),
        ("test.log", ["metrics.csv"]),
        ("eval.log", ["metrics.csv"]),  # a text of its own beside the numbers
        ("val/a.csv", ["val/b.csv"]),  # what they share tells them not apart
        ("val/events.out.tfevents.1.a", ["eval/events.out.tfevents.1.a"]),
        ("events.out.tfevents.1.val", ["events.out.tfevents.1.train"]),  # the names of hosts
        ("train_val.csv", ["train.csv"]),  # holds both
    ],
)
def test_a_word_alone_makes_nothing_held_out(source: str, others: list[str]) -> None:
    assert held_out_set(source, others) == ""


def test_words_of_a_place() -> None:
    train = "r/loss_train/events.out.tfevents.1.a"
    assert held_out_set("r/loss_val/events.out.tfevents.1.a", [train]) == "val"
    assert held_out_set("r/test.log", ["r/train.log"]) == "test"
    assert held_out_set("/r/dev.csv", ["/r/train.csv"]) == "dev"
    known = ["r/train.csv", "r/val.csv", "r/test.csv"]
    assert [set_label(path, known) for path in known[1:]] == ["", "test"]
