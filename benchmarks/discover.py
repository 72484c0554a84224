"""500 runs of 10 files each found below a directory, against `find` and `stat` over the same tree. Target: 2x.

Each run has two logs, a configuration, an event file and six files that are none (checkpoints, sources, a lock). The
peer prints what it finds: ``find TREE -type f -exec stat`` with many files a call. Wall time, the tree in the page
cache, medians of interleaved rounds; ours is the search inside the process, of a tree never seen and then of one seen
before, as `watch` looks every half minute.
Usage: python -m benchmarks.discover [RUNS]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.timing import interleaved
from trainmon.tails.continued import Continuations
from trainmon.tails.discover import discover

RUNS = 500
TREES = 8  # one for each first search: what was seen before is not opened again
_NO_LOGS = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "train.py", ".lock")


def write_tree(root: Path, runs: int) -> None:
    """`runs` directories of ten small files each, in groups of 25."""
    records = "".join(json.dumps({"step": step, "loss": 4 - step / 100, "lr": 1e-4}) + "\n" for step in range(1, 60))
    text = "".join(
        f"iteration {step}/ 900 | lm loss: {4 - step / 100:.6E} | grad norm: 0.5 |\n" for step in range(1, 60)
    )
    for number in range(runs):
        folder = root / f"group{number // 25:02d}" / f"run{number:04d}"
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text(records)
        (folder / "train.log").write_text(text)
        (folder / "config.yaml").write_text("total_steps: 900\nlr: 1.0e-4\n")
        (folder / f"events.out.tfevents.17000{number:05d}.host.1.0").write_bytes(b"")
        for name in _NO_LOGS:
            (folder / name).write_bytes(b"\x80\x02" * 64)


def by_find(root: Path) -> float:
    """Seconds of `find` and `stat`."""
    began = perf_counter()
    command = ("find", str(root), "-type", "f", "-exec", "stat", "-c", "%n %s %Y %i", "{}", "+")
    found = subprocess.run(command, capture_output=True, check=True).stdout
    seconds = perf_counter() - began
    assert found.count(b"\n") >= 10
    return seconds


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    with tempfile.TemporaryDirectory() as directory:
        roots = [Path(directory) / f"tree{number}" for number in range(TREES)]
        for root in roots:
            write_tree(root, runs)
        unseen, kept = iter(roots), Continuations()

        def search(root: Path, logs: Continuations | None = None) -> float:
            began = perf_counter()
            found = discover([str(root)], root, logs=logs)
            seconds = perf_counter() - began
            assert len(found.runs) == runs, len(found.runs)
            return seconds

        search(next(unseen), kept)
        base = "find and stat"
        ways = {
            base: lambda: by_find(roots[-1]),
            "first search": lambda: search(next(unseen)),
            "search again": lambda: search(roots[0], kept),
        }
        took = interleaved(ways)
        for name, seconds in took.items():
            print(f"{name:16s} {1e3 * seconds:7.1f} ms {seconds / took[base]:6.2f}x")


if __name__ == "__main__":
    main()
