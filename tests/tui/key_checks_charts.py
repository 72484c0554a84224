"""What each key of the charts and the maps is to do."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.tui.driver import text_of
from tests.tui.key_checks import grid_of
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.screens.experts import ExpertsScreen
from trainmon.tui.screens.layers import LayersScreen
from trainmon.tui.screens.log import LogScreen
from trainmon.tui.widgets.chart_grid import ChartGrid


async def toggles_view(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    if isinstance(app.screen, LayersScreen):
        seen = []
        for _ in range(3):
            seen.append(app.screen.family.partition("(")[0])
            await pilot.press(key)
            await pilot.pause()
        assert seen == ["update.ratio", "tensor.rms", "probe.layers.*.sharpness"]
        assert app.screen.family.startswith("update.ratio")
        return
    grid = app.screen.query_one(ChartGrid)
    together = len(grid.charts)
    await pilot.press(key)
    await pilot.pause()
    assert len(grid.charts) == 2 * (together - 1), "the difference is drawn only in one chart"
    await pilot.press(key)
    await pilot.pause()
    assert len(grid.charts) == together


async def changes_axis(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    grid = app.screen.query_one(ChartGrid)
    assert grid.charts[0].x_name != "tokens"
    before = grid.charts[0].x_range
    assert before is not None
    await pilot.press(key)
    await pilot.pause()
    chart = app.screen.query_one(ChartGrid).charts[0]
    assert chart.x_name == "tokens"
    assert chart.x_range == pytest.approx((before[0] * 524_288, before[1] * 524_288))
    await pilot.press(key)
    await pilot.pause()
    assert app.screen.query_one(ChartGrid).charts[0].x_range == before


async def zooms(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press("0", "plus", "plus")
    await pilot.pause()
    first = grid_of(app).view.stretch
    assert first is not None
    await pilot.press(key)
    await pilot.pause()
    second = grid_of(app).view.stretch
    assert second is not None
    ratio = (second[1] - second[0]) / (first[1] - first[0])
    assert ratio == pytest.approx(0.5 if key == "plus" else 2.0)


async def fits(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press("plus", "comma", key)
    await pilot.pause()
    assert grid_of(app).view.stretch is None
    assert grid_of(app).view.cursor is None


async def follows(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    view = grid_of(app).view
    assert view.follow
    assert view.shown((0.0, 5000.0))[1] == 5000.0


async def reads(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press("comma", "comma", "comma")
    await pilot.pause()
    before = grid_of(app).view.cursor
    assert before is not None
    await pilot.press(key)
    await pilot.pause()
    after = grid_of(app).view.cursor
    assert after is not None
    assert (after < before) == (key == "comma")
    if kind != keys.COMPARE:
        assert "@" in text_of(app), "the value at the cursor"


async def smooths(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert grid_of(app).view.smooth
    assert app.view.smooth, "holds on other screens too"
    await pilot.press(key)
    assert not grid_of(app).view.smooth


async def cycles_log_y(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    seen = []
    for _ in range(3):
        await pilot.press(key)
        seen.append(grid_of(app).view.log_y)
    assert seen == [True, False, None]


async def cycles_outliers(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    seen = []
    for _ in range(3):
        await pilot.press(key)
        seen.append(grid_of(app).view.clip)
    assert seen == [True, False, None]


async def enlarges(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    grid = app.screen.query_one(ChartGrid)
    await pilot.press(key)
    await pilot.pause()
    if key in "789":  # a dense run without these signals: says why instead
        assert grid.enlarged == ""
        assert len(app._notifications) == 1
        return
    assert grid.enlarged == key
    assert not app.screen.query_one("#alerts").display
    await pilot.press(key)
    await pilot.pause()
    assert grid.enlarged == ""
    assert app.screen.query_one("#alerts").display


async def sideways(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    if not isinstance(app.screen, LogScreen):
        await pilot.press("plus", "plus", "left", "left")
        before = grid_of(app).view.stretch
        await pilot.press(key)
        after = grid_of(app).view.stretch
        assert before is not None
        assert after is not None
        assert (after[0] > before[0]) == (key == "right")
        return
    await pilot.press("right", "right", key)
    assert app.screen.pane.shift == (60 if key == "right" else 20)


async def turns_heat(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    screen = app.screen
    assert isinstance(screen, LayersScreen | ExpertsScreen)
    before = screen.by_change
    await pilot.press(key)
    await pilot.pause()
    assert screen.by_change != before
    words = "usual level" if kind == keys.LAYERS else "of the layer's mean"
    assert (words in text_of(app)) == screen.by_change


async def fills(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    screen = app.screen
    assert isinstance(screen, MonitorScreen)
    pane = screen.panes()[1 if kind == keys.TRIAGE else 0]  # the walk is a line
    before = pane.size
    await pilot.press(key)
    await pilot.pause()
    assert pane.size == app.size != before
    await pilot.press("escape")
    await pilot.pause()
    assert app.screen is screen, "the first Esc shows all panes again"
    assert pane.size == before
