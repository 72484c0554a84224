"""One source that gets worse, and a loss that is stuck."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.monitor.detectors.harness import one, run
from tests.monitor.detectors.synthetic import (
    LR,
    RunSpec,
    healthy,
)
from trainmon.monitor.detectors.loss_groups import LossGroups
from trainmon.monitor.detectors.loss_plateau import LossPlateau
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import SignalKey


def test_one_source_that_rises_under_a_flat_mean_is_named() -> None:
    rng = np.random.default_rng(3)
    n = 3000
    keys = {s: SignalKey("loss.source", (("source", s),)) for s in ("code", "web")}
    extra = {key: 2.0 * np.exp(0.02 * rng.normal(size=n)) for key in keys.values()}
    extra[keys["code"]][2000:] *= 1.12
    told = run(LossGroups, [healthy(RunSpec(steps=n, seed=40, extra=extra))])
    assert [(e.signal, e.severity) for e in told.loud] == [(keys["code"], Severity.WARN)]
    assert abs(told.loud[0].first_step - 2001) <= 3


def stuck(steps: np.ndarray) -> np.ndarray:
    return 2.2 + 60 * np.exp(-steps / 120.0)


def test_a_loss_stuck_far_above_its_own_trend_is_a_plateau() -> None:
    spec = RunSpec(steps=20_000, seed=41, cadence=50, curve=stuck)
    frame = healthy(spec)
    told = run(LossPlateau, [frame])
    assert one(told, "plateau")[1] is Severity.WARN
    assert told.loud[0].first_step < 3000


def test_no_plateau_while_it_falls_or_when_the_learning_rate_came_down() -> None:
    assert run(LossPlateau, [healthy(RunSpec(steps=20_000, seed=42, cadence=10))]).episodes == []
    frame = healthy(RunSpec(steps=20_000, seed=43, cadence=50, curve=stuck))
    lr = np.linspace(3e-4, 0, len(frame))
    assert run(LossPlateau, [dataclasses.replace(frame, columns={**frame.columns, LR: lr})]).episodes == []
