"""A terminal in which every screen is shown on hostile logs gets styles, cursor moves and printable text, no more."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.hostile import attacks
from tests.terminal import Terminal

TRAINMON = str(Path(sys.executable).with_name("trainmon"))
# The log, triage, evidence, alerts, inventory, layers, all signals and the palette; the keys are those of `tui.keys`.
WALK = (*"\rl\x1btn\r\x1b\x1bA\x1bi\x1bL\x1bX\x1bc\x1b?\x1b:", *attacks.MARK, "\x1b")


@pytest.mark.parametrize("name", ["structured", "worded", "named"])
def test_only_printable_text_arrives(tmp_path: Path, name: str) -> None:
    attacks.fill(tmp_path)
    with Terminal([TRAINMON, "watch", "--no-slurm", str(tmp_path / name)], columns=150, rows=45) as terminal:
        terminal.wait_for(r"2\.\d|1\.\d")
        seen = ""
        for key in WALK:
            terminal.send(key)
            terminal.settle()
            seen += terminal.text
        terminal.send("l")
        for _ in range(6):
            terminal.send("\x06")
            terminal.settle()
            seen += terminal.text
        terminal.send("q")
        terminal.settle()
        assert attacks.MARK not in terminal.title
        assert attacks.misused(terminal.output) == []
        assert not re.search(rb"\x1b\](?!22;)|\x1b\[20[01]~|\x1b[P_^X]", terminal.output)
        if name == "worded":
            assert "[bold red]" in seen, "markup is text like other text"
            assert "$(touch" in seen
    assert not list(tmp_path.rglob(attacks.MARK))
