"""A call after some time comes, also where the time is over before anything has begun to wait."""

from __future__ import annotations

from tests.conftest import ROOT
from tests.tui.sample import SampleSource, fleet
from trainmon.tui.app import TrainmonApp
from trainmon.tui.later import call_after


async def test_no_call_is_left_out() -> None:
    """Textual's own one-shot timer leaves out nearly all of these: its tick is late when it looks at the time."""
    app, calls = TrainmonApp(SampleSource(fleet())), list[int]()
    async with app.run_test() as pilot:
        for number in range(200):
            call_after(app, 1e-9, lambda number=number: calls.append(number))
        await pilot.pause(0.2)
    assert sorted(calls) == list(range(200))


async def test_a_call_for_what_is_closed_by_then_does_not_come() -> None:
    app, calls = TrainmonApp(SampleSource(fleet())), list[int]()
    async with app.run_test() as pilot:
        await pilot.pause()
        call_after(app, 0.05, lambda: calls.append(1))
    assert calls == []


def test_the_screens_wait_in_no_other_way() -> None:
    files = [path for path in (ROOT / "tui").rglob("*.py") if path.name != "later.py"]
    assert [path for path in files if "set_timer(" in path.read_text(encoding="utf-8")] == []
