"""A week of 20 runs in minutes: ``python -m benchmarks.soak [DAYS RUNS]``.

The clock is simulated, the files and all that reads, judges and keeps them are real. Told in the end: resident memory
day by day, threads, descriptors, inotify watches and children by day, lines written and read, and whether the episodes
that were seen live are those that one check of the same files finds. (This one looks at each file in turn, as where it
must poll; the watches are those of ``tests/test_soak.py``, which runs the session itself.)
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.soak_trainers import Trainer
from trainmon.monitor.finding import Episode
from trainmon.monitor.judge import engine_of, judge
from trainmon.monitor.room import budget_of, watched_points
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.watched import WatchedRun
from trainmon.tails.discover import RunFiles, discover
from trainmon.tails.give_back import GivingBack
from trainmon.tails.reader import IntakeItem
from trainmon.tails.tail import Tail

TICK_S = 600.0
INTERVAL_S = 30.0
DAY_S = 86400.0
# What is remembered by number is full by then: at a record in 30 s 2,000 lines and 1,024 to 2,048 points within the
# first day, but for the 4,096 losses (and a quarter more) that a resume is held against: 64 KiB a run, full in the
# second. The days behind the first are held against each other; what they are of the first is told besides.
WARM_DAYS = 1
AWAY_S = 1800.0


class SimulatedClock:
    """Time that passes when told; ``wall`` begins now."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._began = time.time() - 1000.0  # noqa: TID251 - where simulated time begins

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self._began + self.now

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds


@dataclass(frozen=True, slots=True)
class Held:
    """What the process holds: resident MiB, threads, open descriptors, inotify watches, children."""

    rss_mib: float
    threads: int
    descriptors: int
    watches: int
    children: int


