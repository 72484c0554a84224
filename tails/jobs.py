"""The files of a scheduler's job: where its output goes, and what lies beside that and is the job's too."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trainmon.tails.grouping import Group, group
from trainmon.tails.looks import Doubt, Look, look_at_name
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.scan import Folder, Found, Scan

if TYPE_CHECKING:
    from trainmon.tails.ssh.address import Address

_MOST_NAMES = 20_000
_MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class JobFiles:
    """One run of a scheduler: the jobs (or starts of a job) that wrote it, oldest first.

    `outputs`: (standard output, standard error) of each, "" where there is none; a file that does not exist yet counts.
    `ids`: the jobs' ids. `work_dir`: of the newest. `since`: when its first start began, seconds since the epoch.
    `is_asked` False: nobody named it, and it is over: nothing is said of it where it left no file.
    `is_known` False: nobody knows (any more) where it wrote; else empty outputs mean that it writes to none.
    """

    name: str
    outputs: tuple[tuple[str, str], ...]
    ids: tuple[str, ...] = ()
    work_dir: str = ""
    since: float | None = None
    is_asked: bool = True
    is_known: bool = True


class JobSource(Protocol):
    """Whoever knows a scheduler's jobs."""

    def jobs_of(self, target: str) -> tuple[Sequence[JobFiles], Sequence[str]]:
        """What ``slurm:...`` or ``host:slurm:...`` means: its runs, and a line for each thing that cannot be told."""
        ...

    def chained(self, address: Address | None, logs: Sequence[Sequence[str]]) -> list[tuple[str, dict[int, int]]]:
        """Which of `logs` (the paths of each) on a host (None: this one) the jobs of one chain wrote: the name of the
        run, and the number of the start by the place in `logs`."""
        ...


@dataclass(slots=True)
class Chained:
    """Groups of which those that belong to one chain of jobs are one.

    `called`: names by the id of such a group; `attempts`: the number of the start that wrote a file.
    """

    groups: list[tuple[str, Group]]
    called: dict[int, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)


def chained_groups(
    groups: Sequence[tuple[str, Group]],
    jobs: JobSource,
    address: Address | None = None,
    path_of: Callable[[str], str] = str,
) -> Chained:
    """`groups` (target and files) of one host with the logs of each chain together, where its first one stood.

    `path_of`: from the name of a file to its path there.
    """
    logs = [[path_of(found.path) for found in each.files if found.look.role != "config"] for _, each in groups]
    out = Chained(list(groups))
    gone: set[int] = set()
    for name, places in jobs.chained(address, logs):
        order = sorted(places, key=lambda place: places[place])
        files: dict[str, Found] = {}
        for place in order:
            for found in groups[place][1].files:
                files.setdefault(found.path, found)
                out.attempts[found.path] = places[place]
        newest = groups[order[-1]]
        whole = Group(newest[1].path, list(files.values()))
        out.groups[min(places)] = (newest[0], whole)
        out.called[id(whole)] = name
        gone |= set(places) - {min(places)}
    out.groups = [each for place, each in enumerate(out.groups) if place not in gone]
    return out


@dataclass(frozen=True, slots=True)
class JobRun:
    """The files of one run, and the number of the start that wrote each (0 is the first)."""

    files: tuple[Found, ...]
    attempts: dict[str, int]


class JobPlaces(Protocol):
    """The file system that jobs write to. Nothing of it raises for what is not there."""

    def names(self, folder: str) -> Sequence[str]:
        """The names in a directory, not too many."""
        ...

    def mtime(self, path: str) -> float:
        """When a file was last written to, seconds since the epoch; 0.0 where there is none."""
        ...

    def scanned(self, folder: str) -> Folder:
        """What lies in and below a directory."""
        ...


class LocalJobPlaces:
    """That of this machine."""

    def names(self, folder: str) -> Sequence[str]:
        """The names in a directory."""
        try:
            with os.scandir(folder) as entries:
                return [entry.name for entry in islice(entries, _MOST_NAMES)]
        except OSError:
            return []

    def mtime(self, path: str) -> float:
        """When a file was last written to."""
        try:
            return Path(path).stat().st_mtime
        except OSError:
            return 0.0

    def scanned(self, folder: str) -> Folder:
        """What lies in and below a directory; what cannot be read there is not what was asked for."""
        return Scan().walk(folder)


