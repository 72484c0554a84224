"""Finished runs judged in several processes, where that pays: the same snapshots in the same order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.worker_pool import quietly_begun, worker_pool
from trainmon.tails.discover import STDIN, RunFiles

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

# Below this a second process takes longer to begin and to hand over its snapshots than it saves. Measured with
# benchmarks/many_files on two busy cores: reading costs 0.06 s of CPU a MB, and each run 0.02 s whatever its size, as
# much as a third of a MB; 8 runs of 2 MB are even (1.0x), 200 of 20 kB gain (1.2x), 40 of 100 kB do not (0.95x).
PAYS_BYTES: Final = 24 << 20
RUN_BYTES: Final = 256 << 10

Judge = Callable[[RunFiles], RunSnapshot]


class ClusterError(RuntimeError):
    """A cluster that was named and cannot be used; the message is one line that says what to do."""


def processes_for(runs: Sequence[RunFiles], most: int | None) -> int:
    """How many processes are worth their start: `most` at the most, 1 for this one alone."""
    local = [run for run in runs if is_local(run)]
    wanted = min(most if most is not None else _cores(), len(local))
    if wanted < 2 or (most is None and sum(_bytes(run) + RUN_BYTES for run in local) < PAYS_BYTES):
        return 1
    return wanted


def judged(runs: Sequence[RunFiles], judge: Judge, processes: int, problems: list[str]) -> Iterator[RunSnapshot]:
    """The snapshot that `judge` makes of each run, in order; `judge` goes to other processes and must be picklable.

    A run whose process dies is judged in this one; `problems` then says so.
    """
    if processes < 2:
        yield from map(judge, runs)
        return
    with worker_pool(processes) as pool:
        waiting = _begun(pool, runs, judge)
        for run in runs:
            yield _result(waiting.get(run.name), run, judge, problems)


def _begun(pool: ProcessPoolExecutor, runs: Sequence[RunFiles], judge: Judge) -> dict[str, Future[RunSnapshot]]:
    """The largest runs first: the last one to end is then a small one."""
    from concurrent.futures.process import BrokenProcessPool

    waiting = {}
    try:
        with quietly_begun():
            for run in sorted(filter(is_local, runs), key=_bytes, reverse=True):
                waiting[run.name] = pool.submit(judge, run)
    except BrokenProcessPool:
        pass  # those that could not be given away are judged here
    return waiting


def _result(waiting: Future[RunSnapshot] | None, run: RunFiles, judge: Judge, problems: list[str]) -> RunSnapshot:
    if waiting is None:
        return judge(run)
    from concurrent.futures.process import BrokenProcessPool

    try:
        return waiting.result()
    except BrokenProcessPool:
        said = "a worker process died (out of memory?); what it had to do was done again in the main process"
        if said not in problems:
            problems.append(said)
        return judge(run)


def is_local(run: RunFiles) -> bool:
    """Whether another process can open the run's files: no standard input, no host that only this one speaks to."""
    return all(file.remote is None and file.path != STDIN for file in run.files)


def _bytes(run: RunFiles) -> int:
    return sum(_size(file.path) for file in run.files)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
