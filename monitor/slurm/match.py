"""Which job wrote a log that was found by its path: where Slurm says the output goes, what the log prints, its name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from trainmon.monitor.slurm import fields
from trainmon.monitor.slurm.chains import age, chains
from trainmon.monitor.slurm.scheduler import Board
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

_HEAD_BYTES: Final = 64 << 10
_TAIL_BYTES: Final = 16 << 10
_EARLY_S: Final = 300.0  # clocks of login and file servers differ
_LATE_S: Final = 3600.0
_MOST_PRINTED: Final = 20
# What logs and Slurm's own tools print: SLURM_JOB_ID=12, "SLURM_JOBID": "12", *** JOB 12 ON ..., srun: job 12 queued.
_PRINTED = lazy(
    rb"SLURM_JOB_?ID['\"]?\s*[:=]?\s*['\"]?(\d{1,12})\b"
    rb"|\bslurm[ _-]?job[ _-]?(?:id)?\s*[:=#]?\s*(\d{1,12})\b"
    rb"|\*\*\* (?:JOB|STEP) (\d{1,12})(?:\.\w+)? ON "
    rb"|\bsrun: (?:job|Job) (\d{1,12}) "
    rb"|\bStepId=(\d{1,12})\.",
    re.IGNORECASE,
)
# In small letters: where none of these stands, none of the above does.
_WORDS: Final = (b"slurm", b"*** ", b"srun: ", b"stepid=")
_NAMED = lazy(r"(?:^|[._-])(?:slurm|job|j)[._-]?(\d{1,12})(?:_(\d{1,9}))?(?![\d])", re.IGNORECASE)
_NUMBER = lazy(r"(?<![\d.])(\d{2,12})(?:_(\d{1,9}))?(?![\d])")


@dataclass(slots=True)
class KnownRun:
    """A run that is watched, and what its files say of the job that wrote them.

    `jobs`: of a ``slurm:`` target; `is_local` False: the files lie on another host, and their names alone are known.
    """

    name: str
    paths: tuple[str, ...]
    jobs: tuple[str, ...] = ()
    is_local: bool = True
    printed: frozenset[str] = frozenset()
    real: frozenset[str] = field(default_factory=frozenset)
    written_at: float | None = None
    looked_at: tuple[str, ...] | None = None

    def look(self) -> None:
        """Reads heads and ends of the files for job ids: as slow as a mount may be, so never on the engine thread."""
        if not self.is_local:
            return
        printed: set[str] = set(self.printed)
        newest = self.written_at
        for path in self.paths:
            try:
                stat = Path(path).stat()
                newest = max(newest or 0.0, stat.st_mtime)
                if self.looked_at is None or path not in self.looked_at or not printed:
                    printed |= printed_ids(path, stat.st_size)
            except OSError:
                continue
        self.real = frozenset(os.path.realpath(path) for path in self.paths)
        self.printed, self.written_at, self.looked_at = frozenset(printed), newest, self.paths

    @property
    def named(self) -> frozenset[str]:
        """Job ids that the files' names carry for certain (``slurm-12.out``)."""
        return frozenset(one for path in self.paths for one in named_ids(os.path.basename(path)))

    @property
    def hints(self) -> frozenset[str]:
        """The job ids to ask for."""
        return self.printed | self.named | frozenset(self.jobs)


def printed_ids(path: str, size: int) -> set[str]:
    """Job ids in the head and the end of a file. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        data = os.pread(fd, _HEAD_BYTES, 0)
        if size > _HEAD_BYTES:
            data += b"\n" + os.pread(fd, _TAIL_BYTES, max(size - _TAIL_BYTES, _HEAD_BYTES))
    finally:
        os.close(fd)
    return ids_in(data)


def ids_in(data: bytes) -> set[str]:
    r"""Job ids that `data` prints.

    >>> sorted(ids_in(b"SLURM_JOB_ID=12\nslurmstepd: error: *** JOB 13 ON n1 CANCELLED\nstep 14 loss 2.5"))
    ['12', '13']
    """
    found: set[str] = set()
    small = data.lower()
    if not any(word in small for word in _WORDS):
        return found
    for match in _PRINTED.finditer(data):
        number = next(part for part in match.groups() if part)
        found.add(number.decode())
        if len(found) >= _MOST_PRINTED:
            break
    return found


def named_ids(name: str) -> set[str]:
    """Job ids that a file's name carries by its word.

    >>> named_ids("slurm-12_3.out"), named_ids("train-4711.log"), named_ids("j77.err")
    ({'12_3'}, set(), {'77'})
    """
    return {found[1] + (f"_{found[2]}" if found[2] else "") for found in _NAMED.finditer(name)}


class Index:
    """A board by what runs are held against: outputs, chains."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.by_output: dict[str, list[JobInfo]] = {}
        for job in board.jobs.values():
            for path in {job.stdout, job.stderr} - {""}:
                self.by_output.setdefault(path, []).append(job)
        self.chain_of = {job.id: chain for chain in chains(board.jobs.values()) for job in chain}


