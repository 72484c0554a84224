"""Processor time of ``trainmon watch`` on 20 live runs that write one line a second each, and when nothing comes.

The peer is the same screen idle and `tail -F` of the same files. Targets: 3% of a core on the list, 5% with a run's
charts, 1% idle and under 1 KB/s to the terminal.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
from pathlib import Path
from time import monotonic

from benchmarks.timing import TRAINMON, Screen
from trainmon.monitor.pace import MOST_S

RUNS = 20
HISTORY = 2000


class Writers:
    """Appends one record a second to each log, spread over the second."""

    def __init__(self, directory: Path, per_second: float = 1.0) -> None:
        self.logs = [directory / f"run{number:02d}" / "metrics.jsonl" for number in range(RUNS)]
        self.step = HISTORY
        self._rng = random.Random(4)
        self._pause_s = 1.0 / per_second / RUNS
        self._stop = threading.Event()
        for log in self.logs:
            log.parent.mkdir()
            log.write_text("".join(self.record(step) for step in range(1, HISTORY + 1)))

    def record(self, step: int) -> str:
        loss = 2 + 5 / (1 + step / 300) + self._rng.gauss(0, 0.02)
        values = {"loss": round(loss, 4), "grad_norm": round(abs(self._rng.gauss(0.5, 0.05)), 4), "lr": 3e-4}
        more = {"tokens_per_sec": round(self._rng.gauss(120_000, 900), 1), "mfu": round(self._rng.gauss(0.41, 0.01), 4)}
        return json.dumps({"step": step, **values, **more}) + "\n"

    def start(self) -> None:
        threading.Thread(target=self._write, daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _write(self) -> None:
        due = monotonic()
        while True:
            self.step += 1
            for log in self.logs:
                with log.open("a") as file:
                    file.write(self.record(self.step))
                due += self._pause_s
                if self._stop.wait(max(due - monotonic(), 0.0)):
                    return


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3 * MOST_S  # whole rounds of the runs that nobody looks at
    with tempfile.TemporaryDirectory() as directory:
        writers = Writers(Path(directory))
        with Screen((*TRAINMON, "watch", directory), Path(directory)) as screen:
            screen.read_for(8.0)
            screen.read_for(35.0)  # files that grew lately are looked at more often
            told("idle, list of runs", screen, seconds)
            writers.start()
            screen.read_for(12.0)  # how often a list is told anew is found out in some seconds
            told("20 x 1 line/s, list of runs", screen, seconds)
            screen.send("\r")
            screen.read_for(3.0)
            told("20 x 1 line/s, a run's charts", screen, seconds)
            print(f"{'memory':32s} {screen.rss_mib:6.0f} MiB")
        with Screen(("tail", "-qF", *map(str, writers.logs)), Path(directory)) as screen:
            screen.read_for(1.0)
            told("peer: tail -F, 20 x 1 line/s", screen, seconds)
        writers.stop()


def told(what: str, screen: Screen, seconds: float) -> None:
    share, rate = screen.measure(seconds)
    print(f"{what:32s} {share:6.2f}% of a core {rate:9,.0f} bytes/s", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
