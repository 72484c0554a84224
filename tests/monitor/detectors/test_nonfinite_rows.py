"""Which NaN in a loss column is a lost loss, and which the gap of a table: told by what stands on the loss's rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from trainmon.monitor.detectors.loss_nonfinite import LossNonFinite
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Mark

LOSS, EVAL, OTHER = SignalKey("loss.train"), SignalKey("eval.nll"), SignalKey("train_acc")
GRAD, LR = SignalKey("grad.norm"), SignalKey("optim.lr")
NAN, GAP, SAID = "nan", None, "said"  # what is written, what is left empty, what is printed in the words of a line
Cell = float | str | None
Columns = dict[SignalKey, list[Cell]]


def frame(columns: Columns, begin: int, end: int) -> Frame:
    steps = np.arange(begin + 1.0, end + 1.0)
    cells: dict[SignalKey, np.ndarray] = {}  # type: ignore[type-arg]
    marks: dict[SignalKey, np.ndarray] = {}  # type: ignore[type-arg]
    for key, column in columns.items():
        part = column[begin:end]
        cells[key] = np.array([float("nan") if cell in (NAN, GAP, SAID) else float(cell or 0.0) for cell in part])
        if NAN in part or SAID in part:
            odd = {NAN: Mark.NAN, SAID: Mark.SAID_NAN, GAP: Mark.ABSENT}
            told = [Mark.NUMBER if isinstance(cell, float) else odd[cell] for cell in part]
            marks[key] = np.array(told, np.uint8)
    return Frame(0, "log", steps, np.full(len(steps), np.nan), np.arange(begin, end), cells, marks)


def worst(columns: Columns, cuts: Sequence[int] = ()) -> Severity | None:
    """The loudest that the check says of the loss, as it stands at the end of the log."""
    check = LossNonFinite(Thresholds(), {})
    found = []
    for begin, end in pairwise([0, *cuts, len(columns[LOSS])]):
        found += list(check.update(frame(columns, begin, end)))
    found += list(check.finish())
    assert list(check.finish()) == list(check.finish()), "asking at the end changes nothing"
    loud = [one.severity for one in found if one.action in ("open", "grow")]
    return max(loud, default=None)


GOOD: list[Cell] = [2.5] * 6
FLAT: list[Cell] = [1.0] * 6
LOST: list[Cell] = [*([2.5] * 20), *([NAN] * 10)]
CASES: dict[str, tuple[Columns, Severity | None]] = {
    "a bar that repeats the held-out loss": ({LOSS: LOST, EVAL: [GAP] * 5 + [3.0] * 25}, Severity.FAIL),
    "a column of any name beside it": ({LOSS: LOST, OTHER: [0.5] * 30}, Severity.FAIL),
    "nothing beside it": ({LOSS: LOST}, Severity.FAIL),
    "the gradient norm is lost too": ({LOSS: LOST, GRAD: [*([1.0] * 20), *([NAN] * 10)]}, Severity.FAIL),
    "all other columns end too": ({LOSS: LOST, LR: [*([1e-4] * 20), *([NAN] * 10)]}, None),
    "held-out rows of a table without gaps": (
        {LOSS: [2.5, 2.5, 2.5, NAN] * 8, EVAL: [NAN, NAN, NAN, 3.0] * 8},
        None,
    ),
    "a table goes on with held-out rows": ({LOSS: LOST, EVAL: [NAN] * 20 + [3.0] * 10}, None),
    "every fourth row of a table": ({LOSS: [NAN, NAN, NAN, 2.5] * 10, GRAD: [1.0] * 40}, None),
    "from the first row on": ({LOSS: [NAN] * 6, GRAD: [1.0] * 6}, Severity.FAIL),
    "from the second row on": ({LOSS: [2.5] + [NAN] * 6, GRAD: [1.0] * 7}, Severity.FAIL),
    "a seldom column that is lost": (
        {LOSS: [NAN, 2.5] * 8 + [NAN] * 8, GRAD: [1.0] * 24},
        Severity.FAIL,
    ),
    "said in words, beside nothing": ({LOSS: [2.5] + [SAID] * 7, OTHER: [0.5] + [SAID] * 7}, Severity.FAIL),
    "said in words, beside what is beside it": ({LOSS: [2.5, SAID, *([2.5] * 6)], OTHER: [0.5] * 8}, Severity.WARN),
    "gone with the gradient": ({LOSS: GOOD + [GAP] * 2, GRAD: FLAT + [NAN] * 2, LR: [1e-4] * 8}, Severity.FAIL),
    "one skipped step": ({LOSS: [*GOOD, GAP], GRAD: [*FLAT, NAN], LR: [1e-4] * 7}, None),
    "gone with the gradient, and back": (
        {LOSS: [2.5, GAP, GAP, *GOOD], GRAD: [1.0, NAN, NAN, *FLAT], LR: [1e-4] * 9},
        None,
    ),
    "zero with the gradient": ({LOSS: [*GOOD, 0.0], GRAD: [*FLAT, NAN], LR: [1e-4] * 7}, Severity.FAIL),
    "zero with the gradient, and back": (
        {LOSS: [2.5, 0.0, *GOOD], GRAD: [1.0, NAN, *FLAT], LR: [1e-4] * 8},
        Severity.WARN,
    ),
    "one early, then every row": ({LOSS: [2.5, NAN, 2.5] + [2.5] * 10, GRAD: [1.0] * 13}, Severity.WARN),
}


@pytest.mark.parametrize("cuts", [(), (3,), tuple(range(1, 6))])
@pytest.mark.parametrize("name", CASES)
def test_a_lost_loss_and_a_gap(name: str, cuts: tuple[int, ...]) -> None:
    columns, expected = CASES[name]
    assert worst(columns, cuts) == expected


def test_quantities_listed_one_after_another_have_not_lost_the_loss() -> None:
    check = LossNonFinite(Thresholds(), {})
    check.update(frame({LOSS: [2.5] * 30}, 0, 30))
    found = list(check.update(frame({GRAD: [1.0] * 30}, 0, 30)))
    assert found == []
    assert [one.kind for one in check.update(frame({GRAD: [1.0] * 60}, 30, 60))][:1] == ["vanished"]


def test_a_loss_beside_the_main_one_that_stops_being_a_number_warns_once_it_was_one() -> None:
    aux = SignalKey("loss.aux", (("name", "vf"),))
    for column, expected in (
        ([*GOOD, *([SAID] * 6)], [Severity.WARN]),
        ([SAID] * 12, []),  # never computed
        ([2.5, SAID] * 6, []),  # on every other step only
        ([*GOOD, SAID, *GOOD[:5]], []),
    ):
        check = LossNonFinite(Thresholds(), {})
        found = list(check.update(frame({LOSS: [2.5] * 12, aux: column}, 0, 12)))
        assert [one.severity for one in found if one.action == "open"] == expected
        assert all(one.signal == aux for one in check.finish())
