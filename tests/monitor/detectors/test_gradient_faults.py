"""Faults of the gradient norm and of clipping."""

from __future__ import annotations

import numpy as np
import pytest

from tests.monitor.detectors.harness import result, run
from tests.monitor.detectors.synthetic import (
    GRAD,
    LOSS,
    LR,
    RunSpec,
    healthy,
    logged_as,
    scaled,
    with_columns,
    without,
)
from trainmon.monitor.detectors.clip_rate import ClipRate
from trainmon.monitor.detectors.co_spike import CoSpike
from trainmon.monitor.detectors.grad_norm import GradNorm
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame
from trainmon.tails.record import Mark


def test_a_lone_gradient_spike_is_info_and_with_a_loss_spike_a_warning() -> None:
    frame = scaled(healthy(RunSpec(seed=1)), GRAD, 2000, 2000, 20.0)
    told = run(GradNorm, [frame])
    assert [(e.kind, e.first_step, e.severity) for e in told.episodes] == [("spike", 2000, Severity.INFO)]
    assert result(told).verdict is Verdict.PASS
    assert run(CoSpike, [frame]).episodes == []
    both = run(CoSpike, [scaled(frame, LOSS, 2000, 2003, 1.8)])
    assert [(e.kind, e.first_step, e.severity, e.recovered) for e in both.episodes] == [
        ("co_spike", 2000, Severity.WARN, True)
    ]


def test_loss_and_gradient_spikes_at_different_steps_are_no_co_spike() -> None:
    frame = scaled(scaled(healthy(RunSpec(seed=2)), GRAD, 2000, 2000, 20.0), LOSS, 2100, 2103, 1.8)
    assert run(CoSpike, [frame]).episodes == []


@pytest.mark.parametrize(("factor", "severity"), [(8.0, Severity.WARN), (300.0, Severity.FAIL)])
def test_a_gradient_level_that_rises(factor: float, severity: Severity) -> None:
    told = run(GradNorm, [scaled(healthy(RunSpec(seed=3)), GRAD, 2000, 1e9, factor)])
    levels = [e for e in told.loud if e.kind == "grad_level"]
    assert [(e.first_step, e.severity) for e in levels] == [(2000, severity)]


def test_a_norm_that_settles_in_warm_up_is_none() -> None:
    assert run(GradNorm, [healthy(RunSpec(seed=4))]).loud == []


def test_an_absurd_norm_is_a_warning_from_the_start() -> None:
    told = run(GradNorm, [scaled(healthy(RunSpec(steps=200, seed=5)), GRAD, 0, 1e9, 3e5)])
    assert result(told).verdict is Verdict.WARN
    assert not result(told).advisory


def test_a_nan_norm_beside_a_normal_loss_is_a_skipped_step() -> None:
    frame = healthy(RunSpec(steps=400, seed=6))
    told = run(GradNorm, [logged_as(frame, GRAD, [200], Mark.NAN)])
    assert [(e.kind, e.severity, e.recovered) for e in told.episodes] == [("nonfinite", Severity.INFO, True)]
    assert result(told).verdict is Verdict.PASS
    three = run(GradNorm, [logged_as(frame, GRAD, [200, 201, 202], Mark.NAN)])
    assert three.loud[0].severity is Severity.FAIL
    beside = logged_as(logged_as(frame, GRAD, [200], Mark.NAN), LOSS, [200], Mark.NAN)
    assert run(GradNorm, [beside]).loud[0].severity is Severity.FAIL


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ((Mark.SAID_NAN,) * 4, "gradient norm is NaN from step 201"),
        ((Mark.POS_INF,) * 4, "gradient norm is Inf from step 201"),
        ((Mark.NAN, Mark.POS_INF, Mark.NAN), "gradient norm is NaN and Inf from step 201"),
    ],
)
def test_a_norm_is_called_what_was_logged(marks: tuple[Mark, ...], words: str) -> None:
    frame = healthy(RunSpec(steps=400, seed=6))
    for row, mark in enumerate(marks, start=200):
        frame = logged_as(frame, GRAD, [row], mark)
    (episode,) = run(GradNorm, [frame]).loud
    assert (episode.what, episode.recovered) == (words, True)


