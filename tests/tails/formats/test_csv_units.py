"""Tables and records whose values carry their units, and counts with a lone letter."""

from __future__ import annotations

import pytest

from tests.tails.formats.structured import column, read_lines, steps
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.record import NoteKind, Parsed


def read(text: str) -> Parsed:
    assert CsvTable.sniff(text.encode()) > 0.6
    return read_lines(CsvTable("m.csv"), text.encode())


def test_fields_with_units_are_read_in_the_unit_of_the_first() -> None:
    parsed = read("step,loss,step time,mem\n1,2.5,320.5 ms,900MB\n2,2.25,1.25 s,1.5GB\n3,2.0,,--\n")
    assert steps(parsed) == [1, 2, 3]
    assert column(parsed, "step time (ms)") == [320.5, 1250.0]
    assert column(parsed, "mem (MB)") == [900.0, 1500.0]
    assert parsed.unreadable == 0


def test_a_table_of_nothing_but_units_is_a_table() -> None:
    parsed = read("step;dt;speed;done\n1;320 ms;12.5k tok/s;1%\n2;310 ms;13k tok/s;2%\n")
    assert column(parsed, "dt (ms)") == [320.0, 310.0]
    assert column(parsed, "speed (ktok/s)") == [12.5, 13.0]
    assert column(parsed, "done (%)") == [1.0, 2.0]


def test_a_field_in_a_unit_of_another_kind_is_no_number() -> None:
    parsed = read("step,loss,dt\n1,2.5,320 ms\n2,2.25,3 GB\n3,2.0,300 ms\n")
    assert column(parsed, "dt (ms)") == [320.0, 300.0]
    [note] = [note for note in parsed.notes if note.kind is NoteKind.UNREADABLE]
    assert note.line_no == 3


def test_a_field_with_its_unit_in_the_heading_too_keeps_the_heading() -> None:
    parsed = read("step,loss,time_ms\n1,2.5,320 ms\n2,2.25,310 ms\n")
    assert column(parsed, "time_ms") == [320.0, 310.0]


@pytest.mark.parametrize(("key", "value", "wanted"), [("tok_per_sec", "1.2M", 1.2e6), ("tokens", "350k", 350e3)])
def test_a_lone_letter_multiplies_what_is_counted(key: str, value: str, wanted: float) -> None:
    lines = f'{{"step": 1, "loss": 2.5, "{key}": "{value}"}}\n{{"step": 2, "loss": 2.25, "{key}": "950"}}\n'
    assert column(read_lines(JsonLines("m.jsonl"), lines.encode()), key) == [wanted, 950.0]
    assert column(read(f"step,loss,{key}\n1,2.5,{value}\n2,2.25,950\n"), key) == [wanted, 950.0]


def test_a_lone_letter_under_other_names_stays_a_word() -> None:
    parsed = read_lines(JsonLines("m.jsonl"), b'{"step": 1, "loss": 2.5, "size": "7B", "eta": "5m"}\n')
    assert (column(parsed, "size"), column(parsed, "eta")) == ([], [])


def test_a_step_of_so_many_is_the_step_and_tells_the_total() -> None:
    parsed = read("date,step,loss\n1/2,10/300,2.5\n1/2,20/300,2.25\n1/2,30/ 300,2.0\n")
    assert steps(parsed) == [10, 20, 30]
    assert [(fact.key, fact.value) for fact in parsed.facts] == [("total_steps", 300.0)]
    assert parsed.unreadable == 0
