"""A long search for logs that break a reader: ``python -m tests.fuzz.campaign MINUTES FOLDER``.

Faster than hypothesis, and without its shrinking: what fails is cut down by halves and left in FOLDER as ``*.log`` with
the reason beside it in ``*.txt``. A finding becomes a small file of the same shape in ``findings``, written anew: no
line of a real log is ever kept in the project.

The last line counts what was tried; it is printed too when the search is ended early (ctrl+c, or SIGTERM as `timeout`
and batch systems send it). A check that computes for longer than `MOST_S` is a finding like one that raises.
"""

from __future__ import annotations

import hashlib
import random
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

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


MOST_S = 20.0  # processor time of one check of one log of some 100 kB
_SHRINK_S = 60.0  # a finding is made small for no longer than this
_SAY_EVERY_S = 60.0


class TooSlowError(Exception):
    """A check took more than `MOST_S` of processor time."""


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TooSlowError(f"took more than {MOST_S:g} s of processor time")


def failure(name: str, data: bytes, seed: int) -> str:
    """What goes wrong when the check `name` is made of `data`; "" when nothing does."""
    signal.setitimer(signal.ITIMER_PROF, MOST_S)
    try:
        CHECKS[name](data, random.Random(seed))
    except Exception:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def smaller(name: str, data: bytes, seed: int) -> bytes:
    """`data` without parts that the failure does not need."""
    size = len(data) // 2
    ends = time.monotonic() + _SHRINK_S
    while size and time.monotonic() < ends:
        at = 0
        while at < len(data) and time.monotonic() < ends:
            shorter = data[:at] + data[at + size :]
            if failure(name, shorter, seed):
                data = shorter
            else:
                at += size
        size //= 2
    return data


class Campaign:
    """What was tried and what was found."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.seed = folder, seed
        self.inputs = self.bytes = self.checks = 0
        self.found: Counter[str] = Counter()

    def keep(self, name: str, data: bytes, reason: str) -> None:
        """Counts a failure; the first of its kind is made small, kept and said."""
        lines = reason.strip().splitlines()
        kind = f"{name}: {lines[-1][:80]} {[line for line in lines if 'File' in line][-1:]}"
        self.found[kind] += 1
        if self.found[kind] > 1:
            return
        small = data if "TooSlowError" in lines[-1] else smaller(name, data, self.seed)
        stem = hashlib.blake2s(kind.encode()).hexdigest()[:10]
        (self.folder / f"{name}-{stem}.log").write_bytes(small)
        (self.folder / f"{name}-{stem}.txt").write_text(failure(name, small, self.seed) or reason)
        print(f"{kind}\n   {len(small)} bytes: {small[:200]!r}", flush=True)

    def search(self, minutes: float) -> None:
        """Makes logs and checks them until `minutes` are over."""
        rng = random.Random(self.seed)
        pool = seeds.own() + seeds.own() + seeds.real()
        began = said = time.monotonic()
        while time.monotonic() < began + 60 * minutes:
            data = made(rng, pool)
            for name in CHECKS:
                if reason := failure(name, data, self.seed):
                    self.keep(name, data, reason)
                self.checks += 1
            self.inputs += 1
            self.bytes += len(data)
            if time.monotonic() > said + _SAY_EVERY_S:
                said = time.monotonic()
                print(self.summary(), flush=True)

    def summary(self) -> str:
        """The counts in one line."""
        return (
            f"seed {self.seed}: {self.inputs} inputs of {self.bytes / 1e6:.1f} MB in all, {self.checks} checks; "
            f"{sum(self.found.values())} failures of {len(self.found)} kinds"
        )


def main(minutes: float, folder: Path, seed: int) -> int:
    """Searches for `minutes`; the exit status is 1 when something was found."""
    signal.signal(signal.SIGPROF, _too_slow)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    campaign = Campaign(folder, seed)
    try:
        campaign.search(minutes)
    except KeyboardInterrupt:
        print("ended early", flush=True)
    print(campaign.summary(), flush=True)
    return int(bool(campaign.found))


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(float(given[0]), Path(given[1]), int(given[2]) if len(given) > 2 else int(time.monotonic() * 1e3)))
