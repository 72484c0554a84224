"""A loss that is not finite, null, zeroed or gone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.monitor.detectors.harness import Folded, cut, one, run, verdict
from tests.monitor.detectors.synthetic import (
    GRAD,
    LOSS,
    LR,
    MEMORY,
    SHARE,
    TIME,
    TPS,
    RunSpec,
    healthy,
    logged_as,
    scaled,
    without,
)
from trainmon.monitor.detectors.loss_nonfinite import LossNonFinite
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import Mark


@pytest.mark.parametrize("mark", [Mark.NAN, Mark.POS_INF])
def test_lone_bad_values_warn_and_three_fail(mark: Mark) -> None:
    frame = healthy(RunSpec(steps=500, seed=30))
    lone = run(LossNonFinite, [logged_as(frame, LOSS, [300], mark)])
    assert one(lone, "nonfinite") == (301, Severity.WARN, True)
    two = run(LossNonFinite, [logged_as(frame, LOSS, [300, 301], mark)])
    assert one(two, "nonfinite") == (301, Severity.WARN, True)
    three = run(LossNonFinite, [logged_as(frame, LOSS, [300, 301, 302], mark)])
    assert one(three, "nonfinite") == (301, Severity.FAIL, True)
    assert verdict(three) is Verdict.FAIL
    last = run(LossNonFinite, [logged_as(frame, LOSS, [499], mark)])
    assert one(last, "nonfinite") == (500, Severity.FAIL, False)


def test_all_nan_beside_other_numbers_fails() -> None:
    frame = healthy(RunSpec(steps=50, seed=31))
    told = run(LossNonFinite, [logged_as(frame, LOSS, list(range(50)), Mark.NAN)])
    assert one(told, "nonfinite")[0] == 1
    assert verdict(told) is Verdict.FAIL


def test_a_table_that_ends_in_nan_everywhere_was_not_logged() -> None:
    frame = healthy(RunSpec(steps=200, seed=32))
    tail = list(range(150, 200))
    for key in (LOSS, GRAD, LR, TIME, TPS, MEMORY, SHARE):
        frame = logged_as(frame, key, tail, Mark.NAN)
    assert verdict(run(LossNonFinite, [frame])) is Verdict.PASS


def test_nan_beside_nothing_but_an_evaluation_was_not_logged() -> None:
    frame = healthy(RunSpec(steps=200, seed=33))
    gaps = list(range(49, 200, 50))
    evals = np.full(200, np.nan)
    evals[gaps] = 2.5
    for key in (LOSS, GRAD, LR, TIME, TPS, MEMORY, SHARE):
        frame = logged_as(frame, key, gaps, Mark.NAN)
    frame = dataclasses.replace(frame, columns={**frame.columns, SignalKey("eval.nll"): evals})
    assert verdict(run(LossNonFinite, [frame])) is Verdict.PASS


def test_null_needs_three_records() -> None:
    frame = healthy(RunSpec(steps=100, seed=34))
    assert run(LossNonFinite, [logged_as(frame, LOSS, [50, 51], Mark.NULL)]).episodes == []
    told = run(LossNonFinite, [logged_as(frame, LOSS, [50, 51, 52], Mark.NULL)])
    assert one(told, "null_loss") == (51, Severity.FAIL, True)


def test_zero_loss_fails_only_without_a_finite_gradient_norm() -> None:
    frame = healthy(RunSpec(steps=100, seed=35))
    zero = scaled(frame, LOSS, 51, 60, 0.0)
    assert verdict(run(LossNonFinite, [zero])) is Verdict.PASS
    nan_norm = logged_as(zero, GRAD, list(range(50, 60)), Mark.NAN)
    assert one(run(LossNonFinite, [nan_norm]), "zero_loss")[:2] == (51, Severity.FAIL)
    assert one(run(LossNonFinite, [without(zero, GRAD)]), "zero_loss")[:2] == (51, Severity.FAIL)


def filtered(rows: list[int], mark: Mark, *, norms_every: int = 1) -> Folded:
    """A run whose trainer printed 0.0 in `rows` for a loss that was no number; the norm is logged every so many."""
    frame = healthy(RunSpec(steps=400, seed=37))
    for row in rows:
        frame = scaled(frame, LOSS, row + 1, row + 1, 0.0)
    gaps = [row for row in range(400) if row % norms_every]
    return run(LossNonFinite, [logged_as(frame, GRAD, [*gaps, *rows], mark)])


@pytest.mark.parametrize("mark", [Mark.SAID_NAN, Mark.POS_INF, Mark.NAN])
def test_a_loss_that_a_trainer_filtered_is_judged_as_one_that_is_nan(mark: Mark) -> None:
    lone = filtered([300], mark)
    assert one(lone, "zero_loss") == (301, Severity.WARN, True)
    assert "0.0 beside a gradient norm that is not finite: a non-finite loss" in lone.episodes[0].what
    assert one(filtered([300, 301], mark), "zero_loss") == (301, Severity.WARN, True)
    three = filtered([300, 301, 302], mark)
    assert (one(three, "zero_loss"), verdict(three)) == ((301, Severity.FAIL, True), Verdict.FAIL)
    assert one(filtered([399], mark), "zero_loss") == (400, Severity.FAIL, False)


def test_a_zero_loss_beside_a_gap_of_a_table_is_none_that_was_filtered() -> None:
    assert verdict(filtered([301], Mark.NAN, norms_every=10)) is Verdict.PASS
    assert verdict(filtered([301], Mark.NULL)) is Verdict.PASS


def test_a_nan_norm_beside_a_normal_loss_says_nothing_of_the_loss() -> None:
    frame = healthy(RunSpec(steps=400, seed=38))
    assert run(LossNonFinite, [logged_as(frame, GRAD, [300], Mark.SAID_NAN)]).episodes == []


def test_a_vanished_loss_fails_and_one_that_is_logged_rarely_does_not() -> None:
    frame = healthy(RunSpec(steps=200, seed=36))
    loss = frame.columns[LOSS].copy()
    loss[150:] = np.nan
    told = run(LossNonFinite, [dataclasses.replace(frame, columns={**frame.columns, LOSS: loss})])
    assert one(told, "vanished")[:2] == (151, Severity.FAIL)
    rare = frame.columns[LOSS].copy()
    rare[np.arange(200) % 10 != 0] = np.nan
    assert run(LossNonFinite, [dataclasses.replace(frame, columns={**frame.columns, LOSS: rare})]).episodes == []


@pytest.mark.parametrize(
    ("level", "length", "told"), [(2.5, 600, True), (2.5, 30, True), (2.5, 19, False), (0.01, 600, False)]
)
def test_a_loss_that_is_exactly_zero_beside_a_sound_norm_is_a_warning(level: float, length: int, told: bool) -> None:
    index = np.arange(1000, dtype=np.float64)
    rng = np.random.default_rng(1)
    loss = level * np.exp(0.01 * rng.standard_normal(1000))
    loss[400 : 400 + length] = 0.0
    columns = {LOSS: loss, GRAD: 0.4 * np.exp(0.1 * rng.standard_normal(1000))}
    frame = Frame(0, "log", index + 1, index, index.astype(int), columns)
    loud = run(LossNonFinite, [frame]).loud
    assert [(e.kind, e.severity, e.first_step, e.recovered) for e in loud] == (
        [("zero_loss", Severity.WARN, 401.0, length < 600)] if told else []
    )
    pieces = run(LossNonFinite, cut(frame, [50, 390, 401, 409, 425, 700])).loud
    assert [(e.first_step, e.last_step, e.what) for e in pieces] == [(e.first_step, e.last_step, e.what) for e in loud]
