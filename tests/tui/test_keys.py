"""Every key of the map, on every screen where it works."""

from __future__ import annotations

import pytest

from tests.tui.driver import WAYS, running
from tests.tui.key_checks import (
    KINDS,
    Check,
    asks,
    changes_theme,
    compares,
    copies,
    filters,
    goes_back,
    goes_to,
    helps,
    jumps_to_error,
    moves_down,
    moves_up,
    next_pane,
    only_troubled,
    opens,
    other_run,
    pins,
    quits,
    reports,
    shows_palette,
    sorts,
    to_bottom,
    to_top,
    walks,
)
from tests.tui.key_checks_charts import (
    changes_axis,
    cycles_log_y,
    cycles_outliers,
    enlarges,
    fills,
    fits,
    follows,
    reads,
    sideways,
    smooths,
    toggles_view,
    turns_heat,
    zooms,
)
from trainmon.tui import keys
from trainmon.tui.screens.alerts import AlertsScreen
from trainmon.tui.screens.experts import ExpertsScreen
from trainmon.tui.screens.inventory import InventoryScreen
from trainmon.tui.screens.layers import LayersScreen
from trainmon.tui.screens.log import LogScreen
from trainmon.tui.screens.signals import SignalsScreen
from trainmon.tui.screens.triage import TriageScreen

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
