"""What each key is to do, checked on a screen where it works: keys that go somewhere, choose, or tell."""

from __future__ import annotations

import base64
import contextlib
import re
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from tests.tui.driver import source_of, text_of
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.screens.alerts import AlertsScreen
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.screens.compare import CompareScreen
from trainmon.tui.screens.evidence import EvidenceScreen
from trainmon.tui.screens.experts import ExpertsScreen
from trainmon.tui.screens.fleet import FleetScreen
from trainmon.tui.screens.help import HelpScreen
from trainmon.tui.screens.inventory import InventoryScreen
from trainmon.tui.screens.layers import LayersScreen
from trainmon.tui.screens.log import LogScreen
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.screens.run import RunScreen
from trainmon.tui.screens.signals import SignalsScreen
from trainmon.tui.screens.triage import TriageScreen
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.filter_bar import FilterBar
from trainmon.tui.widgets.heat_pane import HeatPane
from trainmon.tui.widgets.lines import LineList
from trainmon.tui.widgets.panes import TextList

Check = Callable[[TrainmonApp, Pilot[None], str, str], Awaitable[None]]
KINDS = {
    keys.FLEET: FleetScreen,
    keys.RUN: RunScreen,
    keys.TRIAGE: TriageScreen,
    keys.EVIDENCE: EvidenceScreen,
    keys.COMPARE: CompareScreen,
    keys.LAYERS: LayersScreen,
    keys.EXPERTS: ExpertsScreen,
    keys.LOG: LogScreen,
    keys.ALERTS: AlertsScreen,
    keys.INVENTORY: InventoryScreen,
    keys.SIGNALS: SignalsScreen,
    keys.HELP: HelpScreen,
}


def place(app: TrainmonApp) -> int:
    """Where the cursor of the focused pane is."""
    pane = app.screen.focused
    assert isinstance(pane, LineList | ChartGrid | HeatPane)
    return pane.cursor


def last_place(app: TrainmonApp) -> int:
    pane = app.screen.focused
    if isinstance(pane, TextList):
        return max(0, pane.count - pane.page)
    if isinstance(pane, HeatPane):
        return len(pane.labels) - 1
    return len(pane.charts) - 1 if isinstance(pane, ChartGrid) else pane.count - 1  # type: ignore[union-attr]


