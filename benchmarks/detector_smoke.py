"""False alarms and recall of the detectors on synthetic runs, and their cost.

    python benchmarks/detector_smoke.py [--runs 20]

Prints, for each kind of noise, WARN and FAIL episodes per 100,000 healthy steps over all detectors, then the share of
injected faults that were found at the severity METRICS.md gives them, with the median distance of the first step, and
microseconds per record of five signals.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.monitor.detectors.harness import run
from tests.monitor.detectors.synthetic import (
    GRAD,
    LOSS,
    LR,
    NOISES,
    TIME,
    TPS,
    RunSpec,
    healthy,
    logged_as,
    ramped,
    scaled,
)
from trainmon.monitor.detectors.registry import DETECTORS, make_detectors
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import Frame
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Mark

KNOWN = {cls.id: cls for cls in DETECTORS}
AT = 2001.0


def spike(frame: Frame, factor: float, length: int) -> Frame:
    decay = np.linspace(factor, 1.0, length + 1)[:-1]
    rows = np.flatnonzero((frame.steps >= AT) & (frame.steps < AT + length))
    whole = np.interp(frame.steps[rows], AT + np.arange(length), decay)
    return scaled(frame, LOSS, AT, AT + length - 1, whole)


Fault = tuple[str, str, Severity, Callable[[Frame], Frame]]
FAULTS: tuple[Fault, ...] = (
    ("spike 2x, 20 steps", "loss.spike", Severity.WARN, lambda f: spike(f, 2.0, 20)),
    ("spike 1.3x, 10 steps", "loss.spike", Severity.WARN, lambda f: spike(f, 1.3, 10)),
    ("spike 2x, stays", "loss.spike", Severity.FAIL, lambda f: scaled(f, LOSS, AT, 1e9, 2.0)),
    ("level +8%", "loss.shift", Severity.WARN, lambda f: scaled(f, LOSS, AT, 1e9, 1.08)),
    ("level +40%", "loss.shift", Severity.FAIL, lambda f: scaled(f, LOSS, AT, 1e9, 1.4)),
    ("drift +30% in 2000", "loss.drift", Severity.WARN, lambda f: ramped(f, LOSS, AT, AT + 2000, 1.3)),
    ("drift +80% in 2000", "loss.drift", Severity.FAIL, lambda f: ramped(f, LOSS, AT, AT + 2000, 1.8)),
    ("NaN, lone", "loss.nonfinite", Severity.WARN, lambda f: logged_as(f, LOSS, [2000], Mark.NAN)),
    ("NaN, 3 in a row", "loss.nonfinite", Severity.FAIL, lambda f: logged_as(f, LOSS, [2000, 2001, 2002], Mark.NAN)),
    (
        "co-spike",
        "spike.co",
        Severity.WARN,
        lambda f: scaled(scaled(f, LOSS, AT, AT + 3, 1.6), GRAD, AT, AT + 3, 8.0),
    ),
    ("gradient level 7x", "grad.norm", Severity.WARN, lambda f: scaled(f, GRAD, AT, 1e9, 7.0)),
    ("step time 1.5x", "sys.step_time", Severity.WARN, lambda f: scaled(f, TIME, AT, 1e9, 1.5)),
    ("step time 4x", "sys.step_time", Severity.FAIL, lambda f: scaled(f, TIME, AT, 1e9, 4.0)),
    ("throughput -30%", "sys.throughput", Severity.WARN, lambda f: scaled(f, TPS, AT, 1e9, 0.7)),
)


def false_alarms(runs: int) -> None:
    print("episodes per 100,000 healthy steps (WARN, FAIL), by noise of the loss")
    for kind in NOISES:
        counts = {Severity.WARN: 0, Severity.FAIL: 0}
        blamed: dict[str, int] = {}
        for seed in range(runs):
            frame = healthy(RunSpec(steps=10_000, seed=1000 + seed, noise=kind))
            for cls in DETECTORS:
                for episode in run(cls, [frame], {"total_steps": 10_000.0}).loud:
                    counts[episode.severity] += 1
                    blamed[cls.id] = blamed.get(cls.id, 0) + 1
        per = 10.0 / runs
        print(f"  {kind:15s} {counts[Severity.WARN] * per:6.2f} {counts[Severity.FAIL] * per:6.2f}  {blamed or ''}")


def recall(runs: int) -> None:
    print("faults found at their severity (share of runs), median distance of the first step, by noise of the loss")
    kinds = ("gaussian", "autocorrelated", "heavy")
    for name, check, severity, fault in FAULTS:
        line = f"  {name:22s} {check:15s} {severity.name:4s}"
        for kind in kinds:
            found, off = 0, []
            for seed in range(runs):
                frame = fault(healthy(RunSpec(steps=4500, seed=seed, noise=kind)))
                hits = [e for e in run(KNOWN[check], [frame]).episodes if e.severity >= severity]
                near = [e for e in hits if abs(e.first_step - AT) < 1500]
                found += any(e.severity == severity for e in near)
                off += [e.first_step - AT for e in near[:1]]
            distance = f"{statistics.median(off):+5.0f}" if off else "    -"
            line += f"  {kind} {found / runs:4.2f} {distance}"
        print(line)


def cost() -> None:
    frame = healthy(RunSpec(steps=100_000, seed=1))
    frame = Frame(
        frame.attempt,
        frame.path,
        frame.steps,
        frame.times,
        frame.lines,
        {key: frame.columns[key] for key in (LOSS, GRAD, LR, TIME, TPS)},
    )
    for name, make in (("connected", make_detectors), ("each alone", lambda a, b: [c(a, b) for c in DETECTORS])):
        best = float("inf")
        parts: dict[str, float] = {}
        for _ in range(3):
            detectors = make(Thresholds(), {})
            begin = time.process_time()
            for detector in detectors:
                start = time.process_time()
                list(detector.update(frame))
                parts[detector.id] = min(parts.get(detector.id, 9.0), time.process_time() - start)
            best = min(best, time.process_time() - begin)
        print(f"cost, {name}: {best / len(frame) * 1e6:.2f} us a record of 5 signals")
        print("  " + ", ".join(f"{k} {v / len(frame) * 1e6:.2f}" for k, v in sorted(parts.items()) if v > 1e-2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    cost()
    false_alarms(runs)
    recall(runs)


if __name__ == "__main__":
    main()
