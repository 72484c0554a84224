"""What leaves the screens: copied text and reports; and what they say of a history that is being read."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui import sample
from tests.tui.driver import running, source_of, text_of
from trainmon.monitor.log_search import LogSearch
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tails.status import FileStatus, LogLine
from trainmon.tui import keys
from trainmon.tui.clipboard import copy_sequence
from trainmon.tui.hand_over import report_name, write_report


@given(st.text(max_size=300), st.sampled_from([{}, {"TMUX": "/tmp/tmux-0/default"}, {"STY": "12.pts"}]))
def test_only_printable_text_is_copied(text: str, environment: dict[str, str]) -> None:
    sequence, kept = copy_sequence(text, environment)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", kept)
    bare = re.sub(r"\x1bP(?!tmux;)|(?<!\x1b)\x1b\\", "", sequence) if "STY" in environment else sequence
    found = re.search(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", bare)
    assert found is not None
    assert base64.b64decode(found.group(1)).decode() == kept


def test_a_report_goes_where_it_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    said = write_report(sample.diverged(), 1e9, (blocked, tmp_path / "state"))
    (written,) = (tmp_path / "state").iterdir()
    assert said == f"report written to {written}"
    assert "NaN since step 3601" in written.read_text(encoding="utf-8")
    assert "no report was written" in write_report(sample.diverged(), 1e9, (blocked,))


@given(st.text(max_size=100))
def test_report_names_are_safe(run: str) -> None:
    assert re.fullmatch(r"trainmon-[A-Za-z0-9._]([A-Za-z0-9._-]*[A-Za-z0-9._])?-\d{8}-\d{6}\.md", report_name(run, 1e9))


def loading(read_bytes: int) -> FleetSnapshot:
    file = FileStatus("runs/a/train.log", "megatron", 400_000_000, read_bytes, 10, 9, 0, "inotify")
    run = replace(sample.healthy(), files=(file,), progress=read_bytes / 400_000_000)
    return FleetSnapshot((run,), status="1 file by inotify", reading=True)


@pytest.mark.parametrize("kind", [keys.FLEET, keys.RUN])
async def test_loading_tells_bytes_and_time_left(kind: str) -> None:
    async with running(keys.FLEET, fleet=loading(40_000_000)) as (app, pilot):
        if kind == keys.RUN:
            await pilot.press("enter")
            await pilot.pause()
        app.clock.sleep(4.0)
        source_of(app).snapshot = loading(80_000_000)
        app.poll()
        await pilot.pause()
        line = text_of(app).splitlines()[-2]
        assert "76.3 MiB of 381 MiB, 32s left" in line
        assert "20%" in line


@given(st.integers(1, 3000), st.integers(0, 3000), st.sampled_from([1, -1]))
def test_a_search_finds_the_next_line_and_no_other(start: int, wanted: int, by: int) -> None:
    lines = [LogLine("a", n, "Needle" if n in (wanted, wanted + 7) else "hay") for n in range(1, 3001)]
    search = LogSearch(lambda line, n: lines[max(0, line - 1 - n) : line + n], "a", start, "needle", by)
    search.run()
    beyond = [line.line_no for line in lines if line.text == "Needle" and (line.line_no - start) * by > 0]
    assert search.found == (min(beyond, key=lambda n: abs(n - start)) if beyond else None)
    assert search.is_done
