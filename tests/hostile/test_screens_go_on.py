"""The screens while other things fail: a worker that raises, a stop and a continue, a machine without a network."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.terminal import Terminal


def row(step: int, loss: float) -> bytes:
    return json.dumps({"step": step, "loss": loss, "grad_norm": 0.5, "lr": 1e-3}).encode() + b"\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two runs, `broken` and `sound`, of 60 steps that end at 3.0."""
    for name in ("broken", "sound"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "metrics.jsonl").write_bytes(b"".join(row(step, 3.0) for step in range(1, 61)))
    return tmp_path / "logs"


def program(before: str) -> list[str]:
    """The program, after some lines of Python."""
    after = "from trainmon.cli import main\nsys.argv[0] = 'trainmon'\nmain()\n"
    return [sys.executable, "-c", f"import os, sys\nsys.path.insert(0, {str(ROOT)!r})\n{before}\n{after}"]


_RAISES = """
from trainmon.monitor.engine import RunEngine
feed = RunEngine.feed
def raising(self, source, parsed, restarted=False):
    if "broken" in source and self.steps is not None and self.steps.last >= 60:
        raise ZeroDivisionError("on purpose")
    return feed(self, source, parsed, restarted)
RunEngine.feed = raising
"""


def test_a_worker_that_raises_is_said_the_rest_goes_on_and_the_log_is_there(logs: Path) -> None:
    command = [*program(_RAISES), "watch", "--no-slurm", str(logs)]
    with Terminal(command, columns=200, rows=50, cwd=logs) as terminal:
        terminal.wait_for(r"broken[^\n]*\b3\.0")
        for name in ("broken", "sound"):
            with (logs / name / "metrics.jsonl").open("ab") as log:
                log.write(b"".join(row(step, 2.5) for step in range(61, 64)))
        terminal.wait_for(r"sound[^\n]*\b2\.5")
        terminal.wait_for(r"broken[^\n]*internal error")
        terminal.send("/broken\r\r")
        terminal.wait_for("ZeroDivisionError")
        terminal.send("l")
        terminal.wait_for(r'"step": 63')  # its log goes on being shown
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert terminal.modes_left_on() == set()


def test_stopped_and_continued_the_screen_comes_back(logs: Path) -> None:
    command = [*program(""), "watch", "--no-slurm", str(logs / "sound")]
    with Terminal(command, columns=120, rows=40, cwd=logs) as terminal:
        terminal.wait_for(r"\b3\.0")
        for turn in range(2):
            terminal.signal(signal.SIGTSTP)
            terminal.settle(0.5)
            assert terminal.modes_left_on() == set(), "the shell has its terminal while the program is stopped"
            with (logs / "sound" / "metrics.jsonl").open("ab") as log:
                log.write(row(61 + turn, 2.5 - turn))
            terminal.signal(signal.SIGCONT)
            terminal.wait_for(rf"\b{2 - turn}\.5")
        assert "1049" in terminal.modes_left_on()
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert terminal.modes_left_on() == set()
        assert terminal.settings == list(terminal.settings_before)


def test_stopped_by_what_cannot_be_heard_the_screen_comes_back_once(logs: Path) -> None:
    """A batch system's suspend: the terminal's settings are the first ones at the end, and keys are read once."""
    command = [*program(""), "watch", "--no-slurm", str(logs / "sound")]
    with Terminal(command, columns=120, rows=40, cwd=logs) as terminal:
        terminal.wait_for(r"\b3\.0")
        for turn in range(2):
            terminal.signal(signal.SIGSTOP)
            terminal.settle(0.5)
            with (logs / "sound" / "metrics.jsonl").open("ab") as log:
                log.write(row(61 + turn, 2.5 - turn))
            terminal.signal(signal.SIGCONT)
            terminal.wait_for(rf"\b{2 - turn}\.5")
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert terminal.modes_left_on() == set()
        assert terminal.settings == list(terminal.settings_before)
        assert terminal.output.count(b"\x1b[?1049h") == terminal.output.count(b"\x1b[?1049l") == 3


_NEVER_DONE = """
from textual import events
from trainmon.tui.screens.fleet import FleetScreen
def again(self):
    self.call_later(self.again)
FleetScreen.again = FleetScreen.action_pin = again
"""


def test_screens_that_are_busy_for_ever_are_ended_by_a_signal_too(logs: Path) -> None:
    command = [*program(_NEVER_DONE), "watch", "--no-slurm", str(logs)]
    with Terminal(command, columns=120, rows=40, cwd=logs) as terminal:
        terminal.wait_for(r"\b3\.0")
        terminal.send(" ")
        terminal.settle(0.5)
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_exit() == 128 + signal.SIGTERM
        assert terminal.modes_left_on() == set()
        assert terminal.settings == list(terminal.settings_before)


# Raises where a socket of the network is made, bound, connected or looked up, and writes it down.
_NO_NETWORK = """
def watch(event, args):
    is_made = event == "socket.__new__" and int(args[1]) != 1
    if is_made or event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto") or (
        event in ("socket.connect", "socket.bind") and int(args[0].family) != 1
    ):
        with open(os.environ["SEEN"], "a") as seen:
            seen.write(f"{event} {args}\\n")
        raise OSError(101, "Network is unreachable")
sys.addaudithook(watch)
"""


@pytest.mark.parametrize("words", [("watch", "--no-slurm", "logs"), ("watch", "logs"), ("demo",)], ids=" ".join)
def test_no_screen_asks_the_network_for_anything(logs: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    seen = tmp_path / "seen"
    environment = {"SEEN": str(seen), "PYTHONPATH": str(ROOT)}
    with Terminal([*program(_NO_NETWORK), *words], cwd=tmp_path, environment=environment, columns=120) as terminal:
        terminal.wait_for(r"\b\d\.\d")
        for keys in ("\r", "l", "\x1b", "t", "\x1b", "\x1b", "?", "\x1b"):
            terminal.send(keys)
            terminal.settle()
        terminal.send("q")
        assert terminal.wait_exit() == 0
    assert not seen.exists(), seen.read_text()


def test_the_hook_sees_a_socket(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with Terminal(
        [*program(_NO_NETWORK + "import socket\nsocket.socket()")], environment={"SEEN": str(seen)}
    ) as terminal:
        assert terminal.wait_exit() != 0
    assert "socket.__new__" in seen.read_text()


def test_keys_are_answered_while_a_log_is_written_without_pause(logs: Path) -> None:
    """No time is asserted here (`benchmarks.load` measures it): each key has its effect, and no line is lost."""
    path = logs / "sound" / "metrics.jsonl"
    command = [*program(""), "watch", "--no-slurm", str(path)]
    with Terminal(command, columns=120, rows=40, cwd=logs) as terminal:
        terminal.wait_for(r"\b3\.0")
        with path.open("ab", buffering=0) as log:
            step = 61
            for key, shown in (("?", "Esc"), ("\x1b", r"loss"), ("t", r"step \d of"), ("\x1b", "loss")):
                terminal.send(key)
                until = time.monotonic() + 0.5
                while time.monotonic() < until:
                    log.write(b"".join(row(step + n, 3.0) for n in range(50)))
                    step += 50
                    terminal.read_for(0.01)
                terminal.wait_for(shown)
            log.write(row(step, 1.5))
        terminal.wait_for(r"\b1\.5")
        terminal.send("q")
        assert terminal.wait_exit() == 0
