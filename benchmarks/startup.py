"""Starting: against ``python -c pass``, and to the first paint against an empty Textual app that imports numpy.

Targets: --version 4x, --help 5x, check of a small log 20x; first paint 1.3x. Processor time and elapsed time, each as a
ratio; the first is the one to go by where others work on the machine.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.timing import ROUNDS, TRAINMON, Screen, runs, write_records

EMPTY = """
import numpy
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("painted now")
Empty().run()
"""


def painted(command: tuple[str, ...], cwd: Path, mark: bytes) -> tuple[float, float]:
    """(processor seconds, seconds) until `mark` was on the screen."""
    with Screen(command, cwd) as screen:
        moment = screen.read_for(60, mark)
        if moment is None:
            raise SystemExit(f"{command} painted no {mark!r}")
        return screen.cpu_s, moment - screen.began


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
        table({name: (one.cpu_s, one.wall_s) for name, one in found.items()})
        watch = (*TRAINMON, "watch", str(log))
        ways = {
            "empty Textual app + numpy": ((sys.executable, "-c", EMPTY), b"painted now"),
            "watch, first paint": (watch, b"quit"),
            "watch, log drawn": (watch, b"999"),
        }
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, (command, mark) in ways.items():
                taken[name].append(painted(command, log.parent, mark))
        table({name: tuple(map(statistics.median, zip(*each, strict=True))) for name, each in taken.items()})


def table(found: Mapping[str, Sequence[float]]) -> None:
    """One line each: processor time and time, and how many times those of the first line they are."""
    base = next(iter(found.values()))
    for name, (cpu_s, wall_s) in found.items():
        print(
            f"{name:26s} {1000 * cpu_s:6.0f} ms cpu {cpu_s / base[0]:5.2f}x"
            f" {1000 * wall_s:6.0f} ms {wall_s / base[1]:5.2f}x",
            flush=True,
        )


if __name__ == "__main__":
    main()
