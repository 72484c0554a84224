"""The log doctors trainproof, trainspotter, losslint and runmedic on the same runs, each in its own environment.

    python -m benchmarks.accuracy_doctors FOLDER        makes FOLDER/NAME/bin/python for each, with pip

They read a whole file and say what they find, most of it without a step. So they are scored kindly: a fault is found
when a warning or worse appears that the healthy run's file did not get, by its kind, its severity, or a step that it
names near the fault. A false alarm is a warning or worse on a healthy run, one for each finding however many values
it speaks of. There is no delay: they are asked when the log is complete.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import numpy as np

from tests.monitor.detectors.synthetic import GRAD, LOSS, LR, TIME
from trainmon.monitor.frame import Frame
from trainmon.tails.record import Mark

DOCTORS: Final = ("trainproof", "trainspotter", "losslint", "runmedic")
_NAMES: Final = {LOSS: "loss", GRAD: "grad_norm", LR: "lr", TIME: "step_time"}
_LOUD: Final = {"warn": 1, "warning": 1, "error": 2, "fail": 2, "critical": 2}
_STEP: Final = re.compile(r"\bsteps?\b[^0-9\n]{0,12}((?:\d+(?:\.\d+)?(?:, )?)+)|\"steps\": \[([^\]]*)\]")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Told:
    """One finding: kind, how loud (1 a warning, 2 an error), and the steps that it names."""

    kind: str
    loud: int
    steps: tuple[float, ...]


class Doctor:
    """One doctor, running; asked one file at a time."""

    def __init__(self, name: str, folder: Path, place: Path) -> None:
        self.name = name
        self._file = place / f"{name}.jsonl"
        worker = Path(__file__).with_name("accuracy_doctor_worker.py")
        python = folder / name / "bin" / "python"
        self._process = subprocess.Popen(
            [str(python), str(worker), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Doctor:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def ask(self, frame: Frame) -> list[Told]:
        """What it says of warnings and worse in this run. Raises RuntimeError when it could not read the log."""
        write_log(frame, self._file)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self._file}\n")
        self._process.stdin.flush()
        found = []
        for kind, severity, text in json.loads(self._process.stdout.readline()):
            if severity == "error-of-the-doctor":
                raise RuntimeError(f"{self.name}: {text}")
            if severity in _LOUD:
                found.append(Told(kind, _LOUD[severity], _steps(text)))
        return found


def is_found(healthy: list[Told], faulty: list[Told], first: float, last: float) -> bool:
    """Whether the faulty run's findings tell of the fault on the steps first..last."""
    for one in faulty:
        before = [other for other in healthy if other.kind == one.kind]
        if one.loud > max((other.loud for other in before), default=0):
            return True
        known = {step for other in before for step in other.steps}
        if any(first <= step <= last and step not in known for step in one.steps):
            return True
    return len(faulty) > len(healthy)


def write_log(frame: Frame, path: Path) -> None:
    """The run as JSON lines, with the names that all four know; NaN and infinity as Python writes them."""
    with path.open("w", encoding="utf-8") as file:
        for row in range(len(frame)):
            record: dict[str, float | None] = {"step": int(frame.steps[row])}
            for key, name in _NAMES.items():
                if key not in frame.columns:
                    continue
                value = float(frame.columns[key][row])
                mark = int(frame.marks[key][row]) if key in frame.marks else Mark.ABSENT
                if mark == Mark.NULL:
                    record[name] = None
                elif not np.isnan(value) or mark == Mark.NAN:
                    record[name] = float(f"{value:.6g}")
            file.write(json.dumps(record) + "\n")


def _steps(text: str) -> tuple[float, ...]:
    return tuple(
        float(number) for found in _STEP.finditer(text) for number in _NUMBER.findall(found[1] or found[2] or "")
    )


def install(folder: Path) -> list[str]:
    """Makes an environment for each doctor; gives those that could not be installed, with pip's last line."""
    failed = []
    for name in DOCTORS:
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        done = subprocess.run(
            [str(folder / name / "bin" / "python"), "-m", "pip", "install", "-q", name], capture_output=True, text=True
        )
        if done.returncode:
            failed.append(f"{name}: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
    return failed


if __name__ == "__main__":
    for problem in install(Path(sys.argv[1])):
        print(problem)
