"""How the screens were arranged comes back with `trainmon watch` in the same directory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from tests.tui import sample
from tests.tui.driver import WAYS, StillClock
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.look import Look
from trainmon.tui.screens.compare import CompareScreen
from trainmon.tui.screens.layers import LayersScreen
from trainmon.tui.screens.run import RunScreen
from trainmon.tui.screens.triage import TriageScreen
from trainmon.tui.state import StateFile


@asynccontextmanager
async def watching(folder: Path, kind: str) -> AsyncIterator[tuple[TrainmonApp, Pilot[None]]]:
    """The program in `folder`, at the screen `kind`; what it remembers is written when it ends."""
    app = TrainmonApp(
        sample.SampleSource(sample.fleet()),
        clock=StillClock(),
        look=Look(UNICODE),
        state=StateFile(folder, folder / "state"),
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for key in WAYS[kind] if not app.pins else [one for one in WAYS[kind] if one != "space"]:
            await pilot.press(key)
            await pilot.pause()
        yield app, pilot
        await pilot.pause()


async def test_the_view_and_the_axis_of_the_comparison(tmp_path: Path) -> None:
    async with watching(tmp_path, keys.COMPARE) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        before = screen._drawn_axis
        await pilot.press("v", "x", "m")
        await pilot.pause()
        axis = screen._drawn_axis
        assert (screen.apart, axis != before) == (True, True)
    async with watching(tmp_path, keys.COMPARE) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        assert (screen.apart, screen._drawn_axis, screen.grid.view.smooth) == (True, axis, True)
        await pilot.press("v")
    async with watching(tmp_path, keys.COMPARE) as (app, pilot):
        assert isinstance(app.screen, CompareScreen)
        assert not app.screen.apart


async def test_the_pane_that_had_all_the_room(tmp_path: Path) -> None:
    async with watching(tmp_path, keys.TRIAGE) as (app, pilot):
        await pilot.press("tab", "f")
        await pilot.pause()
        assert app.screen.maximized is not None
        pane = app.screen.maximized.id
    async with watching(tmp_path, keys.TRIAGE) as (app, pilot):
        assert isinstance(app.screen, TriageScreen)
        assert app.screen.maximized is not None
        assert app.screen.maximized.id == pane
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen.maximized is None
    async with watching(tmp_path, keys.TRIAGE) as (app, _):
        assert app.screen.maximized is None


async def test_the_chart_that_was_enlarged(tmp_path: Path) -> None:
    async with watching(tmp_path, keys.RUN) as (app, pilot):
        await pilot.press("3")
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)
        assert app.screen.charts.enlarged == "3"
    async with watching(tmp_path, keys.RUN) as (app, pilot):
        assert isinstance(app.screen, RunScreen)
        assert app.screen.charts.enlarged == "3"
        await pilot.press("escape")
        await pilot.pause()
    async with watching(tmp_path, keys.RUN) as (app, _):
        assert isinstance(app.screen, RunScreen)
        assert app.screen.charts.enlarged == ""


async def test_the_family_of_the_layers_and_how_it_is_coloured(tmp_path: Path) -> None:
    async with watching(tmp_path, keys.LAYERS) as (app, pilot):
        await pilot.press("v", "w")
        await pilot.pause()
        assert isinstance(app.screen, LayersScreen)
        family = app.screen.family
        assert family != app.screen.families[0].id
    async with watching(tmp_path, keys.LAYERS) as (app, _):
        assert isinstance(app.screen, LayersScreen)
        assert (app.screen.family, app.screen.by_change) == (family, False)
