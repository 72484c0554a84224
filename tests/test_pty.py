"""The installed program in a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import Terminal

TRAINMON = str(Path(sys.executable).with_name("trainmon"))


def row(step: int, loss: float) -> bytes:
    return json.dumps({"step": step, "loss": loss, "grad_norm": 0.5, "lr": 1e-3}).encode() + b"\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of 200 healthy steps that ends at a loss of 3.0."""
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(
        b"".join(row(step, 5.0 - step / 100 + 0.01 * (step % 3)) for step in range(1, 200)) + row(200, 3.0)
    )
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def assert_restored(terminal: Terminal) -> None:
    assert terminal.modes_left_on() == set()
    assert terminal.settings == list(terminal.settings_before)


def test_a_new_value_appears_and_q_leaves_the_terminal_as_it_was(log: Path) -> None:
    with Terminal([TRAINMON, "watch", str(log)]) as terminal:
        terminal.wait_for(r"\b3\.00")
        append(log, row(201, 2.71))
        terminal.wait_for(r"\b2\.71")
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert b"\x1b[?1049h" in terminal.output
        assert_restored(terminal)


def test_keys_work_while_standard_input_is_the_log(log: Path) -> None:
    reading, writing = os.pipe()
    with Terminal([TRAINMON, "watch", "-"], stdin=reading) as terminal:
        os.close(reading)
        # A pipe holds 64 KiB: what comes before the program reads must not block the test.
        feeder = threading.Thread(target=os.write, args=(writing, log.read_bytes()), daemon=True)
        feeder.start()
        terminal.wait_for(r"\b3\.00")
        os.write(writing, row(201, 2.71))
        terminal.wait_for(r"\b2\.71")
        os.close(writing)
        terminal.send("?")
        terminal.wait_for(r"on this screen")
        terminal.send("\x1b")
        terminal.wait_for(r"\b2\.71")
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert_restored(terminal)


def test_a_shell_pipeline_can_be_watched(log: Path) -> None:
    with Terminal(["sh", "-c", f"cat '{log}' | '{TRAINMON}' watch -"]) as terminal:
        terminal.wait_for(r"\b3\.00")
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert_restored(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_terminal_as_it_was(log: Path, number: signal.Signals) -> None:
    with Terminal([TRAINMON, "watch", str(log)]) as terminal:
        terminal.wait_for(r"\b3\.00")
        terminal.signal(number)
        terminal.wait_exit()
        assert_restored(terminal)


def test_it_survives_being_resized(log: Path) -> None:
    with Terminal([TRAINMON, "watch", str(log)], columns=160, rows=48) as terminal:
        terminal.wait_for(r"\b3\.00")
        terminal.resize(30, 8)
        terminal.wait_for(r"(?i)small|40")
        terminal.resize(80, 24)
        terminal.wait_for(r"\b3\.00")
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert_restored(terminal)


def test_without_a_terminal_watch_names_what_to_use(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import subprocess

    done = subprocess.run([TRAINMON, "watch", str(log)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "--headless" in done.stderr
    assert done.stdout == ""


@pytest.fixture
def running_demo() -> Iterator[Terminal]:
    with Terminal([TRAINMON, "demo"], columns=120, rows=36) as terminal:
        yield terminal


def test_the_demo_shows_its_runs_at_once_and_cleans_up(running_demo: Terminal, tmp_path: Path) -> None:
    running_demo.wait_for("llama-350m")
    running_demo.wait_for("moe-8x160m")
    running_demo.send("q")
    assert running_demo.wait_exit() == 0
    assert_restored(running_demo)
