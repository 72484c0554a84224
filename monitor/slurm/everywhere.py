"""The jobs of all runs: those of this machine, and those of each host that logs are read from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from trainmon.monitor.slurm.runner import Runner
from trainmon.monitor.slurm.watch import JobWatch
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.clock import Clock
from trainmon.tails.discover import RunFiles
from trainmon.tails.jobs import JobFiles
from trainmon.tails.ssh.address import Address
from trainmon.tails.target import scheduler_of


def _over_ssh(address: Address) -> Runner:
    from trainmon.monitor.slurm.ssh_runner import SshRunner  # for those who read over ssh

    return SshRunner(address)


def _is_file_there(address: Address, path: str) -> bool:
    from trainmon.monitor.slurm.ssh_runner import is_file_there  # for those who read over ssh

    return is_file_there(address, path)


class Jobs:
    """What schedulers and /proc say of the runs, wherever their logs are.

    `is_on` False: Slurm is asked nowhere (``--no-slurm``). `pid`: the process that the run is (``--pid``).
    """

    def __init__(
        self,
        clock: Clock,
        *,
        runner: Runner | None = None,
        is_on: bool = True,
        pid: int | None = None,
        there: Callable[[Address], Runner] = _over_ssh,
    ) -> None:
        self._clock = clock
        self._here = JobWatch(clock, runner=runner, is_on=is_on, pid=pid)
        self._is_on = is_on
        self._there = there
        self._far: dict[Address, JobWatch] = {}
        self._place_of: dict[str, JobWatch] = {}
        self._is_started = False
        self._on_answer: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def know(self, files: RunFiles, cwd: Path) -> None:
        """Makes a run known, or its files; its jobs are looked for elsewhere than in the caller's thread."""
        logs = [file for file in files.files if file.role != "config"]
        remote = next((file.remote for file in logs if file.remote is not None), None)
        if remote is None:
            self._place_of[files.name] = self._here
            self._here.know(files.name, [str(cwd / file.path) for file in logs], files.target)
        elif self._is_on:
            place = self._place(remote.address)
            self._place_of[files.name] = place
            place.know(files.name, [file.remote.path for file in logs if file.remote is not None], files.target)

    def jobs_for(self, name: str) -> tuple[JobInfo, ...]:
        """Every start of the run's jobs, oldest first, as was said last."""
        place = self._place_of.get(name)
        return place.jobs_for(name) if place is not None else ()

    def jobs_of(self, target: str) -> tuple[Sequence[JobFiles], Sequence[str]]:
        """The runs that ``slurm:ID``, ``slurm:me`` or ``host:slurm:ID`` names, and what cannot be told of it."""
        named = scheduler_of(target)
        address = named[0] if named is not None else None
        place = self._place(address) if address is not None and self._is_on else self._here
        return place.jobs_of(target)

    def chained(self, address: Address | None, logs: Sequence[Sequence[str]]) -> list[tuple[str, dict[int, int]]]:
        """Which of the logs on a host (None: this machine) the jobs of one chain wrote: see `JobSource`."""
        if not self._is_on or len(logs) < 2:
            return []
        return (self._here if address is None else self._place(address)).chained(logs)

    def call_when_answered(self, call: Callable[[], None]) -> None:
        """Has `call` called when `jobs_of` would say more than it did."""
        self._on_answer = call
        for place in (self._here, *self._far.values()):
            place.on_answer = call

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each place where Slurm has answered before and does not now."""
        far = (f"{address.name}: {line}" for address, place in self._far.items() for line in place.problems)
        return (*self._here.problems, *far)

    def start(self) -> None:
        """Begins to ask, once a minute in each place."""
        self._is_started = True
        for place in (self._here, *self._far.values()):
            place.start()

    def stop(self) -> None:
        """Ends the threads; does not wait for a command that hangs."""
        for place in (self._here, *self._far.values()):
            place.stop()

    def look(self, *, again: bool = False) -> None:
        """Asks everywhere and matches, in the caller's thread; asks no second time unless `again`."""
        for place in (self._here, *self._far.values()):
            place.look(again=again)

    def _place(self, address: Address) -> JobWatch:
        with self._lock:
            if address not in self._far:
                place = JobWatch(
                    self._clock,
                    runner=self._there(address),
                    is_local=False,
                    host=address.name,
                    is_file=lambda path: _is_file_there(address, path),
                )
                place.on_answer = self._on_answer
                self._far[address] = place
                if self._is_started:
                    place.start()
            return self._far[address]
