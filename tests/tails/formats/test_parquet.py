from __future__ import annotations

import io
import math
import sys
from pathlib import Path

import pytest

from tests.tails.formats.structured import by_run, column, marks, rows_of, steps
from trainmon.tails.clock import SystemClock
from trainmon.tails.document import DocumentReader
from trainmon.tails.formats.parquet import Parquet
from trainmon.tails.record import NoteKind, Parsed, TimeKind

pyarrow = pytest.importorskip("pyarrow")


def table(**columns: object) -> bytes:
    import pyarrow.parquet as parquet

    out = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def test_history() -> None:
    data = table(
        _step=[0, 1, 2, 3],
        loss=[2.5, math.nan, math.inf, 2.0],
        eval_loss=[None, 2.75, None, None],
        empty=[None, None, None, None],
        name=["a", "b", "c", "d"],
        flag=[True, False, True, True],
        _timestamp=[1.7e9, 1.7e9 + 1, 1.7e9 + 2, 1.7e9 + 3],
    )
    assert Parquet.sniff(data[:100]) > 0.9
    parsed = Parquet("h.parquet").parse(data)
    assert steps(parsed) == [0.0, 1.0, 2.0, 3.0]
    assert marks(parsed, "loss") == ["NUMBER", "NAN", "POS_INF", "NUMBER"]
    assert column(parsed, "eval_loss") == [2.75]
    assert set(parsed.blocks[0].columns) == {"loss", "eval_loss", "_timestamp"}
    assert parsed.blocks[0].time_kind is TimeKind.ABSOLUTE
    assert [row[3] for row in rows_of(parsed)] == [1, 2, 3, 4]


def frame(data: dict[str, object], **options: object) -> Parsed:
    pandas = pytest.importorskip("pandas")
    out = io.BytesIO()
    pandas.DataFrame(data, **options).to_parquet(out)
    return Parquet("h.parquet").parse(out.getvalue())


def test_long_form() -> None:
    names, values = ["loss", "lr", "loss", "lr"], [2.5, 0.1, math.nan, 0.2]
    parsed = Parquet("h.parquet").parse(table(name=names, step=[1, 1, 2, 2], value=values))
    assert steps(parsed) == [1, 1, 2, 2]
    assert (marks(parsed, "loss"), column(parsed, "lr")) == (["NUMBER", "NAN"], [0.1, 0.2])
    assert {key for block in parsed.blocks for key in block.columns} == {"loss", "lr"}


def test_long_form_metric_by_metric() -> None:
    rows = [(name, step) for name, stride in (("loss", 1), ("lr", 1), ("val_loss", 5)) for step in range(0, 40, stride)]
    values = [2 + 1 / (1 + step) for _, step in rows]
    parsed = Parquet("p").parse(table(name=[row[0] for row in rows], step=[row[1] for row in rows], value=values))
    (block,) = parsed.blocks
    assert (block.run, block.by_metric) == ("", True)
    assert block.steps.tolist() == [float(step) for _, step in rows]
    assert column(parsed, "val_loss") == values[-8:]


def test_long_form_of_two_runs() -> None:
    rows = [(run, step) for run in "ab" for step in range(6)]
    parsed = Parquet("h.parquet").parse(
        table(
            run=[run for run, _ in rows],
            metric=["loss"] * 12,
            step=[step for _, step in rows],
            value=[2.5 + step for _, step in rows],
        )
    )
    assert {run: column(own, "loss") for run, own in by_run(parsed).items()} == {
        "": [2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
        "run=b": [2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
    }


@pytest.mark.parametrize("steps_of", [[10, 20, 40], range(10, 40, 10)])
def test_a_data_frame_whose_index_is_the_step(steps_of: object) -> None:
    pandas = pytest.importorskip("pandas")
    made = pandas.Index(steps_of) if isinstance(steps_of, list) else pandas.RangeIndex(10, 40, 10)
    for name in ("step", None):
        found = steps(frame({"loss": [2.5, 2.25, 2.0]}, index=made.rename(name)))
        unnamed_range = name is None and not isinstance(steps_of, list)
        assert found == ([None] * 3 if unnamed_range else list(steps_of)), name  # type: ignore[call-overload]


def test_numbers_in_strings_and_in_nested_columns() -> None:
    parsed = Parquet("h.parquet").parse(table(step=["1", "2"], loss=[{"value": 2.5}, {"value": 2.25}]))
    assert (steps(parsed), column(parsed, "loss.value")) == ([1, 2], [2.5, 2.25])


def test_torn_file_gives_one_line() -> None:
    data = table(step=[1, 2], loss=[2.5, 2.25])
    parsed = Parquet("h.parquet").parse(data[: len(data) // 2])
    assert parsed.unreadable == 1
    assert [note.kind for note in parsed.notes] == [NoteKind.FILE]


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    table_format = Parquet("h.parquet")
    parsed = table_format.parse(b"PAR1")
    assert table_format.problem == "h.parquet: reading parquet needs pyarrow: pip install 'trainmon[parquet]'"
    assert [note.text for note in parsed.notes] == [table_format.problem]


def test_without_the_extra_the_user_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "history.parquet"
    path.write_bytes(table(step=[1, 2], loss=[2.5, 2.25]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    reader = DocumentReader(path, Parquet(str(path)), SystemClock())
    assert reader.poll(is_final=True).records == 0
    assert "pip install 'trainmon[parquet]'" in reader.problem


def test_importing_the_format_imports_no_pyarrow() -> None:
    import subprocess

    code = "import sys, trainmon.tails.formats.parquet; print('pyarrow' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
