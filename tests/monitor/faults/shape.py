"""A run of a trainer nobody wrote: its healthy columns, faults put into them, and the log lines that it prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trainmon.monitor.finding import Episode, Severity
from trainmon.monitor.judge import find, read_runs
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import SystemClock
from trainmon.tails.record import FloatArray

N = 1400
AT = 900
GIB = 2.0**30
Columns = dict[str, FloatArray]
Make = Callable[["Plan"], Columns]
Extra = Callable[[int], Mapping[str, object]]


class Plan:
    """What a case builds its columns from: `i` the index of each record, `late(a, b)`, and noise."""

    def __init__(self, seed: int, n: int = N) -> None:
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.i = np.arange(n, dtype=np.float64)

    def late(self, before: float | FloatArray, after: float | FloatArray, at: int = AT) -> FloatArray:
        """`before` up to record `at`, `after` from then on."""
        return np.where(self.i < at, before, after)

    def only(self, first: int, last: int, factor: float) -> FloatArray:
        """`factor` on the records first..last, 1 elsewhere."""
        return np.where((self.i >= first) & (self.i <= last), factor, 1.0)

    def noisy(self, level: float | FloatArray, spread: float = 0.05) -> FloatArray:
        """A level with log-normal noise."""
        return np.asarray(level * np.exp(self.rng.normal(0, spread, self.n)), np.float64)

    def share(self, level: float | FloatArray, spread: float = 0.01) -> FloatArray:
        """A share with Gaussian noise, within 0..1."""
        return np.clip(level + self.rng.normal(0, spread, self.n), 0, 1)

    def loss(self) -> FloatArray:
        """A pretraining curve."""
        return self.noisy(1.9 + 8.0 * (self.i + 30.0) ** -0.35, 0.008)

    def base(self, **changed: FloatArray) -> Columns:
        """The columns every run logs; `changed` replaces some (`loss`, `grad`, `lr`, `time`)."""
        loss = changed.get("loss", self.loss())
        grad = changed.get("grad", self.noisy(0.45 * (1 + 5 * np.exp(-self.i / 40)), 0.12))
        lr = changed.get("lr", 4e-4 * np.minimum((self.i + 1) / 120, 1.0))
        time = changed.get("time", self.noisy(0.81, 0.015))
        return {"opt/lm_loss": loss, "opt/grad_norm": grad, "opt/lr": lr, "perf/iter_seconds": time}


@dataclass(frozen=True)
class Told:
    """An episode that must be told. Steps are those of the log; `slack`: how far off the first may be."""

    check: str
    kind: str
    signal: str
    severity: Severity = Severity.WARN
    first: float = AT + 1
    slack: float = 3
    recovered: bool | None = False
    pages: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    worst: tuple[float, float] | None = None
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A fault: the columns it is in, what must be told, and words that the advice has.

    `beside`: checks that may be loud too, since the same fault is one of theirs; `beside_must`: those that must.
    """

    name: str
    make: Make
    told: tuple[Told, ...]
    beside: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    cadence: int = 1
    head: Mapping[str, object] = field(default_factory=dict)
    extra: Extra | None = None
    beside_must: tuple[str, ...] = ()


def lines_of(columns: Columns, cadence: int = 1, extra: Extra | None = None) -> list[str]:
    """The run as JSON lines: `a/b` nests; NaN is left out; `extra` gives what a row has beside, NaN and null too."""
    lines = []
    for row in range(len(next(iter(columns.values())))):
        record: dict[str, object] = {"update": cadence * (row + 1)}
        told = {name: float(f"{values[row]:.6g}") for name, values in columns.items() if not np.isnan(values[row])}
        for name, value in [*told.items(), *(extra(row).items() if extra is not None else ())]:
            where = record
            *parents, leaf = name.split("/")
            for parent in parents:
                inner = where.setdefault(parent, {})
                assert isinstance(inner, dict)
                where = inner
            where[leaf] = value
        lines.append(json.dumps(record))
    return lines


def judged(path: Path) -> RunSnapshot:
    """The run in this file, judged as `trainmon check` does."""
    (run,) = (
        watched.snapshot(live=False, with_scores=False)
        for _, watched in read_runs(find([str(path)], path.parent), clock=SystemClock(), limits=Thresholds())
    )
    return run


def play(case: Case, folder: Path, seed: int = 0) -> RunSnapshot:
    """The log of the case, judged."""
    path = folder / "updates.jsonl"
    columns = case.make(Plan(seed))
    head = [json.dumps(dict(case.head))] if case.head else []
    path.write_text("\n".join([*head, *lines_of(columns, case.cadence, case.extra)]) + "\n")
    return judged(path)


def loud(run: RunSnapshot) -> list[Episode]:
    """WARN and worse of the log's own."""
    return [one for one in run.episodes if one.severity >= Severity.WARN]
