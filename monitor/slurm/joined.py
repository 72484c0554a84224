"""Logs that were named by their paths and that the jobs of one chain wrote: which of them are one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from trainmon.monitor.slurm.chains import chains
from trainmon.monitor.slurm.match import Index, KnownRun, match
from trainmon.monitor.snapshot import JobInfo

# For each chain: its newest job, and the number of the start that wrote each log (the place it was given in).
Joined = list[tuple[JobInfo, dict[int, int]]]


def joined(logs: Sequence[KnownRun], index: Index) -> Joined:
    """The chains of which at least two jobs wrote one of `logs` each; a log that is nobody's or two jobs' stays alone.

    Only what Slurm says makes a chain (`chains`): likeness of the logs does not count, and tasks of an array are apart.
    """
    writers = {place: _writer(log, index) for place, log in enumerate(logs)}
    found: Joined = []
    for chain in {id(chain): chain for chain in index.chain_of.values()}.values():
        order = {job.id: number for number, job in enumerate(chain)}
        places = {place: order[job.id] for place, job in writers.items() if job is not None and job.id in order}
        if len(set(places.values())) > 1:
            numbers = {number: start for start, number in enumerate(sorted(set(places.values())))}
            found.append((chain[max(places.values())], {place: numbers[number] for place, number in places.items()}))
    return found


def unclear(logs: Sequence[KnownRun], index: Index) -> Iterator[JobInfo]:
    """The jobs whose earlier ones may have written others of `logs`: those beside that are nobody's so far, or that
    jobs of the same name wrote of which squeue no longer says what they waited for."""
    writers = [_writer(log, index) for log in logs]
    lonely = {place for log, job in zip(logs, writers, strict=True) if job is None for place in _folders(log)}
    apart: dict[tuple[str, str], set[str]] = {}  # the newest job of each chain of one name
    for job in writers:
        if job is not None and "_" not in job.id:
            apart.setdefault((job.user, job.name), set()).add(index.chain_of.get(job.id, (job,))[-1].id)
    for log, job in zip(logs, writers, strict=True):
        if job is None or "_" in job.id:
            continue
        if lonely & _folders(log) or len(apart[job.user, job.name]) > 1:
            yield job


def _folders(log: KnownRun) -> set[str]:
    return {os.path.dirname(path) for path in log.paths}


def _writer(log: KnownRun, index: Index) -> JobInfo | None:
    """The job that wrote `log`, where it is one job."""
    found = {job.id: job for job in match(log, index) if job.started_at is not None}
    return next(iter(found.values())) if len(found) == 1 and len(chains(found.values())) == 1 else None
