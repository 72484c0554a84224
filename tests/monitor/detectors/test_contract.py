"""What every detector of the registry must keep: identity, chunk-invariance, silence on healthy runs."""

from __future__ import annotations

import copy
import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.monitor.detectors.harness import cut, fold, run
from tests.monitor.detectors.synthetic import (
    GRAD,
    LOSS,
    MEMORY,
    NOISES,
    SHARE,
    TIME,
    TPS,
    RunSpec,
    healthy,
    logged_as,
    ramped,
    scaled,
)
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.registry import DETECTORS, make_detectors
from trainmon.monitor.finding import Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.thresholds import DEFAULTS, Thresholds
from trainmon.tails.record import Mark

FIRST_FIVE = ["loss.spike", "grad.norm", "lr.schedule", "batch.ratio", "loss.plateau"]
each = pytest.mark.parametrize("cls", DETECTORS, ids=lambda cls: cls.id)


@functools.cache
def eventful(seed: int) -> Frame:
    """A run with every kind of trouble in it, dense enough that any cut hits some."""
    rng = np.random.default_rng(seed)
    n = 900
    layers = {SignalKey("moe.maxvio", (("layer", str(i)),)): 0.4 + 0.1 * rng.random(n) for i in range(2)}
    layers[SignalKey("moe.maxvio", (("layer", "0"),))][500:] *= 20
    loads = {SignalKey("moe.load", (("expert", str(i)), ("layer", "0"))): 100 + 20 * rng.random(n) for i in range(8)}
    loads[SignalKey("moe.load", (("expert", "3"), ("layer", "0")))][400:] = 0.0
    ranks = {SignalKey("sys.rank_step_time", (("rank", str(i)),)): 0.5 + 0.01 * rng.random(n) for i in range(4)}
    ranks[SignalKey("sys.rank_step_time", (("rank", "2"),))][300:600] *= 1.7
    sources = {SignalKey("loss.source", (("source", s),)): 2 + 0.02 * rng.random(n) for s in ("web", "code")}
    sources[SignalKey("loss.source", (("source", "code"),))][650:] *= 1.4
    evals = np.full(n, np.nan)
    evals[::60] = np.concatenate([np.linspace(3, 2.5, 8), np.linspace(2.6, 3.2, 7)])
    scales = 5 + rng.random(n)
    scales[550:] *= 30
    skips = np.where(rng.random(n) < 0.3, 1.0, 0.0) * (np.arange(n) > 450)
    loss_scale = np.full(n, 65536.0)
    loss_scale[700:] = 1.0
    index = np.arange(n)
    late = index >= 600
    other = {
        "grad.abs_max": np.where(late, 50.0, 0.5) * (1 + 0.1 * rng.random(n)),
        "grad.abs_mean": 1e-4 * (1 + 0.1 * rng.random(n)),
        "grad.zero_fraction": np.where(late, 0.7, 0.1) + 0.01 * rng.random(n),
        "grad.rank_norm": np.where(late, 0.0, 0.3 + 0.01 * rng.random(n)),
        "tensor.dead_fraction": np.where(late, 0.6, 0.05) + 0.01 * rng.random(n),
        "update.ratio": np.where(late, 0.0, 1e-3) * (1 + 0.1 * rng.random(n)),
        "residual.bf16_noop": np.where(late, 0.8, 0.1) + 0.01 * rng.random(n),
        "modality.scale_ratio": np.where(late, 30.0, 1.0) * (1 + 0.1 * rng.random(n)),
        "source.token_share": np.where(late, 0.0, 0.2) + 0.001 * rng.random(n),
        "sys.comm_wait": np.where(late, 0.3, 0.02) + 0.01 * rng.random(n),
        "device.temperature": np.where(late, 95.0, 70.0) + rng.random(n),
        "sample.repetition": np.where(late, 0.9, 0.1) + 0.01 * rng.random(n),
        "eval.greedy": np.where(late, 0.2, 0.6) + 0.01 * rng.random(n),
        "sys.fragmentation": np.where(late, 3e10, 2e9),
        "progress.epoch": index / 250,
    }
    extra = {
        **{SignalKey(name): values for name, values in other.items()},
        **layers,
        **loads,
        **ranks,
        **sources,
        SignalKey("eval.nll"): evals,
        SignalKey("tensor.abs_max", (("site", "output"),)): scales,
        SignalKey("count.skipped_steps"): skips,
        SignalKey("optim.loss_scale"): loss_scale,
        SignalKey("moe.entropy"): np.where(np.arange(n) < 480, 0.9, 0.2) + 0.01 * rng.random(n),
        SignalKey("batch.size"): np.where(np.arange(n) < 350, 256.0, 512.0),
    }
    frame = healthy(RunSpec(steps=n, seed=seed, digits=3, extra=extra))
    frame = scaled(frame, LOSS, 200, 215, 2.0)
    frame = scaled(frame, GRAD, 200, 204, 12.0)
    frame = scaled(frame, LOSS, 400, 400, 0.3)
    frame = scaled(frame, TIME, 480, 640, 4.0)
    frame = scaled(frame, TPS, 480, 640, 0.2)
    frame = scaled(frame, GRAD, 500, 800, 8.0)
    frame = scaled(frame, LOSS, 620, 900, 1.3)
    frame = ramped(frame, SHARE, 300, 900, 1.33)
    frame = ramped(frame, MEMORY, 300, 900, 1.33)
    frame = logged_as(frame, LOSS, [300, 350, 351, 352, 353], Mark.NAN)
    frame = logged_as(frame, LOSS, [360], Mark.POS_INF)
    frame = logged_as(frame, GRAD, [310, 352, 353, 354, 355], Mark.NAN)
    return logged_as(frame, LOSS, [420, 421, 422, 423], Mark.NULL)


