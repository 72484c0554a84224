"""How fast JSON lines become columns, against ``json.loads`` and ``list.append``.

Interleaved medians of `ROUNDS` rounds, printed as ratios: above 1 the format is faster.
"""

from __future__ import annotations

import json
import random
import statistics
from time import perf_counter

from trainmon.tails.formats.jsonl import JsonLines

ROUNDS = 7
CHUNK = 256 * 1024


def records(count: int, keys: int, nan_every: int = 0, seed: int = 7) -> bytes:
    """`count` lines of `keys` numbers; in one of `nan_every` a value is NaN."""
    rng = random.Random(seed)
    lines = []
    for step in range(count):
        record: dict[str, float] = {"step": step, "loss": 2 + rng.random()}
        record |= {f"metrics/group_{i % 4}/value_{i}": rng.random() * 10 for i in range(keys - 2)}
        if nan_every and step % nan_every == 0:
            record["loss"] = float("nan")
        lines.append(json.dumps(record))
    return "\n".join(lines).encode() + b"\n"


def by_format(data: bytes) -> int:
    reader = JsonLines("benchmark")
    rows = at = 0
    line_no = 1
    while at < len(data):
        end = data.rfind(b"\n", at, at + CHUNK) + 1 or len(data)
        parsed = reader.feed(data[at:end], at, line_no)
        rows, at, line_no = rows + parsed.records, end, line_no + parsed.lines
    return rows + reader.finish().records


def by_json_loads(data: bytes) -> int:
    columns: dict[str, list[float]] = {}
    rows = 0
    for line in data.splitlines():
        for key, value in json.loads(line).items():
            columns.setdefault(key, []).append(value)
        rows += 1
    return rows


def measure(name: str, data: bytes) -> None:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        for way, times in ((by_format, ours), (by_json_loads, theirs)):
            start = perf_counter()
            rows = way(data)
            times.append(perf_counter() - start)
    mine, base = statistics.median(ours), statistics.median(theirs)
    print(f"{name:34s} {base / mine:5.2f}x  {rows / mine:10,.0f} records/s against {rows / base:10,.0f}")


def main() -> None:
    measure("20 keys a record", records(20_000, 20))
    measure("5 keys a record", records(60_000, 5))
    measure("20 keys, NaN in 1 of 10", records(20_000, 20, nan_every=10))
    measure("5 keys, NaN in 1 of 10", records(60_000, 5, nan_every=10))
    measure("20 keys, NaN in every record", records(20_000, 20, nan_every=1))
    typed = b"".join(
        line[:1] + (b'"event": "train", ' if i % 20 else b'"event": "eval", ') + line[1:]
        for i, line in enumerate(records(20_000, 20).splitlines(keepends=True))
    )
    measure("20 keys, typed events", typed)
    nested = b"".join(
        b'{"step": %d, "extras": %s}\n' % (i, line) for i, line in enumerate(records(20_000, 20).splitlines())
    )
    measure("20 keys, nested", nested)


if __name__ == "__main__":
    main()
