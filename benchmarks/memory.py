"""Memory: one run of 10,000 steps, 20 runs of a million steps with 30 signals each, a week of a live run.

Each in a process of its own; resident memory as the kernel counts it. Targets: 90 MB, 400 MB, flat. The peer of the
large one is what numpy alone would take for the same values.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.timing import TRAINMON, run, write_records
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.room import budget_of, watched_points
from trainmon.tails.clock import SystemClock
from trainmon.tails.record import Block, Parsed, TimeKind

BATCH = 20_000
NAMES = ("loss", "grad_norm", "lr", "tokens_per_sec", "step_time_s", "mfu")
WEEK_S = 7 * 86400
WARM_DAYS = 2  # by then the longest series have as many points as they may have


def block(source: str, first: int, count: int, signals: int) -> Parsed:
    """Records of `signals` numbers, a second apart."""
    steps = np.arange(first, first + count, dtype=np.float64)
    rng = np.random.default_rng(first)
    columns = {name: 1.0 + 0.01 * rng.standard_normal(count) for name in NAMES[: min(signals, len(NAMES))]}
    columns |= {f"layers/{number}/norm": rng.random(count) for number in range(signals - len(columns))}
    lines = np.arange(first + 1, first + count + 1)
    times = 1.7e9 + steps
    blocks = [Block(source, steps, times, lines * 600, lines, columns, {}, "step", TimeKind.ABSOLUTE)]
    return Parsed(blocks, lines=count, records=count)


def rss_mib() -> float:
    """Memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


def many(runs: int, steps: int, signals: int) -> None:
    """Runs side by side, as `watch` holds them."""
    engines = [RunEngine(f"run{n}", f"run{n}", clock=SystemClock(), sources=[f"run{n}"]) for n in range(runs)]
    for engine in engines:
        engine.limit_memory(budget_of(runs), watched_points(runs))
    for first in range(0, steps, BATCH):
        for engine in engines:
            engine.feed(engine.name, block(engine.name, first, min(BATCH, steps - first), signals))
    for engine in engines:
        engine.settle()
        engine.series_views()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    raw = runs * steps * signals * 8 / (1 << 20)
    print(
        f"{runs} runs x {steps:,} steps x {signals} signals: {rss_mib():.0f} MiB, peak {peak:.0f} (values: {raw:,.0f})"
    )


def week() -> None:
    """A record a second for a week of the simulated clock; the most memory of each day, looked at every hour."""
    engine = RunEngine("run", "run", clock=SystemClock(), sources=["run"])
    hours = []
    for first in range(0, WEEK_S, 3600):
        engine.feed("run", block("run", first, 3600, 30))
        engine.settle()
        engine.episodes()
        engine.series_views()
        hours.append(rss_mib())
    days = [max(hours[hour : hour + 24]) for hour in range(0, len(hours), 24)]
    settled = days[WARM_DAYS:]
    print("a week, 30 signals a second, the most MiB of each day:", *(f"{day:.0f}" for day in days))
    print(
        f"after {WARM_DAYS} days {max(settled) / min(settled):.3f}x from the least to the most of a day (target 1.05)"
    )


def main() -> None:
    if sys.argv[1:2] == ["many"]:
        many(*map(int, sys.argv[2:5]))
        return
    if sys.argv[1:2] == ["week"]:
        week()
        return
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "metrics.jsonl"
        write_records(log, 10_000)
        print(f"check, one run of 10,000 steps: {run((*TRAINMON, 'check', str(log))).rss_mib:.0f} MiB")
    for what in (("many", "20", "1000000", "30"), ("week",)):
        subprocess.run((sys.executable, "-m", "benchmarks.memory", *what), check=True)


if __name__ == "__main__":
    main()
