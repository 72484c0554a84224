"""NaN and infinity as the run-times of C write them, in tables, JSON strings and text."""

from __future__ import annotations

import json

import pytest

from tests.tails.formats.structured import marks
from trainmon.tails.formats.cells import number_in
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.numbers import to_number
from trainmon.tails.record import Parsed

NAN = ("-nan(ind)", "nan(ind)", "-1.#IND", "1.#QNAN", "-1.#IND00", "nan(snan)", "-nan(0x8000)")


@pytest.mark.parametrize("text", NAN)
def test_a_table_holds_them_as_not_a_number(text: str) -> None:
    rows = "".join(f"{step},{2.5 - step / 100 if step < 20 else text},0.1\n" for step in range(40))
    table, parsed = CsvTable("metrics.csv"), Parsed()
    parsed.add(table.feed(b"step,loss,lr\n" + rows.encode(), 0, 1))
    parsed.add(table.finish())
    assert marks(parsed, "loss") == ["NUMBER"] * 20 + ["NAN"] * 20


def test_infinity_keeps_its_sign() -> None:
    assert (to_number("1.#INF"), to_number("-1.#INF00")) == (float("inf"), float("-inf"))


@pytest.mark.parametrize("text", ["nan(", "1.#", "1.#J", "nan(a b)", "nan (ind)"])
def test_what_only_looks_like_one_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="could not convert"):
        to_number(text)


@pytest.mark.parametrize("text", NAN)
def test_a_string_of_json_holds_them(text: str) -> None:
    found = number_in(json.loads(json.dumps(text)))
    assert found is not None
    assert found != found
