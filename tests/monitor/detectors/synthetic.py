"""Seeded training runs as frames: healthy, in several kinds of noise and cadence, and faults to put into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray, Mark, TimeKind

LOSS = SignalKey("loss.train")
GRAD = SignalKey("grad.norm")
LR = SignalKey("optim.lr")
TIME = SignalKey("sys.step_time")
TPS = SignalKey("sys.tokens_per_second")
MEMORY = SignalKey("sys.peak_memory")
SHARE = SignalKey("sys.memory_share")

NOISES = ("gaussian", "autocorrelated", "heavy", "large", "shrinking")


def noise(kind: str, n: int, rng: np.random.Generator) -> FloatArray:
    """(n,) of log-loss noise. "heavy" has Student's t with 5 degrees of freedom, "large" is that of tiny batches."""
    if kind == "gaussian":
        return rng.normal(0, 0.01, n)
    if kind == "autocorrelated":
        white = rng.normal(0, 0.008, n)
        for i in range(1, n):
            white[i] += 0.7 * white[i - 1]
        return white
    if kind == "heavy":
        return 0.008 * rng.standard_t(5, n)
    if kind == "large":
        return rng.normal(0, 0.25, n)
    if kind == "shrinking":
        return rng.normal(0, 0.04, n) * np.linspace(1.0, 0.2, n)
    raise ValueError(kind)


def power_law(steps: FloatArray, start: float = 10.8, floor: float = 1.9) -> FloatArray:
    """A pretraining curve: falls fast, then slowly."""
    return floor + (start - floor) * (1 + steps / 40.0) ** -0.45


@dataclass
class RunSpec:
    """What a healthy run looks like."""

    steps: int = 3000
    seed: int = 0
    noise: str = "gaussian"
    cadence: int = 1
    digits: int | None = None
    curve: Callable[[FloatArray], FloatArray] = power_law
    first_step: int = 1
    attempt: int = 0
    step_time_s: float = 0.5
    extra: dict[SignalKey, FloatArray] = field(default_factory=dict)


def healthy(spec: RunSpec) -> Frame:
    """One frame with loss, gradient norm, learning rate, step time, throughput and memory."""
    rng = np.random.default_rng(spec.seed)
    steps = np.arange(spec.first_step, spec.first_step + spec.steps, dtype=np.float64)
    steps = steps[(steps % spec.cadence == 0) | (spec.cadence == 1)]
    n = len(steps)
    loss = spec.curve(steps) * np.exp(noise(spec.noise, n, rng))
    settle = 1 + 8 * np.exp(-(steps - 1) / 60.0)
    grad = 0.35 * settle * np.exp(rng.normal(0, 0.12, n))
    lr = 3e-4 * np.minimum(steps / 100.0, 1.0)
    time = spec.step_time_s * np.exp(rng.normal(0, 0.02, n))
    if spec.cadence == 1:
        time[steps % 250 == 0] *= 20  # evaluation and checkpoint
    time[steps <= 2] *= 60  # compilation
    tps = 1e5 * spec.step_time_s / time
    memory = np.full(n, 60e9) + rng.integers(0, 50, n) * 1e6
    if spec.digits is not None:
        loss, grad = np.round(loss, spec.digits), np.round(grad, spec.digits)
    columns = {LOSS: loss, GRAD: grad, LR: lr, TIME: time, TPS: tps, MEMORY: memory, SHARE: memory / 80e9}
    return Frame(
        attempt=spec.attempt,
        path="run.log",
        steps=steps,
        times=1.7e9 + np.cumsum(time),
        lines=np.arange(10, 10 + 3 * n, 3, dtype=np.int64),
        columns={**columns, **spec.extra},
        time_kind=TimeKind.ABSOLUTE,
    )


def at(frame: Frame, step: float) -> int:
    """The first row at or after `step`."""
    return int(np.searchsorted(frame.steps, step))


def scaled(frame: Frame, key: SignalKey, first: float, last: float, factor: float | FloatArray) -> Frame:
    """`key` times `factor` on the steps first..last."""
    column = frame.columns[key].copy()
    rows = (frame.steps >= first) & (frame.steps <= last)
    column[rows] *= factor
    return replace(frame, columns={**frame.columns, key: column})


def ramped(frame: Frame, key: SignalKey, first: float, last: float, factor: float) -> Frame:
    """`key` rises smoothly from 1x at `first` to `factor` at `last`, and stays there."""
    share = np.clip((frame.steps - first) / (last - first), 0.0, 1.0)
    return replace(frame, columns={**frame.columns, key: frame.columns[key] * factor**share})


def logged_as(frame: Frame, key: SignalKey, rows: list[int], mark: Mark) -> Frame:
    """`key` logged as NaN, Inf or null in `rows`."""
    column = frame.columns[key].copy()
    marks = frame.marks.get(key)
    marks = np.where(np.isnan(column), Mark.ABSENT, Mark.NUMBER).astype(np.uint8) if marks is None else marks.copy()
    column[rows] = {Mark.POS_INF: np.inf, Mark.NEG_INF: -np.inf}.get(mark, np.nan)
    marks[rows] = mark
    return replace(frame, columns={**frame.columns, key: column}, marks={**frame.marks, key: marks})


def without(frame: Frame, *keys: SignalKey) -> Frame:
    """`frame` without some columns."""
    return replace(frame, columns={key: values for key, values in frame.columns.items() if key not in keys})


def with_columns(frame: Frame, columns: dict[SignalKey, FloatArray]) -> Frame:
    """`frame` with columns added or replaced."""
    return replace(frame, columns={**frame.columns, **columns})


def climbing(per_value: float, *, begin: int = 275, n: int = 500, cadence: int = 1, kind: str = "gaussian") -> Frame:
    """A loss that climbs by `per_value` (in logarithms) a value from `begin` on."""
    frame = healthy(RunSpec(steps=n * cadence, cadence=cadence, seed=7, noise=kind))
    rise = np.maximum(np.arange(len(frame)) - begin, 0) * per_value
    return with_columns(frame, {LOSS: frame.columns[LOSS] * np.exp(rise)})


def rows_of(frame: Frame, rows: slice) -> Frame:
    """Some rows of `frame`."""
    return replace(
        frame,
        steps=frame.steps[rows],
        times=frame.times[rows],
        lines=frame.lines[rows],
        columns={key: values[rows] for key, values in frame.columns.items()},
        marks={key: values[rows] for key, values in frame.marks.items()},
    )
