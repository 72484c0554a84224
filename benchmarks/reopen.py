"""Reopening a log that was read before, against its first reading: for each first reading the cache is cleared.

Two figures: what the readers give (columns from the cache in the place of parsing), in this process, start-up aside;
and whole ``trainmon check`` processes, less the time of one on a log of ten records. Processor time and wall time.
Target: 10x, the same answers.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, process_time

from benchmarks.timing import ENVIRONMENT, ROUNDS, TRAINMON, run, write_records

COUNT = 1_000_000
_LEAST_S = 0.01  # a check that takes no longer than that of ten records is not told apart from it


def read(log: Path) -> tuple[float, float, int]:
    """Seconds of processor and of wall time, and records, of one reading in this process."""
    from trainmon.tails.clock import SystemClock
    from trainmon.tails.discover import discover
    from trainmon.tails.intake import read_all

    (files,) = discover([str(log)], log.parent).runs
    cpu, wall = process_time(), monotonic()
    records = sum(item.update.parsed.records for item in read_all(files, SystemClock()))
    return process_time() - cpu, monotonic() - wall, records


def main() -> None:
    from trainmon.monitor import judged_cache
    from trainmon.tails import parsed_cache

    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = ENVIRONMENT["XDG_CACHE_HOME"] = f"{directory}/cache"
        os.environ.pop("TRAINMON_CACHE", None)
        ENVIRONMENT.pop("TRAINMON_CACHE", None)
        log, small = Path(directory) / "metrics.jsonl", Path(directory) / "small.jsonl"
        write_records(log, count)
        write_records(small, 10)
        figures: dict[str, list[tuple[float, float]]] = {
            name: [] for name in ("first", "again", "check", "check again")
        }
        for _ in range(ROUNDS):
            parsed_cache.clear()
            judged_cache.clear()
            for name in ("first", "again"):
                cpu, wall, records = read(log)
                assert records == count, records
                figures[name].append((cpu, wall))
            parsed_cache.clear()
            judged_cache.clear()
            base = run((*TRAINMON, "check", str(small)))
            for name in ("check", "check again"):
                one = run((*TRAINMON, "check", str(log)))
                figures[name].append((one.cpu_s - base.cpu_s, one.wall_s - base.wall_s))
        parsed_cache.clear()
        judged_cache.clear()
        said = [
            subprocess.run(
                (*TRAINMON, "check", "-q", str(log)), capture_output=True, env=ENVIRONMENT, check=False
            ).stdout
            for _ in range(2)
        ]
        kept = [path.stat().st_size / 1e6 for path in Path(f"{directory}/cache").rglob("*") if path.is_file()]
        entries = " and ".join(f"{size:.0f}" for size in kept)
        print(f"{count:,} records, {log.stat().st_size / 1e6:.0f} MB; the entries take {entries} MB")
        print(f"the same report: {'yes' if said[0] == said[1] else 'NO'}")
    middle = {
        name: tuple(statistics.median(one[part] for one in all_) for part in (0, 1)) for name, all_ in figures.items()
    }
    for name, first in (("first", "first"), ("again", "first"), ("check", "check"), ("check again", "check")):
        cpu, wall = middle[name]
        told = [
            f"{seconds:7.3f} s {what} ({middle[first][part] / max(seconds, _LEAST_S):5.1f}x)"
            for part, (what, seconds) in enumerate((("cpu", cpu), ("wall", wall)))
        ]
        print(f"{name:12s} {' '.join(told)}")


if __name__ == "__main__":
    main()
