"""Keys that once ended the screens."""

from __future__ import annotations

import inspect
import pkgutil
import selectors
import threading
from importlib import import_module

import pytest
from textual.command import CommandPalette
from textual.message_pump import MessagePump

import trainmon.tui
from tests.tui.sample import SampleSource, fleet
from trainmon.tui import guards
from trainmon.tui.app import TrainmonApp
from trainmon.tui.guards import CalmSelector, WakingEvent, accept_any_keyboard


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


def test_keys_are_waited_for_calmly_and_soon_again_after_one(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float | None] = []
    came: list[tuple[selectors.SelectorKey, int]] = []

    def select(self: CalmSelector, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        waited.append(timeout)
        return list(came)

    monkeypatch.setattr(selectors.SelectSelector, "select", select)
    selector = CalmSelector()
    try:
        for _ in range(8):
            selector.select(0.1)
        assert waited[0] == waited[4] == 0.1
        assert waited[7] == guards._CALM_S
        came.append((selectors.SelectorKey(0, 0, selectors.EVENT_READ, None), selectors.EVENT_READ))
        assert selector.select(0.1) == came
        came.clear()
        selector.select(0.1)
        assert waited[-1] == 0.1
    finally:
        selector.close()


def test_who_waits_for_keys_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "_CALM_S", 3600.0)
    is_over, waits = WakingEvent(), threading.Semaphore(0)

    def wait() -> None:
        selector = CalmSelector()
        while not is_over.is_set():
            waits.release()
            selector.select(0.001)
        selector.close()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    for _ in range(guards._LOOKS_AFTER_A_KEY + 1):  # the last of them lasts an hour
        assert waits.acquire(timeout=30.0)
    is_over.set()
    thread.join(30.0)
    assert not thread.is_alive()
