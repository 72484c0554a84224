"""Thresholds from healthy runs: for `trainmon calibrate`.

Every run is read once and judged with the defaults: one that is not healthy is refused. Those that are left are
judged again at eight scales of the cut-offs (see `calibrate_rules`), through the engine that judges every run, so that
the alarms counted are those the next run would get. `calibrate_fit` finds the scale that keeps the budget, and the
runs are judged once more with what was learned.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from trainmon.monitor.calibrate.fit import Fit, bound_per_100k, fit
from trainmon.monitor.calibrate.rules import FAMILIES, SCALES, WINDOWS, alarm_name, values_at
from trainmon.monitor.check import of_one_look
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.judge import engine_of, find
from trainmon.monitor.settings import Settings
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.thresholds import DEFAULTS, Thresholds
from trainmon.monitor.watched import WatchedRun
from trainmon.monitor.worker_pool import quietly_begun, worker_pool
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.discover import RunFiles
from trainmon.tails.intake import IntakeItem, read_all
from trainmon.tails.quick_dataclass import dataclass

FEWEST_STEPS: Final = 300  # logged steps of a run that says anything about its noise
FEWEST_FOR_WINDOW: Final = 2000  # losses from which on another window than the default is considered
_GAIN: Final = 0.9  # another window must lower the smallest rise that is told from noise to this share
_KEPT_RISES: Final = 2000
_IN_PROCESS_BYTES: Final = 8 << 20
_MOST_SAID: Final = 3
_LOSS: Final = SignalKey("loss.train")

T = TypeVar("T")


class CalibrationError(Exception):
    """Nothing could be learned; the words say why. `refused`: the runs that were looked at."""

    def __init__(self, words: str, refused: Sequence[Refusal] = ()) -> None:
        super().__init__(words)
        self.refused = tuple(refused)


@dataclass(frozen=True, slots=True)
class SourceRun:
    """A run that was learned from: its steps (first to last, every attempt) and how many of them were logged."""

    name: str
    target: str
    files: tuple[str, ...]
    steps: float
    logged: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A run that was not learned from, and why: the check that speaks against it and what it says."""

    name: str
    target: str
    check: str
    why: str


@dataclass(frozen=True, slots=True)
class Learned:
    """What one family of cut-offs came to. `values`: those that differ from the defaults."""

    family: str
    fit: Fit
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """`alarms`: of the source runs with the learned thresholds, by check. `rate`: asked for, alarms a step."""

    rate: float
    runs: tuple[SourceRun, ...]
    refused: tuple[Refusal, ...]
    window: int
    window_how: str
    learned: tuple[Learned, ...]
    alarms: dict[str, int]
    problems: tuple[str, ...] = ()

    @property
    def steps(self) -> float:
        """Training steps that were learned from."""
        return sum(run.steps for run in self.runs)

    @property
    def values(self) -> dict[str, float]:
        """Every threshold that differs from its default."""
        values = {name: value for one in self.learned for name, value in one.values.items()}
        return values if self.window == DEFAULTS["window"] else {"window": float(self.window), **values}

    @property
    def bound_per_100k(self) -> float:
        """The 95% upper bound of the alarms per 100,000 steps that the runs bear out for the learned thresholds."""
        return bound_per_100k(sum(self.alarms.values()), self.steps)


@dataclass(slots=True)
class _Look:
    """What the first look at a run gives. `rises`: window -> its largest log rises over the median before it."""

    name: str
    target: str
    source: SourceRun | None
    refusal: Refusal | None
    rises: dict[int, list[float]] = field(default_factory=dict)
    losses: int = 0


