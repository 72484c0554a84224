"""One judgement of what lies in the targets now: read to the end, then a snapshot of each run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from fnmatch import translate
from functools import partial
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from trainmon.monitor.check import told_once
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Verdict
from trainmon.monitor.room import budget_of
from trainmon.monitor.runs_in_file import name_of
from trainmon.monitor.settings import Settings
from trainmon.monitor.snapshot import JobInfo, RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.watched import WatchedRun
from trainmon.monitor.workers import judged, processes_for
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.discover import Discovery, RunFiles, discover
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.read_once import is_one_large_file, read_all
from trainmon.tails.target import is_pattern

if TYPE_CHECKING:
    from trainmon.monitor.slurm.everywhere import Jobs


@dataclass(frozen=True, slots=True)
class Judgement:
    """`problems`: one clear line for each target that could not be read; `searched`: what was looked for."""

    runs: tuple[RunSnapshot, ...]
    problems: tuple[str, ...]
    searched: str
    named_unjudged: bool = False


def find(targets: list[str], cwd: Path, jobs: Jobs | None = None) -> Discovery:
    """The runs below `targets` (the current directory when there are none). `jobs`: who knows those of a scheduler."""
    if jobs is None and any(target.startswith("slurm:") for target in targets):
        jobs = job_watch(SystemClock())
    return discover(targets, cwd, jobs)


def job_watch(clock: Clock, *, is_on: bool = True, pid: int | None = None) -> Jobs:
    """Who asks Slurm, here and where logs are read from, and /proc for the process `pid`."""
    from trainmon.monitor.slurm.everywhere import Jobs  # for those who ask

    return Jobs(clock, is_on=is_on, pid=pid)


def judge(
    targets: list[str],
    *,
    cwd: Path,
    clock: Clock | None = None,
    limits: Thresholds | None = None,
    with_scores: bool = True,
    jobs: Jobs | None = None,
    processes: int | None = 1,
    cluster: str | None = None,
) -> Judgement:
    """Reads every run of the targets to its end and judges it. `with_scores`: also the series of spike scores.

    `jobs`: asked for the state of the runs' jobs; None asks nobody, unless a target names a job. `processes`: how
    many at the most read and judge; None: as many as pay. `cluster`: the address of a dask scheduler whose workers do
    it instead (raises ClusterError when it cannot be used).
    """
    clock = clock or SystemClock()
    if jobs is None and any(target.startswith("slurm:") for target in targets):
        jobs = job_watch(clock)
    discovery = find(targets, cwd, jobs)
    if jobs is not None:
        for files in discovery.runs:
            jobs.know(files, cwd)
        jobs.look()
    judge_one = partial(
        _snapshot,
        clock=clock,
        limits=limits or Thresholds(),
        with_scores=with_scores,
        jobs={},
        room=budget_of(len(discovery.runs)),
    )
    if jobs is not None:
        judge_one.keywords["jobs"] = {files.name: jobs.jobs_for(files.name) for files in discovery.runs}
    said: list[str] = []
    if cluster is None:
        runs = list(judged(discovery.runs, judge_one, processes_for(discovery.runs, processes), said))
    else:
        from trainmon.monitor.dask_workers import judged_on  # for those who have a cluster

        runs = list(judged_on(cluster, discovery.runs, judge_one, said))
    runs = [told_once(replace(each, others=())) for run in runs for each in (run, *run.others)]
    problems = (*discovery.problems, *(jobs.problems if jobs is not None else ()), *said)
    problems = tuple(dict.fromkeys(problems))
    return Judgement(tuple(runs), problems, discovery.searched, is_one_unjudged(targets, runs, cwd))


def is_one_unjudged(targets: Sequence[str], runs: Sequence[RunSnapshot], cwd: Path) -> bool:
    """Whether a target was named of whose runs none could be judged (CLI.md: exit status 2 unless another FAILed)."""
    judged = [run for run in runs if run.verdict in (Verdict.PASS, Verdict.WARN, Verdict.FAIL)]
    if not targets:
        return False
    names = {run.target for run in judged}
    paths = {_whole(cwd, file.path) for run in judged for file in run.files}
    places = {place for path in paths for place in (path, *map(str, Path(path).parents))}
    return not all(_is_among(target, names, paths, places, cwd) for target in dict.fromkeys(targets))


def _is_among(target: str, names: Set[str], paths: Set[str], places: Set[str], cwd: Path) -> bool:
    """Whether `target` names one of the runs called `names`, of the files `paths`, one of their directories (`places`
    are both) or a pattern of the files; two targets may name one run."""
    if target in names:
        return True
    if not target.strip():  # it names nothing, and not the directory here
        return False
    if _whole(cwd, target) in places:
        return True
    if not is_pattern(target):
        return False
    pattern = _whole(Path(escape(str(cwd.absolute()))), target)  # in `cwd` a bracket is one
    return any(map(re.compile(translate(pattern)).match, paths))


def _whole(cwd: Path, path: str) -> str:
    """`path` from the root, without what goes up and down again."""
    return os.path.normpath((cwd / path).absolute())


def read_runs(
    discovery: Discovery,
    *,
    clock: Clock,
    limits: Thresholds,
    on_engine: Callable[[RunEngine], None] | None = None,
) -> Iterator[tuple[RunFiles, WatchedRun]]:
    """Each run read to its end. `on_engine` is called with a run's new engine before anything of it is judged."""
    for files in discovery.runs:
        watched = _read_run(files, clock, limits, on_engine)
        for each in (watched, *watched.others.values()):
            yield files, each


def _read_run(
    files: RunFiles, clock: Clock, limits: Thresholds, on_engine: Callable[[RunEngine], None] | None = None
) -> WatchedRun:
    watched = WatchedRun(partial(_engine, files, clock, limits, on_engine), clock)
    for item in read_all(files, clock):
        watched.take(item)
    watched.finish()
    return watched


def _snapshot(
    files: RunFiles,
    *,
    clock: Clock,
    limits: Thresholds,
    with_scores: bool,
    jobs: Mapping[str, tuple[JobInfo, ...]],
    room: int,
) -> RunSnapshot:
    known = jobs.get(files.name, ())

    def read() -> WatchedRun:
        return _read_run(files, clock, limits, lambda engine: engine.limit_memory(room))

    if any(file.role != "config" and is_one_large_file(file.path, clock) for file in files.files):
        from trainmon.monitor import judged_cache  # for logs that take longer to judge than it takes to import

        return judged_cache.through(files, limits, clock, read, known, room=room, with_scores=with_scores)
    return read().whole(known, with_scores=with_scores)


def _engine(
    files: RunFiles,
    clock: Clock,
    flags: Thresholds,
    on_engine: Callable[[RunEngine], None] | None,
    settings: Settings,
    run: str,
) -> RunEngine:
    engine = engine_of(files, clock, flags, settings, run)
    if on_engine is not None:
        on_engine(engine)
    return engine


def engine_of(files: RunFiles, clock: Clock, flags: Thresholds, settings: Settings, run: str = "") -> RunEngine:
    """The engine of one run, with the thresholds and facts of its settings files under those of the flags.

    `run`: the label of one of several runs in the files.
    """
    sources = [str(file.path) for file in files.files if file.role != "config"]
    limits = settings.limits(flags)
    attempts = {str(file.path): file.attempt for file in files.files if file.attempt}
    return RunEngine(
        name_of(files.name, run),
        files.target,
        clock=clock,
        limits=limits,
        facts=settings.facts,
        sources=sources,
        attempts=attempts,
    )
