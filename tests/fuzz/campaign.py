"""A long search for logs that break a reader: ``python -m tests.fuzz.campaign MINUTES FOLDER``.

Faster than hypothesis, and without its shrinking: what fails is cut down by halves and left in FOLDER as ``*.log`` with
the reason beside it in ``*.txt``. A finding becomes a small file of the same shape in ``findings``, written anew: no
line of a real log is ever kept in the project.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.fuzz import seeds
from tests.fuzz.checks import CHECKS
from tests.fuzz.mutation import HOSTILE, changed


def made(rng: random.Random, pool: tuple[bytes, ...]) -> bytes:
    """One log: parts of one or two seeds, with some changes."""
    data = b"".join(
        rng.choice(pool)[: rng.choice((400, 2000, 9000))] * rng.choice((1, 1, 1, 3))
        for _ in range(rng.choice((1, 1, 2)))
    )
    for _ in range(rng.randrange(7)):
        kind = rng.choice(("insert", "insert", "replace", "remove", "double", "flip", "end"))
        what = rng.choice(HOSTILE) if rng.random() < 0.8 else rng.randbytes(rng.randrange(9))
        length = rng.randrange(8) if kind == "flip" else rng.choice((1, 3, 12, 90, 400))
        if kind == "double":
            what = b"." * rng.choice((1, 4, 24))
        data = changed(data, (kind, rng.randrange(1 << 16), length, what))
    return data


def failure(name: str, data: bytes, seed: int) -> str:
    """What goes wrong when the check `name` is made of `data`; "" when nothing does."""
    try:
        CHECKS[name](data, random.Random(seed))
    except Exception:
        return traceback.format_exc()
    return ""


def smaller(name: str, data: bytes, seed: int) -> bytes:
    """`data` without parts that the failure does not need."""
    size = len(data) // 2
    while size:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if failure(name, shorter, seed):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def main(minutes: float, folder: Path, seed: int) -> None:
    """Searches for `minutes`."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    pool = seeds.own() + seeds.own() + seeds.real()
    counts: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    ends = time.monotonic() + 60 * minutes
    while time.monotonic() < ends:
        data = made(rng, pool)
        for name in CHECKS:
            counts[name] += 1
            counts["bytes"] += len(data)
            began = time.process_time()
            reason = failure(name, data, seed)
            if not reason and time.process_time() - began > 20:
                reason = f"took {time.process_time() - began:.0f} s"
            if reason:
                lines = reason.strip().splitlines()
                kind = f"{name}: {lines[-1][:80]} {[line for line in lines if 'File' in line][-1:]}"
                seen[kind] += 1
                if seen[kind] == 1:
                    small = smaller(name, data, seed) if not reason.startswith("took") else data
                    stem = hashlib.blake2s(kind.encode()).hexdigest()[:10]
                    (folder / f"{name}-{stem}.log").write_bytes(small)
                    (folder / f"{name}-{stem}.txt").write_text(failure(name, small, seed) or reason)
                    print(f"{kind}\n   {len(small)} bytes: {small[:200]!r}", flush=True)
    print(f"seed {seed}: {dict(counts)}; {len(seen)} kinds of failures, {sum(seen.values())} failures", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else int(time.monotonic() * 1e3))
