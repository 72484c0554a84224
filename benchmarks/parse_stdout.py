"""Megatron-style lines (15 pairs) into columns, against a loop of ``re.finditer`` and ``float``. Target: 3x.

And what is no plain record: frames of a growing bar (target 50,000 a second) and varied text (target 3 MB a second).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from time import perf_counter

from benchmarks.timing import interleaved
from trainmon.tails.formats.stdout import Stdout

LINES = 20_000
CHUNK = 256 << 10
_PAIR = re.compile(rb"([A-Za-z][A-Za-z0-9 ()/._-]*?)\s*:\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")


def megatron(count: int, seed: int = 3) -> bytes:
    """`count` lines as Megatron-LM prints them."""
    rng = random.Random(seed)
    lines = []
    for step in range(1, count + 1):
        lines.append(
            f" [2025-03-02 11:{step // 60 % 60:02d}:{step % 60:02d}] iteration {step:8d}/ 500000 |"
            f" consumed samples: {step * 512:12d} | elapsed time per iteration (ms): {rng.gauss(3200, 9):.1f} |"
            f" throughput per GPU (TFLOP/s/GPU): {rng.gauss(412, 2):.1f} | learning rate: {3e-4:.6E} |"
            f" global batch size: {512:5d} | lm loss: {2 + rng.random():.6E} |"
            f" load_balancing_loss: {1 + rng.random():.6E} | z_loss: {rng.random():.6E} | loss scale: 1.0 |"
            f" grad norm: {rng.random():.3f} | num zeros: {rng.randrange(99)} |"
            f" params norm: {900 + rng.random():.3f} | number of skipped iterations: {0:3d} |"
            f" number of nan iterations: {0:3d} |\n"
        )
    return "".join(lines).encode()


def frames(count: int, seed: int = 3) -> bytes:
    """`count` frames of a bar with metrics, in one line."""
    rng = random.Random(seed)
    return b"".join(
        f"\rTraining: {100 * at // count:3d}%|{'#' * (10 * at // count):10s}| {at}/{count} "
        f"[{at // 60:02d}:{at % 60:02d}<10:00, 3.21it/s, loss={1 + rng.random():.3f}, lr=1.00e-03]".encode()
        for at in range(1, count + 1)
    )


def text(count: int, seed: int = 3) -> bytes:
    """`count` lines of a logger that tell nothing of the training, no two alike."""
    rng = random.Random(seed)
    words = ("tokenizer", "loading", "worker", "warning", "weights", "file", "cache", "model", "shard", "dataset")
    return b"".join(
        f"2026-01-01 00:{at // 60 % 60:02d}:{at % 60:02d} [INFO] {' '.join(rng.choices(words, k=10))}\n".encode()
        for at in range(count)
    )


def by_format(data: bytes, expected: int = LINES, clock: Callable[[], float] = perf_counter) -> float:
    """Seconds of `clock` in which `data` is read."""
    began = clock()
    reader = Stdout("benchmark")
    at, line_no, records = 0, 1, 0
    while at < len(data):
        end = data.rfind(b"\n", at, at + CHUNK) + 1 or len(data)
        parsed = reader.feed(data[at:end], at, line_no)
        at, line_no, records = end, line_no + parsed.lines, records + parsed.records
    records += reader.finish().records
    seconds = clock() - began
    assert records == expected, records
    return seconds


def by_finditer(data: bytes) -> float:
    began = perf_counter()
    columns: dict[bytes, list[float]] = {}
    for line in data.split(b"\n"):
        for found in _PAIR.finditer(line):
            columns.setdefault(found[1], []).append(float(found[2]))
    seconds = perf_counter() - began
    assert len(columns[b"lm loss"]) == LINES
    return seconds


def main() -> None:
    data = megatron(LINES)
    found = interleaved({"trainmon": lambda: by_format(data), "re.finditer + float": lambda: by_finditer(data)})
    base = found["re.finditer + float"]
    for name, seconds in found.items():
        print(f"{name:20s} {LINES / seconds:9,.0f} lines/s {base / seconds:5.2f}x")
    bars, words = frames(LINES), text(LINES)
    found = interleaved({"frames": lambda: by_format(bars), "text": lambda: by_format(words, 0)})
    print(f"{'frames of a bar':20s} {LINES / found['frames']:9,.0f} frames/s")
    print(f"{'text':20s} {len(words) / found['text'] / 1e6:9.1f} MB/s")


if __name__ == "__main__":
    main()
