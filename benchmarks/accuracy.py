"""Recall, false alarms and delay of the detectors, beside the rules and log doctors there are, on the same inputs.

    python -m benchmarks.accuracy [--quick] [--half report|tune] [--corpus FOLDER] [--doctors FOLDER] [--sizes 1,2,4]

Healthy runs: synthetic ones over shapes, noises, noise levels, cadences and seeds, and the healthy logs of the corpus
where it is there. Faults are put into both, in units of the smallest size that METRICS.md gives. Thresholds were
chosen on one half (its own seeds, every other file: `--half tune`); the other half is reported.

A fault is found when an alarm begins at it or soon behind it, or an open one gets worse there, that the healthy run
does not have; for the rules of the peers, when they flag a value there that they do not flag in the healthy run.
`told` counts every episode, also INFO; `warned` WARN and worse; `page` what wakes a person (METRICS.md). The rules of
the peers have one level, set against `warned`. The delay is from the first faulty value to the one at which the alarm
was raised. The log doctors (see `accuracy_doctors`) take seconds a file: they are asked about some of the runs, and
trainmon is set against them on those alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.accuracy_cases import Run, longest_attempt, real, synthetic, verdicts
from benchmarks.accuracy_doctors import DOCTORS, Doctor, Told, is_found
from benchmarks.accuracy_faults import FAULTS, Fault
from benchmarks.accuracy_ours import LEVELS, Watcher, continued, watch
from benchmarks.accuracy_peers import PEERS, Asked
from tests.monitor.detectors.synthetic import LOSS
from trainmon.monitor.detectors.common import Rl
from trainmon.monitor.finding import Verdict
from trainmon.monitor.stats.poisson import upper_bound
from trainmon.monitor.thresholds import Thresholds

EARLY = 60  # rows before the fault at which an alarm may place its beginning
PLACE = 0.55  # of the run: where the fault begins
GOAL_RECALL = 0.98
GOAL_PAGES = 1.0
ASKED = (
    "pretraining, ",
    "fine-tuning, ",
)  # shapes of the runs that doctors are asked about, where every step is logged
ASKED_ROWS = 6000  # the longest real log that they are
BESIDE = "warned beside doctors"


@dataclass
class Score:
    """What one method made of one kind of fault."""

    cases: int = 0
    delays: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The share that was found."""
        return len(self.delays) / self.cases if self.cases else float("nan")

    def cell(self) -> str:
        """Recall and median delay."""
        if not self.cases:
            return "-"
        delays = [delay for delay in self.delays if delay == delay]
        return f"{self.recall:.2f}" + (f" {statistics.median(delays):5.0f}" if delays else "      ")


@dataclass
class Tables:
    """Counts by what they are asked for. `steps`: noise -> healthy rows; `false`: (noise, method) -> alarms."""

    steps: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    false: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    doctor_steps: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    scores: dict[tuple[str, float, str, str], Score] = field(default_factory=lambda: defaultdict(Score))
    missed: list[str] = field(default_factory=list)
    by_check: dict[tuple[str, str, str], int] = field(default_factory=lambda: defaultdict(int))


class Bench:
    """Asks every method about every run, healthy and faulty, and counts."""

    def __init__(self, sizes: Sequence[float], faults: Sequence[Fault], doctors: Sequence[Doctor]) -> None:
        self.sizes = sizes
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
            self._faulty(single)

    def _faulty(self, run: Run) -> None:
        (frame,) = run.frames
        logged = np.flatnonzero(np.isfinite(frame.columns[LOSS]))
        row = int(logged[int(PLACE * len(logged))])
        before = Watcher(Thresholds())
        before.see(frame, 0, row)
        kept = before.keep()
        calm = continued(kept, frame, row, len(frame))
        known = {*before.alarms, *before.grown, *calm.alarms, *calm.grown}
        flagged = {name: self.asked.flags(name, frame) for name in PEERS}
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


def _is_for_doctors(run: Run) -> bool:
    is_real = run.family == "real" and run.values <= ASKED_ROWS
    return is_real or (run.family == "dense" and "every 1," in run.name and run.name.startswith(ASKED))


def rate(count: int, steps: int) -> str:
    """Per 100,000 steps; a count of 0 with its 95% upper bound."""
    if not steps:
        return "-"
    return f"{1e5 * count / steps:.2f}" if count else f"0 (<{1e5 * upper_bound(0) / steps:.2g})"


def say_false_alarms(tables: Tables) -> None:
    """Healthy runs: alarms per 100,000 logged steps."""
    print("false alarms per 100,000 healthy logged steps (0 with the 95% upper bound)")
    columns = [*LEVELS, *PEERS]
    print(f"  {'':11s}{'steps':>9s}" + "".join(f"{name:>13s}" for name in columns))
    for kind, steps in tables.steps.items():
        cells = "".join(f"{rate(tables.false[kind, name], steps):>13s}" for name in columns)
        print(f"  {kind:11s}{steps:9,d}{cells}")
    loud = [(kind, level, check, n) for (kind, level, check), n in tables.by_check.items() if level != "told"]
    for kind, level, check, count in sorted(loud):
        print(f"    {kind}: {count} {level} by {check}")


