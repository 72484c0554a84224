"""``trainmon check`` of 8 runs on one core and on all: from which size on the second process pays.

Whole processes, interleaved medians of wall time, for files of several sizes. Target: 8 x 100 MB uses both cores.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.timing import TRAINMON, runs, write_records

RUNS = 8
RECORDS = (3_000, 10_000, 30_000, 100_000)  # of each file; 1,000,000 are 100 MB


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or RECORDS
    for count in sizes:
        with tempfile.TemporaryDirectory() as directory:
            for number in range(RUNS):
                folder = Path(directory) / f"run{number}"
                folder.mkdir()
                write_records(folder / "metrics.jsonl", count, seed=number)
            size = sum(log.stat().st_size for log in Path(directory).glob("*/*.jsonl"))
            found = runs(
                {
                    "1": (*TRAINMON, "check", "-q", "--jobs", "1", directory),
                    "2": (*TRAINMON, "check", "-q", "--jobs", "2", directory),
                    "default": (*TRAINMON, "check", "-q", directory),
                },
                rounds=5,
            )
        base = found["1"]
        for name, one in found.items():
            print(
                f"{RUNS} x {size / RUNS / 1e6:5.1f} MB, --jobs {name:8s} {one.wall_s:6.2f} s wall"
                f" ({base.wall_s / one.wall_s:4.2f}x) {one.cpu_s:6.2f} s cpu"
            )


if __name__ == "__main__":
    main()
