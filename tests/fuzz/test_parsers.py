"""Every registered format and dialect on logs that are damaged, mixed or hostile."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import seeds
from tests.fuzz.budget import fuzz
from tests.fuzz.checks import CHECKS
from tests.fuzz.mutation import CUTS, logs, pieces
from tests.fuzz.reading import read, said

each_check = pytest.mark.parametrize("check", CHECKS)


@each_check
@fuzz(90)
@given(data=logs(), seed=st.integers(0, 1 << 16))
def test_a_damaged_log(check: str, data: bytes, seed: int) -> None:
    CHECKS[check](data, random.Random(seed))


@each_check
def test_seeds_hold_as_they_are(check: str) -> None:
    for data in seeds.own():
        CHECKS[check](data, random.Random(1))


@each_check
@pytest.mark.parametrize("path", seeds.FINDINGS, ids=lambda path: path.name)
def test_what_was_found_stays_mended(check: str, path: Path) -> None:
    for seed in range(20):
        CHECKS[check](path.read_bytes(), random.Random(seed))


@fuzz(60)
@given(logs(), CUTS)
def test_the_format_is_the_same_however_a_log_of_text_arrives(data: bytes, cuts: list[int]) -> None:
    data = data.replace(b"\0", b"")  # a log whose head is text and whose rest is binary is what its head was
    whole, by_whole = read([data])
    parsed, by_pieces = read(pieces(data, cuts))
    if by_whole.is_text and by_pieces.is_text and type(by_whole.format) is type(by_pieces.format):
        assert by_pieces.label == by_whole.label
        assert said(parsed)["rows"] == said(whole)["rows"]


RECORDS = st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e9, 1e9)), min_size=21, max_size=40)


@fuzz(60)
@given(RECORDS, st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=30)), max_size=12))
def test_a_whole_record_among_rubbish_is_read_and_rubbish_is_never_a_number(
    records: list[tuple[int, float]], rubbish: list[tuple[int, bytes]]
) -> None:
    """Lines that are no record of their own stand between whole ones: each of those is read, to the last digit."""
    lines = [json.dumps({"step": step, "loss": loss}).encode() for step, loss in records]
    for at, junk in sorted(rubbish, reverse=True):
        lines.insert(max(at, 21) % (len(lines) + 1), b'{"step": ' + junk.translate(None, b'\r\n\0{}:"') + b"} {")
    parsed, ingest = read([b"\n".join([*lines, b""])])
    assert ingest.label == "jsonl"
    got = [
        (step, value)
        for block in parsed.blocks
        for step, value in zip(block.steps.tolist(), block.columns["loss"].tolist(), strict=True)
    ]
    assert got == [(float(step), loss) for step, loss in records]
    assert parsed.unreadable == len(lines) - len(records)


_A_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_SIZES = (b"9" * 400, b"-" + b"9" * 400, b"9" * 5000, b"1e999")  # past a float, past what int() takes, infinite


@pytest.mark.parametrize("size", _SIZES, ids=lambda size: f"{size[:6].decode()}-{len(size)}")
def test_a_number_of_any_size_stands_anywhere(size: bytes) -> None:
    """Each number of each sample in turn; integers in JSON have no largest value, and floats have one."""
    for data in seeds.own():
        if b"\0" in data:
            continue  # binary
        places = list(_A_NUMBER.finditer(data))
        for place in places[:24]:
            CHECKS["is_read"](data[: place.start()] + size + data[place.end() :], random.Random(1))
