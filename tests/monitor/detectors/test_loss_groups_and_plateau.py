"""One source that gets worse, and a loss that is stuck."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.monitor.detectors.harness import cut, one, run
from tests.monitor.detectors.synthetic import (
    LOSS,
    LR,
    RunSpec,
    healthy,
)
from trainmon.monitor.detectors.loss_groups import LossGroups
from trainmon.monitor.detectors.loss_plateau import LossPlateau
from trainmon.monitor.finding import Severity, Verdict
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


@pytest.mark.parametrize(
    ("exponent", "share", "deviation", "severity"),
    [
        (0.1, 0.5, 0.005, Severity.WARN),
        (0.15, 0.7, 0.005, Severity.WARN),
        (0.2, 0.7, 0.03, Severity.WARN),
        (0.1, 0.6, 0.02, Severity.INFO),
        (0.15, 0.5, 0.05, Severity.INFO),
    ],
)
def test_a_stop_is_a_warning_beyond_doubt_and_a_note_where_noise_leaves_some(
    exponent: float, share: float, deviation: float, severity: Severity
) -> None:
    def falls(step: np.ndarray, until: float) -> np.ndarray:
        return 10.8 * (1 + np.minimum(step, until) / 40.0) ** -exponent

    frame = healthy(RunSpec(steps=20_000, seed=52, cadence=10))
    noise = np.exp(np.random.default_rng(3).normal(0, deviation, len(frame)))
    stopped = dataclasses.replace(frame, columns={**frame.columns, LOSS: falls(frame.steps, 20_000 * share) * noise})
    told = run(LossPlateau, [stopped])
    (plateau,) = [episode for episode in told.episodes if not episode.recovered]
    assert plateau.severity is severity
    assert abs(plateau.first_step - 20_000 * share) < 1500
    assert told.result is not None
    assert told.result.verdict is (Verdict.WARN if severity is Severity.WARN else Verdict.PASS)
    assert ("it may only flatten" in told.result.what) is (severity is Severity.INFO)
    pieces = run(LossPlateau, cut(stopped, [1, 400, 401, 1200, 1777]))
    assert [repr(f) for f in pieces.findings] == [repr(f) for f in told.findings]
    falling = dataclasses.replace(frame, columns={**frame.columns, LOSS: falls(frame.steps, 20_000.0) * noise})
    assert run(LossPlateau, [falling]).episodes == []


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
