"""The installed program in a real tmux."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import PATIENCE_S
from tests.test_pty import TRAINMON, append, log, row
from trainmon.monitor.simulate import simulation as simulate

__all__ = ["log"]

pytestmark = pytest.mark.requires("tmux")


class Tmux:
    """One pane of 80x24 on a server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux.socket")
        self("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh")

    def __call__(self, *command: str) -> str:
        done = subprocess.run(["tmux", "-S", self._socket, *command], capture_output=True, text=True, check=True)
        return done.stdout

    def type(self, line: str) -> None:
        self("send-keys", "-l", line)
        self("send-keys", "Enter")

    def wait_for(self, what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(what, shown := self("capture-pane", "-p")):
            assert time.monotonic() < deadline, f"waited for {what!r}; the pane shows:\n{shown}"
            time.sleep(0.1)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    server = Tmux(tmp_path)
    yield server
    server("kill-server")


def test_watch_in_tmux(tmux: Tmux, log: Path) -> None:
    tmux.wait_for(r"(?m)[#$] *$")  # the shell's prompt
    tmux.type("echo before")
    tmux.wait_for("(?m)^before")
    tmux.type(f"{TRAINMON} watch '{log}'; echo status=$?")
    tmux.wait_for(r"\b3\.00")
    append(log, row(201, 2.71))
    tmux.wait_for(r"\b2\.71")
    tmux("send-keys", "q")
    tmux.wait_for(r"(?m)^status=0")
    assert "before" in tmux("capture-pane", "-p"), "what stood in the pane is there again"
    assert tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}").split() == ["0", "1", "0"]


def test_the_whole_story(tmux: Tmux, tmp_path: Path) -> None:
    """Start, see the alert, triage, the log at the spike, acknowledge, pin two runs, compare by tokens, quit."""
    folder = tmp_path / "runs"
    simulate.Simulation(folder, seed=0, runs=simulate.DEFAULT_RUNS[:3]).run_to_end(simulate.STORY_S)
    tmux.wait_for(r"(?m)[#$] *$")
    tmux.type(f"cd '{tmp_path}'; XDG_STATE_HOME='{tmp_path}/state' {TRAINMON} watch runs; echo status=$?")
    tmux.wait_for(r"FAIL +loss.*|gpt-124m\S+ .*FAIL")  # the alert: the run in trouble is on top
    tmux.wait_for(r"3 runs, by trouble")
    tmux("send-keys", "t")  # triage
    tmux.wait_for(r"FAIL Loss +step 2 of 7: this explains it")
    tmux.wait_for(r"NaN, since step \d+")
    tmux("send-keys", "l")  # the log, at the spike
    tmux.wait_for("e next error")  # the keys of the log: the triage shows lines too
    tmux.wait_for(r"(?m)^▸.*loss: nan")
    tmux("send-keys", "Escape")
    tmux.wait_for("a ack")
    tmux("send-keys", "a")  # acknowledge
    tmux.wait_for("acknowledged|seen")
    tmux("send-keys", "Escape")
    tmux.wait_for("3 runs, by trouble")
    tmux("send-keys", "/")
    tmux("send-keys", "-l", "350m or moe")
    tmux("send-keys", "Enter")
    tmux.wait_for("2 of 3 runs")
    tmux("send-keys", "g", "Space", "j", "Space", "c")  # pin both, compare
    tmux.wait_for(r"2 runs in one chart, by tokens")
    tmux.wait_for(r"loss at \d+M")
    tmux.wait_for(r"loss minus A's")
    tmux("send-keys", "q")
    tmux.wait_for(r"(?m)^status=0")
    assert (tmp_path / "state").is_dir(), "what was acknowledged and pinned is remembered"
