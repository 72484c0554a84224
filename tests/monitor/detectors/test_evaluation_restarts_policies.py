"""Faults of held-out loss, replays after restarts, and policies."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.monitor.detectors.harness import result, run
from tests.monitor.detectors.synthetic import (
    LOSS,
    RunSpec,
    healthy,
    ramped,
)
from trainmon.monitor.detectors.heldout import HeldOut
from trainmon.monitor.detectors.restarts import Restarts
from trainmon.monitor.detectors.rl_health import RlHealth
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import Frame, SignalKey


def evaluated(values: list[float], loss_factor: float = 1.0) -> Frame:
    n = 2000
    column = np.full(n, np.nan)
    column[:: n // len(values)][: len(values)] = values
    frame = healthy(RunSpec(steps=n, seed=50, extra={SignalKey("eval.nll"): column}))
    return ramped(frame, LOSS, 1000, 2000, loss_factor)


def test_over_fitting_is_a_warning_and_a_model_that_got_worse_a_fail() -> None:
    turning = [3.0, 2.8, 2.6, 2.5, 2.5, 2.6, 2.7, 2.9, 3.1, 3.3]
    told = run(HeldOut, [evaluated(turning, 0.6)])
    assert result(told).verdict is Verdict.WARN
    assert "over-fitting" in told.loud[0].what
    assert result(run(HeldOut, [evaluated(turning, 1.6)])).verdict is Verdict.FAIL


def test_a_falling_noisy_held_out_loss_passes() -> None:
    rng = np.random.default_rng(51)
    values = (np.linspace(3.0, 2.5, 40) * (1 + 0.015 * rng.normal(size=40))).tolist()
    assert result(run(HeldOut, [evaluated(values)])).verdict is Verdict.PASS


def test_a_resume_that_reproduces_passes_and_one_that_does_not_is_advice() -> None:
    frame = healthy(RunSpec(steps=1000, seed=52))
    same = healthy(RunSpec(steps=1000, seed=52))
    tail = dataclasses.replace(
        same,
        attempt=1,
        steps=same.steps[900:],
        times=same.times[900:],
        lines=same.lines[900:],
        columns={key: column[900:] for key, column in same.columns.items()},
    )
    assert result(run(Restarts, [frame, tail])).verdict is Verdict.PASS
    other = dataclasses.replace(healthy(RunSpec(steps=100, seed=53, first_step=901)), attempt=1)
    told = run(Restarts, [frame, other])
    assert (result(told).verdict, result(told).advisory) == (Verdict.WARN, True)
    new_run = dataclasses.replace(healthy(RunSpec(steps=100, seed=53)), attempt=1)
    assert run(Restarts, [frame, new_run]).episodes == []


@pytest.mark.parametrize(
    ("signal", "before", "after"),
    [("policy.kl", 0.05, 1.0), ("policy.entropy", 2.0, 0.1), ("policy.length", 300.0, 2.0)],
)
def test_a_policy_that_leaves_its_range(signal: str, before: float, after: float) -> None:
    values = np.where(np.arange(300) < 200, before, after) * (1 + 0.02 * np.random.default_rng(54).normal(size=300))
    key = SignalKey(signal)
    told = run(RlHealth, [healthy(RunSpec(steps=300, extra={key: values}))], rl=True)
    assert [e.signal for e in told.loud] == [key]
    assert 195 <= told.loud[0].first_step <= 210


def test_a_reward_that_rises_passes_and_one_that_collapses_does_not() -> None:
    rng = np.random.default_rng(55)
    rising = np.linspace(0, 1, 300) + 0.05 * rng.normal(size=300)
    key = SignalKey("reward.mean")
    assert run(RlHealth, [healthy(RunSpec(steps=300, extra={key: rising}))], rl=True).loud == []
    fallen = rising.copy()
    fallen[220:] -= 0.9
    assert run(RlHealth, [healthy(RunSpec(steps=300, extra={key: fallen}))], rl=True).loud != []
    assert result(run(RlHealth, [healthy(RunSpec(steps=50))])).verdict is Verdict.NOT_APPLICABLE
