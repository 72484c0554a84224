"""Faults of the loss: found at their step and severity, in several noises and cadences, and told apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.monitor.detectors.harness import Folded, cut, run
from tests.monitor.detectors.synthetic import (
    GRAD,
    LOSS,
    LR,
    MEMORY,
    SHARE,
    TIME,
    TPS,
    RunSpec,
    at,
    healthy,
    logged_as,
    power_law,
    ramped,
    rows_of,
    scaled,
    without,
)
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.loss_drift import LossDrift
from trainmon.monitor.detectors.loss_groups import LossGroups
from trainmon.monitor.detectors.loss_nonfinite import LossNonFinite
from trainmon.monitor.detectors.loss_plateau import LossPlateau
from trainmon.monitor.detectors.loss_shift import LossShift
from trainmon.monitor.detectors.loss_spike import LossSpike
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, Mark

QUIET = ("gaussian", "autocorrelated", "heavy")
STEPS = {1: 3000, 10: 20_000, 100: 120_000}
FAULT_AT = {1: 2000, 10: 15_000, 100: 100_000}


def one(told: Folded, kind: str) -> tuple[float, Severity, bool]:
    episodes = [episode for episode in told.loud if episode.kind == kind]
    assert len(episodes) == 1, [(e.kind, e.severity, e.first_step) for e in told.episodes]
    return episodes[0].first_step, episodes[0].severity, episodes[0].recovered


def verdict(told: Folded) -> Verdict:
    assert told.result is not None
    return told.result.verdict


@pytest.mark.parametrize("cadence", [1, 10, 100])
@pytest.mark.parametrize("kind", QUIET)
def test_a_spike_is_found_at_its_step_and_recovers(kind: str, cadence: int) -> None:
    first = FAULT_AT[cadence]
    frame = healthy(RunSpec(steps=STEPS[cadence], seed=4, noise=kind, cadence=cadence))
    told = run(LossSpike, [scaled(frame, LOSS, first, first + 5 * cadence, 2.0)])
    assert one(told, "spike") == (first, Severity.WARN, True)
    assert verdict(told) is Verdict.WARN
    assert told.loud[0].last_step == first + 5 * cadence


@pytest.mark.parametrize("cadence", [1, 10, 100])
def test_a_spike_that_stays_is_a_fail(cadence: int) -> None:
    first = FAULT_AT[cadence]
    frame = healthy(RunSpec(steps=STEPS[cadence], seed=5, cadence=cadence))
    told = run(LossSpike, [scaled(frame, LOSS, first, 1e9, 2.0)])
    assert one(told, "spike") == (first, Severity.FAIL, False)
    assert verdict(told) is Verdict.FAIL


def test_a_spike_is_a_warning_until_the_recovery_time_is_over() -> None:
    frame = scaled(healthy(RunSpec(seed=6)), LOSS, 2000, 1e9, 2.0)
    early = run(LossSpike, [rows_of(frame, slice(0, at(frame, 2199)))])
    late = run(LossSpike, [rows_of(frame, slice(0, at(frame, 2202)))])
    assert verdict(early) is Verdict.WARN
    assert verdict(late) is Verdict.FAIL


def test_a_fail_that_recovers_after_all_is_a_warning() -> None:
    told = run(LossSpike, [scaled(healthy(RunSpec(seed=6)), LOSS, 2000, 2300, 2.0)])
    assert one(told, "spike") == (2000, Severity.FAIL, True)
    assert verdict(told) is Verdict.WARN


def test_a_lone_small_jump_is_told_but_no_warning() -> None:
    frame = healthy(RunSpec(seed=7))
    noisy = 2.5 * np.exp(0.02 * np.random.default_rng(7).normal(size=len(frame)))
    noisy[1999] = 2.9
    frame = dataclasses.replace(frame, columns={**frame.columns, LOSS: noisy})
    told = run(LossSpike, [frame])
    assert [(e.first_step, e.severity) for e in told.episodes] == [(2000, Severity.INFO)]
    assert verdict(told) is Verdict.PASS
    big = run(LossSpike, [scaled(frame, LOSS, 2000, 2000, 3.0)])
    assert one(big, "spike") == (2000, Severity.WARN, True)


def test_a_dropped_batch_is_a_drop_and_no_spike() -> None:
    told = run(LossSpike, [scaled(healthy(RunSpec(seed=8)), LOSS, 2000, 2001, 0.2)])
    assert [(e.kind, e.severity, e.first_step) for e in told.episodes][:1] == [("drop", Severity.INFO, 2000)]
    assert verdict(told) is Verdict.PASS


def test_flagged_values_do_not_hide_the_next_spike() -> None:
    frame = healthy(RunSpec(seed=9))
    for first in range(1500, 2500, 100):
        frame = scaled(frame, LOSS, first, first + 4, 1.8)
    told = run(LossSpike, [frame])
    assert [e.first_step for e in told.loud] == list(range(1500, 2500, 100))


def test_a_new_level_is_accepted_and_its_own_spikes_are_seen() -> None:
    frame = scaled(healthy(RunSpec(seed=10)), LOSS, 1200, 1e9, 1.6)
    told = run(LossSpike, [scaled(frame, LOSS, 2600, 2605, 2.0)])
    assert told.loud[0].first_step == 1200
    assert told.loud[-1].worst_step >= 2600


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_values_printed_with_few_digits_do_not_fire(digits: int) -> None:
    flat = RunSpec(steps=2000, seed=11, digits=digits, curve=lambda steps: np.full(len(steps), 2.32))
    assert run(LossSpike, [healthy(flat)]).episodes == []
    told = run(LossSpike, [scaled(healthy(flat), LOSS, 1500, 1503, 1.6)])
    assert one(told, "spike")[:2] == (1500, Severity.WARN)


def test_a_first_spike_needs_thirty_values_of_history() -> None:
    frame = scaled(healthy(RunSpec(steps=60, seed=12, curve=lambda s: np.full(len(s), 3.0))), LOSS, 20, 22, 3.0)
    assert run(LossSpike, [frame]).loud == []
    assert verdict(run(LossSpike, [rows_of(frame, slice(0, 25))])) is Verdict.NO_DATA


def test_a_new_run_in_the_same_log_starts_with_a_clean_window() -> None:
    first = healthy(RunSpec(steps=2000, seed=13))
    again = healthy(RunSpec(steps=2000, seed=14, attempt=1))
    assert run(LossSpike, [first, again]).loud == []
    resumed = healthy(RunSpec(steps=500, seed=15, first_step=1900, attempt=1))
    assert run(LossSpike, [first, resumed]).loud == []
    shocked = scaled(resumed, LOSS, 1900, 2400, 1.9)
    assert run(LossSpike, [first, shocked]).loud[0].first_step == 1900


def test_a_noisy_loss_that_keeps_falling_back_to_its_start_is_a_warning() -> None:
    rng = np.random.default_rng(0)
    n = 1000
    frame = healthy(RunSpec(steps=n, seed=16))
    loss = 11 * np.exp(-np.arange(n) / 20) + 2.3 * np.exp(0.5 * rng.normal(size=n))
    told = run(LossSpike, [dataclasses.replace(frame, columns={**frame.columns, LOSS: loss})])
    assert all(e.kind != "recurrent_spikes" for e in told.episodes)
    loss[300::60] = 9.0
    told = run(LossSpike, [dataclasses.replace(frame, columns={**frame.columns, LOSS: loss})])
    assert any(e.kind == "recurrent_spikes" for e in told.loud)


def test_the_loss_of_a_policy_is_not_judged_for_spikes() -> None:
    frame = scaled(healthy(RunSpec(seed=17)), LOSS, 2000, 1e9, 3.0)
    reward = {SignalKey("reward.mean"): np.ones(len(frame))}
    told = run(LossSpike, [dataclasses.replace(frame, columns={**frame.columns, **reward})], rl=True)
    assert told.episodes == []
    assert verdict(told) is Verdict.NOT_APPLICABLE


def test_losses_of_both_signs_are_judged_on_raw_values() -> None:
    rng = np.random.default_rng(1)
    frame = healthy(RunSpec(steps=1000, seed=18))
    loss = -3.0 + 0.05 * rng.normal(size=1000)
    told = run(LossSpike, [dataclasses.replace(frame, columns={LOSS: loss})])
    assert told.loud == []
    loss[700:705] = 2.0
    told = run(LossSpike, [dataclasses.replace(frame, columns={LOSS: loss})])
    assert one(told, "spike")[:2] == (701, Severity.WARN)


# Level and drift.


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


# Non-finite, null, zero, vanished.


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


def test_a_vanished_loss_fails_and_one_that_is_logged_rarely_does_not() -> None:
    frame = healthy(RunSpec(steps=200, seed=36))
    loss = frame.columns[LOSS].copy()
    loss[150:] = np.nan
    told = run(LossNonFinite, [dataclasses.replace(frame, columns={**frame.columns, LOSS: loss})])
    assert one(told, "vanished")[:2] == (151, Severity.FAIL)
    rare = frame.columns[LOSS].copy()
    rare[np.arange(200) % 10 != 0] = np.nan
    assert run(LossNonFinite, [dataclasses.replace(frame, columns={**frame.columns, LOSS: rare})]).episodes == []


# Groups and plateau.


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


def test_thresholds_are_obeyed() -> None:
    frame = scaled(healthy(RunSpec(seed=44)), LOSS, 2000, 2010, 1.5)
    deaf = Thresholds().override({"spike.relative": 1.0}, source="flag")
    assert run(LossSpike, [frame], limits=deaf).episodes == []
    assert run(LossSpike, [frame]).result.thresholds["source"] == "default"


def evaluated(frame: Frame, every: int, curve: Callable[[FloatArray], FloatArray]) -> Frame:
    """Held-out loss every so many steps."""
    held = np.where(frame.steps % every == 0, curve(frame.steps), np.nan)
    return dataclasses.replace(frame, columns={**frame.columns, SignalKey("eval.nll"): held})


def test_a_shift_under_a_falling_held_out_loss_is_a_warning() -> None:
    frame = scaled(healthy(RunSpec(steps=4000, seed=3)), LOSS, 2001, 1e9, 1.4)
    told = run(LossShift, [frame])
    assert [e.severity for e in told.loud] == [Severity.FAIL]
    falling = evaluated(frame, 500, lambda steps: 5.0 - steps / 2000)
    for frames in ([falling], cut(falling, [2050, 2330, 2499, 2501])):
        told = run(LossShift, frames)
        assert [e.severity for e in told.loud] == [Severity.WARN]
        assert "held-out loss fell meanwhile (4 to" in told.loud[0].what
    rising = evaluated(frame, 500, lambda steps: 3.0 + steps / 2000)
    told = run(LossShift, [rising])
    assert [e.severity for e in told.loud] == [Severity.FAIL]
    assert "held-out loss rose too" in told.loud[0].what


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


def climbing(per_value: float, *, begin: int = 275, n: int = 500, cadence: int = 1, kind: str = "gaussian") -> Frame:
    """A loss that climbs by `per_value` (in logarithms) a value from `begin` on."""
    frame = healthy(RunSpec(steps=n * cadence, cadence=cadence, seed=7, noise=kind))
    rise = np.maximum(np.arange(len(frame)) - begin, 0) * per_value
    return dataclasses.replace(frame, columns={**frame.columns, LOSS: frame.columns[LOSS] * np.exp(rise)})


@pytest.mark.parametrize("cadence", [1, 10])
@pytest.mark.parametrize("per_value", [0.003, 0.0045, 0.01])
def test_a_young_run_that_climbs_steadily_is_a_fail(per_value: float, cadence: int) -> None:
    told = run(LossDrift, [climbing(per_value, cadence=cadence)])
    assert told.result is not None
    assert told.result.verdict is Verdict.FAIL
    assert "climb" in [episode.kind for episode in told.episodes]
    pieces = cut(climbing(per_value, cadence=cadence), [1, 2, 19, 20, 21, 299, 300, 301])
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


def test_null_rewards_make_no_policy_run_and_rewards_do() -> None:
    reward = SignalKey("reward.mean")
    frame = healthy(RunSpec(steps=400, extra={reward: np.full(400, np.nan)}))
    spiked = frame.columns[LOSS] * np.where(np.arange(400) == 300, 4.0, 1.0)
    frame = dataclasses.replace(frame, columns={**frame.columns, LOSS: spiked})
    null = logged_as(frame, reward, list(range(400)), Mark.NULL)
    assert [episode.kind for episode in run(LossSpike, [null]).loud] == ["spike"]
    logged = dataclasses.replace(frame, columns={**frame.columns, reward: np.full(400, 0.5)})
    assert run(LossSpike, [logged]).loud == []


def stays_up() -> Frame:
    """A loss that jumps by 60% and stays."""
    return scaled(healthy(RunSpec(steps=3000, seed=3)), LOSS, 2001, 1e9, 1.6)


def drifts_up() -> Frame:
    """A loss that rises by half within 1,500 steps."""
    return ramped(healthy(RunSpec(steps=4000, seed=3)), LOSS, 2001, 3500, 1.5)


@pytest.mark.parametrize(
    ("cls", "make"),
    [(LossSpike, stays_up), (LossDrift, drifts_up), (LossDrift, lambda: climbing(0.006))],
    ids=["spike", "drift", "climb"],
)
def test_held_out_loss_is_consulted_before_any_fail(cls: type[Detector], make: Callable[[], Frame]) -> None:
    frame = make()
    assert Severity.FAIL in [e.severity for e in run(cls, [frame]).loud]
    rising = evaluated(frame, 20, lambda steps: 3.0 + steps / 2000)
    assert Severity.FAIL in [e.severity for e in run(cls, [rising]).loud]
    falling = evaluated(frame, 20, lambda steps: 9.0 - steps / 1000)
    told = run(cls, [falling])
    assert {e.severity for e in told.loud} == {Severity.WARN}
    assert any("held-out loss fell meanwhile" in e.what for e in told.loud)
    pieces = cut(falling, [at for at in (100, 300, 301, 2050, 2330, 2499, 2501) if at < len(falling)])
    assert [repr(f) for f in run(cls, pieces).findings] == [repr(f) for f in told.findings]


def test_an_evaluation_soon_behind_the_onset_says_nothing_of_a_fail() -> None:
    frame = stays_up()
    early = evaluated(frame, 1, lambda steps: np.where(steps > 2010, np.nan, 9.0 - steps / 1000))
    assert Severity.FAIL in [e.severity for e in run(LossSpike, [early]).loud]
