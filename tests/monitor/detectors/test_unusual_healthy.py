"""Runs that look odd and are well: a sceptic's list. Every detector at once, as a run is judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.monitor.detectors.harness import fold
from tests.monitor.detectors.synthetic import GRAD, LOSS, LR, TIME, TPS, RunSpec, healthy, logged_as, power_law
from trainmon.monitor.detectors.registry import make_detectors
from trainmon.monitor.finding import Episode, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, Mark

SCALE = SignalKey("optim.loss_scale")
SKIPS = SignalKey("count.skipped_steps")


def loud(frame: Frame, facts: dict[str, float | str] | None = None) -> list[Episode]:
    episodes = []
    for detector in make_detectors(Thresholds(), facts or {}):
        episodes.append((detector, list(detector.update(frame))))
    told = [fold(detector.id, [*said, *detector.finish()]) for detector, said in episodes]
    return [episode for part in told for episode in part if episode.severity >= Severity.WARN]


def run_with(loss: FloatArray, cadence: int = 1) -> Frame:
    """A healthy run with another loss; one row for each of its values."""
    frame = healthy(RunSpec(steps=len(loss), seed=2))
    steps = cadence * np.arange(1, len(loss) + 1, dtype=np.float64)
    return dataclasses.replace(frame, steps=steps, columns={**frame.columns, LOSS: loss})


def noise(n: int, sigma: float, seed: int) -> FloatArray:
    return np.exp(np.random.default_rng(seed).normal(0, sigma, n))


def early_noise(seed: int) -> Frame:
    n = 3000
    calm = 0.01 + 0.3 * np.exp(-np.arange(n) / 40)
    return run_with(power_law(np.arange(1.0, n + 1)) * np.exp(calm * np.random.default_rng(seed).normal(size=n)))


def dpo(seed: int) -> Frame:
    n = 2000
    return run_with((0.25 + 0.443 * np.exp(-np.arange(n) / 500)) * noise(n, 0.15, seed))


def diffusion(seed: int) -> Frame:
    n = 4000
    return run_with(1e-3 * (1 + 20 * np.exp(-np.arange(n) / 200)) * noise(n, 0.2, seed))


def constant(seed: int) -> Frame:
    return run_with(np.full(3000, 2.5))


def two_values(seed: int) -> Frame:
    rng = np.random.default_rng(seed)
    return run_with(np.where(rng.random(3000) < 0.5, 2.3, 2.4))


def batch_ramp(seed: int) -> Frame:
    n = 3000
    size = np.repeat([128.0, 256.0, 512.0, 1024.0], n // 4)
    time = 0.2 * size / 128 * noise(n, 0.02, seed)
    spread = 0.02 * (128 / size) ** 0.5
    loss = power_law(np.arange(1.0, n + 1)) * np.exp(spread * np.random.default_rng(seed).normal(size=n))
    frame = run_with(loss)
    more = {TIME: time, TPS: 1e5 * noise(n, 0.02, seed + 9), SignalKey("batch.size"): size}
    return dataclasses.replace(frame, columns={**frame.columns, **more})


def longer_sequences(seed: int) -> Frame:
    n = 3000
    length = np.repeat([2048.0, 8192.0], n // 2)
    time = 0.2 * length / 2048 * noise(n, 0.02, seed)
    frame = run_with(power_law(np.arange(1.0, n + 1)) * noise(n, 0.01, seed))
    more = {TIME: time, TPS: 1e5 * noise(n, 0.02, seed + 9), SignalKey("batch.seq_length"): length}
    return dataclasses.replace(frame, columns={**frame.columns, **more})


def twelve_points(seed: int) -> Frame:
    return run_with(power_law(500.0 * np.arange(1, 13)) * noise(12, 0.03, seed), cadence=500)


def nan_in_the_first_row(seed: int) -> Frame:
    frame = run_with(power_law(np.arange(1.0, 1001)) * noise(1000, 0.01, seed))
    return logged_as(frame, GRAD, [0], Mark.NAN)


def fp16_skips(seed: int) -> Frame:
    n = 4000
    rows = [3, 5, 8, 400, 1402, 2400, 3402]
    scale = np.full(n, 65536.0)
    skips = np.zeros(n)
    skips[rows] = 1.0
    frame = run_with(power_law(np.arange(1.0, n + 1)) * noise(n, 0.01, seed))
    frame = dataclasses.replace(frame, columns={**frame.columns, SCALE: scale, SKIPS: skips})
    return logged_as(frame, GRAD, rows, Mark.POS_INF)


def evaluations_only(seed: int) -> Frame:
    n = 40
    frame = run_with(np.ones(n), cadence=500)
    held = power_law(500.0 * np.arange(1, n + 1)) * noise(n, 0.003, seed)
    return dataclasses.replace(frame, columns={SignalKey("eval.nll"): held})


def epochs(seed: int) -> Frame:
    """The loss falls at the start of each epoch and rises a little within it."""
    n, per = 5000, 1000
    at = np.arange(n)
    return run_with(2.4 * 0.88 ** (at // per) * (1 + 0.03 * (at % per) / per) * noise(n, 0.02, seed))


def easier_first(seed: int) -> Frame:
    """A curriculum that moves to slightly harder data twice: +3%."""
    n = 4500
    harder = 1 + 0.03 * (np.arange(n) // 1500)
    return run_with(power_law(np.arange(1.0, n + 1) + 500) * harder * noise(n, 0.02, seed))


def warm_restarts(seed: int) -> Frame:
    n, period = 6000, 1500
    at = np.arange(n) % period
    lr = 3e-4 * (0.55 + 0.45 * np.cos(np.pi * at / period)) * np.minimum(1, (np.arange(n) + 1) / 200)
    bump = 1 + 0.03 * np.minimum(at / 100, 1) * np.exp(-at / 700) * (np.arange(n) >= period)
    frame = run_with(power_law(np.arange(1.0, n + 1)) * bump * noise(n, 0.015, seed))
    return dataclasses.replace(frame, columns={**frame.columns, LR: lr})


HEALTHY: tuple[Callable[[int], Frame], ...] = (
    early_noise, dpo, diffusion, constant, two_values, batch_ramp, longer_sequences, twelve_points,
    nan_in_the_first_row, fp16_skips, evaluations_only, epochs, easier_first, warm_restarts,
)  # fmt: skip


@pytest.mark.parametrize("make", HEALTHY, ids=lambda make: make.__name__)
def test_nothing_is_wrong(make: Callable[[int], Frame]) -> None:
    for seed in range(4):
        found = loud(make(seed))
        assert found == [], (seed, [(e.check, e.kind, e.severity.name, e.what) for e in found])


WITH_A_LOSS = [early_noise, dpo, diffusion, constant, two_values, epochs, easier_first, warm_restarts]


@pytest.mark.parametrize("make", WITH_A_LOSS)
def test_and_trouble_in_them_is_still_told_with_its_first_step(make: Callable[[int], Frame]) -> None:
    frame = make(5)
    row = int(0.6 * len(frame))
    loss = frame.columns[LOSS].copy()
    loss[row:] *= 2.5
    found = loud(dataclasses.replace(frame, columns={**frame.columns, LOSS: loss}))
    assert any(e.severity is Severity.FAIL for e in found)
    assert min(abs(e.first_step - frame.steps[row]) for e in found) <= 30