@functools.cache
def policy(seed: int) -> Frame:
    """A policy run whose reward collapses."""
    rng = np.random.default_rng(seed)
    n = 300
    reward = np.concatenate([np.linspace(0, 1, 150), np.full(60, 1.0), np.linspace(1, -0.5, 90)])
    extra = {
        SignalKey("reward.mean"): reward + 0.03 * rng.normal(size=n),
        SignalKey("policy.kl"): np.where(np.arange(n) < 200, 0.05, 3.0) * np.exp(0.1 * rng.normal(size=n)),
        SignalKey("policy.entropy"): np.where(np.arange(n) < 220, 2.0, 0.02) + 0.001 * rng.random(n),
        SignalKey("policy.length"): np.where(np.arange(n) < 240, 300.0, 1.0) + rng.random(n),
    }
    frame = healthy(RunSpec(steps=n, seed=seed, extra=extra))
    return dataclasses.replace(frame, columns={**frame.columns, LOSS: 1e-3 * rng.normal(size=n)})


def said(cls: type[Detector], frames: list[Frame]) -> list[Finding]:
    return run(cls, frames, {"total_steps": 2000.0, "gpu_memory_bytes": 80e9}).findings


def equal(first: list[Finding], second: list[Finding]) -> bool:
    return [repr(f) for f in first] == [repr(f) for f in second]


def test_registry_is_the_report_in_order() -> None:
    assert [cls.id for cls in DETECTORS[:5]] == FIRST_FIVE
    assert [cls.order for cls in DETECTORS[:5]] == [1, 2, 3, 4, 5]
    assert len({cls.id for cls in DETECTORS}) == len(DETECTORS)
    assert len({cls.order for cls in DETECTORS}) == len(DETECTORS)
    assert {"run.restarts", "sys.memory", "eval.heldout", "moe.balance", "rl.health"} <= {cls.id for cls in DETECTORS}


@each
def test_signals_are_those_of_the_table(cls: type[Detector]) -> None:
    assert set(cls.signals) <= set(BY_ID)


@each
def test_without_data_nothing_passes(cls: type[Detector]) -> None:
    verdict = run(cls, []).result
    assert verdict is not None
    assert verdict.verdict in (Verdict.NO_DATA, Verdict.NOT_APPLICABLE)
    assert verdict.what


@each
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 3), bounds=st.lists(st.integers(1, 899), max_size=12))
def test_findings_do_not_depend_on_the_cut(cls: type[Detector], seed: int, bounds: list[int]) -> None:
    frame = eventful(seed)
    assert equal(said(cls, [frame]), said(cls, cut(frame, bounds)))


