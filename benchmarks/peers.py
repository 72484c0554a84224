"""Other programs that show a run, beside trainmon on the very same files: when they show it, when all is read, memory.

``python -m benchmarks.peers [--steps N] [--rounds N] [--peers PYTHON] [--toolong PROGRAM] [--keep DIRECTORY]``

One simulated run of three values a step is written in each peer's own form: a W&B offline file (W&B LEET), an event
file (TensorBoard with its fast loader), JSON lines (lnav, toolong; they show lines, not charts). `--peers` is the
Python of an environment with wandb, tensorboard, tensorboardX and crc32c: it writes the files, and its programs run.
A peer that is not there is left out, and that is said.

- first: until the first Braille dots of a curve, or the first line, are drawn in a terminal of 160 x 48; for
  TensorBoard until its server answers with the first point of a curve (a browser would come on top).
- all: until the processes came to rest: over 1.5 s they neither ran nor waited for a processor for more than a fifth of
  it (trainmon has then judged all of it, too); for LEET until it had read the file to its end, since it does not rest;
  for TensorBoard until a curve holds the last step.
- memory: the largest sum of resident memory of the process and its children; cpu: theirs until then.

Whole processes, their start included, nothing cached by trainmon; medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

from benchmarks.event_writers import values_of
from benchmarks.timing import ENVIRONMENT, TRAINMON, Screen

SCALARS = 3
LIMIT_S = 300.0
_LOOK_S = 0.05
_REST_S, _REST_SHARE = 1.5, 0.2
_TICKS = os.sysconf("SC_CLK_TCK")
CURVE = re.compile(rb"\xe2(?:\xa0[\x81-\xbf]|[\xa1-\xa3][\x80-\xbf])")  # Braille, but not the empty cell
LINE = re.compile(rb"train/loss")
TAG = "train/loss"
# What programs ask a terminal for before they draw, and the answers of one.
_ANSWERS = {
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;22c",
}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one round: seconds, MiB."""

    first_s: float
    all_s: float
    memory_mib: float
    cpu_s: float


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    found, at = [root], 0
    while at < len(found):
        for path in Path(f"/proc/{found[at]}/task").glob("*/children"):
            found += _read(path, lambda text: [int(word) for word in text.split()], [])
        at += 1
    return found


def _read(path: Path, parse: Callable[[str], T], otherwise: T) -> T:
    try:
        return parse(path.read_text())
    except (OSError, ValueError, IndexError):  # the process went away
        return otherwise


def cpu_of(pids: Sequence[int]) -> float:
    """Seconds of processor time, that of children which ended included."""

    def ticks(text: str) -> int:
        return sum(map(int, text.rpartition(")")[2].split()[11:15]))

    return sum(_read(Path(f"/proc/{pid}/stat"), ticks, 0) for pid in pids) / _TICKS


