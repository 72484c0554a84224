"""Two records that say the same are told as such however they were read."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from trainmon.tails.formats.raw_values import Columns, RawValues, RowValues
from trainmon.tails.formats.said_again import is_same
from trainmon.tails.formats.stdout import Stdout

NAMES = ("loss", "lr")
COLUMNS = Columns(NAMES, b"[0] loss 0.00 at 0 lr 0e-0", [(9, 13), (22, 26)])
MATRIX = np.array([[2.5, 1e-4], [2.5, 1e-4], [2.5, 2e-4], [-0.0, 1e-4], [0.0, 1e-4], [np.nan, 1e-4], [-np.nan, 1e-4]])
LINES = (b"[0] loss 2.50 at 1 lr 1e-4", b"[1] loss 2.50 at 2 lr 1e-4", b"[1] loss 2.50 at 2 lr 2e-4")
RECORDS: list[Mapping[str, float | None]] = [
    *(RawValues(COLUMNS, line) for line in LINES),
    *(RowValues(NAMES, MATRIX, row) for row in range(len(MATRIX))),
    {"loss": 2.5, "lr": 1e-4},
    {"lr": 1e-4, "loss": 2.5},
    {"loss": 2.5, "lr": None},
    {"loss": 2.5, "lr": float("nan")},
]


@pytest.mark.parametrize(("one", "other"), product(RECORDS, RECORDS))
def test_as_their_texts_say(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> None:
    assert is_same(one, other) is (repr(dict(one)) == repr(dict(other)))


@pytest.mark.parametrize("size", [70, 1 << 20])
def test_what_eight_ranks_print_is_one_record_a_step_however_it_arrives(size: int) -> None:
    lines = "".join(
        f"[rank{rank}]: step {step} | loss {2 + 1 / step:.3f} | lr 1.0e-04 | grad norm {1 + step % 7 / 10:.2f}\n"
        for step in range(1, 101)
        for rank in range(8)
    ).encode()
    reader, at, line_no, records = Stdout("train.log"), 0, 1, 0
    while at < len(lines):
        end = lines.find(b"\n", min(at + size, len(lines) - 1)) + 1
        parsed = reader.feed(lines[at:end], at, line_no)
        at, line_no, records = end, line_no + parsed.lines, records + parsed.records
    assert records + reader.finish().records == 100
