"""The app as a whole: sizes, hostile text, many runs, changes while one looks."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest
from textual import events
from textual.geometry import Region

from tests.tui import sample
from tests.tui.driver import WAYS, StillClock, change_run, running, source_of, text_of
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.glyphs import ASCII, UNICODE
from trainmon.tui.look import Look
from trainmon.tui.screens.fleet import FleetScreen
from trainmon.tui.screens.log import LogScreen
from trainmon.tui.screens.run import RunScreen
from trainmon.tui.screens.triage import TriageScreen

SIZES = [(60, 15), (80, 24), (100, 30), (160, 48), (300, 100)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", keys.SCREENS)
async def test_every_screen_at_every_size(kind: str, size: tuple[int, int]) -> None:
    async with running(kind, size) as (app, _):
        text = text_of(app)
        wanted = {
            keys.FLEET: "gpt-n",
            keys.RUN: "triage",
            keys.TRIAGE: "what ",
            keys.EVIDENCE: "log train.log",
            keys.COMPARE: "2 runs in one chart",
            keys.LAYERS: "update ratio",
            keys.EXPERTS: "MaxVio",
            keys.LOG: "iteration",
            keys.ALERTS: "open ones first",
            keys.INVENTORY: "status   signal",
            keys.SIGNALS: "Enter draws",
            keys.HELP: "on this screen: list of runs",
        }
        assert wanted[kind] in text
        assert text.splitlines()[-1].rstrip().endswith("quit")


async def test_the_list_shows_what_matters_at_80x24() -> None:
    async with running() as (app, _):
        lines = text_of(app).splitlines()
        assert "3 failing" in lines[0]
        assert "3 warned" in lines[0]
        assert all(part in lines[2] for part in ("mamba-3b-hung", "FAIL hung", "47m")), "still holds its machines"
        died = next(line for line in lines if "gpt-neox-20b" in line)
        assert all(part in died for part in ("4000/10k", "2.310", "FAIL OOM", "2h"))
        diverged = next(line for line in lines if "olmo-7b" in line)
        assert "NaN" in diverged
        assert "✗" in diverged, "the sparkline marks NaN"
        assert "permission denied" in lines[-2]


async def test_the_run_screen_at_80x24_answers_everything() -> None:
    async with running(keys.RUN) as (app, _):
        text = text_of(app)
        for part in (
            "olmo-7b-lr-hot",
            "FAIL",
            "1 ✖ loss NaN",
            "triage",
            "alerts",
            "step 3601-4000",
            "next",
            "2 ",
            "6 ",
        ):
            assert part in text


async def test_three_keys_from_the_list_to_the_log_lines_of_the_fault() -> None:
    async with running() as (app, pilot):
        await pilot.press("j", "j", "t", "enter", "l")
        await pilot.pause()
        assert isinstance(app.screen, LogScreen)
        assert app.screen.pane.current is not None
        assert "CUDA out of memory" in app.screen.pane.current.text


@pytest.mark.parametrize("size", [(39, 24), (80, 9), (1, 1), (20, 5)])
@pytest.mark.parametrize("kind", [keys.FLEET, keys.RUN])
async def test_too_small_is_said_politely(kind: str, size: tuple[int, int]) -> None:
    async with running(kind) as (app, pilot):
        await pilot.resize_terminal(*size)
        await pilot.pause()
        text = text_of(app)
        assert "too small" in text or size[0] < 20
        assert "gpt-neox" not in text
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "too small" not in text_of(app)


@pytest.mark.parametrize("size", [(40, 10), (59, 40), (100, 14)])
async def test_small_shows_status_lines_only(size: tuple[int, int]) -> None:
    async with running(size=size) as (app, _):
        lines = text_of(app).splitlines()
        assert "FAIL" in lines[0]
        assert "mamba" in lines[0]
        assert len([line for line in lines if "PASS" in line or "WARN" in line or "FAIL" in line]) >= 8


async def test_a_resize_storm_ends_in_a_whole_screen() -> None:
    async with running(keys.RUN) as (app, pilot):
        for width, height in [(30, 8), (200, 60), (41, 11), (80, 24), (59, 15), (300, 100), (2, 2), (120, 40)] * 3:
            await pilot.resize_terminal(width, height)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        text = text_of(app)
        assert "olmo-7b-lr-hot" in text
        assert "alerts" in text
        assert text.splitlines()[-1].rstrip().endswith("quit")


@pytest.mark.parametrize("kind", keys.SCREENS)
async def test_hostile_text_is_shown_and_never_obeyed(kind: str) -> None:
    fleet = FleetSnapshot((sample.hostile(), sample.hostile("[red]b[/red]\x9b31m")), ("[bold]p[/bold]\x1b[2J",), "s")
    way = {keys.COMPARE: ["space", "j", "space", "c"]}.get(kind) or [key for key in WAYS[kind] if key != "j"]
    async with running(fleet=fleet, size=(120, 40)) as (app, pilot):
        await pilot.press(*way)
        await pilot.pause()
        text = text_of(app)
        if kind != keys.HELP:
            assert "[bold]ev" in text
        for forbidden in ("\x1b", "\x07", "\x9b", "\u202e", "\u2066"):
            assert forbidden not in text
        if kind == keys.LOG:
            assert "[bold red]not markup[/]" in text
            assert "訓練" in text
        svg = app.export_screenshot()
        assert "\x1b" not in svg


async def test_a_hostile_name_in_the_palette_and_in_messages() -> None:
    async with running(fleet=FleetSnapshot((sample.hostile(),))) as (app, pilot):
        await pilot.press("colon")
        await pilot.press(*"open")
        await pilot.pause(0.3)
        assert "[bold]evil" in text_of(app)
        await pilot.press("escape", "enter")
        await pilot.pause()
        await pilot.press("7")
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)


async def test_two_hundred_runs() -> None:
    async with running(fleet=sample.big_fleet(200), size=(120, 40)) as (app, pilot):
        assert isinstance(app.screen, FleetScreen)
        assert app.screen.table.count == 200
        await pilot.press("G")
        await pilot.pause()
        assert app.screen.table.current is app.screen.table.rows[-1]
        assert app.screen.table.rows[-1].run.name in text_of(app)
        await pilot.press("exclamation_mark")
        await pilot.pause()
        assert app.screen.table.count == 20
        await pilot.press("slash", *"run-019")
        await pilot.pause()
        assert [row.run.name for row in app.screen.table.rows] == ["run-019"]


async def test_a_bad_filter_says_why_and_keeps_the_list() -> None:
    async with running() as (app, pilot):
        await pilot.press("slash", *"colour:red")
        await pilot.pause()
        assert isinstance(app.screen, FleetScreen)
        assert "no field colour" in text_of(app)
        assert app.screen.table.count > 0
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen.table.count == 10
        assert app.screen.table.has_focus


async def test_letters_typed_into_the_filter_are_not_keys() -> None:
    async with running() as (app, pilot):
        await pilot.press("slash", *"qtcs?:!")
        await pilot.pause()
        assert isinstance(app.screen, FleetScreen)
        assert app.screen.filter_text == "qtcs?:!"
        assert app.is_running


@pytest.mark.parametrize(
    ("fleet", "words"),
    [
        (FleetSnapshot(()), "no runs found"),
        (FleetSnapshot((), status="looked for *.log, *.jsonl below /data"), "looked for *.log, *.jsonl below /data"),
        (FleetSnapshot((), reading=True), "looking for runs"),
    ],
)
async def test_nothing_found_says_what_was_looked_for(fleet: FleetSnapshot, words: str) -> None:
    async with running(fleet=fleet) as (app, pilot):
        assert words in text_of(app)
        await pilot.press("enter", "t", "l", "space", "c", "j", "G", "s", "exclamation_mark")
        await pilot.pause()
        assert isinstance(app.screen, FleetScreen)


async def test_the_log_follows_until_one_scrolls_up() -> None:
    async with running(keys.LOG) as (app, pilot):
        assert isinstance(app.screen, LogScreen)
        lines = app.screen.pane.lines_
        more = replace(lines[-1], line_no=4001, text="the newest line")
        change_run(app, "olmo-7b-lr-hot", log_tail=(*lines, more))
        app.poll()
        await pilot.pause()
        assert "the newest line" in text_of(app)
        await pilot.press("k", "k")
        at = app.screen.pane.current
        change_run(app, "olmo-7b-lr-hot", log_tail=(*lines, more, replace(more, line_no=4002, text="one more")))
        app.poll()
        await pilot.pause()
        assert app.screen.pane.current == at
        await pilot.press("G")
        await pilot.pause()
        assert "one more" in text_of(app)


async def test_the_walk_stops_at_the_step_that_explains() -> None:
    async with running(keys.TRIAGE) as (app, pilot):
        assert isinstance(app.screen, TriageScreen)
        assert "this explains it, the walk stops here" in text_of(app)
        assert "stop it; go back to the checkpoint at step 2950" in text_of(app)
        await pilot.press("n")
        await pilot.pause()
        assert "loss explains the symptom already" in text_of(app)


async def test_ascii_only_where_the_terminal_has_no_utf8() -> None:
    for kind in keys.SCREENS:
        async with running(kind, glyphs=ASCII) as (app, _):
            text = text_of(app)
            assert text.isascii(), {c for c in text if not c.isascii()}
            assert "?" not in text.replace("? help", "").replace("? sft", "").replace("?           ", "").replace(
                "?  state", ""
            )


async def test_a_light_terminal() -> None:
    source = sample.SampleSource(sample.fleet())
    app = TrainmonApp(source, clock=StillClock(), look=Look(UNICODE, dark=False))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.theme == "trainmon-light"
        grounds = {
            segment.style.bgcolor.get_truecolor()
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style and segment.style.bgcolor
        }
        assert all(sum(ground) > 400 for ground in grounds)


async def test_the_source_is_told_to_stop() -> None:
    async with running() as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
    assert source_of(app).stopped


def test_the_app_needs_neither_pandas_nor_plotext() -> None:
    code = "import sys, trainmon.tui.app; print(sorted({'pandas', 'plotext', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_keys_typed_in_one_burst_go_where_they_lead() -> None:
    async with running() as (app, pilot):
        for key in ("slash", *"muon", "enter", "enter", "t", "n"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, TriageScreen)
        assert screen.run_id.name == "llama-1b-muon"
        assert screen.steps.current is not None
        assert screen.steps.current.id == "gradients"


async def test_the_signal_that_explains_has_the_chart_at_80x24() -> None:
    async with running() as (app, pilot):
        await pilot.press("slash", *"moe-16x1b", "enter", "enter")
        await pilot.pause()
        text = text_of(app)
        assert "7 ▲ MaxVio" in text.splitlines()[2]
        for needed in ("what a few experts get most tokens since step 2910", "next raise the load-balancing", "alerts"):
            assert needed in text
        for number in "12345689":
            assert any(f"{number} " in line for line in text.splitlines()[10:]), number


async def test_a_tick_while_the_screen_is_taken_down_is_survived() -> None:
    async with running() as (app, pilot):
        assert isinstance(app.clock, StillClock)
        await app.screen.query_one("#body").remove()
        app.clock.now += 5
        app._tick()
        await pilot.pause()


async def test_a_ticking_age_sends_its_own_cells_only() -> None:
    async with running() as (app, pilot):
        assert isinstance(app.clock, StillClock)
        app.screen._compositor._dirty_regions.clear()
        app.screen._compositor._written.clear()  # type: ignore[attr-defined]  # else not even these are written again
        app.clock.now += 5
        table = app.screen.query_one("#table")
        table.refresh(Region(76, 1, 4, 1))
        app.screen._compositor.update_widgets({table})
        update = app.screen._compositor.render_partial_update()
        assert update is not None
        written = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", update.render_segments(app.console))
        assert len(written) == 4
        await pilot.pause()


def test_a_screen_that_is_being_built_looks_at_nothing_yet() -> None:
    assert FleetScreen().looked_at() is None


async def test_a_list_looks_at_all_runs_alike_and_a_run_screen_at_its_run() -> None:
    async with running() as (app, pilot):
        assert isinstance(app.screen, FleetScreen)
        current = app.screen.table.current
        assert current is not None
        assert app.screen.looked_at() == frozenset()
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)
        assert app.screen.looked_at() == {current.id.name}
