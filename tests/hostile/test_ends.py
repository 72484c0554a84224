"""How the program ends when it is told to while it starts, or while several processes work for it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.terminal import Terminal

# In short sleeps: a signal that comes right before one is begun is heard at its end.
SLOW = "import pathlib, time\npathlib.Path({ready!r}).touch()\nfor _ in range(600):\n    time.sleep(0.1)\n"
STARTED_S = 60.0


def environment(tmp_path: Path, *first: Path) -> dict[str, str]:
    places = os.pathsep.join(map(str, (*first, ROOT)))
    return {**os.environ, "PYTHONPATH": places, "HOME": str(tmp_path), "TRAINMON_HISTORY": "off"}


def wait_until_there(path: Path) -> None:
    until = time.monotonic() + STARTED_S
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("module", ["click", "numpy", "msgspec"])
def test_a_signal_while_it_is_loaded_leaves_no_traceback(tmp_path: Path, module: str, number: signal.Signals) -> None:
    """A module that takes long to be imported, as on a busy file server: before the command runs, and in it."""
    ready = tmp_path / "ready"
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / f"{module}.py").write_text(SLOW.format(ready=str(ready)))
    (tmp_path / "a.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "trainmon", "check", "a.jsonl"],
        cwd=tmp_path,
        env=environment(tmp_path, tmp_path / "first"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_there(ready)
    process.send_signal(number)
    out, errors = process.communicate(timeout=30)
    assert process.returncode in (-number, 128 + number)
    assert (out, errors.strip()) == ("", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.1])
def test_a_signal_as_soon_as_the_terminal_is_taken_gives_it_back(
    tmp_path: Path, number: signal.Signals, after_s: float
) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text('{"step": 1, "loss": 2.0}\n')
    with Terminal([sys.executable, "-m", "trainmon", "watch", str(log)], environment=environment(tmp_path)) as terminal:
        until = time.monotonic() + STARTED_S
        while terminal.settings == terminal.settings_before:
            assert time.monotonic() < until
            terminal.read_for(0.002)
        terminal.read_for(after_s)
        terminal.signal(number)
        assert terminal.wait_exit() == 128 + number
        assert terminal.modes_left_on() == set()
        assert terminal.settings == terminal.settings_before
        assert b"Traceback" not in terminal.output


def in_group(group: int) -> set[int]:
    """The processes of a group that have not ended."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                found.add(int(stat.parent.name))
    return found


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A check in three processes, two of which are in the middle of a log."""
    rows = "".join(f'{{"step": {step}, "loss": 2.5, "grad_norm": 1.0}}\n' for step in range(1, 40_000))
    for number in range(40):
        (tmp_path / f"run{number}").mkdir()
        (tmp_path / f"run{number}" / "metrics.jsonl").write_text(rows)
    process = subprocess.Popen(
        [sys.executable, "-m", "trainmon", "check", "--no-cache", "--jobs", "2", "."],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + STARTED_S
    while len(in_group(process.pid)) < 3:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.3)
    yield process
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="who is in a group is read from /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("is_for_all", [True, False], ids=["group", "main"])
def test_no_process_that_worked_for_it_stays(
    at_work: subprocess.Popen[str], number: signal.Signals, is_for_all: bool
) -> None:
    (os.killpg if is_for_all else os.kill)(at_work.pid, number)
    assert at_work.wait(timeout=30) in (-number, 128 + number)
    until = time.monotonic() + 30
    while in_group(at_work.pid):
        assert time.monotonic() < until, "processes are left"
        time.sleep(0.05)
    assert at_work.stderr is not None
    assert at_work.stderr.read().strip() == ""
