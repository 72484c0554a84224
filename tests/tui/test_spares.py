"""Screens that stand ready: what is put in front shows what a new one shows, and is drawn once."""

from __future__ import annotations

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widget import Widget

from tests.tui.driver import WAYS, running, text_of
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.screens.fleet import FleetScreen
from trainmon.tui.thin import ThinCompositor

KINDS = (keys.RUN, keys.TRIAGE, keys.LOG, keys.EVIDENCE, keys.HELP)
POKES = ("j", "j", "tab", "k", "right", "f", "n", "G", "plus", "1")  # cursor, panes, all the room, zoom
SIZE = (120, 40)


async def stood_ready(app: TrainmonApp, pilot: Pilot[None], kind: str) -> None:
    for _ in range(200):
        if app.spares.has(kind):
            return
        await pilot.pause(0.02)
    raise AssertionError(f"no spare of {kind}")


async def back_to_the_list(app: TrainmonApp, pilot: Pilot[None]) -> None:
    for _ in range(20):
        if isinstance(app.screen, FleetScreen):
            return
        await pilot.press("escape")
        await pilot.pause()
    raise AssertionError("no way back")


async def opened(pilot: Pilot[None], kind: str) -> None:
    for key in WAYS[kind]:
        await pilot.press(key)
        await pilot.pause()
    await pilot.pause(0.1)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_spare_shows_what_a_new_screen_shows(kind: str) -> None:
    async with running(kind, SIZE) as (app, pilot):
        await pilot.pause(0.1)
        wanted = text_of(app)
    async with running(size=SIZE) as (app, pilot):
        await opened(pilot, kind)
        if kind != keys.HELP:
            await pilot.press("]")  # another run of the same list
        for key in POKES:
            await pilot.press(key)
        await back_to_the_list(app, pilot)
        await pilot.press("g")
        await pilot.pause()
        app.arranged = type(app.arranged)()  # what is meant to be kept is not what is looked for here
        app.view = type(app.view)()
        await stood_ready(app, pilot, kind)
        await opened(pilot, kind)
        assert text_of(app) == wanted


@pytest.mark.parametrize("kind", [keys.RUN, keys.TRIAGE, keys.LOG, keys.HELP])
async def test_a_key_builds_nothing_and_draws_once_where_a_screen_stands_ready(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(size=SIZE) as (app, pilot):
        await opened(pilot, kind)
        await back_to_the_list(app, pilot)
        await pilot.press("g")
        await stood_ready(app, pilot, kind)
        *before, last = WAYS[kind]
        for key in before:
            await pilot.press(key)
        await pilot.pause(0.2)
        frames: list[str] = []
        built: list[Widget] = []
        drawn, registered = ThinCompositor.render_update, App._register

        def counted(self: ThinCompositor, *args: object, **kwargs: object) -> object:
            update = drawn(self, *args, **kwargs)  # type: ignore[arg-type]
            if update is not None:
                frames.append("frame")
            return update

        def noted(self: App[None], parent: Widget, *widgets: Widget, **kwargs: object) -> list[Widget]:
            built.extend(widgets)
            return registered(self, parent, *widgets, **kwargs)  # type: ignore[arg-type]

        monkeypatch.setattr(ThinCompositor, "render_update", counted)
        monkeypatch.setattr(App, "_register", noted)
        monkeypatch.setattr(app.spares, "_make_one", lambda: None)  # that of the next time
        await pilot.press(last)
        await pilot.pause(0.2)
        assert kind == app.screen.KIND  # type: ignore[attr-defined]
        assert not built
        assert frames == ["frame"]


async def test_another_ground_has_what_stands_ready_made_anew() -> None:
    async with running(size=SIZE) as (app, pilot):
        await opened(pilot, keys.HELP)
        await back_to_the_list(app, pilot)
        await stood_ready(app, pilot, keys.HELP)
        old = app.spares._ready[keys.HELP][0]
        app.toggle_theme()
        assert not app.spares.has(keys.HELP)
        await stood_ready(app, pilot, keys.HELP)
        assert app.spares._ready[keys.HELP][0] is not old


async def test_a_spare_fits_a_terminal_that_has_another_size_by_now() -> None:
    async with running(keys.LOG, (80, 24)) as (app, pilot):
        await pilot.pause(0.1)
        wanted = text_of(app)
    async with running(size=SIZE) as (app, pilot):
        await opened(pilot, keys.LOG)
        await back_to_the_list(app, pilot)
        await pilot.press("g")
        await stood_ready(app, pilot, keys.LOG)
        await pilot.resize_terminal(80, 24)
        await pilot.pause(0.1)
        await opened(pilot, keys.LOG)
        assert text_of(app) == wanted