def demand_of(pids: Sequence[int]) -> float:
    """Seconds in which threads ran or waited for a processor: on a busy machine rest is told by these, not by use."""

    def waited(text: str) -> float:
        ran, waits, _ = text.split()
        return (int(ran) + int(waits)) / 1e9

    paths = [path for pid in pids for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(_read(path, waited, 0.0) for path in paths)


def memory_of(pids: Sequence[int]) -> float:
    """Resident MiB."""
    pages = sum(_read(Path(f"/proc/{pid}/statm"), lambda text: int(text.split()[1]), 0) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def read_to(pids: Sequence[int], file: Path) -> int:
    """How far any of the processes has read `file`, by the position of its descriptors."""
    furthest = 0
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                is_it = link.readlink() == file
            except OSError:
                continue
            if is_it:
                position = _read(Path(f"/proc/{pid}/fdinfo/{link.name}"), lambda text: int(text.split()[1]), 0)
                furthest = max(furthest, position)
    return furthest


class Watched(Screen):
    """A program in a terminal that answers what programs ask terminals for."""

    def look(self, seconds: float) -> bytes:
        """What is drawn within `seconds`, or sooner once something is."""
        self.forget()
        self.read_for(seconds, b"")
        drawn = self._tail
        for question, answer in _ANSWERS.items():
            if question in drawn:
                os.write(self._master, answer)
        return drawn

    def __exit__(self, *_: object) -> None:
        for pid in tree(self.pid)[1:]:
            os.kill(pid, signal.SIGKILL)
        super().__exit__()


def in_terminal(command: Sequence[str], mark: re.Pattern[bytes], file: Path, *, by_position: bool) -> Figures:
    """One round of a program with a screen; `by_position`: it is done when it has read to the end of `file`."""
    size = file.stat().st_size
    first = moment = 0.0
    memory = 0.0
    used: list[tuple[float, float, float]] = []  # moment, processor time, demand
    with Watched(command, file.parent) as screen:
        while (now := monotonic() - screen.began) < LIMIT_S:
            drawn = screen.look(_LOOK_S)
            moment = monotonic() - screen.began
            if not first and mark.search(drawn):
                first = moment
            pids = tree(screen.pid)
            memory = max(memory, memory_of(pids))
            used.append((moment, cpu_of(pids), demand_of(pids)))
            if by_position and read_to(pids, file) >= size:
                return Figures(first or moment, moment, memory, used[-1][1])
            before = next((look for look in reversed(used) if look[0] <= moment - _REST_S), None)
            if not by_position and first and before is not None and before[0] >= first:
                share = (used[-1][2] - before[2]) / (moment - before[0])
                if share < _REST_SHARE:
                    return Figures(first, before[0], memory, before[1])
            if now + _LOOK_S > LIMIT_S:
                break
    raise SystemExit(f"{command[0]}: {'never done' if first else 'nothing was drawn'} in {LIMIT_S:.0f} s")


def tensorboard(program: str, directory: Path, steps: int) -> Figures:
    """One round of TensorBoard's server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/data/plugin/scalars/scalars?run=.&tag={TAG.replace('/', '%2F')}"
    began = monotonic()
    command = [program, "--logdir", str(directory), "--port", str(port), "--load_fast=true", "--host", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first = memory = 0.0
    try:
        while (moment := monotonic() - began) < LIMIT_S:
            points = _points(url)
            moment = monotonic() - began
            pids = tree(process.pid)
            memory = max(memory, memory_of(pids))
            if points:
                first = first or moment
                if points[-1][1] >= steps:
                    return Figures(first, moment, memory, cpu_of(pids))
            sleep(_LOOK_S)
    finally:
        for pid in reversed(tree(process.pid)):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    raise SystemExit(f"TensorBoard did not serve the last step in {LIMIT_S:.0f} s")


def _points(url: str) -> list[list[float]]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            points: list[list[float]] = json.load(answer)
    except (urllib.error.URLError, OSError, ValueError):
        return []
    return points


def write_lines(path: Path, steps: int) -> None:
    """The run as JSON lines."""
    with path.open("w") as file:
        for step, wall, row in values_of(steps, SCALARS):
            file.write(json.dumps({"timestamp": wall, "step": step, **row}) + "\n")


def made(folder: Path, kind: str, pattern: str, python: str, steps: int) -> Path:
    """The one file that matches `pattern` in `folder`, written first when it is not there."""
    if not any(folder.glob(pattern)):
        subprocess.run([python, "-m", "benchmarks.event_writers", kind, folder, str(steps), str(SCALARS)], check=True)
    return next(folder.glob(pattern)).resolve()


def pairs(options: argparse.Namespace, data: Path) -> dict[str, tuple[Callable[[], Figures], Callable[[], Figures]]]:
    """Peer -> a round of the peer, a round of trainmon on the same file."""
    found: dict[str, tuple[Callable[[], Figures], Callable[[], Figures]]] = {}
    tools = Path(options.peers).parent
    watch = partial(in_terminal, by_position=False)
    lines = data / "metrics.jsonl"
    if not lines.exists():
        write_lines(lines, options.steps)
    if (wandb := tools / "wandb").exists():
        file = made(data / "wandb", "wandb", "wandb/offline-*/run-*.wandb", options.peers, options.wandb_steps)
        leet = partial(in_terminal, (str(wandb), "leet", "run", str(file)), CURVE, file, by_position=True)
        found["W&B LEET"] = leet, partial(watch, (*TRAINMON, "watch", str(file)), CURVE, file)
    if (board := tools / "tensorboard").exists():
        file = made(data / "tfevents", "tfevents", "*tfevents*", options.peers, options.steps)
        theirs = partial(tensorboard, str(board), file.parent, options.steps)
        found["TensorBoard"] = theirs, partial(watch, (*TRAINMON, "watch", str(file)), CURVE, file)
    for name, program in (("lnav", shutil.which("lnav")), ("toolong", shutil.which(options.toolong))):
        if program is not None:
            theirs = partial(watch, (program, str(lines)), LINE, lines)
            found[name] = theirs, partial(watch, (*TRAINMON, "watch", str(lines)), CURVE, lines)
    for name in {"W&B LEET", "TensorBoard", "lnav", "toolong"} - found.keys():
        print(f"{name} is not here: left out")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=1_000_000)
    options.add_argument("--wandb-steps", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--peers", default=sys.executable)
    options.add_argument("--toolong", default="tl")
    options.add_argument("--keep", type=Path)
    options.add_argument("--only", action="append")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data = (chosen.keep or Path(directory)).resolve()
        data.mkdir(parents=True, exist_ok=True)
        os.environ["HOME"] = ENVIRONMENT["HOME"] = directory  # peers keep settings and histories there
        for name, (theirs, ours) in pairs(chosen, data).items():
            if chosen.only and name not in chosen.only:
                continue
            rounds = [(ours(), theirs()) for _ in range(chosen.rounds)]
            print(name, flush=True)
            for field, unit in (("first_s", "s"), ("all_s", "s"), ("memory_mib", "MiB"), ("cpu_s", "s cpu")):
                mine, peer = (statistics.median(getattr(pair[side], field) for pair in rounds) for side in (0, 1))
                print(f"  {field:11s} {mine:8.2f} against {peer:8.2f} {unit:6s} {mine / peer:5.2f}x", flush=True)


if __name__ == "__main__":
    main()