def calibrate(
    targets: Sequence[str],
    *,
    cwd: Path,
    rate: float,
    accepted: Collection[str] = (),
    processes: int | None = None,
    cluster: str | None = None,
) -> Calibration:
    """Learns from the runs below `targets`. `accepted`: checks whose WARN is no reason to refuse a run.

    Raises CalibrationError when no healthy run is left.
    """
    discovery = find(list(targets), cwd)
    with _Pool(discovery.runs, processes, cluster) as pool:
        looks = pool.each(partial(_look, accepted=tuple(accepted)), discovery.runs)
        refused = tuple(look.refusal for look in looks if look.refusal is not None)
        sources = tuple(look.source for look in looks if look.source is not None)
        if not sources:
            raise CalibrationError(_nothing(refused, discovery.problems, discovery.searched), refused)
        healthy = [files for files, look in zip(discovery.runs, looks, strict=True) if look.source is not None]
        window, window_how = _choose_window(looks, rate)
        steps = sum(source.steps for source in sources)
        fixed = {"window": float(window)}
        counts = _added(pool.each(partial(_alarms_at_scales, fixed=fixed), healthy))
        learned = tuple(_learn(counts, steps, rate))
        values = {name: value for one in learned for name, value in one.values.items()}
        alarms = _sum(pool.each(partial(_alarms, values={**values, **fixed}), healthy))
    return Calibration(rate, sources, refused, window, window_how, learned, dict(alarms), discovery.problems)


class _Pool:
    """Maps over runs: in this process when there is little to read, else in one process a core, or on a cluster."""

    def __init__(self, runs: Sequence[RunFiles], processes: int | None, cluster: str | None) -> None:
        self._cluster = cluster
        size = sum(_size(file.path) for run in runs for file in run.files)
        wanted = processes or min(len(runs), os.cpu_count() or 1)
        pays = wanted > 1 and size > _IN_PROCESS_BYTES and cluster is None
        self._open = ExitStack()
        self._pool = self._open.enter_context(worker_pool(wanted)) if pays else None

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def each(self, work: Callable[[RunFiles], T], runs: Iterable[RunFiles]) -> list[T]:
        """`work` of each run, in order."""
        if self._cluster is not None:
            from trainmon.monitor.dask_workers import mapped_on  # for those who have a cluster

            return mapped_on(self._cluster, work, runs)
        if self._pool is None:
            return list(map(work, runs))
        with quietly_begun():
            results = self._pool.map(work, runs)
        return list(results)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# One run. These run in processes of their own.


def _read(files: RunFiles, clock: Clock) -> list[IntakeItem]:
    return list(read_all(files, clock))


def _judged(
    files: RunFiles, items: Iterable[IntakeItem], values: Mapping[str, float], frames: list[Frame]
) -> WatchedRun:
    """The run judged with the defaults and `values` on top; thresholds that lie beside it are left out."""
    clock = SystemClock()

    def make(settings: Settings, run: str) -> RunEngine:
        plain = replace(settings, thresholds={})
        engine = engine_of(files, clock, Thresholds().override(dict(values), source="calibrate"), plain)
        engine.on_frame = frames.append if not run else None
        return engine

    watched = WatchedRun(make, clock)
    for item in items:
        watched.take(item)
    watched.engine.settle()
    return watched


def _look(files: RunFiles, *, accepted: tuple[str, ...]) -> _Look:
    frames: list[Frame] = []
    watched = _judged(files, _read(files, SystemClock()), {}, frames)
    run = watched.snapshot(live=False, with_scores=False)
    refusal, remarks = _refuse(run, accepted)
    if refusal is not None:
        return _Look(run.name, run.target, None, refusal)
    interval = _interval(run)
    steps = sum(last - first + interval for first, last in run.attempts)
    paths = tuple(file.path for file in run.files if file.format != "config")
    source = SourceRun(run.name, run.target, paths, steps, run.step_count, remarks)
    look = _Look(run.name, run.target, source, None)
    if not run.rl:
        losses = [frame.columns[_LOSS] for frame in frames if _LOSS in frame.columns]
        values = np.concatenate(losses) if losses else np.empty(0)
        values = values[np.isfinite(values) & (values > 0)]
        look.losses = len(values)
        look.rises = {window: _rises(np.log(values).tolist(), window) for window in WINDOWS}
    return look


def _interval(run: RunSnapshot) -> float:
    span = sum(last - first for first, last in run.attempts)
    gaps = run.step_count - len(run.attempts)
    return span / gaps if gaps > 0 and span > 0 else 1.0


