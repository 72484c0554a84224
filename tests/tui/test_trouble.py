"""The list tells which kind of trouble a run is in and since which step, at every width; below it, what to do."""

from dataclasses import replace

import pytest

from tests.tui import sample
from tests.tui.driver import StillClock, running, text_of
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot, State
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.columns import draw_head, draw_row, layout
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.look import Look
from trainmon.tui.order import ordered
from trainmon.tui.row import explanation, row_of
from trainmon.tui.run_lines import row_detail, run_extra
from trainmon.tui.span import Line, width_of
from trainmon.tui.step_detail import short_detail
from trainmon.tui.trouble import found_words, trouble_words
from trainmon.tui.widgets.fleet_table import FleetTable
from trainmon.tui.widgets.panes import TextLines


def troubled() -> list[RunSnapshot]:
    return [run for run in sample.fleet().runs if explanation(run) is not None]


def text(line: Line) -> str:
    return "".join(span.text for span in line)


@pytest.mark.parametrize("width", [72, 80, 100, 160, 220])
def test_each_run_in_trouble_tells_its_kind_and_since_when_whatever_the_width(width: int) -> None:
    for run in troubled():
        why = explanation(run)
        assert why is not None
        line = draw_row(row_of(run), width, UNICODE, 1.0)
        assert width_of(line) == width == width_of(draw_head(width))
        assert trouble_words(run, why)[:18] in text(line)


def test_the_step_is_that_of_the_episode_that_explains() -> None:
    found = {run.name: trouble_words(run, why) for run in troubled() if (why := explanation(run)) and why.id != "job"}
    assert found
    for run in troubled():
        why = explanation(run)
        behind = [one for one in run.episodes if why is not None and one.id in why.episodes]
        if run.name in found and behind:
            assert found[run.name].rpartition("@")[2] in {f"{one.first_step:.0f}" for one in behind}


def test_short_names_leave_their_room_to_the_verdict() -> None:
    def verdict(longest: int) -> int:
        return {column.title: cells for column, cells in layout(160, longest)}["verdict"]

    assert verdict(12) > verdict(40)


def test_nothing_is_said_twice() -> None:
    for run in troubled():
        why = explanation(run)
        assert why is not None
        words = found_words(run, why).lower().replace(":", "").split()
        assert words[0] != words[1]


def test_what_still_runs_comes_before_what_ended_as_badly() -> None:
    (bad,) = [run for run in sample.fleet().runs if row_of(run).trouble == 5][:1]
    ended = replace(bad, name="a", state=State.FINISHED)
    alive = replace(bad, name="b", state=State.RUNNING)
    assert [row.run.name for row in ordered(map(row_of, (ended, alive)), "trouble")] == ["b", "a"]


@pytest.mark.parametrize("width", [60, 80, 100, 220])
def test_the_detail_fits_and_says_what_to_do(width: int) -> None:
    for run in troubled():
        lines = row_detail(row_of(run), width, 3, UNICODE)
        assert len(lines) <= 3
        assert all(width_of(line) <= width for line in lines)
        assert [text(line)[1:5] for line in lines][:2] == ["what", "next"]


async def test_a_full_list_shows_the_detail_of_the_run_at_the_cursor_and_how_many_more_there_are() -> None:
    one = troubled()[0]
    runs = tuple(replace(one, name=f"run{number:02d}", target=f"run{number:02d}") for number in range(40))
    app = TrainmonApp(sample.SampleSource(FleetSnapshot(runs)), clock=StillClock(), look=Look(UNICODE))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        head, detail = (app.screen.query_one(name, TextLines) for name in ("#head", "#detail"))
        below = app.screen.query_one(FleetTable).hidden[1]
        assert below > 0
        assert text(head.shown[0]).endswith(f"{below} more below")
        assert detail.display
        why = explanation(one)
        assert why is not None
        assert why.next.split()[0] in text(detail.shown[1])
        await pilot.press("G")
        await pilot.pause()
        assert text(head.shown[0]).endswith("more above")


async def test_a_short_list_shows_the_preview_instead() -> None:
    app = TrainmonApp(sample.SampleSource(sample.fleet()), clock=StillClock(), look=Look(UNICODE))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        assert app.screen.query_one("#preview").display
        assert not app.screen.query_one("#detail").display


@pytest.mark.parametrize("rows", [3, 4, 6, 8])
@pytest.mark.parametrize("width", [28, 32, 54])
def test_what_to_do_is_seen_however_long_what_was_found_is(rows: int, width: int) -> None:
    step = explanation(troubled()[0])
    assert step is not None
    long = replace(
        step, what="the loss is NaN since step 3083, " * 8, next="stop and go back to a checkpoint", explains=False
    )
    lines = [text(line) for line in short_detail(long, width, rows, "…")][:rows]
    assert any(line.startswith("next  stop") for line in lines)
    assert lines[0].startswith("what  the loss is NaN")
    assert all(len(line) <= width for line in lines)


def test_what_stands_above_is_not_recommended_again() -> None:
    run = troubled()[0]
    why = next(step for step in run.triage if step.explains)
    told = replace(run, actions=(why.next, "log the gradient norm"))
    lines = [text(line) for line in run_extra(told, 60, UNICODE)]
    assert "also recommended" in lines
    assert not any(why.next.split(",")[0] in line for line in lines)
    assert "recommended" not in " ".join(
        text(line) for line in run_extra(replace(run, actions=(why.next,)), 60, UNICODE)
    )


async def test_no_age_stands_still_beside_one_that_grows() -> None:
    async with running(keys.LOG) as (app, pilot):
        clock = app.clock
        assert isinstance(clock, StillClock)
        clock.now = 600.0
        app._show()
        await pilot.pause()
        assert "10m old" in text_of(app)
        assert "newest byte" not in text_of(app)
