"""How fast JSON lines become columns, against ``json.loads`` and ``list.append``, and ``polars.read_ndjson``.

Interleaved medians of `ROUNDS` rounds of processor time, as ratios: above 1 the format is faster. polars is told
the schema and reads with one thread; where it is not installed, and where it cannot read the records, it is left out.
"""

from __future__ import annotations

import io
import json
import os
import random
import statistics
from collections.abc import Callable
from importlib import import_module
from time import process_time

from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.reader import BUDGET_BYTES

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when polars is imported
ROUNDS = 7
CHUNK = BUDGET_BYTES  # as the reader of a file gives it


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


def polars_way(data: bytes) -> Callable[[bytes], int] | None:
    """polars with the schema of the first record; None where it is missing, or fails on `data`."""
    try:
        polars = import_module("polars")
    except ImportError:
        return None
    first = json.loads(data[: data.index(b"\n")])
    if not all(isinstance(value, int | float) for value in first.values()):
        return None
    schema = dict.fromkeys(first, polars.Float64)

    def by_polars(data: bytes) -> int:
        return len(polars.read_ndjson(io.BytesIO(data), schema=schema))

    try:
        by_polars(data)
    except polars.exceptions.PolarsError:
        return None
    return by_polars


def measure(name: str, data: bytes) -> None:
    ways: dict[str, Callable[[bytes], int]] = {"ours": by_format, "json.loads": by_json_loads}
    polars = polars_way(data)
    if polars is not None:
        ways["polars"] = polars
    times: dict[str, list[float]] = {way: [] for way in ways}
    rows = 0
    for _ in range(ROUNDS):
        for way, function in ways.items():
            start = process_time()
            rows = function(data)
            times[way].append(process_time() - start)
    median = {way: statistics.median(found) for way, found in times.items()}
    against = "  ".join(f"{way} {median[way] / median['ours']:5.2f}x" for way in ways if way != "ours")
    print(f"{name:30s} {rows / median['ours']:10,.0f} records/s  {against}", flush=True)


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
