"""What experiment trackers export, and what lies beside logs that is none: rollouts, completions, test sets."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.tails.formats import binary_writers as writers
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.tails.discover import discover

LOSS, HELD_OUT = SignalKey("loss.train"), SignalKey("eval.nll")
STEPS = range(40)


def loss(step: int) -> float:
    return 3 - step / 50


@pytest.mark.parametrize(
    "time", ["2025-01-15 10:00:{step:02d}.125 UTC", "17369352{step:02d}000", "17369352{step:02d}.5"]
)
@pytest.mark.parametrize("ending", ["", ".0"])
def test_neptunes_table_of_one_metric_has_no_header(tmp_path: Path, time: str, ending: str) -> None:
    rows = (f"{step}{ending},{time.format(step=step)},{loss(step)}\n" for step in STEPS)
    (tmp_path / "train_loss.csv").write_text("".join(rows))
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].steps.tolist() == list(map(float, STEPS))
    assert run.series[LOSS].values.tolist() == [loss(step) for step in STEPS]


def test_three_numbers_are_no_such_row(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("".join(f"{step},{step},{loss(step)}\n" for step in STEPS))
    assert not discover([], tmp_path).runs


@pytest.mark.parametrize(
    ("header", "train", "held_out"),
    [
        ("metricName,metricValue,step,runContext", "loss,{value},{step},train", "loss,{value},{step},validate"),
        ("metric.name,metric.context.subset,step,value", "loss,train,{step},{value}", "loss,val,{step},{value}"),
        ("step,split,metric,value", "{step},train,loss,{value}", "{step},val,loss,{value}"),
    ],
)
def test_a_column_tells_training_from_validation(tmp_path: Path, header: str, train: str, held_out: str) -> None:
    lines = [header]
    for step in STEPS:
        lines.append(train.format(step=step, value=loss(step)))
        if step % 10 == 9:
            lines.append(held_out.format(step=step, value=loss(step) + 0.25))
    (tmp_path / "metrics.csv").write_text("\n".join(lines) + "\n")
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].values.tolist() == [loss(step) for step in STEPS]
    assert run.series[HELD_OUT].steps.tolist() == [9.0, 19.0, 29.0, 39.0]


def test_clearmls_plots_are_found(tmp_path: Path) -> None:
    line = {"name": "train", "x": [*STEPS], "y": [loss(step) for step in STEPS]}
    (tmp_path / "scalars.json").write_text(json.dumps({"loss": {"train": line}}))
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].count == 40


@pytest.mark.parametrize("keys", [("input", "output"), ("prompt", "completion"), ("question", "answer")])
def test_what_a_model_said_is_no_run(tmp_path: Path, keys: tuple[str, str]) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {step} loss {loss(step)}\n" for step in STEPS))
    (tmp_path / "rollout").mkdir()
    for step in STEPS:
        record = {**dict.fromkeys(keys, "some words"), "score": 1.0, "reward": 0.5, "acc": 1.0, "step": step}
        (tmp_path / "rollout" / f"{step}.jsonl").write_text((json.dumps(record) + "\n") * 4)
    assert len(discover([], tmp_path).runs) == 1


def test_a_table_of_completions_is_no_run(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "train.log").write_text("".join(f"step {step} loss {loss(step)}\n" for step in STEPS))
    table = {"step": [10, 10], "prompt": ["a", "b"], "completion": ["c", "d"], "reward": [0.5, 0.75]}
    parquet.write_table(arrow.table(table), tmp_path / "completions_00010.parquet")
    assert len(discover([], tmp_path).runs) == 1


def test_a_loss_that_an_event_file_says_is_nan_to_its_end_is_lost(tmp_path: Path) -> None:
    values = [loss(step) if step < 30 else math.nan for step in STEPS]
    events = b"".join(writers.event(step, writers.simple("loss", value)) for step, value in enumerate(values))
    (tmp_path / "events.out.tfevents.1.h.1.0").write_bytes(writers.version() + events)
    (run,) = judge([], cwd=tmp_path).runs
    assert (run.verdict, run.series[LOSS].bad_steps.tolist()) == (Verdict.FAIL, list(map(float, range(30, 40))))


@pytest.mark.parametrize("sizes", [(40, 5), (3000, 600)])
def test_a_table_metric_by_metric_keeps_the_steps_of_each(tmp_path: Path, sizes: tuple[int, int]) -> None:
    count, every = sizes
    names = {"loss": 1, "grad_norm": 1, "val_loss": every}
    rows = (
        f"{step},{name},{2 + 1 / (step + 1)}\n" for name, stride in names.items() for step in range(0, count, stride)
    )
    (tmp_path / "tidy.csv").write_text("step,tag,value\n" + "".join(rows))
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[HELD_OUT].steps.tolist() == list(map(float, range(0, count, every)))
    assert (run.series[LOSS].count, len(run.attempts)) == (count, 1)


def test_validation_between_the_steps_may_still_count_by_itself(tmp_path: Path) -> None:
    rows = []
    for step in STEPS:
        rows += [f"{step},loss,{loss(step)}", f"{step},lr,0.001"]
        rows += [f"{step // 10},val_loss,{loss(step)}"] if step % 10 == 9 else []
    (tmp_path / "log.csv").write_text("step,name,value\n" + "\n".join(rows) + "\n")
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[HELD_OUT].steps.tolist() == [9.0, 19.0, 29.0, 39.0]


@pytest.mark.parametrize("header", ["  step      loss        lr", "# step loss lr", "#step loss lr"])
def test_columns_with_blanks_between_are_found(tmp_path: Path, header: str) -> None:
    rows = "".join(f"{step:6d}  {loss(step):8.4f}  1.0e-04\n" for step in STEPS)
    (tmp_path / "loss.txt").write_text(f"{header}\n{rows}")
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].steps.tolist() == list(map(float, STEPS))


def test_a_data_frame_of_one_metric_is_called_by_its_file(tmp_path: Path) -> None:
    rows = "".join(f"{step},{step}.0,{loss(step)},2025-01-15 10:00:{step:02d}+00:00\n" for step in STEPS)
    (tmp_path / "loss.csv").write_text(",step,value,timestamp\n" + rows)
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].values.tolist() == [loss(step) for step in STEPS]


@pytest.mark.parametrize("names", [("Train_Samples_train_loss", "Train_Samples_lr"), ("loss", "grad_norm", "reward")])
def test_a_file_for_each_metric_is_one_run(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        key = name.replace("Train_Samples_", "Train/Samples/")
        (tmp_path / f"{name}.csv").write_text(f"step,{key}\n" + "".join(f"{step},{loss(step)}\n" for step in STEPS))
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].count == len(STEPS)
    assert len(run.files) == len(names)


@pytest.mark.parametrize("names", [("lr_0.01", "lr_0.1"), ("a_loss", "b_loss")])
def test_a_file_for_each_run_of_a_sweep_is_not(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / f"{name}.csv").write_text("step,loss\n" + "".join(f"{step},{loss(step)}\n" for step in STEPS))
    assert len(discover([], tmp_path).runs) == 2
