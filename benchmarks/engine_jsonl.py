"""JSON lines of 20 keys of a healthy run with every detector on, against the same lines read into columns alone.

Interleaved medians of `ROUNDS` rounds of processor time in one process. Target: at least half of the speed of reading.
``python -m benchmarks.engine_jsonl [RECORDS]``
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from collections.abc import Iterator
from time import process_time

from benchmarks.parse_jsonl import CHUNK
from trainmon.monitor.engine import RunEngine
from trainmon.tails.clock import SystemClock
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.record import Parsed

ROUNDS = 7


def records(count: int) -> bytes:
    """`count` lines of a healthy run: step, loss, gradient norm, learning rate and 16 other numbers."""
    rng = random.Random(7)
    lines = []
    for step in range(count):
        record = {
            "step": step,
            "loss": 2 + 8 * math.exp(-step / 20_000) + rng.gauss(0, 0.02),
            "grad_norm": abs(rng.gauss(0.5, 0.05)),
            "lr": 3e-4 * min(1, (step + 1) / 2000),
        }
        record |= {f"metrics/group_{i % 4}/value_{i}": rng.random() * 10 for i in range(16)}
        lines.append(json.dumps(record))
    return "\n".join(lines).encode() + b"\n"


def pieces(data: bytes) -> Iterator[Parsed]:
    reader, at, line_no = JsonLines("benchmark"), 0, 1
    while at < len(data):
        end = data.rfind(b"\n", at, at + CHUNK) + 1 or len(data)
        parsed = reader.feed(data[at:end], at, line_no)
        at, line_no = end, line_no + parsed.lines
        yield parsed
    yield reader.finish()


def alone(data: bytes) -> None:
    for _ in pieces(data):
        pass


def judged(data: bytes) -> None:
    engine = RunEngine("benchmark", "benchmark", clock=SystemClock())
    for parsed in pieces(data):
        engine.feed("benchmark", parsed)
    engine.settle()
    engine.checks()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    data = records(count)
    times: dict[str, list[float]] = {"columns alone": [], "every detector": []}
    for number in range(ROUNDS + 1):
        for name, way in (("columns alone", alone), ("every detector", judged)):
            began = process_time()
            way(data)
            if number:
                times[name].append(process_time() - began)
    base = statistics.median(times["columns alone"])
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"{name:16s} {count / middle:10,.0f} records/s {base / middle:5.2f}x of the speed of reading")


if __name__ == "__main__":
    main()