def job_groups(
    jobs: Sequence[JobFiles],
    places: JobPlaces,
    settings_beside: Callable[[str], Sequence[Found]],
    lost: Callable[[str], None],
) -> Iterator[tuple[JobFiles, Group, dict[str, int]]]:
    """Each of `jobs` with its files, and the number of the start that wrote each (0 is the first).

    `lost`: told at the end, in one line, of jobs that write to no file.
    """
    silent: list[JobFiles] = []
    sharing = Counter(job.work_dir for job in jobs)
    for job in jobs:
        is_alone = sharing[job.work_dir] == 1 and is_private_place(job.work_dir) and (job.is_known or _has_output(job))
        found = files_of(job, places, with_work_dir=is_alone)
        if not any(each.look.role != "config" for each in found.files):
            silent += [job] if job.is_asked else []
            continue
        named = [path for outputs in zip(*job.outputs, strict=True) for path in outputs if path]
        first = named[0] if named else next(each.path for each in found.files if each.look.role != "config")
        yield job, Group(first, [*found.files, *settings_beside(first)]), found.attempts
    for is_known in (True, False):
        if those := [job for job in silent if job.is_known is is_known]:
            lost(_of_no_file(those))


def _has_output(job: JobFiles) -> bool:
    return any(path for outputs in job.outputs for path in outputs)


def _of_no_file(jobs: Sequence[JobFiles]) -> str:
    """What is said of jobs whose logs cannot be told."""
    ids = [job.ids[-1] for job in jobs if job.ids]
    more = f" (+{len(ids) - _MOST_TOLD} more)" if len(ids) > _MOST_TOLD else ""
    what = f"job{'s' if len(ids) > 1 else ''} {', '.join(ids[:_MOST_TOLD])}{more}"
    place = jobs[0].work_dir if len({job.work_dir for job in jobs}) == 1 else "the work directory"
    if jobs[0].is_known:
        why = f"the output of {what} goes to /dev/null, and {place} holds no log that is surely its own"
    else:
        why = f"Slurm no longer says where {what} wrote, and no log in {place} carries the number"
    return f"{why}; name the log file"


def files_of(job: JobFiles, places: JobPlaces, *, with_work_dir: bool) -> JobRun:
    """The files of `job`: its outputs, those beside them that carry its id, and the run in its work directory.

    `with_work_dir` False leaves the work directory alone.
    """
    files: dict[str, Found] = {}
    attempts: dict[str, int] = {}
    for attempt, (stdout, stderr) in enumerate(job.outputs):
        for path, role in ((stdout, "stdout"), (stderr, "log")):
            if path and path not in files:
                files[path] = Found(path, Look("stdout" if role == "stdout" else "log", Doubt.NONE))
                attempts[path] = attempt
    folders = {os.path.dirname(path) for path in files}
    if not folders and is_private_place(job.work_dir):
        folders = {job.work_dir}
    for found in _with_id(job, places, folders):
        files.setdefault(found.path, found)
    if with_work_dir and job.work_dir:
        for found in _beside(job, files, places):
            files.setdefault(found.path, found)
    return JobRun(tuple(files.values()), attempts)


def is_private_place(path: str) -> bool:
    """Whether a work directory may be searched for the job's other files: a home or a root holds everybody's.

    >>> is_private_place("/"), is_private_place("/tmp"), is_private_place("/scratch/me/run7")
    (False, False, True)
    """
    place = os.path.normpath(path)
    homes = {os.path.expanduser("~"), "/", "/tmp", "/home", "/root", "/scratch"}
    return place.startswith("/") and place not in homes and os.path.dirname(place) != "/home"


def _with_id(job: JobFiles, places: JobPlaces, folders: set[str]) -> list[Found]:
    """Files in the outputs' own directories whose names carry the job's id: other ranks, side logs."""
    ids = [re.escape(one) for one in job.ids if one]
    if not ids:
        return []
    pattern = re.compile(rf"(?<![\d_])(?:{'|'.join(ids)})(?![\d_])")
    found = []
    for folder in sorted(filter(None, folders)):
        for name in sorted(places.names(folder)):
            look = look_at_name(name) if pattern.search(name) else None
            if look is not None and look.role != "config":
                role = "rank" if look.role == "rank" else "log" if look.role == "stdout" else look.role
                found.append(Found(os.path.join(folder, name), Look(role, look.doubt)))
    return found


def _beside(job: JobFiles, outputs: dict[str, Found], places: JobPlaces) -> list[Found]:
    """The files of the run in the work directory: the one that holds the output, or the only one that is new enough."""
    runs = group(places.scanned(job.work_dir))
    for run in runs:
        if any(found.path in outputs for found in run.files):
            return run.files
    if len(runs) != 1:
        return []
    newest = max((places.mtime(found.path) for found in runs[0].files if found.look.role != "config"), default=0.0)
    return runs[0].files if job.since is not None and newest >= job.since - 60.0 else []
