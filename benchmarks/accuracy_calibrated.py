"""What `trainmon calibrate` makes of the false alarms and the recall of loss spikes, by kind and level of noise.

    python -m benchmarks.accuracy_calibrated [--noise NAME]

Cut-offs are learned, as `trainmon calibrate` does, from the healthy runs of one half with the noise at hand, and
reported on the other half: its own seeds, the same kind of noise. As one would calibrate on earlier runs of a project.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.accuracy import EARLY, PLACE
from benchmarks.accuracy_cases import LEVELS, NOISES, REPORTED, Run, synthetic
from benchmarks.accuracy_faults import FAULTS
from benchmarks.accuracy_ours import Watcher, continued, watch
from benchmarks.accuracy_tables import rate
from tests.monitor.detectors.synthetic import LOSS
from trainmon.monitor.calibrate.fit import fit
from trainmon.monitor.calibrate.rules import FAMILIES, SCALES, alarm_name, values_at
from trainmon.monitor.finding import Severity
from trainmon.monitor.thresholds import Thresholds

BUDGET = 1e-5  # warnings a logged step
SPIKES = FAULTS[:3]


def _alarms(run: Run, limits: Thresholds) -> Counter[str]:
    episodes = watch(run.frames, limits).book.episodes()
    return Counter(alarm_name(episode) for episode in episodes if episode.severity >= Severity.WARN)


def learn(runs: Sequence[Run]) -> Thresholds:
    """As `monitor.calibrate` learns, with logged steps in the place of steps."""
    steps = sum(run.values for run in runs)
    counts: list[Counter[str]] = []
    for scale in SCALES:
        limits = Thresholds().override(values_at(scale), source="calibrate")
        counts.append(sum((_alarms(run, limits) for run in runs), Counter()))
    speaking = [family for family in FAMILIES if any(level[check] for level in counts for check in family.checks)]
    values: dict[str, float] = {}
    for family in speaking:
        of_family = [sum(level[check] for check in family.checks) for level in counts]
        values |= family.at(fit(SCALES, of_family, steps, BUDGET / len(speaking)).scale)
    return Thresholds().override(values, source="calibrate")


def recall(run: Run, limits: Thresholds, found: Counter[str], cases: Counter[str]) -> None:
    """Loss spikes of twice the smallest size that are warned of."""
    (frame,) = run.frames
    row = int(np.flatnonzero(np.isfinite(frame.columns[LOSS]))[int(PLACE * len(frame))])
    before = Watcher(limits)
    before.see(frame, 0, row)
    kept = before.keep()
    for fault in SPIKES:
        faulty = fault.inject(frame, row, 2.0)
        if faulty is None:
            continue
        after = continued(kept, faulty, row, row + fault.horizon + 20)
        cases[fault.name] += 1
        found[fault.name] += any(
            alarm.level == "warned"
            and alarm.check in fault.checks
            and row - EARLY <= alarm.first
            and alarm.raised >= row
            for alarm in (*after.alarms, *after.grown)
        )


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", default="", help="only this kind of noise")
    options = parser.parse_args()
    halves = [[run for run in synthetic(half) if run.family == "dense"] for half in (0, REPORTED)]
    print("warnings per 100,000 healthy logged steps, and loss spikes of 2x the smallest size that are warned of")
    print(f"  {'noise':17s}{'steps':>8s}{'defaults':>12s}{'calibrated':>12s}  " + "  ".join(f.name for f in SPIKES))
    total = Counter[str]()
    for noise in NOISES:
        for level in LEVELS:
            name = f"{noise} x{level:g}"
            if options.noise not in noise:
                continue
            tune, report = ([run for run in half if f", {name}, " in run.name] for half in halves)
            limits = learn(tune)
            steps = sum(run.values for run in report)
            plain, learned = (
                sum(sum(_alarms(run, given).values()) for run in report) for given in (Thresholds(), limits)
            )
            total.update(steps=steps, plain=plain, learned=learned)
            cells = []
            found: list[Counter[str]] = []
            for given in (Thresholds(), limits):
                hits, cases = Counter[str](), Counter[str]()
                for run in report:
                    recall(run, given, hits, cases)
                found.append(Counter({fault: hits[fault] / cases[fault] for fault in cases}))
            cells = [f"{found[0][fault.name]:.2f} -> {found[1][fault.name]:.2f}   " for fault in SPIKES]
            lone = limits["spike.lone_z"]
            print(
                f"  {name:17s}{steps:8,d}{rate(plain, steps):>12s}{rate(learned, steps):>12s}  {'    '.join(cells)}"
                f" (lone z {lone:.3g})",
                flush=True,
            )
    print(f"  {'all':17s}{total['steps']:8,d}{rate(total['plain'], total['steps']):>12s}", end="")
    print(f"{rate(total['learned'], total['steps']):>12s}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
