"""What the benchmarks of whole processes share: interleaved rounds, medians, processor time and memory, terminals."""

from __future__ import annotations

import fcntl
import json
import math
import os
import pty
import random
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Self

ROUNDS = 5
TRAINMON = (sys.executable, "-m", "trainmon")
# Compiled modules lie beside those of an installed package; a checkout must be let write its own.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
}
ENVIRONMENT["TRAINMON_CACHE"] = "off"  # what is measured is a first reading
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Run:
    """One process from its start to its end."""

    wall_s: float
    cpu_s: float
    rss_mib: float


def run(command: Sequence[str], cwd: Path | None = None) -> Run:
    """Runs `command` to its end, its output thrown away."""
    began = monotonic()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # reaped here
    return Run(monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def interleaved(ways: dict[str, Callable[[], float]], rounds: int = ROUNDS) -> dict[str, float]:
    """The median of each way's figure; the ways take turns, so that a machine that slows down slows all."""
    figures: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            figures[name].append(way())
    return {name: statistics.median(values) for name, values in figures.items()}


def runs(commands: dict[str, Sequence[str]], rounds: int = ROUNDS) -> dict[str, Run]:
    """Medians of whole processes, interleaved, after one round that is not counted."""
    done: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            one = run(command)
            if number:
                done[name].append(one)
    return {
        name: Run(*(statistics.median(getattr(one, part) for one in all_) for part in ("wall_s", "cpu_s", "rss_mib")))
        for name, all_ in done.items()
    }


def write_records(path: Path, count: int, seed: int = 1) -> None:
    """A healthy run of `count` JSON records of five keys."""
    rng = random.Random(seed)
    with path.open("w") as file:
        for step in range(count):
            record = {
                "step": step,
                "loss": round(2 + 8 * math.exp(-step / 20_000) + rng.gauss(0, 0.02), 6),
                "grad_norm": round(abs(rng.gauss(0.5, 0.05)), 5),
                "lr": round(
                    3e-4 * min(1, (step + 1) / 2000) * (0.1 + 0.45 * (1 + math.cos(math.pi * step / count))), 10
                ),
                "tokens_per_sec": round(rng.gauss(120_000, 900), 2),
            }
            file.write(json.dumps(record) + "\n")


class Screen:
    """A program in a terminal of its own, from the outside: the bytes it writes and the processor time it takes."""

    def __init__(self, command: Sequence[str], cwd: Path, columns: int = 160, rows: int = 48) -> None:
        self.began = monotonic()
        self.pid, self._master = pty.fork()
        if not self.pid:
            os.chdir(cwd)
            os.execvpe(command[0], list(command), {**ENVIRONMENT, "TERM": "xterm-256color", "LANG": "C.UTF-8"})
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.written = 0
        self._tail = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._master)

    def read_for(self, seconds: float, until: bytes | None = None) -> float | None:
        """Reads what is written; the moment at which `until` had been, or None when it was not in that time."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            if not select.select([self._master], [], [], left)[0]:
                break
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                return None
            self.written += len(data)
            self._tail = (self._tail + data)[-(1 << 18) :]
            if until is not None and until in self._tail:
                return monotonic()
        return None

    def forget(self) -> None:
        """What was written so far is not looked at again."""
        self._tail = b""

    def send(self, keys: str) -> None:
        """Types `keys`."""
        os.write(self._master, keys.encode())

    @property
    def cpu_s(self) -> float:
        """Processor seconds so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def rss_mib(self) -> float:
        """Memory now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def measure(self, seconds: float) -> tuple[float, float]:
        """(share of a core in percent, bytes a second) over `seconds`."""
        cpu, written, began = self.cpu_s, self.written, monotonic()
        self.read_for(seconds)
        lasted = monotonic() - began
        return 100 * (self.cpu_s - cpu) / lasted, (self.written - written) / lasted


def settle(screen: Screen, seconds: float) -> None:
    """Lets a program come to rest."""
    screen.read_for(seconds)
    sleep(0)
