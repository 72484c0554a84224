"""From the write of a line to its value on the terminal, while 20 runs write 10 lines a second each.

The peer is ``tail -F`` in the same kind of terminal. Target: p95 of 120 ms.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from time import monotonic

from benchmarks.live_cpu import RUNS, Writers
from benchmarks.timing import TRAINMON, Screen


def lags(screen: Screen, log: Path, count: int) -> list[float]:
    """Milliseconds until each of `count` values that were never seen before is written to the terminal."""
    found = []
    for number in range(count):
        screen.read_for(0.25 + 0.037 * (number % 7))
        screen.forget()
        mark = f"{1111 + 7 * number}"
        began = monotonic()
        with log.open("a") as file:
            file.write(json.dumps({"step": 900_000 + number, "loss": 2.0, "custom_gauge": float(mark)}) + "\n")
        moment = screen.read_for(5.0, mark.encode())
        if moment is None:
            raise SystemExit(f"{mark} was never painted")
        found.append(1000 * (moment - began))
    return found


def wait_for(screen: Screen, words: str) -> None:
    """Until `words` stand on the terminal; ends the benchmark where they never do."""
    if screen.read_for(120.0, words.encode()) is None:
        raise SystemExit(f"{words!r} was never painted")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        writers = Writers(root, per_second=10.0)
        shown = root / "shown.jsonl"
        record = {"loss": 2.0, "custom_gauge": 1000.0}
        shown.write_text("".join(json.dumps({"step": step, **record}) + "\n" for step in range(899_000, 900_000)))
        ways = {
            "trainmon watch, log screen": ((*TRAINMON, "watch", directory), "l"),
            "peer: tail -F": (("tail", "-qF", str(shown)), ""),
        }
        writers.start()
        for name, (command, keys) in ways.items():
            with Screen(command, root) as screen:
                if keys:
                    wait_for(screen, f"{RUNS + 1} files")
                    for typed, answer in (("/shown\r", f"1 of {RUNS + 1}"), (keys, "899999")):
                        screen.forget()
                        screen.send(typed)
                        wait_for(screen, answer)
                screen.read_for(2.0)
                found = sorted(lags(screen, shown, count))
                p95 = found[int(0.95 * len(found))]
                load = os.getloadavg()[0]
                print(
                    f"{name:30s} p50 {statistics.median(found):5.0f} ms  p95 {p95:5.0f} ms  (load {load:.1f})",
                    flush=True,
                )
        writers.stop()


if __name__ == "__main__":
    main()
