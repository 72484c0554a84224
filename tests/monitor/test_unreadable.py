"""Unreadable stretches are counted, located and told once each, however long."""

from __future__ import annotations

from pathlib import Path

from trainmon.monitor.check import report
from trainmon.monitor.judge import judge
from trainmon.monitor.unreadable import places


def record(step: int, *, torn: bool) -> str:
    return f'{{"step": {step}, "loss": 2.5' + "}" * (not torn)


def told(folder: Path, name: str, text: str) -> tuple[list[int], str]:
    (folder / name).write_text(text)
    run = judge([name], cwd=folder).runs[0]
    return places(run, run.files[0].path), report(run)


def test_each_stretch_once_with_its_line(tmp_path: Path) -> None:
    torn = {40, 41, 42, 43, 100, *range(200, 300)}
    lines = [record(n, torn=n in torn) for n in range(1, 400)]
    where, text = told(tmp_path, "run.jsonl", "\n".join(lines) + "\n")
    assert where == [40, 100, 200]
    assert "(jsonl: 399 lines, 294 records, 105 unreadable)" in text
    assert text.count("unreadable: ") == 1
    assert "unreadable: 3 stretches, from lines 40, 100 and 200" in text


def test_rows_of_a_table_with_too_many_cells(tmp_path: Path) -> None:
    rows = [f"{n},2.5" + ",7" * (n in (9, 10, 50)) for n in range(1, 90)]
    where, text = told(tmp_path, "run.csv", "\n".join(["step,loss", *rows]) + "\n")
    assert where == [10, 51]
    assert "unreadable: 2 stretches, from lines 10 and 51" in text


def test_many_stretches_are_folded(tmp_path: Path) -> None:
    lines = [record(n, torn=n % 4 == 0) for n in range(1, 2000)]
    where, text = told(tmp_path, "run.jsonl", "\n".join(lines) + "\n")
    assert len(where) == 100
    assert "100 stretches, from lines 4, 8, 12, 16, 20, 24 and 94 more" in text
