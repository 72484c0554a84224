"""Spikes of the loss: found at their step and severity, in several noises and cadences, and told apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.monitor.detectors.harness import cut, one, run, verdict
from tests.monitor.detectors.synthetic import (
    LOSS,
    RunSpec,
    at,
    healthy,
    logged_as,
    power_law,
    rows_of,
    scaled,
    with_columns,
)
from trainmon.monitor.detectors.loss_spike import LossSpike
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, Mark

QUIET = ("gaussian", "autocorrelated", "heavy")
STEPS = {1: 3000, 10: 20_000, 100: 120_000}
FAULT_AT = {1: 2000, 10: 15_000, 100: 100_000}


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


def test_thresholds_are_obeyed() -> None:
    frame = scaled(healthy(RunSpec(seed=44)), LOSS, 2000, 2010, 1.5)
    deaf = Thresholds().override({"spike.relative": 1.0}, source="flag")
    assert run(LossSpike, [frame], limits=deaf).episodes == []
    assert run(LossSpike, [frame]).result.thresholds["source"] == "default"


def test_null_rewards_make_no_policy_run_and_rewards_do() -> None:
    reward = SignalKey("reward.mean")
    frame = healthy(RunSpec(steps=400, extra={reward: np.full(400, np.nan)}))
    spiked = frame.columns[LOSS] * np.where(np.arange(400) == 300, 4.0, 1.0)
    frame = dataclasses.replace(frame, columns={**frame.columns, LOSS: spiked})
    null = logged_as(frame, reward, list(range(400)), Mark.NULL)
    assert [episode.kind for episode in run(LossSpike, [null]).loud] == ["spike"]
    logged = dataclasses.replace(frame, columns={**frame.columns, reward: np.full(400, 0.5)})
    assert run(LossSpike, [logged]).loud == []


FALLS = {
    "exponential": lambda steps: 2.5 + 8.5 * np.exp(-steps / 60.0),
    "slower": lambda steps: 2.5 + 8.5 * np.exp(-steps / 250.0),
    "power law": power_law,
    "behind a warm-up": lambda steps: 2.6 + 8.3 / (1 + np.exp((steps - 150) / 35.0)),
    "towards zero": lambda steps: 0.004 + 0.9 * np.exp(-steps / 50.0),
}


@pytest.mark.parametrize("cadence", [1, 10, 100])
@pytest.mark.parametrize("values", [1, 3])
@pytest.mark.parametrize("at_value", [45, 90, 200])
@pytest.mark.parametrize("curve", FALLS.values(), ids=FALLS)
def test_a_jump_in_a_steep_fall_is_told(
    curve: Callable[[FloatArray], FloatArray], at_value: int, values: int, cadence: int
) -> None:
    spec = RunSpec(steps=600 * cadence, seed=4, cadence=cadence, curve=lambda steps: curve(steps / cadence))
    frame = healthy(spec)
    assert run(LossSpike, [frame]).episodes == []
    first = float(frame.steps[at_value])
    spiked = scaled(frame, LOSS, first, first + (values - 1) * cadence, 1.6)
    told = run(LossSpike, [spiked])
    assert one(told, "spike") == (first, Severity.WARN, True)
    assert told.loud[0].last_step == first + (values - 1) * cadence
    for bounds in ([at_value], [at_value + 1], list(range(20, 300, 7))):
        assert [repr(f) for f in run(LossSpike, cut(spiked, bounds)).findings] == [repr(f) for f in told.findings]


def test_a_fall_that_stays_up_fails_and_one_that_wavers_is_no_warning() -> None:
    frame = healthy(RunSpec(steps=900, seed=4, curve=FALLS["slower"]))
    assert one(run(LossSpike, [scaled(frame, LOSS, 150, 1e9, 4.0)]), "spike") == (150, Severity.FAIL, False)
    wavering = frame
    for first in range(60, 400, 40):
        wavering = scaled(wavering, LOSS, first, first + 1, 1.06)
    assert run(LossSpike, [wavering]).loud == []


def test_values_on_the_way_down_from_a_higher_level_are_no_drops_that_came_back() -> None:
    index = np.arange(3000, dtype=np.float64)
    values = 2.5 * np.exp(0.01 * np.random.default_rng(4).standard_normal(3000))
    values[(index >= 1000) & (index < 1400)] *= 1.1
    frame = Frame(0, "log", index + 1, index, index.astype(int), {LOSS: values})
    told = run(LossSpike, [frame])
    assert [one.what for one in told.episodes if one.kind == "drop"] == []
    pieces = run(LossSpike, cut(frame, [5, 1003, 1405, 1409, 1417, 2000]))
    assert [(one.kind, one.first_step, one.what) for one in pieces.episodes] == [
        (one.kind, one.first_step, one.what) for one in told.episodes
    ]


@pytest.mark.parametrize(("length", "words"), [(1, "came back"), (3, "came back"), (900, "stayed there")])
def test_a_loss_that_falls_to_a_fifth_is_told_once(length: int, words: str) -> None:
    index = np.arange(3000, dtype=np.float64)
    values = 2.5 * np.exp(0.01 * np.random.default_rng(4).standard_normal(3000))
    values[(index >= 2100) & (index < 2100 + length)] *= 0.2
    frame = Frame(0, "log", index + 1, index, index.astype(int), {LOSS: values})
    told = [one for one in run(LossSpike, [frame]).episodes if one.kind == "drop"]
    assert [one.first_step for one in told] == [2101.0 + at for at in range(1 if length > 3 else length)]
    assert all(one.what.endswith(words) and one.severity is Severity.INFO for one in told)


@pytest.mark.parametrize("kind", ["gaussian", "autocorrelated", "shrinking"])
@pytest.mark.parametrize("times", [1 / 1.6, 1 / 1.15, 1.15, 1.3, 2.0])
@pytest.mark.parametrize("length", [100, 450, 700])
def test_a_level_that_begins_or_ends_is_no_row_of_drops(kind: str, times: float, length: int) -> None:
    frame = healthy(RunSpec(steps=2600, noise=kind))
    loss = frame.columns[LOSS].copy()
    loss[1500 : 1500 + length] *= times
    told = run(LossSpike, [with_columns(frame, {LOSS: loss})])
    assert [one.what for one in told.episodes if "came back" in one.what] == []


def test_a_level_of_twice_the_loss_that_ends_is_told_once() -> None:
    frame = healthy(RunSpec(steps=3000))
    loss = frame.columns[LOSS].copy()
    loss[1500:2200] *= 2.0
    told = run(LossSpike, [with_columns(frame, {LOSS: loss})])
    assert [(one.kind, one.first_step, one.recovered) for one in told.episodes] == [("spike", 1501.0, True)]
