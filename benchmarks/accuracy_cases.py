"""Healthy runs and faults of known size for `benchmarks.accuracy`: synthetic ones, and healthy logs of the corpus."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.monitor.detectors.synthetic import GRAD, LOSS, TIME, TPS, logged_as, power_law
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.judge import find, read_runs
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import SystemClock
from trainmon.tails.record import FloatArray, Mark, TimeKind

VALUES = {1: 6000, 10: 4000, 100: 3000}  # cadence -> logged values of a synthetic run
FEWEST = 400  # values of a real log that is used
LEAST_STEPS = 3000.0  # a drift lasts so long


@dataclass(frozen=True)
class Run:
    """One healthy run: its frames, in order. `half`: 0 for the half to look at, 1 for the half that is reported."""

    name: str
    kind: str
    frames: tuple[Frame, ...]
    half: int


def gaussian(n: int, rng: np.random.Generator) -> FloatArray:
    return rng.normal(0, 0.02, n)


def autocorrelated(n: int, rng: np.random.Generator) -> FloatArray:
    out, x = rng.normal(0, 0.02 * math.sqrt(1 - 0.9**2), n), 0.0
    for i in range(n):
        x = out[i] = 0.9 * x + out[i]
    return out


def student(n: int, rng: np.random.Generator) -> FloatArray:
    return 0.015 * rng.standard_t(3, n)


def lognormal(n: int, rng: np.random.Generator) -> FloatArray:
    return 0.04 * (np.exp(0.6 * rng.normal(size=n)) - math.exp(0.18))


NOISES: dict[str, Callable[[int, np.random.Generator], FloatArray]] = {
    "gaussian": gaussian,
    "AR(1)": autocorrelated,
    "Student-t": student,
    "lognormal": lognormal,
}


def _epochs(progress: FloatArray) -> FloatArray:
    """Falls a little at the start of each of five epochs."""
    return 2.4 * 0.93 ** np.floor(5 * progress) * (1 - 0.02 * progress)


SHAPES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "pretraining": lambda p: power_law(10_000 * p),
    "fine-tuning": lambda p: 1.6 + 0.5 * np.exp(-6 * p),
    "epochs": _epochs,
    "DPO": lambda p: 0.25 + 0.443 * np.exp(-4 * p),
    "diffusion": lambda p: 0.004 + 0.02 * np.exp(-20 * p),
}


def synthetic(seeds: int) -> Iterator[Run]:
    """Every shape with every noise and cadence, `seeds` times in each half."""
    for shape, curve in SHAPES.items():
        for noise, draw in NOISES.items():
            for cadence, n in VALUES.items():
                for seed in range(2 * seeds):
                    rng = np.random.default_rng([seed, cadence, len(shape), len(noise)])
                    steps = cadence * np.arange(1, n + 1, dtype=np.float64)
                    settle = 1 + 8 * np.exp(-np.arange(n) / 60.0)
                    time = 0.5 * np.exp(rng.normal(0, 0.02, n))
                    columns = {
                        LOSS: curve(np.arange(n) / n) * np.exp(draw(n, rng)),
                        GRAD: 0.35 * settle * np.exp(rng.normal(0, 0.15, n)),
                        TIME: time,
                        TPS: 1e5 / time,
                    }
                    lines = np.arange(1, n + 1, dtype=np.int64)
                    times = np.full(n, np.nan)
                    frame = Frame(0, "run.log", steps, times, lines, columns, {}, TimeKind.NONE)
                    yield Run(f"{shape}, {noise}, every {cadence}, seed {seed}", noise, (frame,), seed % 2)


def real(corpus: Path) -> Iterator[Run]:
    """The healthy logs of the corpus that are long enough, as the product reads them; every other one in each half."""
    facts = json.loads((corpus / "facts.json").read_text(encoding="utf-8"))
    names = sorted(name for name, fact in facts.items() if fact["expect"] == "healthy")
    number = 0
    for name in names:
        frames: list[Frame] = []

        def attach(engine: RunEngine, frames: list[Frame] = frames) -> None:
            engine.on_frame = frames.append

        path = corpus / name
        for _ in read_runs(find([str(path)], path.parent), clock=SystemClock(), limits=Thresholds(), on_engine=attach):
            pass
        kept = _newest_attempt(frames)
        if kept is not None and len(kept.logged(LOSS)) >= FEWEST:
            yield Run(name, "real logs", (kept,), number % 2)
            number += 1


def _newest_attempt(frames: list[Frame]) -> Frame | None:
    """The rows of the longest attempt with a loss, as one frame; NaN where a column was not logged."""
    lengths: dict[int, int] = {}
    for frame in frames:
        lengths[frame.attempt] = lengths.get(frame.attempt, 0) + len(frame.logged(LOSS))
    if not lengths:
        return None
    best = max(lengths, key=lambda attempt: lengths[attempt])
    parts = [frame for frame in frames if frame.attempt == best]
    keys = dict.fromkeys(key for part in parts for key in part.columns if key in (LOSS, GRAD))
    return Frame(
        0,
        parts[0].path,
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.lines for part in parts]),
        {key: np.concatenate([_column(part, key) for part in parts]) for key in keys},
        {},
        parts[0].time_kind,
    )


def _column(frame: Frame, key: SignalKey) -> FloatArray:
    return frame.columns.get(key, np.full(len(frame), np.nan))


@dataclass(frozen=True)
class Fault:
    """`inject` gives the faulty frame from (frame, row of the first fault, size in units of the smallest size)."""

    name: str
    inject: Callable[[Frame, int, float], Frame | None]
    horizon: int
    """An alarm that begins so many logged values behind the fault's first is no longer about it."""
    of_loss: bool = True