def held() -> Held:
    """What this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return Held(
        pages * resource.getpagesize() / (1 << 20),
        threading.active_count(),
        len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - not one more descriptor than needed
        _watches(),
        len(children),
    )


def _watches() -> int:
    """How many directories and files inotify watches for this process."""
    count = 0
    for path in Path("/proc/self/fdinfo").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself, closed by now
            count += path.read_text().count("inotify wd:")
    return count


@dataclass(slots=True)
class Soak:
    """What a soak found. `days`: the most memory of each day; `lost`, `doubled`: of the episodes, against one check.

    `miscounted`: runs of which more or fewer records were read than lines were written.
    """

    written: int = 0
    read: int = 0
    restarts: int = 0
    rotations: int = 0
    drops: int = 0
    episodes: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    miscounted: list[str] = field(default_factory=list)
    days: list[Held] = field(default_factory=list)


class Watched:
    """One run as the session watches it, without its threads."""

    def __init__(self, files: RunFiles, clock: SimulatedClock, runs: int) -> None:
        self.files = files
        self.tails = {str(file.path): Tail(file.path, clock=clock) for file in files.files if file.role != "config"}
        self.run = WatchedRun(partial(engine_of, files, clock, Thresholds()), clock)
        self.run.expect(list(self.tails))
        self._room = budget_of(runs), watched_points(runs)

    def poll(self) -> RunSnapshot:
        """Reads what is new, judges it, and gives what a screen would be given."""
        for path, tail in self.tails.items():
            more = True
            while more:
                update = tail.poll()
                more = update.more
                self.run.take(IntakeItem(self.files.name, path, update, tail.status()))
        self.run.engine.limit_memory(*self._room)
        self.run.settle()
        return self.run.snapshot(live=True)

    @property
    def records(self) -> int:
        """Records that were read."""
        return sum(tail.status().records for tail in self.tails.values())


def said(episodes: tuple[Episode, ...]) -> list[str]:
    """The episodes that the log told of, comparable: which, where, how long, how bad."""
    return sorted(
        f"{one.check} {one.kind} {one.signal} attempt {one.attempt} steps {one.first_step:g}-{one.last_step:g}"
        f" {one.severity.name} {one.recovered}"
        for one in episodes
        if one.origin == "log"
    )


def soak(folder: Path, days: float, runs: int) -> Soak:
    """Writes and watches `runs` runs in `folder` for so many days of simulated time."""
    clock, rng, found = SimulatedClock(), random.Random(7), Soak()
    trainers = [Trainer(folder / f"run{n:02d}", n, INTERVAL_S, clock.wall()) for n in range(runs)]
    for trainer in trainers:
        clock.sleep(1.0)
        trainer.write(clock.wall() + 40 * INTERVAL_S)
        trainer.close_line(clock.wall())
    watched = [Watched(files, clock, runs) for files in discover([str(folder)], folder).runs]
    assert len(watched) == runs, "every run is found"
    away: dict[int, float] = {}
    held_today, giving_back = held(), GivingBack(clock)
    ticks = int(days * DAY_S / TICK_S)
    for tick in range(1, ticks + 1):
        clock.sleep(TICK_S)
        now = clock.wall()
        for n in [n for n, until in away.items() if now >= until]:
            trainers[n].come_back()
            del away[n]
        for n, trainer in enumerate(trainers):
            chance = rng.random()
            if n in away:
                continue
            trainer.write(now)
            if chance < 0.004:
                trainer.restart(now)
                found.restarts += 1
            elif chance < 0.012:
                trainer.rotate(now)
                found.rotations += 1
            elif chance < 0.016:
                trainer.go_away()
                away[n] = now + AWAY_S
                found.drops += 1
        for _ in range(2):  # twice: what comes after a rotation, and what has been quiet for a while
            for each in watched:
                each.poll()
            clock.sleep(15.0)
        giving_back.when_due()  # as the session does
        held_now = held()
        held_today = max(held_today, held_now, key=lambda one: one.rss_mib)
        if tick % max(int(DAY_S / TICK_S), 1) == 0 or tick == ticks:
            found.days.append(held_today)
            print(f"day {len(found.days)}: {held_today}", flush=True)
            held_today = held_now
    for trainer in trainers:
        trainer.come_back()
        trainer.write(clock.wall())
        trainer.close_line(clock.wall())
    for _ in range(8):
        clock.sleep(15.0)
        snapshots = [each.poll() for each in watched]
    found.written, found.read = sum(one.lines for one in trainers), sum(each.records for each in watched)
    read_of = {each.files.name: each.records for each in watched}
    found.miscounted = [
        f"{one.folder.name}: {one.lines} lines written, {read_of[one.folder.name]} records read"
        for one in trainers
        if one.lines != read_of[one.folder.name]
    ]
    live = {run.name: said(run.episodes) for run in snapshots}
    once = {run.name: said(run.episodes) for run in judge([str(folder)], cwd=folder, clock=clock).runs}
    for name in sorted({*live, *once}):
        seen, right = live.get(name, []), once.get(name, [])
        found.episodes += len(right)
        found.lost += [f"{name}: {one}" for one in right if one not in seen]
        found.doubled += [f"{name}: {one}" for one in seen if one not in right or seen.count(one) > right.count(one)]
    return found


def main() -> None:
    """Prints what a soak of some days and runs found."""
    days, runs = (float(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (7.0, 20)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = soak(Path(folder), days, runs)
    print(f"{runs} runs, {days:g} days of simulated time in {time.monotonic() - began:.0f} s")
    print(f"{found.restarts} restarts, {found.rotations} rotations, {found.drops} times a directory was gone")
    print(f"lines written {found.written:,}, records read {found.read:,}")
    print(f"episodes {found.episodes}, lost {len(found.lost)}, doubled or other {len(found.doubled)}")
    for line in (*found.miscounted, *found.lost[:5], *found.doubled[:5]):
        print("  ", line)
    print("most MiB of each day:", *(f"{day.rss_mib:.1f}" for day in found.days))
    settled = [day.rss_mib for day in found.days[WARM_DAYS:]]
    if len(settled) > 1:
        print(f"after the first day {max(settled) / min(settled):.3f}x from the least to the most (target 1.05)")
        print(f"the last day {found.days[-1].rss_mib / found.days[0].rss_mib:.3f}x of the first, in which it fills")
    for what in ("threads", "descriptors", "watches", "children"):
        print(f"{what} by day:", *(getattr(day, what) for day in found.days))


if __name__ == "__main__":
    main()
