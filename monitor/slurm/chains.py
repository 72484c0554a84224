"""Jobs that follow each other are one run: which of them belong together.

Two jobs of one user belong together when they write to one file; when one depends on the other and both have the same
name; or when both have the same name, work directory and script, never ran at one time, and the earlier one was stopped
(time limit, preemption, node failure, requeue) rather than finished. Tasks of an array are runs of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from trainmon.monitor.slurm.fields import ENDED
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.lazy_pattern import lazy

_DEPENDS = lazy(r"(?:after\w*|aftercorr)((?::\d+(?:_\d+)?(?:\+\d+)?(?:\(\w+\))?)+)")
_NUMBER = lazy(r"\d+(?:_\d+)?")
_DIGITS = lazy(r"[0-9]+")
_STOPPED: Final = frozenset(("TIMEOUT", "DEADLINE", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REQUEUED", "OUT_OF_MEMORY"))
_OVERLAP_S: Final = 5.0


def depends_on(dependency: str) -> set[str]:
    """The jobs that a dependency names.

    >>> sorted(depends_on("afterany:12(unfulfilled),afterok:13:14_2(unfulfilled)")), depends_on("singleton")
    (['12', '13', '14_2'], set())
    """
    return {number for group in _DEPENDS.findall(dependency) for number in _NUMBER.findall(group)}


def chains(jobs: Iterable[JobInfo]) -> list[tuple[JobInfo, ...]]:
    """The jobs gathered into runs, each oldest first."""
    found: list[list[JobInfo]] = []
    near: dict[tuple[str, str, str], list[list[JobInfo]]] = {}  # chains that a job may continue, by what it shares
    for job in sorted(jobs, key=age):
        keys = [] if "_" in job.id else [(job.user, "name", job.name), (job.user, "stdout", job.stdout)]
        home = next((chain for key in keys for chain in near.get(key, ()) if _continues(chain, job)), None)
        if home is None:
            home = []
            found.append(home)
        home.append(job)
        for key in keys:
            chains_here = near.setdefault(key, [])
            if not any(chain is home for chain in chains_here):
                chains_here.append(home)
    return [tuple(chain) for chain in found]


def age(job: JobInfo) -> tuple[float, float, tuple[int, ...]]:
    """What sorts jobs, the oldest first; what waits comes last. Within a second their numbers decide: 9 before 10."""
    began = job.started_at if job.started_at is not None else float("inf")
    return began, job.submitted_at or 0.0, tuple(map(int, _DIGITS.findall(job.id)))


def _continues(chain: Sequence[JobInfo], job: JobInfo) -> bool:
    last = chain[-1]
    if last.user != job.user or "_" in job.id or "_" in last.id or _at_one_time(last, job):
        return False
    if job.stdout and job.stdout == last.stdout:
        return True
    if not job.name or job.name != last.name:
        return False
    if depends_on(job.dependency) & {one.id for one in chain}:
        return True
    if "singleton" in job.dependency and last.work_dir == job.work_dir:
        return True
    # Accounting does not know the script: then the name and the place must do.
    same_script = not last.command or not job.command or last.command == job.command
    same_place = bool(job.work_dir) and last.work_dir == job.work_dir
    return same_script and same_place and last.state in _STOPPED


def _at_one_time(first: JobInfo, second: JobInfo) -> bool:
    """Whether both ran beside each other."""
    if first.started_at is None or second.started_at is None:
        return False
    end = first.ended_at
    if end is None:
        return first.state not in ENDED
    return second.started_at < end - _OVERLAP_S
