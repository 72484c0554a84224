"""A terminal that is closed (a window, a connection, a pane) ends the screens; no process goes on without one."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from tests.terminal import Terminal

TRAINMON = str(Path(sys.executable).with_name("trainmon"))
HUNG_UP = 128 + signal.SIGHUP


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"step": {step}, "loss": {4 - step / 100}}}\n' for step in range(1, 101)))
    return path


@pytest.mark.parametrize("is_own", [True, False], ids=["told by a signal", "told by nothing"])
def test_it_ends_when_its_terminal_is_closed(log: Path, is_own: bool) -> None:
    with Terminal([TRAINMON, "watch", str(log)], is_own=is_own) as terminal:
        terminal.wait_for(r"3\.00")
        assert terminal.close_window() in (HUNG_UP, -signal.SIGHUP)


@pytest.mark.parametrize("apart_ms", [0, 2, 5, 10, 20, 50, 100, 200])
def test_a_hang_up_is_followed_by_a_signal_to_go_on(log: Path, apart_ms: int) -> None:
    with Terminal([TRAINMON, "watch", str(log)]) as terminal:
        terminal.wait_for(r"3\.00")
        terminal.signal(signal.SIGHUP)
        time.sleep(apart_ms / 1000)
        terminal.signal(signal.SIGCONT)
        assert terminal.end_of() in (HUNG_UP, -signal.SIGHUP)
