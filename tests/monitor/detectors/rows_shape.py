"""What the cases of the metric table are built from: noisy levels, late changes, frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray

N = 1200
AT = 800
GIB = 2.0**30
Make = Callable[[FloatArray, np.random.Generator], Mapping[str, FloatArray]]


def key_of(text: str) -> SignalKey:
    name, _, labels = text.partition("{")
    pairs = [part.split("=") for part in labels.rstrip("}").split(",") if part]
    return SignalKey(name, tuple(sorted((label, value) for label, value in pairs)))


def frame_of(make: Make, *, seed: int = 0, cadence: int = 1, digits: int | None = None, n: int = N) -> Frame:
    rng = np.random.default_rng(seed)
    index = np.arange(n, dtype=np.float64)
    columns = {key_of(name): np.array(values, dtype=np.float64) for name, values in make(index, rng).items()}
    if digits is not None:
        columns = {key: np.array([float(f"{x:.{digits}g}") for x in values]) for key, values in columns.items()}
    return Frame(0, "log", cadence * (index + 1), np.full(n, np.nan), np.arange(1, n + 1), columns)


def noisy(rng: np.random.Generator, level: float | FloatArray, spread: float = 0.1, n: int = N) -> FloatArray:
    """A level with log-normal noise."""
    return np.asarray(level * np.exp(rng.normal(0, spread, n)))


def late(index: FloatArray, before: float, after: float, at: int = AT) -> FloatArray:
    """`before` up to the fault, `after` from then on."""
    return np.where(index < at, before, after)


def share(rng: np.random.Generator, level: float | FloatArray, spread: float = 0.02, n: int = N) -> FloatArray:
    return np.clip(level + rng.normal(0, spread, n), 0, 1)


def ramp(index: FloatArray, begin: float, end: float) -> FloatArray:
    """Geometric from `begin` to `end` over the run."""
    return np.asarray(begin * (end / begin) ** (index / N))


def lr(index: FloatArray) -> FloatArray:
    """Warm-up, then cosine down to a thousandth."""
    return np.asarray(
        3e-4 * np.minimum(index / 100 + 0.01, 1.0) * (0.5005 + 0.4995 * np.cos(np.pi * np.clip(index / N, 0, 1)))
    )


@dataclass
class Case:
    """A fault with the episodes (kind, signal) it must open at WARN, and facts."""

    name: str
    detector: type[Detector]
    make: Make
    kinds: tuple[str, ...] = ()
    facts: dict[str, float | str] = field(default_factory=dict)
    first: int = AT + 1
    slack: int = 0
    say: tuple[str, ...] = ()
    severity: Severity = Severity.WARN


def experts(
    index: FloatArray, rng: np.random.Generator, hot: float = 1.0, dead: tuple[int, ...] = ()
) -> dict[str, FloatArray]:
    loads = {}
    for layer in range(3):
        for expert in range(8):
            load = noisy(rng, 1000.0)
            if layer == 1 and expert == 5:
                load = load * late(index, 1.0, hot)
            if layer == 1 and expert in dead:
                load = load * late(index, 1.0, 0.0)
            loads[f"moe.load{{expert={expert},layer={layer}}}"] = load
    return loads


def element(index: FloatArray, rng: np.random.Generator, largest: float, mean: float) -> dict[str, FloatArray]:
    return {
        "grad.abs_max": noisy(rng, 0.5 * late(index, 1.0, largest), 0.3),
        "grad.abs_mean": noisy(rng, 1e-4 * late(index, 1.0, mean)),
        "grad.norm": noisy(rng, 0.4 * late(index, 1.0, mean)),
    }


def beat(index: FloatArray, rng: np.random.Generator, period: int, factor: float) -> FloatArray:
    slow = (index >= AT) & (index % period == 0)
    return noisy(rng, 0.5, 0.01) * np.where(slow, factor, 1.0)