@functools.cache
def with_a_restart() -> tuple[tuple[list[Frame], list[Frame]], ...]:
    """Two runs that go on after a restart, whole and row by row."""
    again = dataclasses.replace(healthy(RunSpec(steps=300, seed=1, first_step=850, attempt=1)), attempt=1)
    later = cut(again, list(range(1, len(again), 7)))
    return tuple(
        ([frame, again], [*cut(frame, list(range(1, len(frame)))), *later]) for frame in (eventful(7), policy(7))
    )


@each
def test_findings_are_the_same_row_by_row_and_over_a_restart(cls: type[Detector]) -> None:
    for whole, one_by_one in with_a_restart():
        assert equal(said(cls, whole), said(cls, one_by_one))


def test_the_eventful_run_makes_most_detectors_speak() -> None:
    speaking = {cls.id for cls in DETECTORS for frame in (eventful(0), policy(0)) if run(cls, [frame]).loud}
    assert {
        "loss.spike",
        "grad.norm",
        "loss.nonfinite",
        "loss.shift",
        "spike.co",
        "loss.groups",
        "rl.health",
        "sys.step_time",
        "sys.throughput",
        "sys.memory",
        "sys.straggler",
        "moe.balance",
        "numerics.abs_max",
        "numerics.loss_scale",
        "eval.heldout",
        "grad.elements",
        "grad.dead",
        "sys.waits",
        "sys.devices",
        "eval.tasks",
        "tensor.dead",
        "update.ratio",
        "residual.stream",
        "modality.balance",
        "output.samples",
    } <= speaking


@each
def test_finish_changes_nothing(cls: type[Detector]) -> None:
    frame = eventful(5)
    asked = cls(Thresholds(), {"total_steps": 2000.0})
    silent = cls(Thresholds(), {"total_steps": 2000.0})
    heard: list[Finding] = []
    expected: list[Finding] = []
    for piece in cut(frame, list(range(50, 900, 50))):
        heard += asked.update(piece)
        first, second = list(asked.finish()), list(asked.finish())
        assert equal(first, second)
        expected += silent.update(piece)
    assert equal(heard, expected)


@each
def test_can_be_copied_while_it_works(cls: type[Detector]) -> None:
    frame = eventful(6)
    first, second = cut(frame, [450])
    detector = cls(Thresholds(), {})
    list(detector.update(first))
    twin = copy.deepcopy(detector)
    assert equal(list(detector.update(second)), list(twin.update(second)))


@each
def test_every_fault_is_told_in_words_with_numbers(cls: type[Detector]) -> None:
    for frame in (eventful(2), policy(2)):
        told = run(cls, [frame], {"total_steps": 2000.0}, rl=frame.columns[LOSS][5] < 1)
        for episode in told.episodes:
            assert episode.what
            assert any(letter.isdigit() for letter in episode.what) or "recover" in episode.what or episode.recovered
        result = told.result
        assert result is not None
        if result.verdict in (Verdict.WARN, Verdict.FAIL):
            assert result.what
            assert result.next
        fold(cls.id, told.findings)


@each
@pytest.mark.parametrize("kind", NOISES)
def test_silent_on_healthy_runs(cls: type[Detector], kind: str) -> None:
    for seed, cadence, digits in ((0, 1, None), (1, 1, 2), (2, 10, None), (3, 100, 3)):
        spec = RunSpec(steps=2500 if cadence == 1 else 25_000, seed=seed, noise=kind, cadence=cadence, digits=digits)
        told = run(cls, [healthy(spec)], {"total_steps": 30_000.0})
        assert told.loud == []
        assert told.result is not None
        assert told.result.verdict is not Verdict.FAIL
        assert told.result.verdict is not Verdict.WARN or told.result.advisory


def test_connected_detectors_say_what_lone_ones_say() -> None:
    frame = eventful(4)
    lone = {cls.id: cls(Thresholds(), {}) for cls in DETECTORS}
    together = {detector.id: detector for detector in make_detectors(Thresholds(), {})}
    for piece in cut(frame, [100, 333, 600]):
        for name in lone:
            assert equal(list(lone[name].update(piece)), list(together[name].update(piece)))


def test_severities_are_ordered_and_thresholds_named() -> None:
    for cls in DETECTORS:
        result = run(cls, [eventful(1)]).result
        assert result is not None
        for name in result.thresholds:
            assert name == "source" or name in DEFAULTS
    assert Severity.INFO < Severity.WARN < Severity.FAIL
