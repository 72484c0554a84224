"""The screens of the app: each is loaded and opened in one place, and one that is open already is gone back to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual.driver import Driver

from trainmon.tui import keys
from trainmon.tui.keymap import KeyMap
from trainmon.tui.remembering import RememberingApp
from trainmon.tui.row import Row, RunId
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.screens.fleet import FleetScreen
from trainmon.tui.spares import Spares

_NOBODY = RunId("", "")


def _a_run() -> MonitorScreen:
    from trainmon.tui.screens.run import RunScreen

    return RunScreen(_NOBODY)


def _a_walk() -> MonitorScreen:
    from trainmon.tui.screens.triage import TriageScreen

    return TriageScreen(_NOBODY)


def _a_log() -> MonitorScreen:
    from trainmon.tui.screens.log import LogScreen

    return LogScreen(_NOBODY)


def _the_help() -> MonitorScreen:
    from trainmon.tui.screens.help import HelpScreen

    return HelpScreen(keys.FLEET)


_FIRST = ((keys.RUN, _a_run), (keys.TRIAGE, _a_walk), (keys.LOG, _a_log), (keys.HELP, _the_help))


class OpeningApp(RememberingApp):
    """The part of the app that knows all screens."""

    rows: list[Row]
    key_map: KeyMap

    def __init__(self, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver_class)
        self.spares = Spares(self)

    def warm(self) -> None:
        """Has the screens that most keys lead to built before the first of these is pressed."""
        for kind, make in _FIRST:
            self.spares.want(kind, make)

    def _put(self, spare: MonitorScreen | None, make: Callable[[], MonitorScreen]) -> None:
        """Puts `spare` in front, or where there is none what `make` gives; another one is made for the next time."""
        screen = spare or make()
        self.push_screen(screen)
        if spare is not None:
            spare.begin()
        self.spares.want(screen.KIND, make, screen)

    def _set_dark(self, dark: bool) -> None:
        super()._set_dark(dark)
        self.spares.drop()

    def neighbour(self, run_id: RunId, step: int) -> RunId | None:
        """The run `step` places from `run_id` in the list as it is sorted and filtered now."""
        fleet_screen = next((one for one in self.screen_stack if isinstance(one, FleetScreen)), None)
        rows = fleet_screen.matching(self.rows) if fleet_screen else self.rows
        ids = [row.id for row in rows]
        if run_id not in ids:
            return ids[0] if ids else None
        return ids[max(0, min(len(ids) - 1, ids.index(run_id) + step))]

    def open_run(self, run_id: RunId) -> None:
        """The run's screen."""
        from trainmon.tui.screens.run import RunScreen

        screen = self.spares.take(RunScreen)
        if screen is not None:
            screen.run_id = run_id
        self._put(screen, partial(RunScreen, run_id))

    def open_triage(self, run_id: RunId) -> None:
        """The walk of a run; from a screen of the walk itself, that screen again."""
        from trainmon.tui.screens.triage import TriageScreen

        if not self._return_to(lambda screen: isinstance(screen, TriageScreen) and screen.run_id == run_id):
            screen = self.spares.take(TriageScreen)
            if screen is not None:
                screen.run_id = run_id
            self._put(screen, partial(TriageScreen, run_id))

    def open_evidence(self, run_id: RunId, step: str | None = None, episode: str | None = None) -> None:
        """The evidence of a step or of an episode."""
        from trainmon.tui.screens.evidence import EvidenceScreen

        screen = self.spares.take(EvidenceScreen)
        if screen is not None:
            screen.run_id, screen.step, screen.episode = run_id, step, episode
        self._put(screen, partial(EvidenceScreen, run_id, step, episode))

    def open_log(self, run_id: RunId, place: tuple[str, int] | None) -> None:
        """The log, at `place` or at its end."""
        from trainmon.tui.screens.log import LogScreen

        if not isinstance(self.screen, LogScreen):
            screen = self.spares.take(LogScreen)
            if screen is not None:
                screen.run_id, screen.wanted = run_id, place
            self._put(screen, partial(LogScreen, run_id, place))

    def open_help(self, asked_on: str) -> None:
        """The keys."""
        from trainmon.tui.screens.help import HelpScreen

        screen = self.spares.take(HelpScreen)
        if screen is not None:
            screen.asked_on = asked_on
        self._put(screen, partial(HelpScreen, asked_on))

    def open_compare(self) -> None:
        """The pinned runs that are still there; at least two."""
        from trainmon.tui.screens.compare import CompareScreen

        there = tuple(run_id for run_id in self.pins if run_id in self._by_id)
        if len(there) < 2:
            pin, compare = (self.key_map.shown(name) for name in ("pin", "compare"))
            self.notify(f"pin two runs or more with {pin}, then {compare} compares them")
            return
        if not self._return_to(lambda screen: isinstance(screen, CompareScreen) and screen.run_ids == there):
            self.push_screen(CompareScreen(there))

    def _return_to(self, wanted: Callable[[object], bool]) -> bool:
        """Pops back to a screen that is open already; False when there is none."""
        if not any(wanted(screen) for screen in self.screen_stack):
            return False
        while not wanted(self.screen):
            self.pop_screen()
        return True

    def open_alerts(self) -> None:
        """The episodes of all runs."""
        from trainmon.tui.screens.alerts import AlertsScreen

        if not self._return_to(lambda screen: isinstance(screen, AlertsScreen)):
            self.push_screen(AlertsScreen())

    def open_layers(self, run_id: RunId) -> None:
        """Layer by step."""
        from trainmon.tui.screens.layers import LayersScreen

        self.push_screen(LayersScreen(run_id))

    def open_experts(self, run_id: RunId) -> None:
        """The load of each expert."""
        from trainmon.tui.screens.experts import ExpertsScreen

        self.push_screen(ExpertsScreen(run_id))

    def open_inventory(self, run_id: RunId) -> None:
        """What the run logs."""
        from trainmon.tui.screens.inventory import InventoryScreen

        self.push_screen(InventoryScreen(run_id))

    def open_signals(self, run_id: RunId) -> None:
        """Every signal of the run."""
        from trainmon.tui.screens.signals import SignalsScreen

        self.push_screen(SignalsScreen(run_id))
