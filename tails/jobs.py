"""The files of a scheduler's job: where its output goes, and what lies beside that and is the job's too."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainmon.tails.grouping import group
from trainmon.tails.looks import Doubt, Look, look_at_name
from trainmon.tails.scan import Folder, Found

_MOST_NAMES = 20_000


@dataclass(frozen=True, slots=True)
class JobFiles:
    """One run of a scheduler: the jobs (or starts of a job) that wrote it, oldest first.

    `outputs`: (standard output, standard error) of each, "" where there is none; a file that does not exist yet counts.
    `ids`: the jobs' ids. `work_dir`: of the newest. `since`: when its first start began, seconds since the epoch.
    """

    name: str
    outputs: tuple[tuple[str, str], ...]
    ids: tuple[str, ...] = ()
    work_dir: str = ""
    since: float | None = None


class JobSource(Protocol):
    """Whoever knows a scheduler's jobs."""

    def jobs_of(self, target: str) -> tuple[Sequence[JobFiles], Sequence[str]]:
        """What ``slurm:...`` means: its runs, and a line for each thing that cannot be told."""
        ...


@dataclass(frozen=True, slots=True)
class JobRun:
    """The files of one run, and the number of the start that wrote each (0 is the first)."""

    files: tuple[Found, ...]
    attempts: dict[str, int]


def files_of(job: JobFiles, scanned: Callable[[str], Folder] | None) -> JobRun:
    """The files of `job`: its outputs, those beside them that carry its id, and the run in its work directory.

    `scanned` looks through a directory; None leaves the work directory alone.
    """
    files: dict[str, Found] = {}
    attempts: dict[str, int] = {}
    for attempt, (stdout, stderr) in enumerate(job.outputs):
        for path, role in ((stdout, "stdout"), (stderr, "log")):
            if path and path not in files:
                files[path] = Found(path, Look("stdout" if role == "stdout" else "log", Doubt.NONE))
                attempts[path] = attempt
    for found in _with_id(job, {os.path.dirname(path) for path in files}):  # noqa: PTH120
        files.setdefault(found.path, found)
    if scanned is not None and job.work_dir:
        for found in _beside(job, files, scanned(job.work_dir)):
            files.setdefault(found.path, found)
    return JobRun(tuple(files.values()), attempts)


def is_private_place(path: str) -> bool:
    """Whether a work directory may be searched for the job's other files: a home or a root holds everybody's.

    >>> is_private_place("/"), is_private_place("/tmp"), is_private_place("/scratch/me/run7")
    (False, False, True)
    """
    place = os.path.normpath(path)
    homes = {os.path.expanduser("~"), "/", "/tmp", "/home", "/root", "/scratch"}  # noqa: PTH111
    return place.startswith("/") and place not in homes and os.path.dirname(place) != "/home"  # noqa: PTH120


def _with_id(job: JobFiles, places: set[str]) -> list[Found]:
    """Files in the outputs' own directories whose names carry the job's id: other ranks, side logs."""
    ids = [re.escape(one) for one in job.ids if one]
    if not ids:
        return []
    pattern = re.compile(rf"(?<![\d_])(?:{'|'.join(ids)})(?![\d_])")
    found = []
    for place in sorted(filter(None, places)):
        try:
            with os.scandir(place) as entries:
                names = [entry.name for _, entry in zip(range(_MOST_NAMES), entries, strict=False)]
        except OSError:
            continue
        for name in sorted(names):
            look = look_at_name(name) if pattern.search(name) else None
            if look is not None and look.role != "config":
                role = "rank" if look.role == "rank" else "log" if look.role == "stdout" else look.role
                found.append(Found(os.path.join(place, name), Look(role, look.doubt)))  # noqa: PTH118
    return found


def _beside(job: JobFiles, outputs: dict[str, Found], folder: Folder) -> list[Found]:
    """The files of the run in the work directory: the one that holds the output, or the only one that is new enough."""
    runs = group(folder)
    for run in runs:
        if any(found.path in outputs for found in run.files):
            return run.files
    if len(runs) != 1:
        return []
    newest = max((_mtime(found.path) for found in runs[0].files if found.look.role != "config"), default=0.0)
    return runs[0].files if job.since is not None and newest >= job.since - 60.0 else []


def _mtime(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return 0.0
