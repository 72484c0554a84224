"""Faults of experts, tensor scales and the loss scale."""

from __future__ import annotations

import numpy as np
import pytest

from tests.monitor.detectors.harness import result, run
from tests.monitor.detectors.synthetic import (
    RunSpec,
    healthy,
)
from trainmon.monitor.detectors.abs_max import AbsMax
from trainmon.monitor.detectors.loss_scale import LossScale
from trainmon.monitor.detectors.moe_balance import MoeBalance
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey


def expert_run(begin: int, factor: float) -> Frame:
    rng = np.random.default_rng(30)
    key = SignalKey("moe.maxvio", (("layer", "3"),))
    values = 0.8 + 0.05 * rng.random(1000)
    values[:60] = 6.0  # the router starts unbalanced
    values[begin:] *= factor
    return healthy(RunSpec(steps=1000, seed=30, extra={key: values}))


@pytest.mark.parametrize(("factor", "severity"), [(3.0, Severity.WARN), (12.0, Severity.FAIL)])
def test_a_router_that_floods_few_experts(factor: float, severity: Severity) -> None:
    told = run(MoeBalance, [expert_run(700, factor)], moe=True)
    assert max(e.severity for e in told.loud) is severity
    assert min(e.first_step for e in told.loud) == 701
    assert run(MoeBalance, [expert_run(1000, 1.0)], moe=True).loud == []


@pytest.mark.parametrize(("dead", "severity"), [(1, Severity.WARN), (4, Severity.FAIL)])
def test_experts_without_load(dead: int, severity: Severity) -> None:
    rng = np.random.default_rng(31)
    extra = {SignalKey("moe.load", (("expert", str(i)), ("layer", "0"))): 100 + 10 * rng.random(800) for i in range(16)}
    for i in range(dead):
        extra[SignalKey("moe.load", (("expert", str(i)), ("layer", "0")))][300:] = 0.0
    told = run(MoeBalance, [healthy(RunSpec(steps=800, extra=extra))], moe=True)
    assert [(e.kind, e.first_step, e.severity) for e in told.loud] == [("dead_experts", 301, severity)]
    assert told.loud[0].last_step == 800


def test_a_dense_run_has_no_experts_to_judge() -> None:
    assert result(run(MoeBalance, [healthy(RunSpec(steps=100))])).verdict is Verdict.NOT_APPLICABLE
    assert result(run(MoeBalance, [healthy(RunSpec(steps=100))], moe=True)).verdict is Verdict.NO_DATA


@pytest.mark.parametrize("factor", [20.0, 0.0])
def test_a_scale_that_leaves_its_level(factor: float) -> None:
    values = np.full(3000, np.nan)
    values[::100] = 5 + 0.2 * np.random.default_rng(32).random(30)
    values[2000:] *= factor
    key = SignalKey("tensor.abs_max", (("site", "output"),))
    told = run(AbsMax, [healthy(RunSpec(steps=3000, extra={key: values}))])
    assert [(e.first_step, e.severity) for e in told.loud] == [(2001, Severity.WARN)]


def test_a_scale_near_the_end_of_fp16_fails_only_there() -> None:
    key = SignalKey("tensor.abs_max", (("site", "output"),))
    frame = healthy(RunSpec(steps=100, extra={key: np.full(100, 2e4)}))
    assert result(run(AbsMax, [frame], {"precision": "fp16"})).verdict is Verdict.FAIL
    assert result(run(AbsMax, [frame], {"precision": "bf16"})).verdict is Verdict.PASS


def test_skipped_steps_now_and_then_are_normal_and_many_are_not() -> None:
    rng = np.random.default_rng(33)
    rare = (rng.random(2000) < 0.005).astype(float)
    many = ((rng.random(2000) < 0.3) & (np.arange(2000) > 1000)).astype(float)
    key = SignalKey("count.skipped_steps")
    assert run(LossScale, [healthy(RunSpec(steps=2000, extra={key: rare}))]).loud == []
    told = run(LossScale, [healthy(RunSpec(steps=2000, extra={key: many}))])
    assert [e.kind for e in told.loud] == ["skips"]
    scale = np.full(2000, 65536.0)
    scale[1500:] = 1.0
    assert run(LossScale, [healthy(RunSpec(steps=2000, extra={SignalKey("optim.loss_scale"): scale}))]).loud


def test_experts_that_come_back_are_still_named() -> None:
    rng = np.random.default_rng(32)
    loads = {
        SignalKey("moe.load", (("expert", str(e)), ("layer", "0"))): 1000 * np.exp(0.1 * rng.normal(size=1000))
        for e in range(8)
    }
    starved = loads[SignalKey("moe.load", (("expert", "3"), ("layer", "0")))]
    starved[300:700] = 0.0
    told = run(MoeBalance, [healthy(RunSpec(steps=1000, seed=32, extra=loads))], moe=True)
    (dead,) = [e for e in told.loud if e.kind == "dead_experts"]
    assert (dead.first_step, dead.recovered) == (301, True)
    assert "layer 0 (3)" in dead.what
