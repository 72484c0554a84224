"""``trainmon check`` of a million records of five keys, against ``json.loads`` and ``list.append`` of the same file.

Whole processes, start-up and all detectors included; interleaved medians. Target: at most 1.0x and 200 MB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.timing import TRAINMON, runs, write_records

PEER = """
import json, sys
columns = {}
for line in open(sys.argv[1]):
    for key, value in json.loads(line).items():
        columns.setdefault(key, []).append(value)
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "metrics.jsonl"
        write_records(log, count)
        size = log.stat().st_size / 1e6
        found = runs(
            {
                "trainmon check": (*TRAINMON, "check", str(log)),
                "json.loads + append": (sys.executable, "-c", PEER, str(log)),
            }
        )
    peer = found["json.loads + append"]
    print(f"{count:,} records, {size:.0f} MB")
    for name, one in found.items():
        print(
            f"{name:20s} {one.wall_s:6.2f} s wall ({one.wall_s / peer.wall_s:4.2f}x)"
            f" {one.cpu_s:6.2f} s cpu ({one.cpu_s / peer.cpu_s:4.2f}x) {one.rss_mib:6.0f} MiB"
        )


if __name__ == "__main__":
    main()
