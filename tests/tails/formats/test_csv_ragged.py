"""Rows of more or fewer fields than the header names: what can be kept is kept, and told where."""

from __future__ import annotations

from tests.tails.formats.structured import column, read_lines, steps
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.record import NoteKind, Parsed


def read(text: str) -> Parsed:
    assert CsvTable.sniff(text.encode()) > 0.5
    return read_lines(CsvTable("m.csv"), text.encode())


def told(parsed: Parsed) -> list[tuple[int, str]]:
    return [(note.line_no, note.text) for note in parsed.notes if note.kind is NoteKind.UNREADABLE]


def test_a_short_first_row_does_not_refuse_the_table_and_keeps_what_is_whole() -> None:
    parsed = read("step,loss,lr,val\n1,2.5,0.1\n2,2.4,0.1,3\n3,2.3,0.1,3\n")
    assert column(parsed, "loss") == [2.5, 2.4, 2.3]
    assert column(parsed, "lr") == [0.1, 0.1]
    assert told(parsed) == [(2, "3 fields, the header names 4: 1,2.5,0.1")]


def test_a_torn_row_keeps_its_whole_fields_and_a_glued_one_nothing() -> None:
    parsed = read("step,loss,lr\n1,2.5,0.1\n2,2.\n3,2.0,0.1\n4,1.5,0.15,1.25,0.1\n6,1,1\n")
    assert column(parsed, "loss") == [2.5, 2.0, 1.0]
    assert steps(parsed) == [1.0, 3.0, 6.0]
    assert [line_no for line_no, _ in told(parsed)] == [3, 5]


def test_rows_that_always_leave_their_last_columns_away_are_whole() -> None:
    rows = "".join(f"{step},2.{step}" + (f",3.{step}" if step % 10 == 0 else "") + "\n" for step in range(1, 41))
    parsed = read("step,loss,val_loss\n" + rows)
    assert len(column(parsed, "loss")) == 38  # the first two might have been torn
    assert column(parsed, "val_loss") == [3.1, 3.2, 3.3, 3.4]
    assert [line_no for line_no, _ in told(parsed)] == [2]  # folded: a stretch of two


def test_columns_that_were_added_without_a_header_are_charted() -> None:
    rows = [f"{step},2.5" for step in range(1, 6)] + [f"{step},2.25,0.5,7" for step in range(6, 12)]
    parsed = read("step,loss\n" + "\n".join(rows) + "\n")
    assert steps(parsed) == list(map(float, range(1, 12)))
    assert column(parsed, "column_3") == [0.5] * 6
    assert not told(parsed)


def test_numbers_of_rows_before_the_named_columns_are_known_for_what_they_are() -> None:
    numbered = "".join(f'"{step}",{10 * step},2.5\n' for step in range(1, 8))
    assert steps(read('"step","loss"\n' + numbered)) == [10.0 * step for step in range(1, 8)]
    added = "".join(f"{step},2.5,0.25\n" for step in range(1, 8))
    assert steps(read("step,loss\n" + added)) == list(map(float, range(1, 8)))


def test_empty_names_at_the_end_of_the_header_name_nothing() -> None:
    parsed = read("epoch,loss,\n1,2.5\n2,2.25\n")
    assert column(parsed, "loss") == [2.5, 2.25]
    assert not told(parsed)
