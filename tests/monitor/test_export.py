"""`trainmon export`: what was read, as it was written."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.compare.alignment import Axis
from trainmon.monitor.export.content import export_to

RECORDS = [
    '{"step": 1, "loss": 2.5, "grad_norm": 1.0}',
    '{"step": 2, "loss": NaN, "grad_norm": 0.1}',
    '{"step": 3, "grad_norm": 0.30000000000000004}',
    '{"step": 4, "loss": null}',
    '{"step": 5, "loss": 1e-05}',
    '{"step": 3, "loss": 2.25}',
    '{"step": 4, "loss": 2.125}',
]


def exported(path: Path, *signals: str, form: str = "csv", raw: bool = False, tmp: Path) -> str:
    output = tmp / "out"
    assert export_to([str(path)], list(signals), cwd=tmp, raw_keys=raw, form=form, output=output) == 0
    return output.read_text(encoding="utf-8")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(RECORDS) + "\n", encoding="utf-8")
    return path


def test_a_row_for_each_value_that_was_written_and_none_for_what_was_not(log: Path, tmp_path: Path) -> None:
    text = exported(log, "loss.train", tmp=tmp_path)
    assert text.splitlines() == [
        "run,attempt,step,loss.train",
        "run.jsonl,0,1,2.5",
        "run.jsonl,0,2,nan",
        "run.jsonl,0,5,1e-05",
        "run.jsonl,1,3,2.25",
        "run.jsonl,1,4,2.125",
    ]


def test_several_signals_make_columns_and_empty_is_not_logged(log: Path, tmp_path: Path) -> None:
    rows = exported(log, "loss.train", "grad.norm", tmp=tmp_path).splitlines()
    assert rows[1:4] == ["run.jsonl,0,1,2.5,1", "run.jsonl,0,2,nan,0.1", "run.jsonl,0,3,,0.30000000000000004"]


def test_raw_keys_are_the_logs_own(log: Path, tmp_path: Path) -> None:
    assert exported(log, "grad_norm", raw=True, tmp=tmp_path).splitlines()[1] == "run.jsonl,0,1,1"


def test_json_lines_are_strict_json(log: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in exported(log, "loss.train", form="jsonl", tmp=tmp_path).splitlines()]
    assert rows[1] == {"run": "run.jsonl", "attempt": 0, "step": 2, "loss.train": "nan"}


def test_parquet_holds_the_same(log: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra trainmon[parquet] is not installed")
    output = tmp_path / "out.parquet"
    assert export_to([str(log)], ["loss.train"], cwd=tmp_path, raw_keys=False, form="parquet", output=output) == 0
    table = parquet.read_table(output).to_pydict()
    assert table["step"] == [1.0, 2.0, 5.0, 3.0, 4.0]
    assert math.isnan(table["loss.train"][1])


def test_a_signal_that_is_not_there_names_what_is(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export_to([str(log)], ["loss.trian"], cwd=tmp_path, raw_keys=False, form="csv", output=None) == 2
    assert "loss.train" in capsys.readouterr().err


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_numbers_print_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    folder = tmp_path_factory.mktemp("export")
    log = folder / "run.jsonl"
    log.write_text("".join(f'{{"step": {i}, "loss": {value!r}}}\n' for i, value in enumerate(values)), encoding="utf-8")
    rows = list(csv.DictReader(exported(log, "loss.train", tmp=folder).splitlines()))
    assert [float(row["loss.train"]) for row in rows] == values


def _with_axis(tmp_path: Path, axis: Axis, *, raw_keys: bool = False, settings: str = "") -> tuple[int, list[str]]:
    rows = (
        f'{{"step": {step}, "loss": {3 - step / 100}, "step_time_ms": 500.0, "tokens": {step * 2048}}}\n'
        for step in [*range(1, 11), *range(6, 13)]
    )
    (tmp_path / "run.jsonl").write_text("".join(rows), encoding="utf-8")
    if settings:
        (tmp_path / "trainmon.toml").write_text(settings, encoding="utf-8")
    name = "loss" if raw_keys else "loss.train"
    output = tmp_path / "out.csv"
    status = export_to(
        [str(tmp_path / "run.jsonl")],
        [name],
        cwd=tmp_path,
        raw_keys=raw_keys,
        form="csv",
        output=output,
        axis=axis,
    )
    return status, output.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("raw_keys", [False, True])
def test_a_column_tells_the_tokens_of_every_row_of_every_attempt(tmp_path: Path, raw_keys: bool) -> None:
    status, lines = _with_axis(tmp_path, "tokens", raw_keys=raw_keys)
    assert status == 0
    assert lines[0].startswith("run,attempt,step,tokens,")
    cells = [line.split(",") for line in lines[1:]]
    assert len(cells) == 17
    assert all(float(tokens) == 2048 * float(step) for _, _, step, tokens, _ in cells)


def test_flops_are_six_a_parameter_and_token(tmp_path: Path) -> None:
    status, lines = _with_axis(tmp_path, "flops", settings="[facts]\nparameters = 1e6\n")
    assert (status, lines[0]) == (0, "run,attempt,step,flops,loss.train")
    assert float(lines[1].split(",")[3]) == 6e6 * 2048


def test_an_axis_that_no_log_tells_is_said_and_its_column_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = _with_axis(tmp_path, "flops")
    assert status == 2
    assert lines[1].split(",")[3] == ""
    assert "parameters" in capsys.readouterr().err


def test_steps_add_no_second_column(tmp_path: Path) -> None:
    assert _with_axis(tmp_path, "step")[1][0] == "run,attempt,step,loss.train"
