"""Recall, false alarms and delay of the detectors, beside the rules and log doctors there are, on the same inputs.

    python -m benchmarks.accuracy [--quick] [--half report|again|last|check|tune] [--corpus FOLDER] [--doctors FOLDER]

Healthy runs: synthetic ones over shapes, noises, noise levels, cadences and seeds, and the healthy logs of the corpus
where it is there. Faults are put into both, in units of the smallest size that METRICS.md gives. Rules and thresholds
were chosen while looking at `--half tune` and `--half check`; the reported half has seeds, a shape and a kind of noise
of its own, another choice of the files, and its faults begin elsewhere. `--half again` and `--half last` are two more
of that kind, for what was changed after the report.

A fault is found when an alarm begins at it or soon behind it, or an open one gets worse there, that the healthy run
does not have; for the rules of the peers, when they flag a value there that they do not flag in the healthy run.
`told` counts every episode, also INFO; `warned` WARN and worse; `page` what wakes a person (METRICS.md). The rules of
the peers have one level, set against `warned`. The delay is from the first faulty value to the one at which the alarm
was raised. The log doctors (see `accuracy_doctors`) take seconds a file: they are asked about some of the runs, and
trainmon is set against them on those alone.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.accuracy_cases import REPORTED, Run, longest_attempt, real, synthetic
from benchmarks.accuracy_doctors import DOCTORS, Doctor, Told, is_found
from benchmarks.accuracy_faults import FAULTS, Fault
from benchmarks.accuracy_ours import LEVELS, Watcher, continued, watch
from benchmarks.accuracy_peers import PEERS, Asked
from benchmarks.accuracy_tables import BESIDE, Tables, ahead, say_doctors, say_false_alarms, say_real, say_recall
from tests.monitor.detectors.synthetic import LOSS
from trainmon.monitor.detectors.common import Rl
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import IntArray

NEAR = 3  # rows
EARLY = 60  # rows before the fault at which an alarm may place its beginning
PLACE = 0.55  # of the run: where the fault begins
# name -> (its runs and logs, where faults begin): nothing of the reported one was looked at before rules were fixed
HALVES: Final = {
    "tune": (0, PLACE),
    "check": (1, PLACE),
    "report": (REPORTED, 0.35),
    "again": (REPORTED + 1, 0.45),
    "last": (REPORTED + 2, 0.62),
}
ASKED = ("fine-tuning, ",)  # shapes of the runs that doctors are asked about, where every step is logged
ASKED_ROWS = 1500  # the longest real log that they are


class Bench:
    """Asks every method about every run, healthy and faulty, and counts."""

    def __init__(
        self, sizes: Sequence[float], faults: Sequence[Fault], doctors: Sequence[Doctor], place: float
    ) -> None:
        self.sizes = sizes
        self.place = place
        self.faults = faults
        self.doctors = doctors
        self.asked = Asked()
        self.tables = Tables()

    def add(self, run: Run) -> None:
        """One healthy run, and every fault in it."""
        self.asked.forget()
        tables = self.tables
        whole = watch(run.frames, Thresholds())
        assert not whole.problems_of_checks, whole.problems
        tables.steps[run.kind] += run.values
        for alarm in whole.alarms:
            tables.false[run.kind, alarm.level] += 1
            tables.by_check[run.kind, alarm.level, alarm.check] += 1
        single = longest_attempt(run) if run.family == "real" else run
        for frame in run.frames if run.family in ("dense", "real") else ():
            for name in PEERS:
                tables.false[run.kind, name] += self.asked.alarms(name, frame)
        if single is not None and not run.is_healthy_only:
            self._faulty(single, watch(single.frames, Thresholds()) if single is not run else whole)

    def _faulty(self, run: Run, healthy: Watcher) -> None:
        (frame,) = run.frames
        logged = np.flatnonzero(np.isfinite(frame.columns[LOSS]))
        flagged = {name: self.asked.flags(name, frame) for name in PEERS}
        row = _calm_row(logged, int(self.place * len(logged)), healthy, flagged.values())
        before = Watcher(Thresholds())
        before.see(frame, 0, row)
        kept = before.keep()
        calm = continued(kept, frame, row, len(frame))
        known = {*before.alarms, *before.grown, *calm.alarms, *calm.grown}
        told = self._doctors(run) if self.doctors and _is_for_doctors(run) else {}
        # A policy's loss is only judged for being a number (METRICS.md).
        is_rl = Rl().first_row(frame) < len(frame)
        for fault in self.faults:
            for size in self.sizes if fault.sized else (2.0,):
                is_policys = is_rl and fault.of_loss and "loss.nonfinite" not in fault.checks
                faulty = None if is_policys else fault.inject(frame, row, size)
                if faulty is None:
                    continue
                about = range(row - EARLY, row + fault.horizon)
                end = row + fault.horizon + 20
                after = continued(kept, faulty, row, end)
                ours = [alarm for alarm in (*after.alarms, *after.grown) if alarm not in known]
                warned: list[float] = []
                for level in LEVELS:
                    hits = [
                        float(a.raised - row)
                        for a in ours
                        if a.level == level and a.first in about and a.raised >= row and a.check in fault.checks
                    ]
                    warned = hits if level == "warned" else warned
                    self._count(fault, size, level, run, min(hits, default=None))
                if not fault.of_loss or run.family not in ("dense", "real"):
                    continue
                for name in PEERS:
                    new = self.asked.flags(name, faulty) - flagged[name]
                    hits = [float(at - row) for _, at in new if 0 <= at - row < fault.horizon]
                    self._count(fault, size, name, run, min(hits, default=None))
                if size == self.sizes[-1] or not fault.sized:
                    span = float(frame.steps[row]), float(frame.steps[min(row + fault.horizon, len(frame) - 1)])
                    if told:
                        self._count(fault, size, BESIDE, run, min(warned, default=None))
                    for doctor in self.doctors if told else ():
                        is_hit = is_found(told[doctor.name], doctor.ask(faulty), *span)
                        self._count(fault, size, doctor.name, run, float("nan") if is_hit else None)

    def _doctors(self, run: Run) -> dict[str, list[Told]]:
        (frame,) = run.frames
        told = {doctor.name: doctor.ask(frame) for doctor in self.doctors}
        self.tables.doctor_steps[run.kind] += len(frame)
        ours = watch(run.frames, Thresholds()).alarms
        self.tables.false[run.kind, BESIDE] += sum(alarm.level == "warned" for alarm in ours)
        for name, findings in told.items():
            self.tables.false[run.kind, name] += len(findings)
        return told

    def _count(self, fault: Fault, size: float, method: str, run: Run, delay: float | None) -> None:
        for kind in (run.kind, "real" if run.family == "real" else "synthetic"):
            score = self.tables.scores[fault.name, size, kind, method]
            score.cases += 1
            if delay is not None:
                score.delays.append(delay)
        if delay is None and method == fault.level and size >= 2:
            self.tables.missed.append(f"{fault.name} {size:g}x: {run.name}")


def _calm_row(logged: IntArray, at: int, healthy: Watcher, flagged: Iterable[set[tuple[SignalKey, int]]]) -> int:
    """The first logged row from the place `at` on near which nobody flags the healthy run: what is there is not new.

    In heavy tails the noise itself throws spikes, and one that is put on top of such a value is told at the same row.
    """
    taken = {alarm.raised for alarm in (*healthy.alarms, *healthy.grown)} | {
        row for flags in flagged for _, row in flags
    }
    rows = logged[at : at + 200].tolist()
    return int(next((row for row in rows if not taken & set(range(row - NEAR, row + NEAR + 1))), rows[0]))


def _is_for_doctors(run: Run) -> bool:
    is_real = run.family == "real" and run.values <= ASKED_ROWS
    return is_real or (run.family == "dense" and "every 1," in run.name and run.name.startswith(ASKED))


_bench: Bench | None = None


def _begin(sizes: Sequence[float], only: str, place: float, doctors: Sequence[str], folder: Path | None) -> None:
    """A worker process: its doctors are its own, and end with it."""
    global _bench
    files = Path(tempfile.mkdtemp(prefix="accuracy-"))
    atexit.register(shutil.rmtree, files, ignore_errors=True)
    asked = [Doctor(name, folder, files) for name in doctors] if folder is not None else []
    _bench = Bench(sizes, [fault for fault in FAULTS if only in fault.name], asked, place)


def _count(run: Run) -> Tables:
    assert _bench is not None
    _bench.tables = Tables()
    _bench.add(run)
    return _bench.tables


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one noise level, one size")
    parser.add_argument("--half", choices=tuple(HALVES), default="report")
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parents[2] / "shared" / "corpus")
    parser.add_argument("--doctors", type=Path, help="the folder that `benchmarks.accuracy_doctors` made")
    parser.add_argument("--sizes", default="2", help="of the smallest size")
    parser.add_argument("--verbose", action="store_true", help="name the runs behind each miss")
    parser.add_argument("--only", default="", help="faults whose name holds this")
    parser.add_argument("--kind", default="", help="synthetic runs whose name holds this")
    parser.add_argument("--asked", action="store_true", help="only the runs that log doctors are asked about")
    parser.add_argument("--minutes", type=float, help="count what was asked by then, in an order drawn by lot")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    begin = time.monotonic()
    half, place = HALVES[options.half]
    sizes = [2.0] if options.quick else sorted(float(size) for size in options.sizes.split(","))
    faults = [fault for fault in FAULTS if options.only in fault.name]
    runs = [run for run in synthetic(half, 1 if options.quick else 3) if options.kind in run.name]
    logs = list(real(options.corpus, half)) if options.corpus.is_dir() else []
    if not logs:
        print(f"{options.corpus}: not there; synthetic runs only")
    if options.asked:
        runs, logs = ([run for run in some if _is_for_doctors(run)] for some in (runs, logs))
    installed = [n for n in DOCTORS if options.doctors and (options.doctors / n / "bin" / "python").exists()]
    tables = Tables()
    begun = (sizes, options.only, place, installed, options.doctors)
    todo = [*runs, *logs]
    if options.minutes:
        todo = [todo[at] for at in np.random.default_rng(half).permutation(len(todo)).tolist()]
    asked: list[Run] = []
    with ProcessPoolExecutor(options.jobs, initializer=_begin, initargs=begun) as pool:
        for run, counted in zip(todo, pool.map(_count, todo), strict=True):
            tables.merge(counted)
            asked.append(run)
            if options.minutes and time.monotonic() - begin > 60 * options.minutes:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    reals = sum(run.family == "real" for run in asked)
    print(
        f"half: {options.half}, faults at {place:.0%} of a run; asked: {len(asked) - reals} of {len(runs)} synthetic",
        end="",
    )
    print(f" runs, {reals} of {len(logs)} real logs\n")
    say_false_alarms(tables)
    for kind in ("synthetic", "real"):
        for size in sizes:
            say_recall(tables, faults, kind, size)
        if installed:
            say_doctors(tables, faults, kind, sizes[-1], installed)
    if logs and not options.minutes:
        say_real(options.corpus, half)
        say_real(options.corpus, None)
    found = sorted(ahead(tables, faults, [*PEERS, *installed]))
    print(f"\npeers ahead on recall at equal or fewer false alarms: {len(found) or 'none'}")
    print("".join(f"  {line}\n" for line in found), end="")
    if options.verbose:
        print("\nmissed:\n" + "".join(f"  {line}\n" for line in tables.missed), end="")
    print(f"\n{time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
