"""Recall, false alarms and delay of the detectors, beside the rules that training code bases use, on the same inputs.

    python -m benchmarks.accuracy [--quick] [--half report|tune] [--corpus FOLDER]

Healthy runs: synthetic ones over shapes, noises, cadences and seeds, and the healthy logs of the corpus where it is
there. Faults are put into both at 1x, 2x and 4x of the smallest size that METRICS.md gives. Thresholds were chosen on
one half (even seeds, every other file: `--half tune`); the other half is reported.

A fault is found when an alarm (WARN or worse) begins at it or soon behind it; the delay is from the first faulty step
to the step at which the alarm was raised, in logged values. Flagged values of a peer within 200 of each other are one
alarm, as findings of one episode are.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.accuracy_cases import FAULTS, Fault, Run, real, synthetic
from benchmarks.accuracy_peers import PEERS
from tests.monitor.detectors.synthetic import GRAD, LOSS
from trainmon.monitor.detectors.registry import make_detectors
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

TOGETHER = 200  # rows
EARLY = 60  # rows before the fault at which an alarm may place its beginning
PLACE = 0.55  # of the run: where the fault begins
SIZES = (1.0, 2.0, 4.0)
OURS = "trainmon"


@dataclass(frozen=True)
class Alarm:
    """`first`: the row where the fault is said to begin, `raised`: the row at which it was said."""

    first: int
    raised: int
    severity: Severity
    check: str


@dataclass
class Score:
    """What one method made of one kind of fault."""

    cases: int = 0
    delays: list[int] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The share that was found."""
        return len(self.delays) / self.cases if self.cases else float("nan")


def ours(frames: Iterable[Frame]) -> list[Alarm]:
    """The product's alarms: episodes of WARN or worse, by the row at which they first were."""
    detectors = make_detectors(Thresholds(), {})
    alarms: list[Alarm] = []
    known: dict[tuple[str, str, str], int] = {}
    for frame in frames:
        rows = {float(step): row for row, step in reversed(list(enumerate(frame.steps.tolist())))}
        findings = [(d.id, said) for d in detectors for said in d.update(frame)]
        findings += [(d.id, said) for d in detectors for said in d.finish()]
        for check, said in findings:
            address = (check, said.kind, str(said.signal))
            if said.action in ("recover", "withdraw"):
                known.pop(address, None)
            elif said.severity >= Severity.WARN and known.get(address, -1) < said.severity:
                first = rows.get(said.step if said.first_step is None else said.first_step, 0)
                if address not in known or said.severity is Severity.FAIL:
                    alarms.append(Alarm(first, rows.get(said.step, 0), said.severity, check))
                known[address] = said.severity
    return alarms


def theirs(name: str, frame: Frame) -> list[Alarm]:
    """A peer's alarms on loss and gradient norm. A value that is not finite is one to all of them."""
    return [alarm for key in (LOSS, GRAD) if key in frame.columns for alarm in _on_column(name, frame, key)]


# A fault changes one column: what a peer says of the others is kept, with the column so that its id stays its own.
_known: dict[tuple[str, int], tuple[object, list[Alarm]]] = {}


def _on_column(name: str, frame: Frame, key: SignalKey) -> list[Alarm]:
    column = frame.columns[key]
    if key in frame.marks:
        return _judge_column(name, frame, key)
    kept = _known.get((name, id(column)))
    if kept is None:
        kept = (column, _judge_column(name, frame, key))
        if key is not LOSS:
            _known[name, id(column)] = kept
    return kept[1]


def _judge_column(name: str, frame: Frame, key: SignalKey) -> list[Alarm]:
    column = frame.columns[key]
    logged = frame.logged(key)
    finite = logged[np.isfinite(column[logged])]
    bad = logged[~np.isfinite(column[logged])] if key in frame.marks else np.empty(0, np.int64)
    flagged = np.sort(np.concatenate([finite[PEERS[name](column[finite])], bad]))
    alarms = []
    last = -TOGETHER - 1
    for row in flagged.tolist():
        if row - last > TOGETHER:
            alarms.append(Alarm(row, row, Severity.WARN, name))
        last = row
    return alarms


