"""A run's death is recognised and its cause named, whatever the hardware and however its output was filtered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitor.deaths import ends, hardware, python
from tests.tails.formats.stdout_reading import kinds, read
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.clock import SystemClock

ROWS = [*hardware.ROWS, *python.ROWS, *ends.ROWS]


def run_of(tmp_path: Path, files: str | dict[str, str]) -> RunSnapshot:
    named = {"train.log": files} if isinstance(files, str) else files
    for name, text in named.items():
        (tmp_path / name).write_text(text)
    target = tmp_path / "train.log" if isinstance(files, str) else tmp_path
    [run] = judge([str(target)], cwd=tmp_path, clock=SystemClock()).runs
    return run


@pytest.mark.parametrize(("files", "state", "root"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_how_it_ended(tmp_path: Path, files: str | dict[str, str], state: str, root: str | None) -> None:
    run = run_of(tmp_path, files)
    assert state in ("*", run.state.value), run.state_reason
    if root is None:
        assert run.root_error is None
    elif root == "*":
        assert run.root_error or run.outlived_error
    else:
        assert run.root_error
        assert root in run.root_error
    assert not run.state_reason.rstrip().endswith(";")


def test_names_are_told_apart() -> None:
    names = [row[0] for row in ROWS]
    assert len(set(names)) == len(names) >= 80


CAUGHT = (
    "step 1 | loss 5.9\nWARNING:data:retrying shard 12 after an error\nTraceback (most recent call last):\n"
    '  File "data.py", line 7, in get\n    read()\nOSError: connection lost\nstep 2 | loss 5.8\n'
)


@pytest.mark.parametrize("cut", range(7))
@pytest.mark.parametrize("width", ["", "x" * 80])
def test_a_caught_traceback_is_one_however_the_log_is_cut(cut: int, width: str) -> None:
    text = f"{width}\n{CAUGHT}" if width else CAUGHT
    parsed = read(text, cuts=[cut])
    assert (kinds(parsed, teardown=True), kinds(parsed, teardown=False)) == (["traceback"], [])


def test_a_traceback_that_nobody_warned_of_was_not_caught() -> None:
    assert kinds(read(CAUGHT.replace("WARNING:data:retrying", "INFO:data:reading")), teardown=False) == ["traceback"]