async def opens(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    if kind in (keys.LAYERS, keys.EXPERTS):
        assert isinstance(app.screen, LayersScreen | ExpertsScreen)
        assert isinstance(app.screen.maximized, ChartGrid | HeatPane)
        return
    if kind == keys.COMPARE:
        assert app.screen.query_one(ChartGrid).enlarged == "1"
        return
    if kind == keys.SIGNALS:
        assert app.added == [], "the first one is among the nine"
        for pressed in ("j", key):
            await pilot.press(pressed)
            await pilot.pause()
        assert app.added == ["grad.clip_rate"]
        await pilot.press("escape")
        await pilot.pause()
        assert "+1" in [chart.number for chart in app.screen.query_one(ChartGrid).charts]
        return
    wanted = {
        keys.FLEET: RunScreen,
        keys.RUN: EvidenceScreen,
        keys.TRIAGE: EvidenceScreen,
        keys.EVIDENCE: LogScreen,
        keys.ALERTS: EvidenceScreen,
    }
    assert isinstance(app.screen, wanted[kind])


def goes_to(screen: type[MonitorScreen]) -> Check:
    async def check(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(app.screen, screen)

    return check


async def walks(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    def step() -> str:
        screen = app.screen
        if isinstance(screen, EvidenceScreen):
            return screen.step or ""
        assert isinstance(screen, TriageScreen)
        assert screen.steps.current is not None
        return screen.steps.current.id

    if kind == keys.LOG:
        assert isinstance(app.screen, LogScreen)
        await pilot.press("slash", *"checkpoint", "enter", "escape")
        pane = app.screen.pane
        pane.move_to(pane.count - 60)
        before = pane.current
        assert before is not None
        await pilot.press(key)
        for _ in range(100):
            if app.screen.search is None:
                break
            await pilot.pause(0.05)
        await pilot.pause()
        assert pane.current is not None
        assert "checkpoint" in pane.current.text
        assert (pane.current.line_no > before.line_no) == (key == "n")
        return
    assert step() == "loss"
    await pilot.press(key)
    await pilot.pause()
    assert step() == {"n": "gradients", "N": "job"}[key]


async def jumps_to_error(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press("escape", "j", "l")  # the run that ran out of memory has errors
    await pilot.pause()
    assert isinstance(app.screen, LogScreen)
    found = []
    for _ in range(3):
        await pilot.press(key)
        await pilot.pause()
        assert app.screen.pane.current is not None
        found.append(app.screen.pane.current.line_no)
    assert found == ([3989, 3990, 3989] if key == "e" else [3990, 3989, 3990])


def asks(what: str) -> Check:
    async def check(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
        if kind == keys.RUN:
            await pilot.press("tab")
        if kind == keys.ALERTS:
            await pilot.press("slash", *"olmo", "enter")
        await pilot.press(key)
        await pilot.pause()
        asked = [one for one in source_of(app).asked if one[0] == what]
        assert len(asked) == 1
        assert asked[0][1:3] == ("olmo-7b-lr-hot", "loss.nonfinite:nonfinite:loss.train:0:3601")

    return check


async def pins(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    before = list(app.pins)
    await pilot.press(key)
    await pilot.pause()
    assert len(app.pins) == len(before) + 1
    await pilot.press(key)
    await pilot.pause()
    assert app.pins == before


async def compares(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert not isinstance(app.screen, CompareScreen), "needs two pinned runs"
    app.pins = [row.id for row in app.rows[:3]]
    await pilot.press(key)
    await pilot.pause()
    assert isinstance(app.screen, CompareScreen)


def grid_of(app: TrainmonApp) -> ChartGrid:
    return app.screen.query_one(ChartGrid)


async def changes_theme(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    before = app.look.dark
    await pilot.press(key)
    await pilot.pause()
    assert app.look.dark != before
    assert app.current_theme.dark != before


async def filters(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert app.screen.query_one(FilterBar).is_open
    words, wanted = {
        keys.FLEET: ("moe", 1),
        keys.LOG: ("checkpoint", 6),
        keys.ALERTS: ("olmo", 3),
        keys.SIGNALS: ("eval", 1),
    }[kind]
    await pilot.press(*words)
    await pilot.pause()
    assert isinstance(app.screen, MonitorScreen)
    pane = app.screen.panes()[0]
    assert isinstance(pane, LineList)
    assert pane.count == wanted
    await pilot.press("enter")
    await pilot.pause()
    assert not app.screen.query_one(FilterBar).is_open
    assert pane.has_focus
    assert pane.count == wanted
    await pilot.press("escape")
    await pilot.pause()
    assert pane.count > wanted


async def sorts(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    assert isinstance(app.screen, FleetScreen)
    seen = []
    for _ in range(8):
        await pilot.press(key)
        await pilot.pause()
        seen.append(app.screen.order)
        if app.screen.order == "name":
            names = [row.run.name for row in app.screen.table.rows]
            assert names == sorted(names)
    assert seen[-1] == "trouble"
    assert len(set(seen)) == 8


async def only_troubled(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    assert isinstance(app.screen, FleetScreen)
    await pilot.press(key)
    await pilot.pause()
    assert {row.run.verdict.value for row in app.screen.table.rows} == {"WARN", "FAIL"}
    await pilot.press(key)
    await pilot.pause()
    assert app.screen.table.count == 10


async def other_run(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert isinstance(app.screen, RunBound)
    before, after = ("mamba-3b-hung", "gpt-neox-20b")  # what still runs stands before what ended as badly
    if kind in (keys.LAYERS, keys.EXPERTS):
        before, after = ("gpt-neox-20b", "llama-1b-muon")
    name = {"left_square_bracket": before, "right_square_bracket": after}[key]
    assert app.screen.run_id.name == name
    assert name in text_of(app).splitlines()[0]


async def moves_down(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press("g")
    await pilot.press(key)
    await pilot.pause()
    assert 0 < place(app) <= last_place(app)


async def moves_up(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press("G")
    await pilot.press(key)
    await pilot.pause()
    assert place(app) < last_place(app)


async def to_top(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press("G")
    await pilot.press(key)
    assert place(app) == 0


async def to_bottom(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    assert place(app) == last_place(app)


async def next_pane(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    screen = app.screen
    assert isinstance(screen, MonitorScreen)
    panes = [pane for pane in screen.panes() if pane.display]
    assert screen.focused is panes[0]
    for step in range(1, len(panes) + 1):
        await pilot.press(key)
        assert screen.focused is panes[(step if key == "tab" else -step) % len(panes)]


async def goes_back(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    deep = len(app.screen_stack)
    await pilot.press(key)
    await pilot.pause()
    assert len(app.screen_stack) == max(1, deep - 1)
    assert isinstance(app.screen, MonitorScreen)


async def helps(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    if kind == keys.HELP:
        assert isinstance(app.screen, FleetScreen)
        return
    assert isinstance(app.screen, HelpScreen)
    text, own = text_of(app), "on this screen: "
    assert f"{own}{keys.title(kind)}" in text or (own not in text and "on every screen" in text)


async def shows_palette(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert type(app.screen).__name__ == "Palette"


async def quits(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert app._exit
    assert app.return_code == 0


async def copies(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    written: list[str] = []
    assert app._driver is not None
    app._driver.write = written.append  # type: ignore[assignment]
    await pilot.press(key)
    await pilot.pause()
    sent = [one for one in written if "\x1b]52;c;" in one]
    if kind == keys.HELP:
        assert not sent
        return
    assert len(sent) == 1
    found = re.search(r"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", sent[0])
    assert found is not None
    text = base64.b64decode(found.group(1)).decode()
    assert COPIED.get(kind, "") in text
    assert all(character.isprintable() or character == "\n" for character in text)


COPIED = {
    keys.FLEET: "FAIL",
    keys.RUN: "olmo-7b-lr-hot",
    keys.TRIAGE: "NaN since step 3601",
    keys.EVIDENCE: "iteration",
    keys.COMPARE: "loss",
    keys.LAYERS: "update ratio",
    keys.EXPERTS: "layer",
    keys.LOG: "iteration",
    keys.ALERTS: "step",
    keys.INVENTORY: "loss",
    keys.SIGNALS: "eval.nll",
}


async def reports(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        await pilot.press(key)
        for _ in range(200):
            if written := list(Path(folder).glob("trainmon-*.md")):
                break
            await pilot.pause(0.05)
        name = "moe-16x1b" if kind in (keys.LAYERS, keys.EXPERTS) else app.screen.subject().name  # type: ignore[attr-defined]
        assert [path.name.startswith(f"trainmon-{name}-") for path in written] == [True]
        assert name in written[0].read_text(encoding="utf-8")
