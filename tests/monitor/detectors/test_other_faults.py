"""Faults of gradients, speed, memory, experts, numerics, schedule, evaluation, restarts and policies."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.monitor.detectors.harness import Folded, run
from tests.monitor.detectors.synthetic import (
    GRAD,
    LOSS,
    LR,
    SHARE,
    TIME,
    TPS,
    RunSpec,
    healthy,
    logged_as,
    ramped,
    scaled,
    without,
)
from trainmon.monitor.detectors.abs_max import AbsMax
from trainmon.monitor.detectors.batch_ratio import BatchRatio
from trainmon.monitor.detectors.clip_rate import ClipRate
from trainmon.monitor.detectors.co_spike import CoSpike
from trainmon.monitor.detectors.grad_norm import GradNorm
from trainmon.monitor.detectors.heldout import HeldOut
from trainmon.monitor.detectors.loss_scale import LossScale
from trainmon.monitor.detectors.lr_schedule import LrSchedule
from trainmon.monitor.detectors.memory import Memory
from trainmon.monitor.detectors.moe_balance import MoeBalance
from trainmon.monitor.detectors.restarts import Restarts
from trainmon.monitor.detectors.rl_health import RlHealth
from trainmon.monitor.detectors.step_time import StepTime
from trainmon.monitor.detectors.straggler import Straggler
from trainmon.monitor.detectors.throughput import Throughput
from trainmon.monitor.finding import CheckResult, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray, Mark


def result(told: Folded) -> CheckResult:
    assert told.result is not None
    return told.result


def with_columns(frame: Frame, columns: dict[SignalKey, FloatArray]) -> Frame:
    return dataclasses.replace(frame, columns={**frame.columns, **columns})


# Gradients.


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


# Speed.


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


# Memory.


def test_memory_that_creeps_to_its_end_is_a_warning_and_a_jump_is_not() -> None:
    frame = healthy(RunSpec(steps=2000, seed=20))
    facts = {"total_steps": 4000.0}
    told = run(Memory, [ramped(frame, SHARE, 500, 4000, 1.45)], facts)
    assert [e.kind for e in told.loud][:1] == ["memory_creep"]
    assert "out of memory in about" in told.loud[0].what
    assert run(Memory, [scaled(frame, SHARE, 1000, 1e9, 1.15)], facts).loud == []
    assert run(Memory, [frame], facts).loud == []


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


# Experts, scales, loss scale.


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


# Schedule and batch.


def schedule(lr: FloatArray, first_step: int = 1) -> Frame:
    frame = healthy(RunSpec(steps=len(lr), seed=40, first_step=first_step))
    return with_columns(frame, {LR: lr})


def cosine(n: int, warmup: int) -> FloatArray:
    t = np.arange(n)
    return 3e-4 * np.minimum((t + 1) / max(warmup, 1), 0.55 + 0.45 * np.cos(np.pi * t / n))


@pytest.mark.parametrize("shape", ["cosine", "linear", "wsd"])
def test_usual_schedules_pass(shape: str) -> None:
    n, t = 5000, np.arange(5000)
    lr = {
        "cosine": cosine(n, 150),
        "linear": 3e-4 * np.minimum((t + 1) / 150, (n - t) / n),
        "wsd": 3e-4 * np.minimum((t + 1) / 150, np.minimum(1.0, (n - t) / 500)),
    }[shape]
    assert result(run(LrSchedule, [schedule(lr)], {"total_steps": float(n)})).verdict is Verdict.PASS


def test_no_or_short_warm_up_is_advice() -> None:
    none = result(run(LrSchedule, [schedule(cosine(5000, 0))], {"total_steps": 5000.0}))
    assert (none.verdict, none.advisory) == (Verdict.WARN, True)
    assert "no warm-up" in none.what
    short = result(run(LrSchedule, [schedule(cosine(5000, 20))], {"total_steps": 5000.0}))
    assert (short.verdict, short.advisory) == (Verdict.WARN, True)


def test_no_warm_up_with_a_loss_that_goes_wrong_is_a_fail() -> None:
    frame = schedule(cosine(5000, 0))
    frame = logged_as(frame, LOSS, [20, 21, 22], Mark.NAN)
    assert result(run(LrSchedule, [frame], {"total_steps": 5000.0})).verdict is Verdict.FAIL


def test_a_log_that_starts_late_has_no_data_on_warm_up() -> None:
    late = schedule(cosine(5000, 150)[2000:], first_step=2001)
    assert result(run(LrSchedule, [late], {"total_steps": 5000.0})).verdict is Verdict.NO_DATA


def test_a_learning_rate_that_is_never_above_zero_is_said() -> None:
    told = result(run(LrSchedule, [schedule(np.zeros(50))], {"total_steps": 5000.0}))
    assert (told.verdict, "nothing is learned" in told.what) == (Verdict.WARN, True)
    assert result(run(LrSchedule, [schedule(np.zeros(3))], {})).verdict is Verdict.NO_DATA


def test_a_warm_up_whose_end_was_left_out_is_not_called_short() -> None:
    lr = cosine(200_000, 2000)
    seen = [schedule(lr[:869]), schedule(lr[60_000:80_000], first_step=60_001)]
    told = result(run(LrSchedule, seen, {"total_steps": 200_000.0}))
    assert told.verdict is Verdict.PASS
    whole = result(run(LrSchedule, [schedule(cosine(200_000, 869))], {"total_steps": 200_000.0}))
    assert whole.verdict is Verdict.WARN


def resumed_at(step: int, lr: FloatArray, attempt: int = 1) -> Frame:
    return dataclasses.replace(schedule(lr, first_step=step), attempt=attempt)


@pytest.mark.parametrize("back_to", [1001, 1901, 2101])
def test_a_resume_without_warm_up_is_normal(back_to: int) -> None:
    lr = cosine(5000, 150)
    frames = [schedule(lr[:2000]), resumed_at(back_to, lr[back_to - 1 : 4000])]
    told = result(run(LrSchedule, frames, {"total_steps": 5000.0}))
    assert told.verdict is Verdict.PASS
    assert "at step 1," in told.why, "the warm-up of the first attempt is the run's"


def test_a_restart_from_the_beginning_without_warm_up_is_judged() -> None:
    frames = [schedule(cosine(5000, 150)[:2000]), resumed_at(1, cosine(5000, 0)[:2000])]
    told = result(run(LrSchedule, frames, {"total_steps": 5000.0}))
    assert (told.verdict, told.advisory) == (Verdict.WARN, True)
    assert "no warm-up" in told.what


def test_one_unexplained_jump_is_told_and_warm_restarts_are_not() -> None:
    lr = cosine(5000, 150)
    lr[4500:] = 2.9e-4
    told = result(run(LrSchedule, [schedule(lr)], {"total_steps": 5000.0}))
    assert (told.verdict, told.advisory) == (Verdict.WARN, True)
    saw = np.concatenate([cosine(1000, 60) for _ in range(5)])
    assert result(run(LrSchedule, [schedule(saw)], {"total_steps": 5000.0})).verdict is Verdict.PASS


def test_batch_against_the_model() -> None:
    frame = healthy(RunSpec(steps=200))
    usual = result(run(BatchRatio, [frame], {"parameters": 1.3e9, "tokens_per_batch": 1e6}))
    assert usual.verdict is Verdict.PASS
    tiny = result(run(BatchRatio, [frame], {"parameters": 7e9, "batch_size": 4.0, "seq_length": 1024.0}))
    assert (tiny.verdict, tiny.advisory) == (Verdict.WARN, True)
    unknown = result(run(BatchRatio, [frame], {"parameters": 7e9}))
    assert unknown.verdict is Verdict.NO_DATA
    assert "tokens per batch" in unknown.what


# Evaluation, restarts, policies.


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
