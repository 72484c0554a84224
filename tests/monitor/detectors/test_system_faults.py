"""Faults of speed and memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.monitor.detectors.harness import cut, part, result, run
from tests.monitor.detectors.synthetic import (
    SHARE,
    TIME,
    TPS,
    RunSpec,
    healthy,
    noise,
    ramped,
    scaled,
    with_columns,
)
from trainmon.monitor.detectors.jitter import Jitter
from trainmon.monitor.detectors.memory import Memory
from trainmon.monitor.detectors.step_time import StepTime
from trainmon.monitor.detectors.straggler import Straggler
from trainmon.monitor.detectors.throughput import Throughput
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey


@pytest.mark.parametrize("cadence", [1, 10])
@pytest.mark.parametrize(("factor", "severity"), [(1.5, Severity.WARN), (4.0, Severity.FAIL)])
def test_slow_steps(cadence: int, factor: float, severity: Severity) -> None:
    first = 2010
    frame = healthy(RunSpec(steps=3000, seed=10, cadence=cadence))
    told = run(StepTime, [scaled(frame, TIME, first, 1e9, factor)])
    assert [(e.kind, e.first_step, e.severity) for e in told.loud] == [("slow", first, severity)]


def test_a_slow_stretch_recovers_and_a_short_one_is_nothing() -> None:
    frame = healthy(RunSpec(steps=3000, seed=11))
    told = run(StepTime, [scaled(frame, TIME, 2010, 2100, 2.0)])
    assert [e.recovered for e in told.loud] == [True]
    assert run(StepTime, [scaled(frame, TIME, 2010, 2030, 2.0)]).loud == []


def test_lone_slow_steps_on_a_rhythm_are_learned() -> None:
    frame = healthy(RunSpec(steps=5000, seed=12))
    told = run(StepTime, [frame])
    assert len(told.episodes) <= 3  # every 250 steps: told until the rhythm is known
    odd = run(StepTime, [scaled(frame, TIME, 3333, 3333, 30.0)])
    assert [e.severity for e in odd.episodes if e.first_step == 3333] == [Severity.INFO]


@pytest.mark.parametrize(("calm", "severity"), [(400, Severity.WARN), (150, Severity.INFO), (0, Severity.INFO)])
def test_a_rhythm_is_new_where_ten_of_its_beats_were_missing(calm: int, severity: Severity) -> None:
    n = 800
    beats = np.where((np.arange(n) >= calm) & (np.arange(n) % 8 == 0), 4.0, 1.0)
    frame = healthy(RunSpec(steps=n * 100, seed=15, cadence=100))
    times = 0.5 * np.exp(np.random.default_rng(15).normal(0, 0.01, n)) * beats
    told = run(Jitter, [with_columns(frame, {TIME: times})])
    assert [(e.kind, e.severity) for e in told.episodes] == [("rhythm", severity)]


def test_a_new_batch_size_begins_a_new_level() -> None:
    size = np.where(np.arange(3000) < 1500, 256.0, 512.0)
    frame = healthy(RunSpec(steps=3000, seed=13, extra={SignalKey("batch.size"): size}))
    slower = scaled(frame, TIME, 1501, 1e9, 2.0)
    assert run(StepTime, [slower]).loud == []
    assert run(StepTime, [scaled(slower, TIME, 2500, 1e9, 2.0)]).loud != []


def test_times_as_noisy_as_those_of_variable_batches_are_no_fault() -> None:
    rng = np.random.default_rng(14)
    frame = healthy(RunSpec(steps=20_000, seed=14))
    noisy = with_columns(frame, {TIME: 0.7 * np.exp(0.5 * rng.normal(size=20_000))})
    assert run(StepTime, [noisy]).loud == []


@pytest.mark.parametrize(("factor", "severity"), [(0.7, Severity.WARN), (0.3, Severity.FAIL)])
def test_throughput_that_falls(factor: float, severity: Severity) -> None:
    told = run(Throughput, [scaled(healthy(RunSpec(seed=15)), TPS, 2010, 1e9, factor)])
    assert [(e.first_step, e.severity) for e in told.loud] == [(2010, severity)]


def ranks(n: int, slow: float, begin: int, end: int) -> Frame:
    rng = np.random.default_rng(16)
    extra = {SignalKey("sys.rank_step_time", (("rank", str(i)),)): 0.5 + 0.01 * rng.random(n) for i in range(8)}
    extra[SignalKey("sys.rank_step_time", (("rank", "5"),))][begin:end] *= slow
    return healthy(RunSpec(steps=n, seed=16, extra=extra))


@pytest.mark.parametrize(("slow", "severity"), [(1.2, Severity.WARN), (1.8, Severity.FAIL)])
def test_one_slow_rank_is_named(slow: float, severity: Severity) -> None:
    told = run(Straggler, [ranks(1000, slow, 500, 1000)])
    assert [(e.first_step, e.severity) for e in told.loud] == [(501, severity)]
    assert "rank 5" in told.loud[0].what
    assert run(Straggler, [ranks(1000, slow, 500, 560)]).loud == []


def test_times_behind_a_barrier_name_nobody() -> None:
    extra = {SignalKey("sys.rank_step_time", (("rank", str(i)),)): np.full(300, 0.5) for i in range(4)}
    assert result(run(Straggler, [healthy(RunSpec(steps=300, extra=extra))])).verdict is Verdict.NO_DATA


def test_memory_that_creeps_to_its_end_is_a_warning_and_a_jump_is_not() -> None:
    frame = healthy(RunSpec(steps=2000, seed=20))
    facts = {"total_steps": 4000.0}
    told = run(Memory, [ramped(frame, SHARE, 500, 4000, 1.45)], facts)
    assert [e.kind for e in told.loud][:1] == ["memory_creep"]
    assert "out of memory in about" in told.loud[0].what
    assert run(Memory, [scaled(frame, SHARE, 1000, 1e9, 1.15)], facts).loud == []
    assert run(Memory, [frame], facts).loud == []


@pytest.mark.parametrize("cadence", [1, 10, 100])
def test_memory_that_creeps_to_its_end_in_a_few_hundred_values_is_told_while_there_is_room(cadence: int) -> None:
    n, begin, full = 800, 400, 600
    rng = np.random.default_rng(22)
    share = 0.6 * np.exp(rng.normal(0, 0.005, n)) + 0.4 * np.clip((np.arange(n) - begin) / (full - begin), 0, 1)
    frame = with_columns(healthy(RunSpec(steps=n * cadence, seed=22, cadence=cadence)), {SHARE: np.minimum(share, 1)})
    facts = {"total_steps": 1.25 * n * cadence}
    half_way = part(frame, 0, (begin + full) // 2)
    told = [e for e in run(Memory, [half_way], facts).loud if e.kind == "memory_creep"]
    assert [(e.recovered, abs(e.first_step / cadence - begin) <= 25) for e in told] == [(False, True)]
    assert run(Memory, [part(frame, 0, begin)], facts).loud == []


@pytest.mark.parametrize("kind", ["gaussian", "autocorrelated", "heavy"])
def test_memory_that_swings_widely_or_fills_the_allocators_pools_does_not_creep(kind: str) -> None:
    rng = np.random.default_rng(23)
    frame = healthy(RunSpec(steps=3000, seed=23))
    swings = np.clip(0.5 * np.exp(8 * noise(kind, 3000, rng)), 0, 0.89)
    pools = 0.7 - 0.5 * np.exp(-np.arange(3000) / 20) + 0.1 * noise(kind, 3000, rng)
    for share in (swings, pools):
        told = run(Memory, [with_columns(frame, {SHARE: share})], {"total_steps": 40_000.0})
        assert [e.kind for e in told.loud] == []


@pytest.mark.parametrize(("factor", "severity"), [(1.25, Severity.WARN), (1.31, Severity.FAIL)])
def test_a_nearly_full_device(factor: float, severity: Severity) -> None:
    told = run(Memory, [scaled(healthy(RunSpec(steps=800, seed=21)), SHARE, 400, 1e9, factor)])
    assert [(e.kind, e.first_step, e.severity) for e in told.loud if e.kind == "memory_high"] == [
        ("memory_high", 400, severity)
    ]


def test_allocator_retries_that_go_on_are_a_warning() -> None:
    retries = np.zeros(300)
    retries[100:] = np.arange(200) * 3.0
    frame = healthy(RunSpec(steps=300, extra={SignalKey("count.alloc_retries"): retries}))
    assert [e.kind for e in run(Memory, [frame]).loud] == ["alloc_retries"]
    few = np.where(np.arange(300) < 150, 0.0, 2.0)
    assert run(Memory, [healthy(RunSpec(steps=300, extra={SignalKey("count.alloc_retries"): few}))]).loud == []


def shares(values: list[float]) -> Frame:
    """A log with nothing but the share of the device in use."""
    n = len(values)
    steps = np.arange(1.0, n + 1)
    return Frame(0, "log", steps, np.full(n, np.nan), np.arange(n), {SHARE: np.array(values)})


@pytest.mark.parametrize(
    ("values", "expected", "words"),
    [
        ([0.98], Verdict.WARN, "memory stands at 98% of the device since step 1"),
        ([0.92, 0.93, 0.94], Verdict.WARN, "memory stands at 94% of the device since step 1"),
        ([0.98] * 10, Verdict.FAIL, "memory stands at 98%"),
        ([0.7] * 20 + [0.98] + [0.7] * 5, Verdict.WARN, "memory reached 98% of the device at step 21"),
        ([0.7] * 20 + [0.94] + [0.7] * 5, Verdict.PASS, "highest 94% of the device"),
        ([0.7] * 20 + [0.94] * 5, Verdict.PASS, "highest 94% of the device"),
        ([0.7, 0.98] * 10, Verdict.WARN, "memory reached 98% of the device at step 2"),
        ([0.89], Verdict.PASS, "highest 89% of the device"),
    ],
)
def test_few_values_near_the_end_of_the_device(values: list[float], expected: Verdict, words: str) -> None:
    told = run(Memory, [shares(values)])
    assert result(told).verdict is expected
    assert words in result(told).what
    assert len(told.loud) == (expected is not Verdict.PASS)
    assert [repr(f) for f in run(Memory, cut(shares(values), list(range(len(values))))).findings] == [
        repr(f) for f in told.findings
    ]


def test_a_full_device_that_is_emptied_recovers() -> None:
    told = run(Memory, [shares([0.7] * 20 + [0.98] * 12 + [0.7] * 12)])
    assert [(e.first_step, e.severity, e.recovered) for e in told.loud] == [(21, Severity.FAIL, True)]
