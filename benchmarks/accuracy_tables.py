"""What `benchmarks.accuracy` counts, and how it is printed."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.accuracy_cases import verdicts
from benchmarks.accuracy_doctors import DOCTORS
from benchmarks.accuracy_faults import Fault
from benchmarks.accuracy_ours import LEVELS
from benchmarks.accuracy_peers import PEERS
from trainmon.monitor.finding import Verdict
from trainmon.monitor.stats.poisson import upper_bound

GOAL_RECALL = 0.98
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

    def merge(self, other: Tables) -> None:
        """Adds what another one has counted."""
        for mine, theirs in ((self.steps, other.steps), (self.doctor_steps, other.doctor_steps)):
            for name, count in theirs.items():
                mine[name] += count
        for kind, count in other.false.items():
            self.false[kind] += count
        for check, count in other.by_check.items():
            self.by_check[check] += count
        for about, score in other.scores.items():
            self.scores[about].cases += score.cases
            self.scores[about].delays += score.delays
        self.missed += other.missed


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


def say_recall(tables: Tables, faults: Sequence[Fault], kind: str, size: float) -> None:
    """Found and delay by fault."""
    columns = [*LEVELS, *PEERS]
    print(f"\n{kind}: faults found at {size:g}x the smallest size (share, median delay in logged values)")
    print(f"  {'fault':23s}{'runs':>5s}" + "".join(f"{name:>13s}" for name in columns))
    for fault in faults:
        at = size if fault.sized else 2.0
        scores = [tables.scores.get((fault.name, at, kind, name), Score()) for name in columns]
        if scores[0].cases:
            short = "" if scores[LEVELS.index(fault.level)].recall >= GOAL_RECALL or size < 2 else "  <"
            cells = "".join(f"{score.cell():>13s}" for score in scores)
            print(f"  {fault.name:23s}{scores[0].cases:5d}{cells}{short}", flush=True)


def say_doctors(tables: Tables, faults: Sequence[Fault], kind: str, size: float, doctors: Sequence[str]) -> None:
    """The log doctors, and trainmon on the runs that they were asked about."""
    columns = [BESIDE, *doctors]
    print(f"\n{kind}: log doctors, faults found at {size:g}x (share)")
    print(f"  {'fault':23s}{'runs':>5s}" + "".join(f"{name:>23s}" for name in columns))
    for fault in faults:
        at = size if fault.sized else 2.0
        scores = [tables.scores.get((fault.name, at, kind, name), Score()) for name in columns]
        if scores[0].cases:
            print(f"  {fault.name:23s}{scores[0].cases:5d}" + "".join(f"{score.recall:23.2f}" for score in scores))
    kinds = [one for one in tables.doctor_steps if (one == "real logs") == (kind == "real")]
    steps = sum(tables.doctor_steps[one] for one in kinds)
    cells = [rate(sum(tables.false[one, name] for one in kinds), steps) for name in columns]
    print(f"  {'false per 100k':23s}{'':5s}" + "".join(f"{cell:>23s}" for cell in cells) + f"  ({steps:,} steps)")


def ahead(tables: Tables, faults: Sequence[Fault], methods: Sequence[str]) -> Iterator[str]:
    """Where a peer found more at equal or fewer false alarms, by kind of run."""
    by_name = {fault.name: fault for fault in faults}
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


def say_real(corpus: Path, half: int | None) -> None:
    """The real healthy logs of one half (None: all of them), judged whole."""
    steps = pages = 0
    loud = []
    for name, rows, verdict, paged in verdicts(corpus, half):
        steps += rows
        pages += paged
        if verdict in (Verdict.FAIL, Verdict.WARN):
            loud.append(f"{verdict.value} {name}")
    which = "all" if half is None else "its"
    print(
        f"\n{which} real healthy logs, judged as `trainmon check` does: {steps:,} logged steps, {pages} pages,", end=" "
    )
    bound = 1e5 * upper_bound(pages) / max(steps, 1)
    print(f"at most {bound:.2g} per 100,000 (95%); not PASS: {', '.join(loud) or 'none'}")