def say_recall(bench: Bench, kind: str, size: float) -> None:
    """Found and delay by fault."""
    columns = [*LEVELS, *PEERS]
    print(f"\n{kind}: faults found at {size:g}x the smallest size (share, median delay in logged values)")
    print(f"  {'fault':23s}{'runs':>5s}" + "".join(f"{name:>13s}" for name in columns))
    for fault in bench.faults:
        at = size if fault.sized else 2.0
        scores = [bench.tables.scores.get((fault.name, at, kind, name), Score()) for name in columns]
        if scores[0].cases:
            short = "" if scores[LEVELS.index(fault.level)].recall >= GOAL_RECALL or size < 2 else "  <"
            cells = "".join(f"{score.cell():>13s}" for score in scores)
            print(f"  {fault.name:23s}{scores[0].cases:5d}{cells}{short}", flush=True)


def say_doctors(bench: Bench, kind: str, doctors: Sequence[str]) -> None:
    """The log doctors, and trainmon on the runs that they were asked about."""
    tables = bench.tables
    columns = [BESIDE, *doctors]
    print(f"\n{kind}: log doctors, faults found at {bench.sizes[-1]:g}x (share)")
    print(f"  {'fault':23s}{'runs':>5s}" + "".join(f"{name:>23s}" for name in columns))
    for fault in bench.faults:
        at = bench.sizes[-1] if fault.sized else 2.0
        scores = [tables.scores.get((fault.name, at, kind, name), Score()) for name in columns]
        if scores[0].cases:
            print(f"  {fault.name:23s}{scores[0].cases:5d}" + "".join(f"{score.recall:23.2f}" for score in scores))
    kinds = [one for one in tables.doctor_steps if (one == "real logs") == (kind == "real")]
    steps = sum(tables.doctor_steps[one] for one in kinds)
    cells = [rate(sum(tables.false[one, name] for one in kinds), steps) for name in columns]
    print(f"  {'false per 100k':23s}{'':5s}" + "".join(f"{cell:>23s}" for cell in cells) + f"  ({steps:,} steps)")


def ahead(bench: Bench, methods: Sequence[str]) -> Iterator[str]:
    """Where a peer found more at equal or fewer false alarms, by kind of run."""
    tables = bench.tables
    by_name = {fault.name: fault for fault in bench.faults}
    for (name, size, kind, method), score in tables.scores.items():
        if method not in methods or size < 2 or kind in ("real", "synthetic") or not tables.steps.get(kind):
            continue
        steps = tables.doctor_steps[kind] if method in DOCTORS else tables.steps[kind]
        level = "told" if by_name[name].level == "told" else BESIDE if method in DOCTORS else "warned"
        ours = tables.scores[name, size, kind, level]
        beside = tables.doctor_steps[kind] if level == BESIDE else tables.steps[kind]
        fewer = tables.false[kind, method] / max(steps, 1) <= tables.false[kind, level] / max(beside, 1)
        if fewer and score.recall > ours.recall:
            yield f"{method}, {kind}, {name} {size:g}x: {score.recall:.2f} against {ours.recall:.2f}"


def say_real(corpus: Path, half: int) -> None:
    """The real healthy logs, judged whole."""
    steps = pages = 0
    loud = []
    for name, rows, verdict, paged in verdicts(corpus, half):
        steps += rows
        pages += paged
        if verdict in (Verdict.FAIL, Verdict.WARN):
            loud.append(f"{verdict.value} {name}")
    print(f"\nreal healthy logs, judged as `trainmon check` does: {steps:,} logged steps, {pages} pages,", end=" ")
    bound = 1e5 * upper_bound(pages) / max(steps, 1)
    print(f"at most {bound:.2g} per 100,000 (95%); not PASS: {', '.join(loud) or 'none'}")


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one noise level, one size")
    parser.add_argument("--half", choices=("report", "tune"), default="report")
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parents[2] / "shared" / "corpus")
    parser.add_argument("--doctors", type=Path, help="the folder that `benchmarks.accuracy_doctors` made")
    parser.add_argument("--sizes", default="2", help="of the smallest size")
    parser.add_argument("--verbose", action="store_true", help="name the runs behind each miss")
    parser.add_argument("--only", default="", help="faults whose name holds this")
    parser.add_argument("--kind", default="", help="synthetic runs whose name holds this")
    options = parser.parse_args()
    begin = time.monotonic()
    half = 1 if options.half == "report" else 0
    sizes = [2.0] if options.quick else sorted(float(size) for size in options.sizes.split(","))
    faults = [fault for fault in FAULTS if options.only in fault.name]
    runs = [run for run in synthetic(half, 1 if options.quick else 3) if options.kind in run.name]
    logs = list(real(options.corpus, half)) if options.corpus.is_dir() else []
    if not logs:
        print(f"{options.corpus}: not there; synthetic runs only")
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        installed = [n for n in DOCTORS if options.doctors and (options.doctors / n / "bin" / "python").exists()]
        doctors = [stack.enter_context(Doctor(name, options.doctors, place)) for name in installed]
        bench = Bench(sizes, faults, doctors)
        for run in [*runs, *logs]:
            bench.add(run)
    print(f"half: {options.half}; {len(runs)} synthetic runs, {len(logs)} real logs\n")
    say_false_alarms(bench.tables)
    for kind in ("synthetic", "real"):
        for size in sizes:
            say_recall(bench, kind, size)
        if installed:
            say_doctors(bench, kind, installed)
    if logs:
        say_real(options.corpus, half)
    found = sorted(ahead(bench, [*PEERS, *installed]))
    print(f"\npeers ahead on recall at equal or fewer false alarms: {len(found) or 'none'}")
    print("".join(f"  {line}\n" for line in found), end="")
    if options.verbose:
        print("\nmissed:\n" + "".join(f"  {line}\n" for line in bench.tables.missed), end="")
    print(f"\n{time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
