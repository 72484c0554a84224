"""Reads every log of the corpus with the product and compares with its facts.json: one line a mismatch, then totals.

    python -m benchmarks.corpus [CORPUS] [--only WORD]

Compared: distinct steps, first, last, smallest and largest loss and gradient norm, non-finite counts, total steps,
restarts, events, root error, and the verdict wherever `expect` is not "unsure".
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trainmon.monitor.engine import RunEngine
from trainmon.monitor.export.content import rows_of
from trainmon.monitor.finding import Verdict, worst
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.judge import find, read_runs
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import SystemClock

_EXPECTED = {"healthy": "PASS", "warn": "WARN", "fail": "FAIL", "no_data": "NO DATA"}
Points = list[tuple[int, float, float]]


@dataclass(slots=True)
class Reading:
    """What the product read of one file: values of a signal as (attempt, step, value), and its snapshots."""

    points: dict[str, Points] = field(default_factory=dict)
    runs: list[RunSnapshot] = field(default_factory=list)
    problems: tuple[str, ...] = ()


def read(path: Path, signals: tuple[str, ...]) -> Reading:
    """Reads one file as `check` and `export` do."""
    reading = Reading(points={name: [] for name in signals})
    discovery = find([str(path)], path.parent)
    reading.problems = discovery.problems

    def attach(engine: RunEngine) -> None:
        def take(frame: Frame) -> None:
            for name in signals:
                for key in [key for key in frame.columns if key.signal == name]:
                    if key.labels and SignalKey(name) in frame.columns:
                        continue
                    for attempt, step, values in rows_of(frame, [key]):
                        reading.points[name].append((attempt, step, float(values[0] or 0.0)))

        engine.on_frame = take

    for _, watched in read_runs(discovery, clock=SystemClock(), limits=Thresholds(), on_engine=attach):
        reading.runs.append(watched.snapshot(live=False))
    return reading


def compare(facts: dict[str, object], reading: Reading) -> Iterator[str]:
    """One line for each fact that the reading does not meet."""
    yield from _series("loss", facts.get("loss"), reading.points["loss.train"])
    yield from _series("grad_norm", facts.get("grad_norm"), reading.points["grad.norm"])
    runs = reading.runs
    total = facts.get("total_steps")
    # Numbered records are held against no total: there it is a fact alone.
    told = [run.facts.get("total_steps") if run.step_key == "line" else run.total_steps for run in runs]
    if total is not None and total not in told:
        yield f"total_steps {told[:3]} != {total}"
    restarts = facts.get("restarts")
    if isinstance(restarts, list) and runs and facts.get("readable"):
        attempts = max(len(run.attempts) for run in runs)
        if attempts != len(restarts) + 1 and not (attempts == 0 and not restarts):
            yield f"attempts {attempts} != {len(restarts) + 1} (restarts {restarts[:4]})"
    kinds = {note.kind.value for run in runs for note in run.notes}
    ignored = {"warning_traceback", "address_in_use", "file_not_found", "train_error"}
    missing = sorted(set(_list(facts.get("events"))) - kinds - ignored)
    if missing:
        yield f"events missing: {missing}"
    yield from _error(facts.get("root_error"), runs)
    expect = str(facts["expect"])
    if expect in _EXPECTED:
        got = worst([run.verdict for run in runs]) if runs else Verdict.NO_DATA
        if got.value != _EXPECTED[expect]:
            why = "; ".join(run.verdict_reason for run in runs)[:300]
            yield f"verdict {got.value} != {_EXPECTED[expect]} ({facts['why']}) [{why}]"


def _list(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _error(root: object, runs: list[RunSnapshot]) -> Iterator[str]:
    got = [run.root_error for run in runs if run.root_error]
    if root is None:
        return
    wanted = "".join(str(root).split())[:60]
    if not any(error and (wanted in "".join(error.split()) or "".join(error.split())[:40] in wanted) for error in got):
        yield f"root_error {got[:2]} != {root!r}"


def _series(name: str, facts: object, points: Points) -> Iterator[str]:
    if not isinstance(facts, dict):
        return
    if not points:
        yield f"{name}: not read (facts: {facts.get('name')}, {facts.get('occurrences')} values)"
        return
    steps = len({step for _, step, _ in points})
    finite = [value for _, _, value in points if math.isfinite(value)]
    if facts.get("unique_steps") is not None and steps != facts["unique_steps"]:
        occurrences = f"(occurrences {len(points)} / {facts['occurrences']})"
        yield f"{name}: distinct steps {steps} != {facts['unique_steps']} {occurrences}"
    elif facts.get("unique_steps") is None and facts.get("occurrences") not in (None, len(points)):
        yield f"{name}: values {len(points)} != {facts['occurrences']}"
    for end, index in (("first", 0), ("last", -1)):
        wanted = facts.get(end)
        if not isinstance(wanted, list) or wanted[1] is None:
            continue
        _, step, value = points[index]
        same = str(wanted[1]) == str(value) or _close(value, wanted[1])
        if not same or (wanted[0] is not None and step != wanted[0]):
            yield f"{name}: {end} [{step:g}, {value}] != {wanted}"
    for what, got in (("min", min(finite, default=math.nan)), ("max", max(finite, default=math.nan))):
        if facts.get(what) is not None and not _close(got, facts[what]):
            yield f"{name}: {what} {got} != {facts[what]}"
    bad = len(points) - len(finite)
    if facts.get("nonfinite") is not None and bad != facts["nonfinite"]:
        yield f"{name}: non-finite {bad} != {facts['nonfinite']}"


def _close(got: float, wanted: object) -> bool:
    number = float(wanted) if isinstance(wanted, (int, float, str)) else math.nan
    if math.isnan(number):
        return math.isnan(got)
    return math.isclose(got, number, rel_tol=1e-6, abs_tol=1e-12)


def main() -> int:
    """Prints the mismatches and the totals; 0 when there are none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "corpus")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    truth = options.corpus / "facts.json"
    if not truth.exists():
        print(f"{truth}: not there; the corpus is not part of the repository")
        return 2
    every = json.loads(truth.read_text(encoding="utf-8"))
    clean = mismatches = 0
    for name, facts in every.items():
        if options.only not in name:
            continue
        lines = list(compare(facts, read(options.corpus / name, ("loss.train", "grad.norm"))))
        clean += not lines
        mismatches += len(lines)
        for line in lines:
            print(f"{name}: {line}", flush=True)
    print(f"{clean} files without a mismatch, {mismatches} mismatches")
    return 0 if not mismatches else 1


if __name__ == "__main__":
    sys.exit(main())