def _refuse(run: RunSnapshot, accepted: tuple[str, ...]) -> tuple[Refusal | None, tuple[str, ...]]:
    """Why the run is not healthy, if so; and what was let pass. How the job ended does not spoil its numbers,
    unless it failed."""
    loud = [
        check
        for check in run.checks
        if check.verdict is Verdict.FAIL
        or (check.verdict is Verdict.WARN and not check.advisory and check.id != "job.state")
    ]
    spoiling = [check for check in loud if check.verdict is Verdict.FAIL or check.id not in accepted]
    if spoiling:
        worst = min(spoiling, key=lambda check: check.verdict is not Verdict.FAIL)
        said = [
            f"[{c.verdict.value}] {c.name} ({c.id}): {c.what}"
            for c in [worst, *(c for c in spoiling if c is not worst)]
        ]
        more = f"; and {len(said) - _MOST_SAID} more" if len(said) > _MOST_SAID else ""
        return Refusal(run.name, run.target, worst.id, "; ".join(said[:_MOST_SAID]) + more), ()
    if run.step_count < FEWEST_STEPS or not run.series:
        problem = next((file.problem for file in run.files if file.problem), "")
        count = f"{run.step_count} logged step{'s' * (run.step_count != 1)}"
        why = of_one_look(problem) or f"{count}, fewer than {FEWEST_STEPS}: too few to learn from"
        return Refusal(run.name, run.target, "", why), ()
    return None, tuple(f"{check.name} ({check.id}) accepted: {check.what}" for check in loud)


def _rises(logs: Sequence[float], window: int) -> list[float]:
    """How far values lie above the median of the `window` values before them, the usual distance (a falling curve's
    lag) taken off; the largest, largest first."""
    robust = RollingRobust(window)
    rises = []
    for u in logs:
        if len(robust) == window:
            rises.append(u - robust.median)
        robust.update(u)
    usual = float(np.median(rises)) if rises else 0.0
    return [rise - usual for rise in sorted(rises, reverse=True)[:_KEPT_RISES]]


def _alarms_at_scales(files: RunFiles, *, fixed: Mapping[str, float]) -> list[Counter[str]]:
    """For each of `SCALES`, the alarms by check."""
    items = _read(files, SystemClock())
    return [_count(_judged(files, items, {**values_at(scale), **fixed}, [])) for scale in SCALES]


def _alarms(files: RunFiles, *, values: Mapping[str, float]) -> Counter[str]:
    return _count(_judged(files, _read(files, SystemClock()), values, []))


def _count(watched: WatchedRun) -> Counter[str]:
    return Counter(alarm_name(one) for one in watched.engine.episodes() if one.severity >= Severity.WARN)


# All runs together.


def _added(of_runs: Sequence[Sequence[Counter[str]]]) -> list[Counter[str]]:
    return [_sum(level) for level in zip(*of_runs, strict=True)]


def _sum(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total


def _learn(counts: Sequence[Counter[str]], steps: float, rate: float) -> Iterable[Learned]:
    """Each family's scale; the budget is shared evenly by those that any alarm was counted of."""
    speaking = [family for family in FAMILIES if any(level[check] for level in counts for check in family.checks)]
    for family in speaking:
        of_family = [sum(level[check] for check in family.checks) for level in counts]
        found = fit(SCALES, of_family, steps, rate / len(speaking))
        values = {name: value for name, value in family.at(found.scale).items() if value != DEFAULTS[name]}
        yield Learned(family.name, found, values if found.scale != 1.0 else {})


def _choose_window(looks: Sequence[_Look], rate: float) -> tuple[int, str]:
    """The window over which the smallest rise can be told from noise: the quantile of the rises is lowest there."""
    default = int(DEFAULTS["window"])
    losses = sum(look.losses for look in looks)
    if losses < FEWEST_FOR_WINDOW:
        return default, f"default kept: {losses} losses, fewer than {FEWEST_FOR_WINDOW}"
    above = max(int(rate * losses), 20)
    at = {}
    for window in WINDOWS:
        largest = sorted((rise for look in looks for rise in look.rises.get(window, ())), reverse=True)
        at[window] = largest[above] if len(largest) > above else math.inf
    best = min(WINDOWS, key=lambda window: (at[window], abs(window - default)))
    if not at[best] < _GAIN * at[default]:
        best = default
    told = ", ".join(f"{100 * math.expm1(at[window]):+.2g}% over {window}" for window in WINDOWS if at[window] < 700)
    return best, f"quantile of the rises over the median: {told}"


def _nothing(refused: Sequence[Refusal], problems: Sequence[str], searched: str) -> str:
    if refused:
        return "no healthy run to learn from; a WARN that is usual for your runs can be accepted with --accept CHECK"
    return problems[0] if problems else searched
