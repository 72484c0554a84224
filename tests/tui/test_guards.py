"""Keys that once ended the screens."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import pytest
from textual.command import CommandPalette
from textual.message_pump import MessagePump

import trainmon.tui
from tests.tui.sample import SampleSource, fleet
from trainmon.tui.app import TrainmonApp
from trainmon.tui.guards import accept_any_keyboard


def test_no_method_is_taken_for_a_key_handler() -> None:
    """Textual calls `key_at` and `_key_at` when the key named "at" is pressed."""
    found = []
    for module in pkgutil.walk_packages(trainmon.tui.__path__, "trainmon.tui."):
        for _, cls in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(cls, MessagePump) and cls.__module__.startswith("trainmon."):
                found += [f"{cls.__name__}.{name}" for name in vars(cls) if name.startswith(("key_", "_key_"))]
    assert found == []


@pytest.mark.parametrize("key", ["at", "pageup", "pagedown", "home", "end", "up", "ctrl+a", "f1", "ctrl+c"])
async def test_any_key_on_the_list_and_in_the_palette_is_survived(key: str) -> None:
    app = TrainmonApp(SampleSource(fleet()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await pilot.press("colon", key, "z", "z", key)
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert not CommandPalette.is_open(app)
        assert app.return_code in (None, 0)


def test_a_byte_that_is_not_utf_8_is_a_key_like_others() -> None:
    from textual.drivers import linux_driver

    accept_any_keyboard()
    decode = linux_driver.getincrementaldecoder("utf-8")().decode
    assert decode(b"q\xe9") + decode(b"q") == "q\ufffdq"
