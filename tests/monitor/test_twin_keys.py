"""A signal that two keys of a log tell goes on by the second when the first falls silent."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.twin_keys import Twin

LOSS = SignalKey("loss.train")
STEPS, END = range(1, 301), 200


def loss(step: int) -> float:
    return round(3 - step / 400 + 0.01 * math.sin(step), 4)


def run_of(folder: Path, text: str, name: str = "train.log") -> RunSnapshot:
    (folder / name).write_text(text)
    [run] = judge([name], cwd=folder).runs
    return run


def two_accounts(end: int = END, bad_from: int = 10**9, other: float = 0.0) -> str:
    out = ""
    for step in STEPS:
        if step <= end:
            out += f"[2025-01-15 10:00:00] INFO iter {step} | train_loss {loss(step):.4f} | lr 1.00e-04\n"
        value = loss(step) + other if step < bad_from else math.nan
        out += f"step {step} loss: {value:.4f} gnorm: 0.5\n"
    return out


def test_a_second_account_of_the_loss_goes_on_when_the_first_stops(tmp_path: Path) -> None:
    run = run_of(tmp_path, two_accounts())
    told = dict(zip(run.series[LOSS].steps.tolist(), run.series[LOSS].values.tolist(), strict=True))
    assert {step: told[step] for step in STEPS if step != END + 1} == {
        step: loss(step) for step in STEPS if step != END + 1
    }
    assert (run.verdict, run.last_step) == (Verdict.PASS, 300.0)


def test_what_goes_wrong_behind_the_end_of_the_first_is_found(tmp_path: Path) -> None:
    run = run_of(tmp_path, two_accounts(bad_from=250))
    assert run.verdict is Verdict.FAIL
    assert "NaN" in run.verdict_reason


def test_another_quantity_never_takes_its_place(tmp_path: Path) -> None:
    run = run_of(tmp_path, two_accounts(other=0.25))
    assert run.series[LOSS].steps.tolist()[-1] == END
    assert run.verdict is Verdict.FAIL  # the loss is told no more


@pytest.mark.parametrize("first", ["lm loss", "train_loss"])
def test_of_two_names_in_a_record_the_second_goes_on(tmp_path: Path, first: str) -> None:
    rows = [{"step": s, "loss": loss(s), "lr": 1e-4} | ({first: loss(s)} if s <= END else {}) for s in STEPS]
    run = run_of(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "m.jsonl")
    assert run.last_step == 300.0
    assert run.series[LOSS].steps.tolist()[-1] == 300.0
    assert run.verdict is Verdict.PASS


ROW = st.tuples(st.sampled_from(["own", "second", "both", "none"]), st.sampled_from([-3, 0, 1, 1, 1]), st.booleans())


@given(st.lists(ROW, max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_the_pieces_in_which_rows_come_make_no_difference(rows: list[tuple[str, int, bool]], cuts: list[int]) -> None:
    steps = np.cumsum([0.0, *(move for _, move, _ in rows)])[1:]
    values = np.where([is_bad for _, _, is_bad in rows], np.nan, 3 - steps / 100) if rows else np.zeros(0)
    has_own, has_second = (np.array([kind in (one, "both") for kind, _, _ in rows], bool) for one in ("own", "second"))
    arrays = (steps, np.where(has_own, values, np.nan), np.where(has_second, values, np.nan), has_own, has_second)
    whole, pieces = Twin(), Twin()
    wanted = whole.take(*arrays).tolist() if rows else []
    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    got = [
        taken
        for begin, end in pairwise(places)
        if end > begin
        for taken in pieces.take(*(array[begin:end] for array in arrays)).tolist()
    ]
    assert got == wanted