def _noise(frame: Frame, row: int) -> tuple[FloatArray, float]:
    """(log loss before `row`, robust sigma of a single value against the last 100)."""
    column = frame.columns[LOSS][:row]
    u = np.log(column[np.isfinite(column) & (column > 0)])
    last = u[-100:]
    return u, 1.4826 * float(np.median(np.abs(last - np.median(last))))


def _level_noise(u: FloatArray, values: int) -> float:
    """Sigma of the difference between the means of two neighbouring stretches of so many values."""
    n = len(u) // values
    means = u[len(u) - n * values :].reshape(n, values).mean(axis=1)
    gaps = np.diff(means[-24:])
    return 1.4826 * float(np.median(np.abs(gaps - np.median(gaps)))) if len(gaps) >= 3 else math.inf


def _lifted(frame: Frame, row: int, rise: FloatArray) -> Frame:
    """The loss times exp(rise) on the rows from `row` on."""
    column = frame.columns[LOSS].copy()
    column[row : row + len(rise)] *= np.exp(rise[: len(column) - row])
    return replace(frame, columns={**frame.columns, LOSS: column})


def _spike(values: int) -> Callable[[Frame, int, float], Frame | None]:
    def inject(frame: Frame, row: int, size: float) -> Frame | None:
        smallest = max(math.log(1.1), 6 * _noise(frame, row)[1])
        return _lifted(frame, row, size * smallest * np.linspace(1.0, 0.6, values))

    return inject


def _shift(frame: Frame, row: int, size: float) -> Frame | None:
    u, _ = _noise(frame, row)
    smallest = max(math.log(1.05), 4 * _level_noise(u, 100))
    return _lifted(frame, row, np.full(len(frame) - row, size * smallest)) if math.isfinite(smallest) else None


def _drift(frame: Frame, row: int, size: float) -> Frame | None:
    u, _ = _noise(frame, row)
    rest = frame.steps[row:] - frame.steps[row]
    length = max(LEAST_STEPS, 300 * float(np.median(np.diff(frame.steps))))
    smallest = math.log(1.05) + 4 * _level_noise(u, 100)
    if not math.isfinite(smallest) or rest[-1] < length:
        return None
    # The learning stops as well: what is left of the curve's fall would hide part of the rise.
    tail = float(np.median(u[-50:])) - np.log(np.maximum(frame.columns[LOSS][row:], 1e-12))
    smooth = np.array([float(np.median(tail[max(0, i - 50) : i + 51])) for i in range(len(tail))])
    return _lifted(frame, row, smooth + size * smallest * np.minimum(rest / length, 1.0))


def _nan(count: int) -> Callable[[Frame, int, float], Frame | None]:
    return lambda frame, row, _: logged_as(frame, LOSS, list(range(row, row + count)), Mark.NAN)


def _gradient(frame: Frame, row: int, size: float) -> Frame | None:
    if GRAD not in frame.columns or np.isfinite(frame.columns[GRAD][row:]).sum() < 150:
        return None
    column = frame.columns[GRAD].copy()
    column[row:] *= 5 * size
    return replace(frame, columns={**frame.columns, GRAD: column})


def _system(key: SignalKey, smallest: float) -> Callable[[Frame, int, float], Frame | None]:
    def inject(frame: Frame, row: int, size: float) -> Frame | None:
        if key not in frame.columns:
            return None
        column = frame.columns[key].copy()
        column[row:] *= 1 + size * smallest
        return replace(frame, columns={**frame.columns, key: column})

    return inject


FAULTS: tuple[Fault, ...] = (
    Fault("loss spike, 1 value", _spike(1), 20),
    Fault("loss spike, 5 values", _spike(5), 20),
    Fault("loss level shift", _shift, 300),
    Fault("loss drift", _drift, 1500),
    Fault("loss NaN, 1 value", _nan(1), 20),
    Fault("loss NaN, 3 values", _nan(3), 20),
    Fault("gradient level", _gradient, 300),
    Fault("step time", _system(TIME, 0.3), 300, of_loss=False),
    Fault("throughput", _system(TPS, -0.2), 300, of_loss=False),
)
