"""Lines in and lines out under load: 5000 lines a second into one run, and 200 runs with 10 lines a second each.

``trainmon watch --headless --records`` gives every record that it judged as one line of JSON; they are counted against
what the writer wrote. Memory is the largest and the last resident size. The peer is ``tail -qF`` of the same files.
Target: nothing lost, memory that does not grow with a queue. Usage: python -m benchmarks.load [SECONDS]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

from benchmarks.timing import ENVIRONMENT, TRAINMON

WRITER = """
import json, random, sys, time
from pathlib import Path
root, runs, per_second, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
files = [(root / f"run{n:03d}" / "metrics.jsonl").open("a", buffering=1) for n in range(runs)]
rng = random.Random(7)
began, written = time.monotonic(), 0
total = int(runs * per_second * seconds)
while written < total:
    due = min(int((time.monotonic() - began) * runs * per_second), total)
    while written < due:
        step = 1000 + written // runs
        values = {"step": step, "loss": round(2 + rng.gauss(0, 0.02), 4), "grad_norm": 0.5, "lr": 3e-4, "mfu": 0.41}
        files[written % runs].write(json.dumps(values) + "\\n")
        written += 1
    time.sleep(0.005)
print(written, time.monotonic() - began)
"""
HISTORY = 100  # records that each log holds beforehand
_STEP_S = 0.1
_PATIENCE_S = 60.0


@dataclass
class Reading:
    """What a program gave. `rss_mib`: resident memory, sampled."""

    lines: int = 0
    last_at: float = 0.0
    rss_mib: list[float] = field(default_factory=list)


def count(process: subprocess.Popen[bytes], mark: bytes, reading: Reading) -> None:
    """Counts the lines with `mark` in what `process` writes."""
    assert process.stdout is not None
    for line in process.stdout:
        if mark in line:
            reading.lines += 1
            reading.last_at = monotonic()


def resident_mib(pid: int) -> float:
    """Resident memory of one process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def cpu_s(pid: int) -> float:
    """Processor seconds of one process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(
    name: str, command: Sequence[str], mark: bytes, root: Path, runs: int, per_second: float, seconds: float
) -> None:
    """Runs `command` beside a writer and prints what came of what was written."""
    program = subprocess.Popen(
        command, cwd=root, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    reading = Reading()
    threading.Thread(target=count, args=(program, mark, reading), daemon=True).start()
    settled = monotonic()
    before = -1
    known = (10 if command[0] == "tail" else HISTORY) * runs  # of each log; `tail` begins with its last ten lines
    while (before < known or reading.lines != before) and monotonic() - settled < _PATIENCE_S:
        before = reading.lines  # what was there before is read
        sleep(3.0)
    cpu_before = cpu_s(program.pid)
    arguments = [sys.executable, "-c", WRITER, str(root), str(runs), str(per_second), str(seconds)]
    writer = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    while writer.poll() is None:
        reading.rss_mib.append(resident_mib(program.pid))
        sleep(_STEP_S)
    ended = monotonic()
    assert writer.stdout is not None
    written, took_s = (float(word) for word in writer.stdout.read().split())
    while reading.lines - before < written and monotonic() - ended < _PATIENCE_S:
        sleep(_STEP_S)
    share = 100 * (cpu_s(program.pid) - cpu_before) / (max(reading.last_at, ended) - ended + took_s)
    reading.rss_mib.append(resident_mib(program.pid))
    program.kill()
    program.wait()
    came = reading.lines - before
    print(
        f"{name:44s} in {written:8,.0f} ({written / took_s:6,.0f}/s)  out {came:8,d}  lost {written - came:6,.0f}  "
        f"last after {max(reading.last_at - ended, 0.0):5.2f} s  CPU {share:5.1f}%  "
        f"RSS {reading.rss_mib[0]:4.0f} -> {reading.rss_mib[-1]:4.0f} MiB, at most {max(reading.rss_mib):4.0f}",
        flush=True,
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    for runs, per_second in ((1, 5000.0), (200, 10.0)):
        for name in ("trainmon, every record judged", "peer: tail -qF"):
            with tempfile.TemporaryDirectory() as directory:
                root = Path(directory)
                for number in range(runs):
                    log = root / f"run{number:03d}" / "metrics.jsonl"
                    log.parent.mkdir()
                    record = {"loss": 2.0, "grad_norm": 0.5, "lr": 3e-4, "mfu": 0.41}
                    log.write_text(
                        "".join(json.dumps({"step": step, **record}) + "\n" for step in range(1000 - HISTORY, 1000))
                    )
                logs = [str(path) for path in sorted(root.glob("*/metrics.jsonl"))]
                ours = (*TRAINMON, "watch", "--headless", "--records", str(root))
                command, mark = (("tail", "-qF", *logs), b"{") if "tail" in name else (ours, b'"record"')
                what = f"{runs} x {per_second:.0f}/s  {name}"
                load(what, command, mark, root, runs, per_second, seconds)


if __name__ == "__main__":
    main()
