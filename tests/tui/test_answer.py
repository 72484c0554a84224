"""With --low-bandwidth a key is answered by a few frames of its own; nothing more is drawn because of it."""

from __future__ import annotations

import gc

import pytest
from textual import events

from tests.tui.driver import make_app
from trainmon.tui import answer
from trainmon.tui.app import SLOW_FRAME_S
from trainmon.tui.screens.run import RunScreen


@pytest.mark.parametrize(("slow", "most"), [("1", 4), ("", 0)])
async def test_a_key_is_answered(monkeypatch: pytest.MonkeyPatch, slow: str, most: int) -> None:
    monkeypatch.setenv("TRAINMON_LOW_BANDWIDTH", slow)
    app = make_app()
    assert (app.frame_s == SLOW_FRAME_S) == bool(slow)
    drawn: list[object] = []
    draw = answer.draw_now
    monkeypatch.setattr(answer, "draw_now", lambda screen: (drawn.append(screen), draw(screen)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.6)
        assert not drawn, "nobody pressed a key"
        await pilot.press("enter")
        await pilot.pause(1.2)
        assert len(drawn) == most
        if most:
            assert isinstance(drawn[-1], RunScreen)
        await pilot.press("j", "j", "j")
        await pilot.pause(1.2)
        assert len(drawn) <= 3 * most, "keys in a row share their frames"


async def test_no_look_for_cycles_comes_between_a_key_and_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    seen: list[bool] = []
    act = app._act_on

    async def acting(event: events.Key) -> bool:
        seen.append(gc.isenabled())
        return await act(event)

    monkeypatch.setattr(app, "_act_on", acting)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for key in ("enter", "escape", "j"):
            await pilot.press(key)
            await pilot.pause(0.5)
            assert gc.isenabled(), "once it is drawn, they go on"
        gc.disable()
        app._tick()
        assert gc.isenabled(), "and so they do where it is never drawn"
    assert seen == [False] * 3
