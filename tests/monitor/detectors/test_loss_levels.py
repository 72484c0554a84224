"""A loss that shifts, drifts, climbs or runs away: found at its step, and told from spikes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.monitor.detectors.harness import cut, one, run, verdict
from tests.monitor.detectors.synthetic import (
    LOSS,
    RunSpec,
    climbing,
    healthy,
    power_law,
    ramped,
    scaled,
)
from trainmon.monitor.alerts import AlertBook
from trainmon.monitor.detectors.loss_drift import LossDrift
from trainmon.monitor.detectors.loss_shift import LossShift
from trainmon.monitor.detectors.loss_spike import LossSpike
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

QUIET = ("gaussian", "autocorrelated", "heavy")
STEPS = {1: 3000, 10: 20_000, 100: 120_000}
FAULT_AT = {1: 2000, 10: 15_000, 100: 100_000}


@pytest.mark.parametrize("cadence", [1, 10])
@pytest.mark.parametrize("kind", QUIET)
@pytest.mark.parametrize(("factor", "severity"), [(1.08, Severity.WARN), (1.4, Severity.FAIL)])
def test_a_level_shift_is_found_at_its_step(kind: str, cadence: int, factor: float, severity: Severity) -> None:
    first = FAULT_AT[cadence]
    frame = healthy(RunSpec(steps=STEPS[cadence], seed=20, noise=kind, cadence=cadence))
    step, found, recovered = one(run(LossShift, [scaled(frame, LOSS, first, 1e9, factor)]), "level_shift")
    assert abs(step - first) <= 3 * cadence
    assert found is severity
    # The curve goes on falling: 8% are made good after a while.
    assert not recovered or factor == 1.08


def test_a_shift_that_goes_back_recovers() -> None:
    told = run(LossShift, [scaled(healthy(RunSpec(seed=21)), LOSS, 1500, 2000, 1.1)])
    assert one(told, "level_shift")[2]


def test_a_small_shift_is_no_failed_spike() -> None:
    frame = scaled(healthy(RunSpec(seed=22)), LOSS, 2000, 1e9, 1.18)
    assert verdict(run(LossSpike, [frame])) is Verdict.WARN
    assert verdict(run(LossShift, [frame])) is Verdict.WARN


def test_a_recovered_spike_is_no_shift_and_no_drift() -> None:
    frame = scaled(healthy(RunSpec(seed=23)), LOSS, 2000, 2015, 3.0)
    assert run(LossShift, [frame]).episodes == []
    assert run(LossDrift, [frame]).episodes == []


@pytest.mark.parametrize("kind", QUIET)
def test_a_slow_rise_is_a_drift_and_then_divergence(kind: str) -> None:
    frame = healthy(RunSpec(steps=4500, seed=24, noise=kind))
    first, severity, _ = one(run(LossDrift, [ramped(frame, LOSS, 2000, 4000, 1.3)]), "drift")
    assert severity is Severity.WARN
    assert 2000 <= first <= 3200
    told = run(LossDrift, [ramped(frame, LOSS, 2000, 4000, 1.8)])
    assert one(told, "drift")[1] is Severity.FAIL
    assert "diverged" in told.loud[0].what


def few(values: list[float], steps: list[float] | None = None) -> Frame:
    n = len(values)
    return Frame(
        0,
        "few.jsonl",
        np.array(steps or range(1, n + 1), float),
        np.full(n, np.nan),
        np.arange(n, dtype=np.int64),
        {LOSS: np.array(values)},
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0, 4.6, 4.4, 9.5, 12.0, 15.0], Verdict.FAIL),
        ([0.007, 0.02, 0.01, 2.0, 7.0, 18.0], Verdict.FAIL),
        ([33.0, 12.0, 8.0, 7.6, 7.5, 7.4, 7.4, 1405.0], Verdict.FAIL),
        ([6.9, 16.8, 12.0, 8.0, 6.0, 5.0], Verdict.PASS),
        ([10.8, 9.0, 7.0, 6.0, 5.5, 5.2], Verdict.PASS),
        ([3.0, 2.4, 2.2, 4.9, 2.1, 2.0], Verdict.PASS),
        ([0.05, 0.03, 0.02, 0.06, 0.07, 0.08], Verdict.PASS),
    ],
)
def test_divergence_is_told_from_a_handful_of_values(values: list[float], expected: Verdict) -> None:
    assert verdict(run(LossDrift, [few(values)])) is expected


def test_a_blow_up_that_comes_down_again_recovers() -> None:
    told = run(LossDrift, [few([9.0, 6.3, 6.2, 60.0, 70.0, 90.0, 255.0, 40.0, 8.0, 6.0, 5.0, 4.0])])
    assert told.loud[0].recovered
    assert verdict(told) is Verdict.WARN


def test_a_policy_that_runs_away_fails_whatever_its_sign() -> None:
    rng = np.random.default_rng(2)
    values = [*(0.01 * rng.normal(size=200)).tolist(), -3e3, -2e5, -1e7, -1e8]
    frame = few(values)
    reward = {SignalKey("reward.mean"): np.ones(len(values))}
    told = run(LossDrift, [dataclasses.replace(frame, columns={**frame.columns, **reward})], rl=True)
    assert verdict(told) is Verdict.FAIL
    assert told.loud[0].first_step <= 203
    calm = few((0.01 * rng.normal(size=200)).tolist())
    assert run(LossDrift, [calm]).loud == []


@pytest.mark.parametrize("cadence", [1, 10])
@pytest.mark.parametrize("deviation", [0.01, 0.03, 0.06])
def test_a_drift_does_not_hide_behind_its_own_noise(cadence: int, deviation: float) -> None:
    at, slope = 3000.0, 0.2 / 3000
    spec = RunSpec(steps=6000, seed=11, cadence=cadence)
    frame = healthy(spec)
    rng = np.random.default_rng(5)
    hold = np.where(frame.steps > at, power_law(np.array([at]))[0], power_law(frame.steps))
    loss = hold * np.exp(np.clip((frame.steps - at) * slope, 0, None) + rng.normal(0, deviation, len(frame)))
    told = run(LossDrift, [dataclasses.replace(frame, columns={LOSS: loss})])
    found = [f for f in told.findings if f.severity >= Severity.WARN]
    assert found
    ideal = (0.05 + 4 * deviation * (2 * cadence / 500) ** 0.5) / slope
    assert at < found[0].step <= at + 1.5 * ideal + 500 * (cadence > 1)


@pytest.mark.parametrize("cadence", [1, 10])
@pytest.mark.parametrize("per_value", [0.003, 0.0045, 0.01])
def test_a_young_run_that_climbs_steadily_is_a_fail(per_value: float, cadence: int) -> None:
    told = run(LossDrift, [climbing(per_value, cadence=cadence)])
    assert told.result is not None
    assert told.result.verdict is Verdict.FAIL
    assert "climb" in [episode.kind for episode in told.episodes]
    pieces = cut(climbing(per_value, cadence=cadence), [1, 2, 19, 20, 21, 299, 300, 301])
    assert [repr(f) for f in run(LossDrift, pieces).findings] == [repr(f) for f in told.findings]


@pytest.mark.parametrize("at", [8, 12, 29, 47, 80])
def test_a_jump_before_the_run_is_judged_is_told_at_its_own_step(at: int) -> None:
    step = np.arange(1.0, 601.0)
    flat = 3.0 * np.exp(0.02 * np.random.default_rng(at).standard_normal(600))
    frame = Frame(0, "log", step, step, step.astype(int), {LOSS: flat * np.where(step >= at, 2.0, 1.0)})
    told = run(LossDrift, [frame])
    climbs = [episode for episode in told.loud if episode.kind == "climb"]
    if at > 10:  # of the first block more than half
        assert [(one.first_step, f"since step {at}" in one.what) for one in climbs] == [(float(at), True)]
    pieces = cut(frame, [1, 5, 11, 12, 13, 20, 47, 99, 100, 101, 140])
    assert [repr(f) for f in run(LossDrift, pieces).findings] == [repr(f) for f in told.findings]


def test_a_climb_that_comes_down_again_recovers_and_a_young_healthy_run_is_silent() -> None:
    frame = climbing(0.006)
    index = np.arange(len(frame))
    back = np.where(index >= 420, np.exp(-0.006 * (index - 275)), 1.0)
    whole = dataclasses.replace(frame, columns={**frame.columns, LOSS: frame.columns[LOSS] * back})
    (climb,) = [episode for episode in run(LossDrift, [whole]).episodes if episode.kind == "climb"]
    assert climb.recovered
    assert [e for e in run(LossDrift, [climbing(0.0)]).episodes if e.kind == "climb"] == []
    assert [e for e in run(LossDrift, [climbing(0.0006)]).episodes if e.kind == "climb"] == []


@pytest.mark.parametrize("gap", [200, 500, 1000])
def test_a_level_and_the_spikes_of_its_rise_are_one_story_also_the_second_time(gap: int) -> None:
    n, second = 6000, 2700 + gap
    index = np.arange(n, dtype=np.float64)
    up = ((index >= 1500) & (index < 2700)) | ((index >= second) & (index < second + 1200))
    values = (2.2 + 8.0 * (index + 21) ** -0.4) * np.exp(0.004 * np.random.default_rng(3).standard_normal(n))
    frame = Frame(0, "log", index + 1, index, index.astype(int), {LOSS: values * np.where(up, 1.1, 1.0)})
    book = AlertBook()
    for check in (LossSpike, LossShift, LossDrift):
        detector = check(Thresholds(), {})
        for said in [*detector.update(frame), *detector.finish()]:
            book.apply(check.id, said)
    loud = [one for one in book.episodes() if one.severity >= Severity.WARN]
    told = [(one.kind, one.first_step, one.what) for one in loud]
    assert [(one.kind, one.recovered) for one in loud] == [("level_shift", True)] * 2, told
    assert all(abs(one.first_step - first) <= 5 for one, first in zip(loud, (1501, second + 1), strict=True)), told
