"""One source that gets worse, and a loss that is stuck."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

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


def stops_at(share: float, steps: int) -> Callable[[np.ndarray], np.ndarray]:
    """A power law that stays where it is behind `share` of the run."""
    return lambda step: 10.8 * (1 + np.minimum(step, share * steps) / 40.0) ** -0.3


@pytest.mark.parametrize(("share", "noise"), [(0.7, "gaussian"), (0.7, "heavy"), (0.5, "autocorrelated")])
def test_a_fall_that_stops_at_once_is_told_though_most_of_the_run_fell(share: float, noise: str) -> None:
    told = run(
        LossPlateau, [healthy(RunSpec(steps=20_000, seed=44, cadence=10, noise=noise, curve=stops_at(share, 20_000)))]
    )
    first, severity, recovered = one(told, "plateau")
    assert severity is Severity.WARN
    assert not recovered
    assert abs(first - share * 20_000) < 1500


def test_a_loss_that_bent_early_and_stood_since_is_told() -> None:
    def bent(step: np.ndarray) -> np.ndarray:
        return 2.2 + 9.0 * (1 + step / 100.0) ** -1.5

    told = run(LossPlateau, [healthy(RunSpec(steps=160_000, seed=47, cadence=100, curve=bent))])
    assert one(told, "plateau")[1] is Severity.WARN
    assert told.loud[0].first_step < 8000


def test_it_recovers_when_the_loss_falls_on() -> None:
    def falls_on(step: np.ndarray) -> np.ndarray:
        return stops_at(0.4, 20_000)(step) * np.where(step > 14_000, 0.8, 1.0)

    told = run(LossPlateau, [healthy(RunSpec(steps=20_000, seed=45, cadence=10, curve=falls_on))])
    assert one(told, "plateau")[2]


FLATTENS = {
    "power law": lambda step: 10.8 * (1 + step / 40.0) ** -0.1,
    "towards a floor": lambda step: 2.2 + 8.6 * (1 + step / 40.0) ** -0.8,
    "exponential": lambda step: 1.6 + 1.5 * np.exp(-step / 1700.0),
    "epochs": lambda step: 2.4 * 0.85 ** np.floor(step / 4001.0) * (1 - 0.02 * step / 20_000),
}


@pytest.mark.parametrize("noise", ["gaussian", "heavy", "autocorrelated"])
@pytest.mark.parametrize("shape", FLATTENS)
def test_what_flattens_smoothly_is_no_plateau(shape: str, noise: str) -> None:
    frame = healthy(RunSpec(steps=20_000, seed=46, cadence=10, noise=noise, curve=FLATTENS[shape]))
    assert run(LossPlateau, [frame]).episodes == []
