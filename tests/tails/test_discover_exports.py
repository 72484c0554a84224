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
from trainmon.tails.formats.base import LineFormat
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.record import Parsed

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
        ("step,name,context,value", "{step},loss,train,{value}", "{step},loss,val,{value}"),
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


def by_metric(names: dict[str, int], count: int) -> list[tuple[str, int, int, float]]:
    """Name, place, step and value of each record, all of one metric before the next; `names` with their strides."""
    return [
        (name, place, step, 2 + 1 / (step + 1))
        for name, stride in names.items()
        for place, step in enumerate(range(0, count, stride))
    ]


def as_json(name: str, step: int, value: float) -> str:
    return json.dumps({"name": name, "step": step, "value": value})


TIDY = {
    "tidy.csv": ("step,tag,value\n", lambda name, _, step, value: f"{step},{name},{value}"),
    "aim.csv": (
        "run,metric,context,idx,step,value,epoch,time\n",
        lambda name, place, step, value: f"a1,{name},{{}},{place},{step},{value},0,{1.7e9 + step}",
    ),
    "tidy.jsonl": ("", lambda name, _, step, value: as_json(name, step, value)),
    "tidy.json": ("", lambda name, _, step, value: as_json(name, step, value) + ","),
}


@pytest.mark.parametrize("file", TIDY)
@pytest.mark.parametrize("beside", [[], ["grad_norm"]])
@pytest.mark.parametrize("sizes", [(40, 5), (3000, 600)])
def test_a_log_metric_by_metric_keeps_the_steps_of_each(
    tmp_path: Path, sizes: tuple[int, int], beside: list[str], file: str
) -> None:
    count, every = sizes
    head, line = TIDY[file]
    rows = [line(*row) + "\n" for row in by_metric(dict.fromkeys(["loss", *beside], 1) | {"val_loss": every}, count)]
    text = head + "".join(rows)
    (tmp_path / file).write_text(f"[\n{text.rstrip(chr(10) + ',')}\n]\n" if file.endswith(".json") else text)
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[HELD_OUT].steps.tolist() == list(map(float, range(0, count, every)))
    assert (run.series[LOSS].count, len(run.attempts)) == (count, 1)


def test_each_run_of_a_table_may_stand_metric_by_metric(tmp_path: Path) -> None:
    rows = [
        f"{name},{run},{step},{value}\n"
        for run in "ab"
        for name, _, step, value in by_metric({"loss": 1, "val_loss": 5}, 40)
    ]
    (tmp_path / "tidy.csv").write_text("name,run_id,step,value\n" + "".join(rows))
    runs = judge([], cwd=tmp_path).runs
    assert [run.series[HELD_OUT].steps.tolist() for run in runs] == [list(map(float, range(0, 40, 5)))] * 2


@pytest.mark.parametrize("beside", [[], ["lr"]])
@pytest.mark.parametrize("file", ["log.csv", "log.jsonl"])
def test_validation_between_the_steps_may_still_count_by_itself(tmp_path: Path, file: str, beside: list[str]) -> None:
    rows = []
    for step in STEPS:
        rows += [(name, step, loss(step)) for name in ["loss", *beside]]
        rows += [("val_loss", step // 10, loss(step))] if step % 10 == 9 else []
    if file.endswith(".csv"):
        text = "name,step,value\n" + "".join(f"{name},{step},{value}\n" for name, step, value in rows)
    else:
        text = "".join(as_json(*row) + "\n" for row in rows)
    (tmp_path / file).write_text(text)
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[HELD_OUT].steps.tolist() == [9.0, 19.0, 29.0, 39.0]


@pytest.mark.parametrize(("fmt", "head"), [(CsvTable, "name,step,value\n"), (JsonLines, "")])
def test_rows_metric_by_metric_are_the_same_however_they_are_cut(fmt: type[LineFormat], head: str) -> None:
    rows = by_metric({"loss": 1, "val_loss": 4, "val_acc": 20, "lr": 1}, 40)
    rows += [("loss", 0, 40, 1.5), ("val_loss", 0, 12, 1.5), ("loss", 0, 41, 1.5)]
    line = (lambda *row: ",".join(map(str, row))) if head else as_json
    lines = (head + "".join(line(name, step, value) + "\n" for name, _, step, value in rows)).encode().splitlines(True)
    whole = records_of(fmt, [b"".join(lines)])
    assert len(whole) == len(rows)
    assert whole[40 + 2] == (8.0, True, "val_loss")
    assert (whole[-1], math.isnan(whole[-2][0])) == ((41.0, False, "loss"), True)
    for size in (1, 3, 50):
        pieces = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
        assert repr(records_of(fmt, pieces)) == repr(whole)


def records_of(fmt: type[LineFormat], pieces: list[bytes]) -> list[tuple[float, bool, str]]:
    """Step, whether it stands metric by metric, and name of each record."""
    reader, offset, line_no, parsed = fmt("log"), 0, 1, Parsed()
    for piece in pieces:
        parsed.add(reader.feed(piece, offset, line_no))
        offset, line_no = offset + len(piece), line_no + piece.count(b"\n")
    parsed.add(reader.finish())
    return [
        (float(block.steps[at]), block.by_metric, name)
        for block in parsed.blocks
        for at in range(len(block))
        for name, column in block.columns.items()
        if column[at] == column[at]
    ]
