"""One judgement of what lies in the targets now: read to the end, then a snapshot of each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Verdict
from trainmon.monitor.settings import Settings
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.watched import WatchedRun
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.discover import Discovery, RunFiles, discover
from trainmon.tails.intake import read_all


@dataclass(frozen=True, slots=True)
class Judgement:
    """`problems`: one clear line for each target that could not be read; `searched`: what was looked for."""

    runs: tuple[RunSnapshot, ...]
    problems: tuple[str, ...]
    searched: str
    named_unjudged: bool = False


def find(targets: list[str], cwd: Path) -> Discovery:
    """The runs below `targets` (the current directory when there are none)."""
    return discover(targets, cwd)


def judge(
    targets: list[str],
    *,
    cwd: Path,
    clock: Clock | None = None,
    limits: Thresholds | None = None,
    with_scores: bool = True,
) -> Judgement:
    """Reads every run of the targets to its end and judges it. `with_scores`: also the series of spike scores."""
    clock = clock or SystemClock()
    discovery = find(targets, cwd)
    runs = tuple(
        watched.snapshot(live=False, with_scores=with_scores)
        for _, watched in read_runs(discovery, clock=clock, limits=limits or Thresholds())
    )
    return Judgement(runs, discovery.problems, discovery.searched, is_one_unjudged(targets, runs, cwd))


def is_one_unjudged(targets: Sequence[str], runs: Sequence[RunSnapshot], cwd: Path) -> bool:
    """Whether a target was named of whose runs none could be judged (CLI.md: exit status 2 unless another FAILed)."""
    judged = [run for run in runs if run.verdict in (Verdict.PASS, Verdict.WARN, Verdict.FAIL)]
    return any(not any(_belongs(run, target, cwd) for run in judged) for target in targets)


def _belongs(run: RunSnapshot, target: str, cwd: Path) -> bool:
    """Whether `target` names `run`, its directory or a pattern of its files; two targets may name one run."""
    if run.target == target:
        return True
    place = (cwd / target).absolute()
    paths = [(cwd / file.path).absolute() for file in run.files]
    return any(path == place or place in path.parents or fnmatch(str(path), str(place)) for path in paths)


def read_runs(
    discovery: Discovery,
    *,
    clock: Clock,
    limits: Thresholds,
    on_engine: Callable[[RunEngine], None] | None = None,
) -> Iterator[tuple[RunFiles, WatchedRun]]:
    """Each run read to its end. `on_engine` is called with a run's new engine before anything is read."""
    for files in discovery.runs:
        watched = WatchedRun(partial(_engine, files, clock, limits, on_engine), clock)
        for item in read_all(files, clock):
            watched.take(item)
        watched.engine.settle()
        yield files, watched


def _engine(
    files: RunFiles, clock: Clock, flags: Thresholds, on_engine: Callable[[RunEngine], None] | None, settings: Settings
) -> RunEngine:
    engine = engine_of(files, clock, flags, settings)
    if on_engine is not None:
        on_engine(engine)
    return engine


def engine_of(files: RunFiles, clock: Clock, flags: Thresholds, settings: Settings) -> RunEngine:
    """The engine of one run, with the thresholds and facts of its settings files under those of the flags."""
    sources = [str(file.path) for file in files.files if file.role != "config"]
    limits = settings.limits(flags)
    return RunEngine(files.name, files.target, clock=clock, limits=limits, facts=settings.facts, sources=sources)