def test_a_nan_norm_beside_a_loss_of_zero_is_no_skipped_step() -> None:
    frame = scaled(healthy(RunSpec(steps=400, seed=6)), LOSS, 201, 201, 0.0)
    told = run(GradNorm, [logged_as(frame, GRAD, [200], Mark.SAID_NAN)])
    assert told.loud[0].severity is Severity.FAIL
    assert "skipped" not in told.loud[0].what
    assert result(told).verdict is Verdict.WARN


def test_no_norm_is_flying_blind_as_advice() -> None:
    told = run(GradNorm, [without(healthy(RunSpec(steps=200)), GRAD)])
    assert (result(told).verdict, result(told).advisory) == (Verdict.WARN, True)
    assert told.episodes == []


def test_a_norm_logged_after_clipping_is_no_data() -> None:
    frame = healthy(RunSpec(steps=500, seed=7))
    clipped = np.minimum(frame.columns[GRAD] * 3, 1.0)
    assert result(run(GradNorm, [with_columns(frame, {GRAD: clipped})])).verdict is Verdict.NO_DATA


def test_a_rising_clip_rate_is_a_warning_and_a_steady_one_is_not() -> None:
    frame = healthy(RunSpec(steps=4000, seed=8))
    told = run(ClipRate, [scaled(frame, GRAD, 2000, 1e9, 3.5)], {"clip_threshold": 1.0})
    assert [(e.kind, e.severity) for e in told.loud] == [("clip_rate", Severity.WARN)]
    assert abs(told.loud[0].first_step - 2000) < 150
    assert not result(told).advisory
    steady = run(ClipRate, [scaled(frame, GRAD, 0, 1e9, 10.0)], {"clip_threshold": 1.0})
    assert steady.loud == []
    assert result(run(ClipRate, [scaled(frame, GRAD, 2000, 1e9, 3.5)])).advisory


def decaying(power: float, seed: int) -> Frame:
    """A norm that grows with so much of a power of the learning rate's cosine decay, from 0.5 on."""
    frame = healthy(RunSpec(steps=6000, seed=seed))
    rate = 0.1 + 0.45 * (1 + np.cos(np.pi * np.arange(6000) / 6000))
    norm = 0.5 * rate**-power * np.exp(np.random.default_rng(seed).normal(0, 0.3, 6000))
    return with_columns(frame, {GRAD: norm, LR: 1e-3 * rate})


def test_a_clip_rate_that_grows_under_a_decay_is_the_schedules_and_one_that_jumps_is_not() -> None:
    for seed in range(3):
        grown = decaying(0.6, seed)
        assert (grown.columns[GRAD][-500:] > 1).mean() > 0.8 > 0.1 > (grown.columns[GRAD][:500] > 1).mean()
        assert run(ClipRate, [grown]).loud == []
        for at in (2500, 3300, 4200):
            [told] = run(ClipRate, [scaled(decaying(0.1, seed), GRAD, at, 1e9, 2.5)]).loud
            assert told.kind == "clip_rate"
            assert at < told.first_step < at + 100


def test_a_learning_rate_that_is_cut_explains_a_clip_rate_that_jumps_behind_it() -> None:
    frame = scaled(healthy(RunSpec(steps=4000, seed=8)), GRAD, 2000, 1e9, 3.5)
    rate = np.where(np.arange(4000) < 1980, 1e-3, 1e-4)
    assert run(ClipRate, [with_columns(frame, {LR: rate})]).loud == []
    later = np.where(np.arange(4000) < 1500, 1e-3, 1e-4)
    assert [e.kind for e in run(ClipRate, [with_columns(frame, {LR: later})]).loud] == ["clip_rate"]
