"""What a field of a table says: missing, null, a number of another country, or a word where a number belongs."""

from __future__ import annotations

import pytest

from tests.tails.formats.structured import column, marks, read_lines, steps
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.record import NoteKind, Parsed


def read(text: str) -> Parsed:
    assert CsvTable.sniff(text.encode()) > 0.6
    return read_lines(CsvTable("m.csv"), text.encode())


@pytest.mark.parametrize("word", ["NA", "N/A", "n/a", "#N/A", "<NA>", "None"])
def test_a_row_whose_value_is_not_available_is_a_step(word: str) -> None:
    parsed = read(f"step,loss\n1,{word}\n2,2.5\n3,{word}\n")
    assert steps(parsed) == [1, 2, 3]
    assert marks(parsed, "loss") == ["NULL", "NUMBER", "NULL"]
    assert parsed.unreadable == 0


def test_a_word_in_a_column_of_numbers_is_unreadable_and_told_once_a_stretch() -> None:
    parsed = read("step,loss,lr,note\n1,2.5,0.1,a\n2,oops,x,b\n3,??,0.1,c\n4,2.5,0.1,d\n5,1.5.2,0.1,7\n")
    assert steps(parsed) == [1, 3, 4, 5]
    assert column(parsed, "loss") == [2.5, 2.5]
    assert parsed.unreadable == 3
    told = [(note.line_no, note.text) for note in parsed.notes if note.kind is NoteKind.UNREADABLE]
    assert told == [(3, "no number under loss: 2,oops,x,b"), (6, "no number under loss: 5,1.5.2,0.1,7")]


def test_signs_that_fill_an_empty_cell_are_no_words() -> None:
    parsed = read("step,loss,val_loss\n1,2.5,-\n2,2.25,2.75\n3,2.0,--\n")
    assert (column(parsed, "val_loss"), parsed.unreadable) == ([2.75], 0)


def test_words_under_the_step_name_what_the_row_is() -> None:
    assert read("step,loss\n1,2.5\n2,2.25\nfinal,2.0\n").unreadable == 0


def test_decimal_commas_between_semicolons() -> None:
    parsed = read("loss;lr;mfu\n3,25;0,01;41,5\n1.203,5;0,001;1,000\n")
    assert (column(parsed, "loss"), column(parsed, "lr"), column(parsed, "mfu")) == (
        [3.25, 1203.5],
        [0.01, 0.001],
        [41.5, 1],
    )


def test_thousands_in_quotes_between_commas() -> None:
    parsed = read('step,loss,tokens\n"1,000",2.5,"1,234,567"\n"2,000","2,5","12,345.5"\n')
    assert steps(parsed) == [1000, 2000]
    assert (column(parsed, "tokens"), column(parsed, "loss")) == ([1234567, 12345.5], [2.5, 2.5])


def test_a_minus_sign_of_typesetters_is_one() -> None:
    assert column(read("step,loss\n1,\N{MINUS SIGN}2.5\n2,2.25\n"), "loss") == [-2.5, 2.25]


def test_a_second_table_of_other_columns_is_no_more_of_the_first() -> None:
    parsed = read("epoch,train_loss\n1,2.5\n2,2.25\n\nepoch,val_loss\n1,2.75\n2,2.5\n")
    assert (column(parsed, "train_loss"), column(parsed, "val_loss")) == ([2.5, 2.25], [2.75, 2.5])
    assert not parsed.notes


def test_what_stands_above_the_header_is_no_header() -> None:
    parsed = read("run_name,foo\nstep,loss\n1,2.5\n2,2.25\n3,2.0\n")
    assert (steps(parsed), column(parsed, "loss")) == ([1, 2, 3], [2.5, 2.25, 2.0])
