"""Every key of the map, on every screen where it works."""

from __future__ import annotations

import base64
import contextlib
import re
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.driver import WAYS, running, source_of, text_of
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
        assert app.added == ["eval.nll"]
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
    await pilot.press("escape", "k", "k", "l")  # the run that ran out of memory has errors
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


def grid_of(app: TrainmonApp) -> ChartGrid:
    return app.screen.query_one(ChartGrid)


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


async def other_run(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert isinstance(app.screen, RunBound)
    before, after = ("mamba-3b-hung", "moe-16x1b")
    if kind in (keys.LAYERS, keys.EXPERTS):
        before, after = ("olmo-7b-lr-hot", "llama-1b-muon")
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
    assert len(app.screen_stack) == max(2, deep - 1)
    assert isinstance(app.screen, MonitorScreen)


async def helps(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    if kind == keys.HELP:
        assert isinstance(app.screen, FleetScreen)
        return
    assert isinstance(app.screen, HelpScreen)
    assert f"keys of the {kind} screen" in text_of(app)


async def shows_palette(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert type(app.screen).__name__ == "Palette"


async def quits(app: TrainmonApp, pilot: Pilot[None], kind: str, key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert app._exit
    assert app.return_code == 0


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


CHECKS: dict[str, Check] = {
    "open": opens,
    "triage": goes_to(TriageScreen),
    "step.next": walks,
    "step.previous": walks,
    "log": goes_to(LogScreen),
    "error.next": jumps_to_error,
    "error.previous": jumps_to_error,
    "acknowledge": asks("acknowledge"),
    "snooze": asks("snooze"),
    "pin": pins,
    "compare": compares,
    "view": toggles_view,
    "axis": changes_axis,
    "alerts": goes_to(AlertsScreen),
    "inventory": goes_to(InventoryScreen),
    "draw": goes_to(SignalsScreen),
    "layers": goes_to(LayersScreen),
    "experts": goes_to(ExpertsScreen),
    "heat": turns_heat,
    "full": fills,
    "copy": copies,
    "report": reports,
    "zoom.in": zooms,
    "zoom.out": zooms,
    "fit": fits,
    "follow": follows,
    "read.left": reads,
    "read.right": reads,
    "smooth": smooths,
    "log_y": cycles_log_y,
    "outliers": cycles_outliers,
    "theme": changes_theme,
    "filter": filters,
    "sort": sorts,
    "troubled": only_troubled,
    **{f"chart.{n}": enlarges for n in range(1, 10)},
    "run.previous": other_run,
    "run.next": other_run,
    "down": moves_down,
    "up": moves_up,
    "page.down": moves_down,
    "page.up": moves_up,
    "top": to_top,
    "bottom": to_bottom,
    "left": sideways,
    "right": sideways,
    "pane.next": next_pane,
    "pane.previous": next_pane,
    "back": goes_back,
    "help": helps,
    "palette": shows_palette,
    "quit": quits,
}


@pytest.mark.parametrize(
    ("kind", "key_id", "key"),
    [(kind, key.id, key.keys.partition(",")[0]) for kind in keys.SCREENS for key in keys.keys_of(kind)],
)
async def test_key(kind: str, key_id: str, key: str) -> None:
    async with running(kind) as (app, pilot):
        assert isinstance(app.screen, KINDS[kind])
        await CHECKS[key_id](app, pilot, kind, key)


@pytest.mark.parametrize("kind", keys.SCREENS)
async def test_every_way_to_write_a_key_is_bound(kind: str) -> None:
    async with running(kind) as (app, _):
        active = app.screen.active_bindings
        for key in keys.keys_of(kind):
            for one in key.keys.split(","):
                if one != "ctrl+p":  # the app's own binding, to the same palette
                    assert active[one].binding.action == key.action, one


def test_every_screen_has_a_way_and_every_action_exists() -> None:
    assert set(WAYS) == set(keys.SCREENS) == set(KINDS)
    for kind in keys.SCREENS:
        for key in keys.keys_of(kind):
            assert hasattr(KINDS[kind], f"action_{key.action.partition('(')[0]}"), (kind, key.id)


def test_a_key_means_one_thing() -> None:
    meaning: dict[str, str] = {}
    for key in keys.KEYS:
        for one in key.keys.split(","):
            assert meaning.setdefault(one, key.id) == key.id
    assert len({key.id for key in keys.KEYS}) == len(keys.KEYS)
