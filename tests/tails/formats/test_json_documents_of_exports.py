"""JSON documents as exports write them: points under a metric's name, and data frames in pandas' several orders."""

from __future__ import annotations

import json

import pytest

from tests.tails.formats.structured import column, steps
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.json_document import JsonDocument
from trainmon.tails.formats.registry import detect
from trainmon.tails.record import Parsed

STEPS = [10.0, 20.0, 30.0]
LOSS = [2.5, 2.25, 2.0]


def read(value: object, *, indent: int | None = None) -> Parsed:
    data = json.dumps(value, indent=indent).encode() + b"\n"
    assert isinstance(detect(data, "m.json"), JsonDocument)
    return JsonDocument("m.json").parse(data)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "value",
    [
        {"loss": [{"step": 10, "value": 2.5}, {"step": 20, "value": 2.25}, {"step": 30, "value": 2.0}], "lr": []},
        {"loss": [[10, 2.5], [20, 2.25], [30, 2.0]], "grad_norm": [[10, 1], [20, 1], [30, 1]]},
        {"columns": ["step", "loss"], "index": [0, 1, 2], "data": [[10, 2.5], [20, 2.25], [30, 2.0]]},
        {"step": {"0": 10, "1": 20, "2": 30}, "loss": {"0": 2.5, "1": 2.25, "2": 2.0}},
    ],
)
def test_each_holds_the_loss_by_step(value: object, indent: int | None) -> None:
    parsed = read(value, indent=indent)
    assert (steps(parsed), column(parsed, "loss")) == (STEPS, LOSS)


def test_points_that_name_their_metric_are_no_series_of_the_key_they_stand_under() -> None:
    rows = [{"name": name, "step": step, "value": 2.5} for step in (1, 2) for name in ("loss", "lr")]
    parsed = read({"metrics": rows}, indent=1)
    assert column(parsed, "loss") == column(parsed, "lr") == [2.5, 2.5]


def test_pairs_that_are_no_metric_are_none() -> None:
    parsed = JsonDocument("m.json").parse(json.dumps({"box": [[1, 2], [3, 4]], "loss": [2.5, 2.0]}, indent=1).encode())
    assert {key for block in parsed.blocks for key in block.columns} == {"loss"}


def test_a_spreadsheets_first_line_tells_the_separator() -> None:
    data = b"sep=;\nstep;loss\n10;2,5\n20;2,25\n"
    assert CsvTable.sniff(data) > 0.8
    table = CsvTable("m.csv")
    parsed = table.feed(data, 0, 1)
    parsed.add(table.finish())
    assert (steps(parsed), column(parsed, "loss")) == ([10, 20], [2.5, 2.25])
