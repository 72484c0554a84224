"""Lines that are JSON arrays under one of names."""

from __future__ import annotations

import pytest

from tests.tails.formats.structured import column, read_lines, rows_of, steps
from trainmon.tails.formats.json_rows import JsonRows
from trainmon.tails.formats.registry import detect


def test_arrays_under_names_are_a_table() -> None:
    text = b'["step", "loss", "lr"]\n[10, 3.25, 1e-05]\n[20, 3.125, null]\n[30, 3.0, 3e-05]\n'
    found = detect(text, "metrics.jsonl")
    assert isinstance(found, JsonRows)
    parsed = read_lines(found, text)
    assert steps(parsed) == [10.0, 20.0, 30.0]
    assert column(parsed, "loss") == [3.25, 3.125, 3.0]
    assert [row[2:4] for row in rows_of(parsed)] == [
        (text.index(b"[%d" % step), at) for at, step in enumerate((10, 20, 30), 2)
    ]


@pytest.mark.parametrize(
    "text",
    [
        b'[{"step": 1, "loss": 2.5}]\n',
        b'[["step", 1], ["loss", 2]]\n',
        b'["a", "b"]\n["c", "d"]\n',
        b'["step", "loss"]\n[1]\n',
        b"[1, 2.5]\n[2, 2.25]\n",
    ],
)
def test_other_arrays_are_not(text: bytes) -> None:
    assert JsonRows.sniff(text) == 0.0
