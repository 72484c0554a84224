"""Event stores: whether trainmon's readers say what the peers' own say, and how fast each reads.

``python -m benchmarks.event_stores [--steps N] [--peers PYTHON] [--wandb-reader PYTHON] [--keep DIRECTORY]``

The real writers write one simulated run (`event_writers`) by `--peers`, the Python of an environment with tensorboard,
tensorboardX, crc32c and wandb. What trainmon reads is compared with TensorBoard's EventAccumulator and with W&B's own
DataStore (`--wandb-reader`: a Python with wandb 0.19, the last series that carried it): each value, step and time,
exactly. A store cut off at a place, read again and again as it grows by some bytes, or met whole says the same.

Speed is that of reading into columns, in this process, against EventAccumulator, EventFileLoader (which keeps nothing),
TensorBoard's fast loader (a server in Rust, which keeps a sample and takes no check sums) and DataStore in theirs;
processor time, without the start-up of Python, medians of interleaved rounds. A peer that is not there is left out, and
that is said.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.timing import interleaved
from trainmon.tails.formats.base import FramedFormat
from trainmon.tails.formats.tfevents import TfEvents
from trainmon.tails.formats.wandb_offline import WandbOffline
from trainmon.tails.record import Block, Mark

SCALARS = 5
PIECE = 1 << 20
SMALL_STEPS = 300
KINDS = ("tfevents", "tensors", "mixed", "several", "wandb", "wandb-mixed")
WAYS = {
    "accumulator": "EventAccumulator",
    "loader": "EventFileLoader",
    "server": "fast loader",
    "datastore": "DataStore",
}
Series = dict[tuple[str, str], tuple[np.ndarray, np.ndarray, np.ndarray]]


def stores(directory: Path) -> list[Path]:
    """The files of a store."""
    return sorted(
        {path.resolve() for path in directory.rglob("*") if "tfevents" in path.name or path.suffix == ".wandb"}
    )


def pieces(size: int, seed: int | None) -> Iterator[int]:
    """Where the pieces end in which a file of `size` bytes is met: equal ones, or of any length."""
    rng = random.Random(seed)
    at = 0
    while at < size:
        at = min(size, at + (PIECE if seed is None else rng.randint(1, size // 50)))
        yield at


def blocks_of(path: Path, seed: int | None = None, size: int | None = None) -> list[Block]:
    """What trainmon reads in the first `size` bytes."""
    reader: FramedFormat = (WandbOffline if path.suffix == ".wandb" else TfEvents)(str(path))
    data = path.read_bytes()[:size]
    blocks: list[Block] = []
    at = 0
    for end in (*pieces(len(data), seed), len(data), len(data)):
        while at < end:
            parsed, consumed = reader.feed_frames(data[at:end], at)
            if parsed.unreadable:
                raise SystemExit(f"{path}: something could not be read")
            blocks += parsed.blocks
            at += consumed
            if not consumed:
                break
    return blocks


def series_of(path: Path, blocks: list[Block]) -> Series:
    """(file, tag) -> steps, values and times."""
    found: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
    for block in blocks:
        for key, column in block.columns.items():
            rows = block.mark_of(key) != Mark.ABSENT
            found.setdefault(key, []).append((block.steps[rows], column[rows], block.times[rows]))
    return {(str(path), key): tuple(map(np.concatenate, zip(*parts, strict=True))) for key, parts in found.items()}


def compare(directory: Path, said: Path) -> tuple[int, list[str]]:
    """How many values agree, and what differs."""
    ours: Series = {}
    own_steps: dict[str, np.ndarray] = {}
    for path in stores(directory):
        blocks = blocks_of(path)
        ours |= series_of(path, blocks)
        if any(block.step_key not in ("step", "_step", "") for block in blocks):
            own_steps[str(path)] = np.zeros(0)
    agreed, differ = 0, []
    for line in said.read_text().splitlines():
        file, tag, *theirs = json.loads(line)
        steps, values, times = (np.array(one, np.float64) for one in theirs)
        found = ours.get((str(Path(file).resolve()), tag))
        if found is None:
            if tag not in ("trainer/global_step",) and not tag.startswith(("table/", "weights/")):
                differ.append(f"{tag}: not read")
            continue
        known = ~np.isnan(found[0]) | np.isin(found[2], times)
        mine = [one[known] for one in found]
        same = np.array_equal(mine[1], values, equal_nan=True) and np.array_equal(mine[2], times)
        if same and (str(Path(file).resolve()) in own_steps or np.array_equal(mine[0], steps)):
            agreed += len(values)
        else:
            differ.append(f"{tag}: {len(mine[1])} values against {len(values)}")
    return agreed, differ


def rows_of(blocks: list[Block]) -> list[tuple[object, ...]]:
    """Rows that can be compared."""
    return [
        (repr(block.steps[row]), repr(block.times[row]), int(block.offsets[row]), *sorted(
            (key, repr(column[row])) for key, column in block.columns.items() if block.mark_of(key)[row] != Mark.ABSENT
        ))
        for block in blocks
        for row in range(len(block))
    ]  # fmt: skip


def check_growth(path: Path) -> str:
    """Whether a store says the same however it is met, and a store cut off at any byte what its beginning says."""
    whole = rows_of(blocks_of(path))
    if any(rows_of(blocks_of(path, seed)) != whole for seed in range(3)):
        return "DIFFERS when met in pieces"
    size = path.stat().st_size
    for cut in range(0, size, max(1, size // 400)):
        rows = rows_of(blocks_of(path, size=cut))
        if rows[:-1] != whole[: max(0, len(rows) - 1)]:
            return f"DIFFERS when cut off at {cut}"
    return "the same in pieces and cut off"


def ask(python: str, way: str, store: Path, out: Path | None = None) -> float | None:
    """Seconds that a peer's reader took; None where it is not there."""
    command = [python, "-m", "benchmarks.event_peers", way, str(store), *([str(out)] if out else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout.split()[-1]) if not done.returncode else None


def read_all(store: Path) -> float:
    """Processor seconds of trainmon's reading."""
    began = process_time()
    for path in stores(store):
        blocks_of(path)
    return process_time() - began


def speed(kind: str, store: Path, peers: dict[str, str]) -> None:
    """Prints how fast a store is read by each."""
    size = sum(path.stat().st_size for path in stores(store)) / 1e6
    ways: dict[str, Callable[[], float]] = {"trainmon": lambda: read_all(store)}
    for way, python in peers.items():
        if (way == "datastore") == kind.startswith("wandb"):
            ways[WAYS[way]] = lambda python=python, way=way: ask(python, way, store) or 0.0
    found = interleaved(ways)
    for name, seconds in found.items():
        times = seconds / found["trainmon"]
        print(f"  {kind:12s} {name:16s} {seconds:7.2f} s cpu {size / seconds:7.1f} MB/s {times:6.1f}x", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=50_000)
    options.add_argument("--peers", default=sys.executable)
    options.add_argument("--wandb-reader", default=sys.executable)
    options.add_argument("--keep", type=Path)
    chosen = options.parse_args()
    pythons = {
        "accumulator": chosen.peers,
        "loader": chosen.peers,
        "server": chosen.peers,
        "datastore": chosen.wandb_reader,
    }
    with tempfile.TemporaryDirectory() as directory:
        data = chosen.keep or Path(directory)
        absent: set[str] = set()
        for kind in KINDS:
            for steps in (SMALL_STEPS, chosen.steps):
                store = data / f"{kind}-{steps}"
                if not store.exists():
                    command = [
                        chosen.peers,
                        "-m",
                        "benchmarks.event_writers",
                        kind,
                        str(store),
                        str(steps),
                        str(SCALARS),
                    ]
                    subprocess.run(command, check=True, capture_output=True)
                said = data / f"{kind}-{steps}.said"
                way = "datastore" if kind.startswith("wandb") else "accumulator"
                if ask(pythons[way], way, store, said) is None:
                    absent.add(way)
                    continue
                agreed, differ = compare(store, said)
                print(
                    f"{kind}, {steps} steps: {agreed} values as {WAYS[way]} has them; {differ or 'none differs'}",
                    flush=True,
                )
            small = data / f"{kind}-{SMALL_STEPS}"
            print(f"  {', '.join({check_growth(path) for path in stores(small)})}", flush=True)
        for way in absent:
            print(f"{WAYS[way]} is not there: left out")
        for kind in KINDS:
            speed(kind, data / f"{kind}-{chosen.steps}", {way: at for way, at in pythons.items() if way not in absent})


if __name__ == "__main__":
    main()
