"""``trainmon watch --headless`` as scripts see it: a process, its lines, its exit status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from time import monotonic
from typing import Any

import pytest

Event = dict[str, Any]
Start = Callable[..., "Headless"]


def rows(first: int, last: int, loss: float = 2.0) -> bytes:
    lines = []
    for step in range(first, last + 1):
        value = loss + 0.01 * ((7 * step) % 5)
        lines.append(json.dumps({"step": step, "loss": value, "grad_norm": 0.5 + 0.01 * (step % 7), "lr": 1e-3}))
    return ("\n".join(lines) + "\n").encode()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


class Headless:
    """The program, and the events that it has said so far."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        command = [sys.executable, "-m", "trainmon", "watch", *arguments, "--headless"]
        self.process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.events: list[Event] = []
        self._lines: Queue[bytes] = Queue()
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def wait(self, holds: Callable[[Event], bool], seconds: float = 30.0) -> Event:
        """The first new event of which `holds` is true."""
        end = monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(end - monotonic(), 0.01))
            except Empty:
                pytest.fail(f"no such event among {self.events}")
            event: Event = json.loads(line)
            self.events.append(event)
            if holds(event):
                return event

    def wait_for(self, event_kind: str, **content: object) -> Event:
        return self.wait(lambda event: event["event"] == event_kind and content.items() <= event.items())

    def exit_status(self) -> int:
        return self.process.wait(timeout=30)

    def close(self) -> None:
        self.process.kill()
        for stream in (self.process.stdin, self.process.stderr):
            if stream is not None:
                stream.close()
        self.process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Headless] = []

    def begin(*arguments: str) -> Headless:
        started.append(Headless(*arguments, cwd=tmp_path))
        return started[-1]

    yield begin
    for headless in started:
        headless.close()


def test_events_of_a_log_that_grows(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 150))
    program = start("metrics.jsonl")
    run = program.wait_for("run", run="metrics.jsonl")
    assert [Path(path).name for path in run["files"]] == ["metrics.jsonl"]
    program.wait_for("state", state="running", step=150.0)
    append(log, rows(151, 153, loss=9.0))
    opened = program.wait_for("episode", kind="spike", signal="loss.train")
    assert (opened["first_step"], opened["recovered"]) == (151.0, False)
    append(log, rows(154, 180))
    recovered = program.wait_for("episode", kind="spike", signal="loss.train", recovered=True)
    assert recovered["id"] == opened["id"]
    program.process.send_signal(signal.SIGTERM)
    assert program.wait_for("end")["exit"] == 0
    assert program.exit_status() == 0


def test_a_run_that_appears_later_is_announced(start: Start, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "metrics.jsonl").write_bytes(rows(1, 60))
    program = start(".")
    program.wait_for("state", run="a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "metrics.jsonl").write_bytes(rows(1, 60))
    program.wait_for("run", run="b")
    program.wait_for("state", run="b", step=60.0)


def test_it_ends_when_every_run_has_ended_with_the_status_of_check(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {step} | loss {2.0 + step % 5 / 100:.4f}\n" for step in range(1, 100)))
    program = start("train.log")
    program.wait_for("state", state="running")
    append(log, b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    program.wait_for("state", state="oom")
    end = program.wait_for("end")
    assert (end["exit"], end["verdicts"]) == (1, {"train.log": "FAIL"})
    assert program.exit_status() == 1
    checked = subprocess.run([sys.executable, "-m", "trainmon", "check", str(log)], capture_output=True, check=False)
    assert checked.returncode == 1


def test_until_idle_ends_with_what_is_known(start: Start, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(rows(1, 150))
    program = start("metrics.jsonl", "--until-idle", "0.5")
    assert program.wait_for("end")["exit"] == 0
    assert program.exit_status() == 0


def test_nothing_to_judge_is_status_2(start: Start, tmp_path: Path) -> None:
    program = start("nowhere.log", "--until-idle", "0.3")
    assert program.wait_for("end")["exit"] == 2
    assert program.exit_status() == 2


def test_records_come_once_each_in_order(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 50))
    program = start("metrics.jsonl", "--records")
    program.wait_for("record", step=50.0)
    append(log, rows(51, 52))
    program.wait_for("record", step=52.0)
    records = [event for event in program.events if event["event"] == "record"]
    assert [event["step"] for event in records] == list(range(1, 53))
    assert records[0]["values"]["loss.train"] == pytest.approx(2.02)


def test_standard_input_ends_it_when_it_is_closed(start: Start) -> None:
    program = start("-", "--records")
    assert program.process.stdin is not None
    program.process.stdin.write(rows(1, 150))
    program.process.stdin.flush()
    program.wait_for("record", step=149.0)
    program.process.stdin.close()
    assert program.wait_for("end")["exit"] == 0
    assert program.exit_status() == 0


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(rows(1, 3000))
    command = f"'{sys.executable}' -m trainmon watch metrics.jsonl --headless --records --until-idle 5 | head -n 2"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.stdout.count(b"\n") == 2
    assert b"Traceback" not in done.stderr, done.stderr
