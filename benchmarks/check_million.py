"""``trainmon check`` of a million records of five keys, against ``json.loads`` and ``list.append`` of the same file.

``python -m benchmarks.check_million [RECORDS] [LOSSLINT]``: LOSSLINT is the program of that log doctor (PyPI, 0.4.1),
which judges the same file; where it is not on the PATH either, it is left out, and that is said.
Whole processes, start-up and all detectors included; interleaved medians. Target: at most 1.0x and 200 MB.
"""

from __future__ import annotations

import shutil
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
    doctor = shutil.which(sys.argv[2] if len(sys.argv) > 2 else "losslint")
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "metrics.jsonl"
        write_records(log, count)
        size = log.stat().st_size / 1e6
        commands: dict[str, tuple[str, ...]] = {
            "trainmon check": (*TRAINMON, "check", str(log)),
            "json.loads + append": (sys.executable, "-c", PEER, str(log)),
        }
        if doctor is None:
            print("losslint is not here: left out")
        else:
            commands["losslint check"] = (doctor, "check", str(log))
        found = runs(commands)
    peer = found["json.loads + append"]
    print(f"{count:,} records, {size:.0f} MB")
    for name, one in found.items():
        print(
            f"{name:20s} {one.wall_s:6.2f} s wall ({one.wall_s / peer.wall_s:4.2f}x)"
            f" {one.cpu_s:6.2f} s cpu ({one.cpu_s / peer.cpu_s:4.2f}x) {one.rss_mib:6.0f} MiB"
        )


if __name__ == "__main__":
    main()
