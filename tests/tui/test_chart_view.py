"""Zoom, pan, cursor, axes, overlays: as numbers, and as characters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui import sample
from tests.tui.test_chart import RUNS, chart_of, words
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tui.axis import elapsed_s, mapping
from trainmon.tui.chart import Tick
from trainmon.tui.chart_view import ChartView, reading, whole_of
from trainmon.tui.compact import action_lines, budget
from trainmon.tui.curve import curve_of, draw_curve
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.span import width_of

WHOLE = (0.0, 1000.0)


MOVES = {
    "in": ("zoomed", 1),
    "out": ("zoomed", -1),
    "left": ("panned", -1),
    "right": ("panned", 1),
    "read-": ("read", -1),
    "read+": ("read", 1),
    "follow": ("following", 0),
}


@given(st.lists(st.sampled_from(sorted(MOVES)), max_size=40))
def test_the_stretch_never_leaves_the_axis(moves: list[str]) -> None:
    view = ChartView()
    for move in moves:
        step, by = MOVES[move]
        view = view.following(WHOLE) if step == "following" else getattr(view, step)(WHOLE, by)
        start, stop = view.shown(WHOLE)
        assert WHOLE[0] - 1e-6 <= start < stop <= WHOLE[1] + 1e-6
        if view.cursor is not None:
            assert WHOLE[0] <= view.cursor <= WHOLE[1]


def test_following_moves_along_with_the_newest() -> None:
    view = ChartView().following(WHOLE)
    assert view.shown(WHOLE) == (900.0, 1000.0)
    assert view.shown((0.0, 1100.0)) == (1000.0, 1100.0)
    assert not view.panned((0.0, 1100.0), -1).follow


def test_zooming_keeps_the_cursor_in_place() -> None:
    view = replace(ChartView(), cursor=250.0).zoomed(WHOLE, 1)
    assert view.stretch is not None
    start, stop = view.stretch
    assert (250.0 - start) / (stop - start) == pytest.approx(0.25)


def test_the_value_under_the_cursor() -> None:
    chart = chart_of([4.0, 3.0, 2.0, 1.0], value="1.000")
    assert reading(chart, 1.2) == "3.000 @1"
    shown = ChartView(cursor=2.0).on(chart, whole_of((chart,)))
    assert "2.000 @2" in words(shown, 40, 6)[0]


def test_a_zoomed_chart_shows_the_stretch_alone() -> None:
    chart = chart_of([float(value) for value in range(100)])
    line = words(ChartView(stretch=(40.0, 60.0)).on(chart, WHOLE), 40, 6)[-1]
    assert "40" in line
    assert line.rstrip().endswith("60")


def test_outliers_are_cut_and_marked_never_lost() -> None:
    values = [1.0 + 0.01 * (i % 7) for i in range(400)]
    values[200], values[300] = 50.0, -40.0
    plain, cut = chart_of(values), replace(chart_of(values), clip_outliers=True)
    assert "↑" not in "".join(words(plain, 60, 8))
    lines = words(cut, 60, 8)
    assert lines[1].count("↑") == 1
    assert lines[-2].count("↓") == 1


def test_smoothing_leaves_the_raw_curve() -> None:
    values = [float(i % 2) for i in range(200)]
    raw, smooth = words(chart_of(values), 40, 8), words(replace(chart_of(values), smooth=True), 40, 8)
    dots = [[ord(c) - 0x2800 for c in line[6:] if ord(c) >= 0x2800] for line in (*raw[1:-1], *smooth[1:-1])]
    half = len(dots) // 2
    for before, after in zip(dots[:half], dots[half:], strict=True):
        assert all(a & b == a for a, b in zip(before, after, strict=True)), "every raw dot is still there"


def test_ticks_stand_on_the_axis() -> None:
    chart = replace(chart_of([1.0] * 101), ticks=(Tick(30.0, "checkpoint"), Tick(70.0, "restart")))
    axis = words(chart, 60, 6)[-1]
    assert axis.index("┴") < axis.index("↻")


def test_time_goes_on_where_an_attempt_begins_its_clock_anew() -> None:
    view = sample.view("loss.train", np.array([1.0, 2, 3, 2, 3]), np.ones(5), attempts=[0, 0, 0, 1, 1])
    timed = replace(view, times=np.array([10.0, 11, 12, 0, 1]))
    seconds = elapsed_s(timed)
    assert seconds is not None
    assert seconds.tolist() == [0, 1, 2, 2, 3]
    assert elapsed_s(view) is None


def test_branches_left_behind_stay_dim_on_any_axis() -> None:
    steps = np.array([1.0, 2, 3, 4, 3, 4, 5])
    view = replace(
        sample.view("loss.train", steps, np.arange(7.0), attempts=[0, 0, 0, 0, 1, 1, 1]), times=np.arange(7.0) * 10
    )
    run = sample.with_series(RUNS[0], view)
    along = mapping(run, view, "time")
    assert along is not None
    drawn = draw_curve(curve_of(view, along=along), 0.0, 60.0, 14)
    older = np.flatnonzero(np.isfinite(drawn.merged(older=True).low) & ~np.isfinite(drawn.merged().low))
    assert older.size > 0, "steps 3 and 4 of the first attempt"
    assert float(drawn.older[0].low[np.isfinite(drawn.older[0].low)].min()) == 2.0


def test_nan_beyond_the_last_value_keeps_its_place_by_tokens() -> None:
    run = next(run for run in RUNS if run.name == "olmo-7b-lr-hot")
    view = run.series[SignalKey("loss.train")]
    along = mapping(run, view, "tokens")
    assert along is not None
    assert along.at(view.bad_steps)[-1] == pytest.approx(view.bad_steps[-1] * 524_288)


@given(st.integers(4, 40), st.integers(1, 12), st.integers(0, 5), st.integers(0, 30))
def test_rows_add_up(rows: int, action: int, signals: int, episodes: int) -> None:
    given_rows = budget(rows, action, signals, episodes)
    assert sum(given_rows) == rows
    assert min(given_rows) >= 0
    assert given_rows.upper >= min(4, rows - 1) or rows < 6


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
@pytest.mark.parametrize(("width", "rows"), [(80, 4), (60, 3), (100, 8)])
def test_what_and_next_are_both_there(run: RunSnapshot, width: int, rows: int) -> None:
    for step in run.triage:
        lines = action_lines(run, step, width, rows, UNICODE)
        assert len(lines) <= rows
        assert all(width_of(line) <= width for line in lines)
        text = " ".join("".join(span.text for span in line) for line in lines)
        assert "what" in text
        assert "next" in text or not (step.next or run.actions)
        begun = [one.first_step for one in run.episodes if one.id in step.episodes and not one.recovered]
        assert not begun or "step" in text
