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


def _over_ssh(address: Address) -> Runner:
    from trainmon.monitor.slurm.ssh_runner import SshRunner  # for those who read over ssh

    return SshRunner(address)


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
        """The runs that ``slurm:ID`` or ``slurm:me`` names here, and what cannot be told of it."""
        return self._here.jobs_of(target)

    def call_when_answered(self, call: Callable[[], None]) -> None:
        """Has `call` called when `jobs_of` would say more than it did."""
        self._here.on_answer = call

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
                place = JobWatch(self._clock, runner=self._there(address), is_local=False)
                self._far[address] = place
                if self._is_started:
                    place.start()
            return self._far[address]
