"""A terminal that changes its size again before the first change was drawn."""

from __future__ import annotations

import asyncio

import pytest
from textual import events
from textual.geometry import Size
from textual.screen import Screen

from tests.tui.driver import running
from trainmon.tui import keys

_ENOUGH = 60  # layouts that two changes of the size never need


@pytest.mark.parametrize("palette", [False, True])
async def test_two_changes_at_once_are_drawn_and_done_with(palette: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each layout tells the screen of its own size, and two of these in one queue called each other for ever."""
    layouts = 0
    laid_out = Screen._refresh_layout

    def count(self: Screen[None], size: Size | None = None, scroll: bool = False) -> None:
        nonlocal layouts
        layouts += 1
        if layouts > _ENOUGH:
            raise AssertionError("the layout calls itself again and again")
        laid_out(self, size, scroll)

    async with running(keys.FLEET, (80, 25)) as (app, pilot):
        if palette:
            await pilot.press(":")
            await pilot.pause()
        monkeypatch.setattr(Screen, "_refresh_layout", count)
        free = asyncio.Event()
        app.screen.call_later(free.wait)  # the screen is at work while both changes come
        for height in (24, 40, 30):
            size = Size(80, height)
            app.post_message(events.Resize(size, size, size))
            await asyncio.sleep(0.05)
            app.screen.call_later(lambda: None)  # two changes side by side are one
        free.set()
        for _ in range(20):
            await asyncio.sleep(0.01)
        await pilot.pause()
        assert app.size == app.screen.size == Size(80, 30)
        await pilot.press("escape")