def every_alarm(frame: Frame, *, peers: bool = True) -> Iterator[tuple[str, list[Alarm]]]:
    """Each method's alarms on one frame."""
    yield OURS, ours([frame])
    for name in PEERS if peers else ():
        yield name, theirs(name, frame)


def false_alarms(runs: Sequence[Run], *, verbose: bool) -> None:
    """Prints alarms per 100,000 healthy steps."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    steps: dict[str, int] = defaultdict(int)
    for run in runs:
        (frame,) = run.frames
        steps[run.kind] += len(frame)
        for name, alarms in every_alarm(frame):
            counts[run.kind][name] += sum(alarm.severity is Severity.WARN for alarm in alarms)
            if name == OURS:
                counts[run.kind]["pages"] += sum(alarm.severity is Severity.FAIL for alarm in alarms)
                if verbose:
                    for alarm in alarms:
                        print(f"    {run.name}: {alarm}")
    columns = [OURS, "pages", *PEERS]
    print("false alarms per 100,000 healthy logged steps ('pages': trainmon's FAILs)")
    print(f"  {'':12s}{'steps':>9s}" + "".join(f"{name:>13s}" for name in columns))
    for kind, found in counts.items():
        rates = "".join(f"{1e5 * found[name] / steps[kind]:13.2f}" for name in columns)
        print(f"  {kind:12s}{steps[kind]:9,d}{rates}")


def recall(runs: Sequence[Run], faults: Sequence[Fault], sizes: Sequence[float], *, verbose: bool) -> None:
    """Prints recall and median delay by kind and size of fault."""
    columns = [OURS, *PEERS]
    print("faults found (share), median delay in logged values")
    print(f"  {'fault':22s}{'size':>5s}{'runs':>6s}" + "".join(f"{name:>14s}" for name in columns))
    for fault in faults:
        for size in sizes if "NaN" not in fault.name else (1.0,):
            scores = {name: Score() for name in columns}
            for run in runs:
                (frame,) = run.frames
                row = _start(frame)
                faulty = fault.inject(frame, row, size)
                if faulty is None:
                    continue
                for name, alarms in every_alarm(faulty, peers=fault.of_loss):
                    about = range(row - EARLY, row + fault.horizon)
                    hit = min((a.raised for a in alarms if a.first in about and a.raised >= row), default=None)
                    scores[name].cases += 1
                    if hit is not None:
                        scores[name].delays.append(hit - row)
                    elif verbose and name == OURS:
                        print(f"    missed: {run.name}")
            cells = "".join(f"{_cell(scores[name]):>14s}" for name in columns)
            print(f"  {fault.name:22s}{size:4.0f}x{scores[OURS].cases:6d}{cells}", flush=True)


def _start(frame: Frame) -> int:
    """The row of the first faulty value: the first loss behind 55% of the rows."""
    logged = np.flatnonzero(np.isfinite(frame.columns[LOSS]))
    return int(logged[int(PLACE * len(logged))])


def _cell(score: Score) -> str:
    if not score.cases:
        return "-"
    delay = f"{statistics.median(score.delays):.0f}" if score.delays else "-"
    return f"{score.recall:.2f} {delay:>5s}"


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, two sizes")
    parser.add_argument("--half", choices=("report", "tune"), default="report")
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parents[2] / "shared" / "corpus")
    parser.add_argument("--verbose", action="store_true", help="name the runs behind each alarm and miss")
    parser.add_argument("--only", default="", help="faults whose name holds this")
    options = parser.parse_args()
    begin = time.monotonic()
    wanted = 1 if options.half == "report" else 0
    made = [run for run in synthetic(1 if options.quick else 2) if run.half == wanted]
    read = [run for run in real(options.corpus) if run.half == wanted] if options.corpus.is_dir() else []
    if not read:
        print(f"{options.corpus}: not there; synthetic runs only")
    faults = [fault for fault in FAULTS if options.only in fault.name]
    print(f"half: {options.half}; {len(made)} synthetic runs, {len(read)} real logs\n")
    if not options.only:
        false_alarms(made + read, verbose=options.verbose)
    for name, runs in (("synthetic runs", made), ("real logs", read)):
        if runs:
            print(f"\n{name}:")
            recall(runs, faults, SIZES[:2] if options.quick else SIZES, verbose=options.verbose)
    print(f"\n{time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
