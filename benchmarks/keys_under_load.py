"""From a key to the screen that it asks for, while much is written: p50 and p95, memory, whether the newest line came.

Loads: none; 5000 lines a second into one run; 200 runs with 10 lines a second each; a log of so many MB that is being
read. Keys: the help, the triage and the log lines, each closed again. The peer is a bare Textual application that puts
up another screen at a key, beside the same writer. What counts as answered is the first byte string that only the new
screen has. Target: p95 of 100 ms. The load of the machine is told: on a busy one all of them wait for a core.
Usage: python -m benchmarks.keys_under_load [SECONDS [MEGABYTES]]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from benchmarks.load import WRITER
from benchmarks.timing import TRAINMON, Screen, write_records

# Key, and what its screen says and no other: newest lines, or last lines while a log is not read to its end.
KEYS = (("?", b"scroll"), ("t", b"next step"), ("l", b"st lines"))
_PEER = """
from textual.app import App
from textual.screen import Screen
from textual.widgets import Static
class Other(Screen):
    BINDINGS = [("escape", "app.pop_screen", "")]
    def compose(self):
        yield Static("scroll next step newest lines (peer)")
class Bare(App):
    BINDINGS = [(key, "open", "") for key in ("question_mark", "t", "l")]
    def compose(self):
        yield Static("by trouble")
    def action_open(self):
        self.push_screen(Other())
Bare().run()
"""
_LAST = {"loss": 7.125, "grad_norm": 0.5, "lr": 3e-4, "mfu": 0.41}
BYTES_OF_A_RECORD = 104


def waited_ms(pid: int) -> float:
    """Milliseconds for which the first thread of a process was ready to run and had no core, so far."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e6


def lags(screen: Screen, seconds: float) -> tuple[list[float], list[float]]:
    """Milliseconds from each of many keys to its screen, and the same without waits for a core, each ascending."""
    found: list[float] = []
    own: list[float] = []
    end = monotonic() + seconds
    while monotonic() < end:
        for key, mark in KEYS:
            screen.forget()
            began, waited = monotonic(), waited_ms(screen.pid)
            screen.send(key)
            moment = screen.read_for(30.0, mark)
            if moment is None:
                raise SystemExit(f"{key!r} was not answered in 30 s")
            found.append(1000 * (moment - began))
            own.append(max(found[-1] - (waited_ms(screen.pid) - waited), 0.0))
            screen.read_for(0.07 + 0.013 * (len(found) % 9))
            screen.forget()
            screen.send("\x1b")
            screen.read_for(30.0, b"by trouble")
            screen.read_for(0.1)
    return sorted(found), sorted(own)


def measure(name: str, command: Sequence[str], root: Path, writing: Sequence[str], seconds: float) -> None:
    """Types beside a writer and prints how soon the keys were answered."""
    with Screen(command, root) as screen:
        if screen.read_for(60.0, b"by trouble") is None:
            raise SystemExit(f"{name}: nothing was drawn")
        screen.read_for(2.0)
        writer = subprocess.Popen(writing, stdout=subprocess.DEVNULL) if writing else None
        screen.read_for(1.0 if writing else 0.0)
        before = screen.rss_mib
        found, own = lags(screen, seconds)
        after, came = screen.rss_mib, ""
        if writer is not None:
            writer.wait()
            if "peer" not in name:
                came = "  newest line drawn " + _newest(screen, root)
        print(
            f"{name:32s} {len(found):4d} keys  p50 {statistics.median(found):4.0f} p95 {_p95(found):4.0f} ms  "
            f"without waits for a core p50 {statistics.median(own):4.0f} p95 {_p95(own):4.0f} ms  "
            f"RSS {before:4.0f} -> {after:4.0f} MiB{came}  (load {os.getloadavg()[0]:.1f})",
            flush=True,
        )


def _p95(ascending: Sequence[float]) -> float:
    return ascending[int(0.95 * len(ascending))]


def _newest(screen: Screen, root: Path) -> str:
    """Seconds until a value that was never seen before is drawn, once the writer has ended."""
    log = sorted(root.glob("*/metrics.jsonl"))[0]
    screen.forget()
    began = monotonic()
    with log.open("a") as file:
        file.write(json.dumps({"step": 10_000_000, **_LAST}) + "\n")
    moment = screen.read_for(60.0, b"7.125")
    return "never" if moment is None else f"after {moment - began:.2f} s"


def write_logs(root: Path, runs: int) -> None:
    """`runs` logs of a hundred records."""
    for number in range(runs):
        log = root / f"run{number:03d}" / "metrics.jsonl"
        log.parent.mkdir()
        record = {"loss": 2.0, "grad_norm": 0.5, "lr": 3e-4, "mfu": 0.41}
        log.write_text("".join(json.dumps({"step": step, **record}) + "\n" for step in range(900, 1000)))


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    megabytes = float(sys.argv[2]) if len(sys.argv) > 2 else 1000.0
    ours, peer = (*TRAINMON, "watch", "--no-slurm", "."), (sys.executable, "-c", _PEER)
    for runs, per_second in ((1, 0.0), (1, 5000.0), (200, 10.0)):
        for who, command in (("trainmon", ours), ("peer: bare Textual", peer)):
            with tempfile.TemporaryDirectory() as directory:
                root = Path(directory)
                write_logs(root, runs)
                numbers = (root, runs, per_second, seconds + 3)
                writing = (sys.executable, "-c", WRITER, *map(str, numbers)) if per_second else ()
                measure(f"{runs} x {per_second:.0f}/s  {who}", command, root, writing, seconds)
    if megabytes:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            write_logs(root, 1)
            write_records(root / "run000" / "large.jsonl", int(megabytes * 1e6 / BYTES_OF_A_RECORD))
            measure(f"{megabytes:.0f} MB read meanwhile  trainmon", ours, root, (), seconds)


if __name__ == "__main__":
    main()