def match(run: KnownRun, index: Index) -> tuple[JobInfo, ...]:
    """The starts of the jobs that wrote `run`, oldest first; empty when none is known to.

    Only what fits in time counts: a log that was last written before a job began is not that job's.
    """
    board = index.board
    jobs = _by_path(run, index) or _by_target(run, board) or _by_number(run, board)
    if not jobs:
        return ()
    whole = next((index.chain_of[job] for job in jobs if job in index.chain_of), ())
    members = {job.id: job for job in whole if job.id in jobs or run.jobs or _waits_behind(job)} | jobs
    return starts_of(members.values(), board)


def starts_of(jobs: Iterable[JobInfo], board: Board) -> tuple[JobInfo, ...]:
    """Every start of the jobs, oldest first; what waits comes last."""
    starts: list[JobInfo] = []
    for job in jobs:
        history = board.starts.get(job.id, ())
        starts += [*history[:-1], job] if history else [job]
    return tuple(sorted(starts, key=age))


def _waits_behind(job: JobInfo) -> bool:
    """Whether a job of the chain is still to come. One that runs has a log of its own, which is a run of its own."""
    return job.started_at is None and job.ended_at is None and job.state not in fields.ENDED


def _by_path(run: KnownRun, index: Index) -> dict[str, JobInfo]:
    """The jobs whose output goes to a file of the run; of several that do, those of the newest chain."""
    places = run.real | set(run.paths)
    found = [job for place in places for job in index.by_output.get(place, ()) if _fits(run, job, False)]
    return {job.id: job for job in _newest_chain({job.id: job for job in found}.values())} if found else {}


def _by_target(run: KnownRun, board: Board) -> dict[str, JobInfo]:
    """The job that the user named, where its output is not known by its path."""
    named = {job.id: job for one in run.jobs for job in board.named(one)}
    return named if len(chains(named.values())) == 1 else {}


def _by_number(run: KnownRun, board: Board) -> dict[str, JobInfo]:
    """By what the log prints; else by a number in its name."""
    printed = [job for one in run.printed for job in board.named(one) if _is_ours(run, job, board) and _fits(run, job)]
    if printed:
        return {job.id: job for job in printed}
    named = {
        job.id: job
        for one in run.named | _numbers(run.paths, board)
        for job in ([board.jobs[one]] if one in board.jobs else [])
        if _is_ours(run, job, board) and _fits(run, job)
    }
    return named if len(named) <= len(run.paths) else {}


def _newest_chain(jobs: Iterable[JobInfo]) -> Sequence[JobInfo]:
    """Of jobs that write to one path, those of the newest chain."""
    return chains(jobs)[-1]


def _numbers(paths: Iterable[str], board: Board) -> set[str]:
    """Numbers in names that are ids of jobs on the board."""
    found = set()
    for path in paths:
        for number in _NUMBER.finditer(os.path.basename(path)):
            task = f"{number[1]}_{number[2]}" if number[2] else number[1]
            found |= {one for one in (task, number[1]) if one in board.jobs}
    return found


def _is_ours(run: KnownRun, job: JobInfo, board: Board) -> bool:
    """Whether a job whose number alone speaks for it may be this run's: the user's own, or at work in this place."""
    if job.user and job.user == board.user:
        return True
    places = {os.path.dirname(path) for path in run.real | set(run.paths)}
    return bool(job.work_dir) and any(place == job.work_dir or place.startswith(f"{job.work_dir}/") for place in places)


def _fits(run: KnownRun, job: JobInfo, with_end: bool = True) -> bool:
    """Whether the log was written while the job ran."""
    if run.written_at is None or job.started_at is None:
        return True
    if run.written_at < job.started_at - _EARLY_S:
        # A job that has just begun has not written yet.
        return not with_end and job.ended_at is None
    return not with_end or job.ended_at is None or run.written_at <= job.ended_at + _LATE_S
