"""However the lines arrive, and whichever way they are read, JSON lines say the same."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.formats.structured import column, read_lines, said, steps
from trainmon.tails.formats import jsonl
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.steps import word_set

_NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**70), 2**70),
    st.just(10**400),
)
_SCALARS = st.one_of(
    _NUMBERS,
    st.booleans(),
    st.none(),
    st.sampled_from(
        ["nan", "-inf", "0.5", "x", "eval", "1:02", "2026-03-25 10:09:23", "1.5s", "900 ms", "40 GiB", "5%"]
    ),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abr"), inner, max_size=3))


_VALUES = st.recursive(_SCALARS, _nested, max_leaves=5)
_KEYS = st.sampled_from(
    sorted(
        word_set(
            "step iter epoch loss lr val_loss grad_norm extra event type split timestamp time total_steps batch_size "
            "name value a a/b a[0]"
        )
    )
)
_RECORDS = st.dictionaries(_KEYS, _VALUES, max_size=5)
_PLAIN = st.fixed_dictionaries(
    {"loss": st.floats(allow_nan=True), "lr": st.just(0.1)}, optional={"grad_norm": _SCALARS}
)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode()


_LINES = st.one_of(
    _RECORDS.map(_line),
    _PLAIN.map(_line),
    _PLAIN.map(_line).map(lambda line: line[: len(line) // 2]),
    st.sampled_from([b"", b"text", b"[1]", b"3", b"null", b'{"loss": 1}{"loss": 2}', b'{"loss": 1e999}', b"\x00\x00"]),
    st.binary(max_size=10).filter(lambda text: b"\n" not in text),
)


def _stepped(records: list[dict[str, Any]]) -> bytes:
    return b"".join(_line({"step": index, **record}) + b"\n" for index, record in enumerate(records))


@settings(max_examples=150, deadline=None)
@given(st.lists(_LINES, max_size=40), st.lists(st.integers(1, 40), max_size=6))
def test_any_lines_in_any_pieces_say_the_same(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    assert said(read_lines(JsonLines("m"), data, cuts)) == said(read_lines(JsonLines("m"), data))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(_RECORDS, _PLAIN), min_size=10, max_size=60))
def test_bulk_and_one_by_one_say_the_same(records: list[dict[str, Any]]) -> None:
    data = _stepped(records)
    whole = said(read_lines(JsonLines("m"), data))
    slow = JsonLines("m")
    slow._patience = len(records) + 1  # no plan is ever made
    assert whole == said(read_lines(slow, data))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_numbers_print_back_as_they_were_written(numbers: list[float]) -> None:
    data = b"".join(_line({"step": index, "loss": number}) + b"\n" for index, number in enumerate(numbers))
    parsed = read_lines(JsonLines("m"), data)
    assert list(map(repr, column(parsed, "loss"))) == list(map(repr, numbers))
    assert steps(parsed) == list(map(float, range(len(numbers))))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.floats(), st.none()), min_size=12, max_size=60))
def test_what_was_logged_is_told_from_what_was_not(values: list[float | None]) -> None:
    records = [{"step": i, **({} if i % 3 == 2 else {"loss": value})} for i, value in enumerate(values)]
    parsed = read_lines(JsonLines("m"), b"".join(_line({"lr": 1, **record}) + b"\n" for record in records))
    expected = [value for i, value in enumerate(values) if i % 3 != 2]
    found = column(parsed, "loss")
    assert len(found) == len(expected)
    for number, value in zip(found, expected, strict=True):
        assert (number == value) or (math.isnan(number) and (value is None or math.isnan(value)))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_never_raise(data: bytes) -> None:
    read_lines(JsonLines("m"), data)
    JsonLines.sniff(data)


def test_slices_of_a_long_feed_say_the_same() -> None:
    data = _stepped([{"loss": i / 7, "lr": 0.1, "event": "train" if i % 9 else "eval"} for i in range(3000)])
    whole = said(read_lines(JsonLines("m"), data))
    before, jsonl._SLICE = jsonl._SLICE, 10_000
    try:
        assert said(read_lines(JsonLines("m"), data)) == whole
    finally:
        jsonl._SLICE = before
