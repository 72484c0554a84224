"""Starting: against ``python -c pass``, and to the first paint against an empty Textual app that imports numpy.

Targets: --version 4x, --help 5x, check of a small log 20x; first paint 1.3x.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.timing import TRAINMON, Screen, interleaved, runs, write_records

EMPTY = """
import numpy
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("painted now")
Empty().run()
"""


def painted(command: tuple[str, ...], cwd: Path, mark: bytes) -> float:
    with Screen(command, cwd) as screen:
        moment = screen.read_for(30, mark)
        if moment is None:
            raise SystemExit(f"{command} painted no {mark!r}")
        return moment - screen.began


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "metrics.jsonl"
        write_records(log, 1000)
        bare = (sys.executable, "-c", "pass")
        commands = {
            "python -c pass": bare,
            "python -c 'import numpy'": (sys.executable, "-c", "import numpy"),
            "--version": (*TRAINMON, "--version"),
            "--help": (*TRAINMON, "--help"),
            "check, 1000 records": (*TRAINMON, "check", str(log)),
        }
        found = runs(commands, rounds=9)
        base = found["python -c pass"].wall_s
        for name, one in found.items():
            print(f"{name:26s} {1000 * one.wall_s:6.0f} ms {one.wall_s / base:5.1f}x {one.rss_mib:5.0f} MiB")
        first = interleaved(
            {
                "empty Textual app + numpy": lambda: painted((sys.executable, "-c", EMPTY), log.parent, b"painted now"),
                "watch, first paint": lambda: painted((*TRAINMON, "watch", str(log)), log.parent, b"quit"),
                "watch, log drawn": lambda: painted((*TRAINMON, "watch", str(log)), log.parent, b"999"),
            }
        )
        base = first["empty Textual app + numpy"]
        for name, seconds in first.items():
            print(f"{name:26s} {1000 * seconds:6.0f} ms {seconds / base:5.2f}x")


if __name__ == "__main__":
    main()
