"""Rows as experiment trackers and benchmarks write them: a nested name, a step in a string or under another name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tails.formats.stdout_reading import read as read_text
from tests.tails.formats.structured import by_run, column, marks, read_lines, steps
from trainmon.tails.discover import discover
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.json_document import JsonDocument
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.formats.registry import detect
from trainmon.tails.record import Parsed


def jsonl(rows: list[dict[str, object]], cuts: list[int] | None = None) -> Parsed:
    return read_lines(JsonLines("m.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode(), cuts or [])


def test_steps_in_strings_with_thousands() -> None:
    rows: list[dict[str, object]] = [{"step": f"{100 * step:,}", "loss": "2.5"} for step in range(1, 31)]
    assert steps(jsonl(rows)) == steps(jsonl(rows, [3])) == [100.0 * step for step in range(1, 31)]


def test_a_name_and_its_value_in_an_object_of_the_record() -> None:
    rows: list[dict[str, object]] = [
        {"type": "metric", "payload": {"metric": {"metricName": name, "metricValue": 2.5 + step}, "step": step}}
        for step in range(20)
        for name in ("loss", "lr")
    ]
    parsed = jsonl(rows)
    assert column(parsed, "loss") == column(parsed, "lr") == [2.5 + step for step in range(20)]
    assert steps(parsed) == [step for step in range(20) for _ in "ab"]


def test_a_model_with_a_name_beside_a_value_is_no_metric() -> None:
    parsed = jsonl([{"step": step, "loss": {"value": 2.5}, "model": {"name": "x"}} for step in range(20)])
    assert column(parsed, "loss/value") == [2.5] * 20


def test_aims_context_tells_training_from_validation() -> None:
    rows = "".join(
        f"loss,\"{{'subset': '{subset}'}}\",{step},{2.5 + place}\n"
        for step in range(10)
        for place, subset in enumerate(("train", "val"))
    )
    parsed = read_lines(CsvTable("m.csv"), b"metric.name,metric.context,step,value\n" + rows.encode())
    assert (column(parsed, "train/loss"), column(parsed, "val/loss")) == ([2.5] * 10, [3.5] * 10)


@pytest.mark.parametrize("key", ["step", "step_num", "global_step", "iteration"])
def test_mlperfs_step_by_its_other_names(key: str) -> None:
    entries = [
        {"key": "tracked_stats", "value": {"reduced_train_loss": 2.5}, "metadata": {"lineno": 3, key: 8 * step}}
        for step in range(1, 6)
    ]
    parsed = read_text("".join(f":::MLLOG {json.dumps(entry)}\n" for entry in entries))
    assert steps(parsed) == [8, 16, 24, 32, 40]


def batch(step: int) -> list[dict[str, object]]:
    return [
        {"timestamp": 1736935200000 + step, "metric": "loss", "variant": "train", "iter": step, "value": 2.5},
        {"timestamp": 1736935200001 + step, "metric": "lr", "variant": "lr", "iter": step, "value": 1e-4},
    ]


def test_lines_that_are_arrays_of_records_each() -> None:
    data = "".join(json.dumps(batch(step)) + "\n" for step in range(1, 11)).encode()
    assert isinstance(detect(data, "metrics.jsonl"), JsonLines)
    for parsed in (read_lines(JsonLines("m.jsonl"), data), read_lines(JsonLines("m.jsonl"), data, [300, 301])):
        assert steps(parsed) == [step for step in range(1, 11) for _ in "ab"]
        assert column(parsed, "train/loss") == [2.5] * 10
        assert column(parsed, "lr") == [1e-4] * 10
        assert parsed.unreadable == 0
    # Its first line alone looks like a document; what comes behind it is read by that too.
    document = detect(data.splitlines()[0] + b"\n", "metrics.jsonl")
    assert isinstance(document, JsonDocument)
    parsed = document.parse(data)
    assert (steps(parsed), parsed.unreadable) == ([step for step in range(1, 11) for _ in "ab"], 0)


def test_an_array_with_more_than_records_in_a_line_is_none() -> None:
    parsed = read_lines(JsonLines("m.jsonl"), b'{"step": 1, "loss": 2.5}\n[{"step": 2, "loss": 2.5}, 7]\n')
    assert (steps(parsed), parsed.unreadable) == ([1.0], 1)


@pytest.mark.parametrize("cuts", [[], [90, 200]])
def test_neptunes_queue_on_disk(cuts: list[int]) -> None:
    named = {"type": "AssignString", "path": ["sys", "name"], "value": "x"}
    rows: list[dict[str, object]] = [{"obj": named, "version": 1}]
    for step in range(0, 20, 2):
        values = [{"value": 2.5 + place, "step": float(place), "ts": 1.7e9 + place} for place in (step, step + 1)]
        rows.append({"obj": {"type": "LogFloats", "path": ["train", "loss"], "values": values}, "version": step + 2})
    parsed = jsonl(rows, cuts)
    assert column(parsed, "train/loss") == [2.5 + step for step in range(20)]
    assert steps(parsed) == list(range(20))


def test_telemetry_with_the_step_among_its_attributes() -> None:
    def exported(step: int) -> dict[str, object]:
        point = {
            "asDouble": 2.5 + step,
            "timeUnixNano": str(1_736_935_200_000_000_000 + step * 10**9),
            "attributes": [{"key": "step", "value": {"intValue": str(step)}}],
        }
        metrics = [{"name": "train.loss", "gauge": {"dataPoints": [point]}}, {"name": "x", "histogram": {}}]
        return {"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}

    parsed = jsonl([exported(step) for step in range(1, 21)])
    assert (steps(parsed), column(parsed, "train.loss")) == (list(range(1, 21)), [2.5 + s for s in range(1, 21)])
    assert parsed.blocks[0].times[1] - parsed.blocks[0].times[0] == 1.0


@pytest.mark.parametrize("cuts", [[], [40]])
def test_a_buffer_of_steps_a_line(cuts: list[int]) -> None:
    rows: list[dict[str, object]] = [
        {"step": [at, at + 1, at + 2], "loss": [2.5, None, 2.25], "lr": [1e-4] * 3} for at in range(0, 30, 3)
    ]
    parsed = jsonl(rows, cuts)
    assert steps(parsed) == list(range(30))
    assert marks(parsed, "loss")[:3] == ["NUMBER", "NULL", "NUMBER"]


@pytest.mark.parametrize("row", [{"step": [3, 3], "loss": [1, 2]}, {"load": [1, 2], "loss": [3, 4]}])
def test_lists_without_rising_steps_are_no_buffer(row: dict[str, object]) -> None:
    assert len(jsonl([row, row]).blocks[0]) == 2


def test_runs_of_numbers_in_long_form() -> None:
    rows: list[dict[str, object]] = [
        {"run_id": run, "step": step, "name": name, "value": 2.5 + run}
        for step in range(1, 31)
        for run in (1, 2)
        for name in ("loss", "lr")
    ]
    assert [column(parsed, "loss") for parsed in by_run(jsonl(rows)).values()] == [[3.5] * 30, [4.5] * 30]


def test_tensorboards_export_of_a_chart_is_called_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "run_train-tag-loss.json"
    path.write_text(json.dumps([[1.7e9 + step + 0.5, step, 2.5] for step in range(1, 31)]))
    [run] = discover([], tmp_path).runs
    assert [file.path.name for file in run.files] == [path.name]
    parsed = JsonDocument(path.name).parse(path.read_bytes())
    assert (steps(parsed), column(parsed, "loss")) == (list(range(1, 31)), [2.5] * 30)


def test_steps_that_were_completed_are_the_step() -> None:
    parsed = jsonl([{"trial_id": 7, "steps_completed": 10 * at, "avg_metrics": {"loss": 2.5}} for at in range(1, 21)])
    assert steps(parsed) == [10 * at for at in range(1, 21)]


def test_a_table_between_bars_in_a_text_file_is_found(tmp_path: Path) -> None:
    rows = "".join(f"| {step} | 2.5 | 1e-4 |\n" for step in range(1, 31))
    (tmp_path / "log.txt").write_text("# Training\n\n| step | loss | lr |\n|-----:|:----|---|\n" + rows)
    (tmp_path / "notes.txt").write_text("# Tables\n\n| model | size |\n|---|---|\n| a | 7B |\n")
    [run] = discover([], tmp_path).runs
    assert [file.path.name for file in run.files] == ["log.txt"]


@pytest.mark.parametrize("form", ["{}/300", "{:>8}/     300"])
def test_a_step_told_with_the_number_there_will_be(form: str) -> None:
    rows: list[dict[str, object]] = [{"iteration": form.format(step), "loss": 2.5} for step in range(1, 31)]
    parsed = jsonl(rows)
    assert steps(parsed) == list(range(1, 31))
    assert ("total_steps", 300.0) in {(fact.key, fact.value) for fact in parsed.facts}
