"""Healthy runs for `benchmarks.accuracy`: synthetic ones, and the healthy logs of the corpus."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from tests.monitor.detectors.synthetic import GRAD, LOSS, LR, TIME, TPS, power_law
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.judge import find, read_runs
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import SystemClock
from trainmon.tails.record import FloatArray, MarkArray, TimeKind

VALUES: Final = {1: 6000, 10: 4000, 100: 3000}  # cadence -> logged values of a synthetic run
LEVELS: Final = (1.0, 0.5, 2.0)  # times the usual noise
FEWEST: Final = 400  # values of a real log that faults are put into
RANKS: Final = 4
EXPERTS: Final = 8
SOURCES: Final = ("web", "code", "books")


@dataclass(frozen=True)
class Run:
    """One healthy run. `half`: 0 and 1 for those that rules and thresholds were chosen on, 2 for the reported one.

    `kind`: the noise, or "real logs". `family`: "dense" (loss, gradient norm, speed), "wide" (ranks, sources,
    experts, memory, scales, evaluation), "rl", or "real". `frames`: the attempts' rows, in order. `is_healthy_only`:
    no faults are put into it, it only adds healthy steps.
    """

    name: str
    kind: str
    family: str
    frames: tuple[Frame, ...]
    half: int
    is_healthy_only: bool = False

    @property
    def values(self) -> int:
        """How many rows there are."""
        return sum(len(frame) for frame in self.frames)


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


def mixture(n: int, rng: np.random.Generator) -> FloatArray:
    """One batch in eight is of a harder source: two levels, neither of them noise."""
    return rng.normal(0, 0.012, n) + np.where(rng.random(n) < 0.125, 0.06, 0.0)


NOISES: Final[dict[str, Callable[[int, np.random.Generator], FloatArray]]] = {
    "gaussian": gaussian,
    "AR(1)": autocorrelated,
    "Student-t": student,
    "lognormal": lognormal,
    "mixture": mixture,
}
REPORTED: Final = 2  # the half that is reported
OF_REPORTED: Final = ("LR steps", "mixture")  # a shape and a noise that no other half has


def _epochs(progress: FloatArray) -> FloatArray:
    """Falls a little at the start of each of five epochs."""
    return 2.4 * 0.93 ** np.floor(5 * progress) * (1 - 0.02 * progress)


def _lr_steps(progress: FloatArray) -> FloatArray:
    """A power law that falls by some more where the learning rate is cut to a tenth, at 30% and at 80%."""
    return (
        power_law(8_000 * progress, 9.0, 2.2) * np.where(progress < 0.3, 1.0, 0.96) * np.where(progress < 0.8, 1, 0.98)
    )


SHAPES: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "pretraining": lambda p: power_law(10_000 * p),
    "fine-tuning": lambda p: 1.6 + 0.5 * np.exp(-6 * p),
    "epochs": _epochs,
    "DPO": lambda p: 0.25 + 0.443 * np.exp(-4 * p),
    "diffusion": lambda p: 0.004 + 0.02 * np.exp(-20 * p),
    "LR steps": _lr_steps,
}


def synthetic(half: int, levels: int = len(LEVELS)) -> Iterator[Run]:
    """Every shape with every noise, cadence and noise level; then wide and RL runs. Each half has its own seeds.

    Faults are put into one noise level of each combination, taken in turn.
    """
    turn = itertools.count()
    shapes, noises = ([n for n in names if half >= REPORTED or n not in OF_REPORTED] for names in (SHAPES, NOISES))
    for number, shape in enumerate(shapes):
        for noise in noises:
            for cadence in VALUES:
                chosen = next(turn) % levels
                for level in range(levels):
                    run = _dense(shape, noise, cadence, level, seed=1000 * half + number)
                    yield replace(run, is_healthy_only=level != chosen)
    for noise in noises:
        for cadence in (1, 10):
            chosen = next(turn) % levels
            for level in range(levels):
                for run in (
                    _wide(noise, cadence, level, seed=1000 * half + 100),
                    _rl(noise, cadence, level, seed=1000 * half + 200),
                ):
                    yield replace(run, is_healthy_only=level != chosen)


def frame_of(cadence: int, n: int, columns: dict[SignalKey, FloatArray]) -> Frame:
    """One attempt of `n` rows, logged every `cadence` steps, without times."""
    steps = cadence * np.arange(1, n + 1, dtype=np.float64)
    return Frame(0, "run.log", steps, np.full(n, np.nan), np.arange(1, n + 1), columns, {}, TimeKind.NONE)


def _random(noise: str, cadence: int, level: int, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, cadence, level, list(NOISES).index(noise)])


def _dense(shape: str, noise: str, cadence: int, level: int, seed: int) -> Run:
    n = VALUES[cadence]
    rng = _random(noise, cadence, level, seed)
    progress = np.arange(n) / n
    time = 0.5 * np.exp(rng.normal(0, 0.02, n))
    columns = {
        LOSS: SHAPES[shape](progress) * np.exp(LEVELS[level] * NOISES[noise](n, rng)),
        GRAD: 0.35 * (1 + 8 * np.exp(-np.arange(n) / 60.0)) * np.exp(rng.normal(0, 0.15, n)),
        LR: 3e-4 * np.minimum(progress / 0.05, 1.0) * _lr_cut(shape, progress),
        TIME: time,
        TPS: 1e5 / time,
    }
    name = f"{shape}, {noise} x{LEVELS[level]:g}, every {cadence}, seed {seed}"
    return Run(name, noise, "dense", (frame_of(cadence, n, columns),), seed // 1000)


def _lr_cut(shape: str, progress: FloatArray) -> FloatArray | float:
    return np.where(progress < 0.3, 1.0, np.where(progress < 0.8, 0.1, 0.01)) if shape == "LR steps" else 1.0


def labelled(signal: str, **labels: object) -> SignalKey:
    """The key of one series."""
    return SignalKey(signal, tuple(sorted((name, str(value)) for name, value in labels.items())))


def _wide(noise: str, cadence: int, level: int, seed: int) -> Run:
    n = VALUES[cadence]
    rng = _random(noise, cadence, level, seed)
    draw = NOISES[noise]
    curve = SHAPES["pretraining"](np.arange(n) / n)
    every = np.arange(n) % (100 if cadence == 1 else 10) == 0

    def scanned(values: FloatArray) -> FloatArray:
        return np.where(every, values, np.nan)

    def noisy(sigma: float) -> FloatArray:
        return np.exp(rng.normal(0, sigma, n))

    columns: dict[SignalKey, FloatArray] = {LOSS: curve * np.exp(LEVELS[level] * draw(n, rng))}
    for rank in range(RANKS):
        columns[labelled("loss.rank", rank=rank)] = curve * np.exp(LEVELS[level] * draw(n, rng))
        columns[labelled("sys.rank_step_time", rank=rank)] = 0.5 * noisy(0.01)
    for source, offset in zip(SOURCES, (1.0, 0.6, 1.1), strict=True):
        columns[labelled("loss.source", source=source)] = offset * curve * np.exp(LEVELS[level] * draw(n, rng))
    for layer in range(2):
        columns[labelled("moe.maxvio", layer=layer)] = 0.6 * noisy(0.08)
        columns[labelled("moe.entropy", layer=layer)] = scanned(0.93 + 0.004 * rng.normal(size=n))
        columns[labelled("update.ratio", layer=layer)] = scanned(1e-3 * noisy(0.1))
        for expert in range(EXPERTS):
            columns[labelled("moe.load", layer=layer, expert=expert)] = 1000.0 * noisy(0.1)
    columns[SignalKey("sys.memory_share")] = 0.71 + 0.004 * rng.random(n)
    columns[labelled("tensor.abs_max", site="output")] = scanned(28.0 * noisy(0.08))
    columns[SignalKey("eval.nll")] = scanned(1.02 * curve * noisy(0.002))
    columns[SignalKey("optim.loss_scale")] = np.full(n, 65536.0)
    columns[LR] = 3e-4 * np.minimum(np.arange(n) / (0.05 * n), 1.0)
    name = f"wide, {noise} x{LEVELS[level]:g}, every {cadence}, seed {seed}"
    return Run(name, noise, "wide", (frame_of(cadence, n, columns),), seed // 1000)


def _rl(noise: str, cadence: int, level: int, seed: int) -> Run:
    n = VALUES[cadence] // 2
    rng = _random(noise, cadence, level, seed)
    progress = np.arange(n) / n
    columns = {
        LOSS: rng.normal(0, 0.02, n),
        GRAD: 0.35 * np.exp(rng.normal(0, 0.15, n)),
        LR: 3e-6 * np.minimum(progress / 0.05, 1.0),
        SignalKey("reward.mean"): 0.2 + 0.6 * (1 - np.exp(-5 * progress)) + LEVELS[level] * NOISES[noise](n, rng),
        SignalKey("policy.kl"): 0.05 * np.exp(rng.normal(0, 0.25, n)),
        SignalKey("policy.entropy"): (1.2 - 0.4 * progress) * np.exp(rng.normal(0, 0.04, n)),
        SignalKey("policy.length"): 300 * (1 + 0.5 * progress) * np.exp(rng.normal(0, 0.05, n)),
    }
    name = f"RL, {noise} x{LEVELS[level]:g}, every {cadence}, seed {seed}"
    return Run(name, noise, "rl", (frame_of(cadence, n, columns),), seed // 1000)


def real(corpus: Path, half: int | None = None) -> Iterator[Run]:
    """The healthy logs of the corpus as the product reads them: every attempt, every column.

    A log that the product itself calls anything but healthy is in: that is what is measured.
    """
    for name in healthy(corpus, half):
        runs: list[list[Frame]] = []  # a file may hold several

        def attach(engine: RunEngine, runs: list[list[Frame]] = runs) -> None:
            runs.append([])
            engine.on_frame = runs[-1].append

        path = corpus / name
        for _ in read_runs(find([str(path)], path.parent), clock=SystemClock(), limits=Thresholds(), on_engine=attach):
            pass
        for number, frames in enumerate(runs):
            if frames:
                told = f"{name}, run {number}" if number else name
                yield Run(told, "real logs", "real", tuple(frames), half if half is not None else 0)


def healthy(corpus: Path, half: int | None) -> list[str]:
    """The names of the healthy logs. Half 0: every other file, 1 the rest; 2 and 4: the first by a hash, 3 the rest.

    All were seen healthy while rules were made; what 2 to 4 have of their own is which of them, and where faults begin.
    """
    facts = json.loads((corpus / "facts.json").read_text(encoding="utf-8"))
    names = sorted(name for name, fact in facts.items() if fact["expect"] == "healthy")
    if half == REPORTED:
        return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[: (len(names) + 1) // 2]
    if half == REPORTED + 1:
        return [name for name in names if name not in healthy(corpus, REPORTED)]
    if half == REPORTED + 2:
        return sorted(names, key=lambda name: hashlib.sha256(f"4 {name}".encode()).digest())[: (len(names) + 1) // 2]
    return [name for number, name in enumerate(names) if half is None or number % 2 == half]


def verdicts(corpus: Path, half: int | None) -> Iterator[tuple[str, int, Verdict, int]]:
    """(name, training rows, verdict, pages) of each healthy log of the corpus, judged as `trainmon check` does."""
    for name in healthy(corpus, half):
        path = corpus / name
        found = find([str(path)], path.parent)
        for _, watched in read_runs(found, clock=SystemClock(), limits=Thresholds()):
            run = watched.snapshot(live=False, with_scores=False)
            yield name, run.step_count, run.verdict, sum(incident.pages for incident in run.incidents)


def longest_attempt(run: Run) -> Run | None:
    """The rows of the longest attempt with a loss as one frame, to put a fault into; None when it is too short."""
    lengths: dict[int, int] = {}
    for frame in run.frames:
        if LOSS in frame.columns:
            lengths[frame.attempt] = lengths.get(frame.attempt, 0) + len(frame.logged(LOSS))
    if not lengths or max(lengths.values()) < FEWEST:
        return None
    best = max(lengths, key=lambda attempt: lengths[attempt])
    parts = [frame for frame in run.frames if frame.attempt == best]
    keys = dict.fromkeys(key for part in parts for key in part.columns)
    marked = dict.fromkeys(key for part in parts for key in part.marks)
    joined = Frame(
        0,
        parts[0].path,
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.lines for part in parts]),
        {key: np.concatenate([_column(part, key) for part in parts]) for key in keys},
        {key: np.concatenate([_marks(part, key) for part in parts]) for key in marked},
        parts[0].time_kind,
    )
    return Run(run.name, run.kind, run.family, (joined,), run.half)


def _column(frame: Frame, key: SignalKey) -> FloatArray:
    return frame.columns.get(key, np.full(len(frame), np.nan))


def _marks(frame: Frame, key: SignalKey) -> MarkArray:
    known = frame.marks.get(key)
    if known is not None:
        return known
    return np.asarray(~np.isnan(_column(frame, key)), np.uint8)
