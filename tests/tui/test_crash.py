"""An error inside the screens is one line, and its details are private."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from tests.tui.sample import SampleSource, fleet
from trainmon.tui.app import TrainmonApp
from trainmon.tui.crash import told


def test_one_line_names_the_error_and_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        raise ValueError("bad \x1b]0;title\x07 value")
    except ValueError as error:
        line = told(error)
    assert "\n" not in line
    assert "\x1b" not in line
    assert "ValueError: bad" in line
    [file] = tmp_path.iterdir()
    assert str(file) in line
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert re.search(r"test_crash\.py", file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_too_little_memory_is_no_fault_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    line = told(error)
    assert "ulimit -v" in line
    assert "report" not in line
    assert not list(tmp_path.iterdir())


async def test_the_app_ends_with_that_line_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    app = TrainmonApp(SampleSource(fleet()))
    with pytest.raises(RuntimeError, match="lost its way"):
        await _run(app)
    said = capsys.readouterr().err
    assert app.return_code == 1
    assert "RuntimeError: lost its way" in said
    assert len(said.splitlines()) < 6


async def _run(app: TrainmonApp) -> None:
    async with app.run_test() as pilot:
        app.call_later(_fail)
        await pilot.pause(0.2)


def _fail() -> None:
    raise RuntimeError("lost its way")
