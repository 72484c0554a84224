"""A held-out loss that is no number, and NaN that only fills the rows without an evaluation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.monitor.detectors.harness import Folded, cut, run
from trainmon.monitor.detectors.heldout import HeldOut
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.judge import judge
from trainmon.tails.record import FloatArray, Mark

NLL, LOSS, ACCURACY = SignalKey("eval.nll"), SignalKey("loss.train"), SignalKey("eval.accuracy")
N = 600
MARKS = {"nan": Mark.NAN, "null": Mark.NULL}


def log(period: int, until: int = N, cell: str = "nan", bad: float = np.nan, back: int = N) -> Frame:
    """Finite evaluations every `period` rows up to `until`, then `bad`, finite from `back`; `cell` elsewhere."""
    rows = np.arange(N)
    due = rows % period == period - 1
    lost = due & (rows >= until) & (rows < back)
    nll: FloatArray = np.where(due, 3 - 0.001 * rows, np.nan)
    nll[lost] = bad
    marks = np.where(due, Mark.NUMBER, MARKS.get(cell, Mark.ABSENT)).astype(np.uint8)
    marks[lost] = Mark.NAN if np.isnan(bad) else Mark.POS_INF
    loss = 3 - 0.001 * rows + np.random.default_rng(period).normal(0, 0.01, N)
    return Frame(0, "log", rows + 1.0, np.full(N, np.nan), rows + 1, {NLL: nll, LOSS: loss}, {NLL: marks})


def told(folded: Folded) -> list[tuple[str, float, bool]]:
    assert all(episode.severity is Severity.WARN for episode in folded.episodes)
    return [(episode.kind, episode.first_step, episode.recovered) for episode in folded.episodes]


@pytest.mark.parametrize("cell", ["nan", "null", "absent"])
@pytest.mark.parametrize("period", [1, 7, 50])
def test_placeholders_are_no_fault(cell: str, period: int) -> None:
    assert run(HeldOut, [log(period, cell=cell)]).episodes == []


def test_a_log_that_never_has_a_number_or_only_one_is_no_fault() -> None:
    assert run(HeldOut, [log(10, until=0)]).episodes == []
    assert run(HeldOut, [log(400)]).episodes == []


@pytest.mark.parametrize("cell", ["null", "absent"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_evaluations_that_are_no_number_are_told(cell: str, bad: float) -> None:
    assert told(run(HeldOut, [log(10, 300, cell, bad)])) == [("held_out_nonfinite", 310, False)]
    found = run(HeldOut, [log(10, 300, cell, bad, back=400)])
    assert told(found) == [("held_out_nonfinite", 310, True)]
    assert "since step 310 (last 10 evaluations)" in found.episodes[0].what


def test_one_evaluation_that_is_no_number_is_no_fault() -> None:
    assert run(HeldOut, [log(10, 300, "absent", back=310)]).episodes == []


def with_accuracy(frame: Frame, period: int, until: int = N, of: SignalKey = ACCURACY) -> Frame:
    """`frame` with the accuracy of an evaluation every `period` rows up to `until`."""
    rows = np.arange(N)
    accuracy: FloatArray = np.where((rows % period == period - 1) & (rows < until), 0.5, np.nan)
    return replace(frame, columns={**frame.columns, of: accuracy})


def test_among_placeholders_the_accuracy_of_the_same_evaluation_tells() -> None:
    [episode] = run(HeldOut, [with_accuracy(log(10, 300), 10)]).episodes
    assert (episode.first_step, episode.recovered) == (310, False)
    assert "is NaN since step 310 (last 30 evaluations)" in episode.what
    assert run(HeldOut, [with_accuracy(log(10, 300, back=310), 10)]).episodes == []
    assert run(HeldOut, [with_accuracy(log(100, 250), 100)]).episodes == []  # two evaluations: too few


def test_a_column_that_ends_early_is_not_evaluated_any_more() -> None:
    assert run(HeldOut, [log(10, 300)]).episodes == []
    assert run(HeldOut, [with_accuracy(log(10, 300), 10, until=300)]).episodes == []
    another = SignalKey("eval.accuracy", (("task", "arc"),))
    assert run(HeldOut, [with_accuracy(log(10, 300), 5, of=another)]).episodes == []  # on a rhythm of its own


def test_nan_in_the_words_of_lines_is_told_after_three_times_the_longest_gap() -> None:
    whole = log(10, 300)
    marks = {NLL: np.where(whole.marks[NLL] == Mark.NAN, Mark.SAID_NAN, whole.marks[NLL]).astype(np.uint8)}
    [episode] = run(HeldOut, [replace(whole, marks=marks)]).episodes
    assert (episode.first_step, episode.recovered) == (301, False)
    assert "never over 9 in a row before" in episode.what


def test_however_rows_are_cut_the_episodes_are_the_same() -> None:
    for whole in (log(1, 300, back=350), with_accuracy(log(10, 300), 10), log(10, 300, "absent", np.inf, back=400)):
        wanted = [repr(episode) for episode in run(HeldOut, [whole]).episodes]  # NaN is not equal to itself
        assert wanted
        for size in (1, 7, 64):
            parts = cut(whole, range(size, N, size))
            assert [repr(episode) for episode in run(HeldOut, parts).episodes] == wanted


def test_a_user_is_told(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    lines = []
    for i in range(1, 601):
        lines.append({"step": i, "loss": 3 - 0.001 * i, "grad_norm": 0.5})
        if i % 20 == 0:
            lines.append({"step": i, "val_loss": 3.1 - 0.001 * i if i < 300 else float("nan")})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [seen] = judge([str(path)], cwd=tmp_path).runs
    [check] = [check for check in seen.checks if check.id == "eval.heldout"]
    assert check.verdict is Verdict.WARN
    assert "is NaN since step 300" in check.what
    assert seen.verdict is Verdict.WARN


def test_a_user_is_told_that_it_is_not_evaluated_any_more(tmp_path: Path) -> None:
    rows = [
        (step, 3 - step / 100, 3.1 - step / 100 if step % 20 == 0 and step <= 140 else "nan") for step in range(201)
    ]
    (tmp_path / "m.csv").write_text("step,loss,val_loss\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    [seen] = judge([str(tmp_path / "m.csv")], cwd=tmp_path).runs
    [check] = [check for check in seen.checks if check.id == "eval.heldout"]
    assert check.verdict is Verdict.PASS
    assert "not evaluated since step 140" in check.what
