"""What a scheduler adds to a row of the fleet list."""

from __future__ import annotations

from dataclasses import replace

from tests.tui.sample import healthy
from trainmon.monitor.snapshot import Goodput, JobInfo
from trainmon.tui.columns import draw_row, job_words
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.row import row_of


def test_time_left_and_what_restarts_left_stand_in_the_row() -> None:
    run = healthy()
    assert job_words(run) == ""
    told = replace(run, job=JobInfo("12", "RUNNING", time_left_s=7500.0), goodput=Goodput(1000.0, 30.0, 1))
    assert job_words(told) == "2h 5m left, 97% kept"
    line = "".join(span.text for span in draw_row(row_of(told), 240, UNICODE, 1.0))
    assert "2h 5m left, 97% kept" in line
    assert row_of(told).fingerprint != row_of(run).fingerprint
