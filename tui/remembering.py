"""What is still there next time: pins, charts, axis, ground and layout, in a state file; acknowledgements for all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from textual.app import App

from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tails.clock import Clock
from trainmon.tui.axis import AXES
from trainmon.tui.chart_view import ChartView
from trainmon.tui.look import Look
from trainmon.tui.memory import Memory
from trainmon.tui.order import ORDERS
from trainmon.tui.palettes import DARK_THEME, LIGHT_THEME
from trainmon.tui.row import Row, RunId
from trainmon.tui.screens.fleet import FleetScreen
from trainmon.tui.source import SnapshotSource
from trainmon.tui.state import Layout, State

if TYPE_CHECKING:
    from trainmon.monitor.sinks.alerting import Alerting


class RememberingApp(App[None]):
    """The part of the app that is still there next time; what draws and what opens screens builds on it."""

    source: SnapshotSource
    clock: Clock
    look: Look
    fleet: FleetSnapshot
    memory: Memory
    alerting: Alerting | None
    pins: list[RunId]
    added: list[str]
    axis: str
    view: ChartView
    arranged: Layout
    _by_id: dict[RunId, Row]
    _dark_by_terminal: bool

    def row(self, run_id: RunId) -> Row | None:
        """The row of a run in the newest snapshot; None when it is gone."""
        return self._by_id.get(run_id)

    def poll(self) -> None:
        """Draws the newest snapshot, if it is another than the one on the screen."""
        raise NotImplementedError

    def _show(self) -> None:
        """Draws the screen in front anew."""
        raise NotImplementedError

    def toggle_chart(self, signal: str) -> None:
        """Draws the signal on the screens of runs, or no longer."""
        if signal in self.added:
            self.added.remove(signal)
        else:
            self.added.append(signal)
        self.remember()
        self._show()

    def toggle_theme(self) -> None:
        """Dark or light ground."""
        self._set_dark(not self.look.dark)
        self.remember()
        self._show()

    def _set_dark(self, dark: bool) -> None:
        self.look = Look(self.look.glyphs, dark, self.look.few_colours, self.look.no_colours)
        self.theme = (DARK_THEME if dark else LIGHT_THEME).name

    def acknowledge(self, run_id: RunId, episode: str) -> None:
        """Seen by a person, and remembered."""
        self.source.acknowledge(run_id.name, episode)
        self._tell_team(run_id, episode, None)
        self.memory.acknowledge(run_id, episode)
        self.remember()
        self.notify("acknowledged")
        self.poll()

    def snooze(self, run_id: RunId, episode: str, seconds: float) -> None:
        """Silent for `seconds`, and remembered."""
        self.source.snooze(run_id.name, episode, seconds)
        self._tell_team(run_id, episode, self.clock.wall() + seconds)
        self.memory.snooze(run_id, episode, self.clock.wall() + seconds)
        self.remember()
        self.notify("snoozed for an hour")
        self.poll()

    def _tell_team(self, run_id: RunId, name: str, until: float | None) -> None:
        row = self.row(run_id)
        episode = next((one for one in row.run.episodes if one.id == name), None) if row is not None else None
        if self.alerting is None or row is None or episode is None:
            return
        if until is None:
            self.alerting.acknowledged(row.run, episode)
        else:
            self.alerting.snoozed(row.run, episode, until)

    # State ---------------------------------------------------------------------------------------------

    def _recalled(self, state: State) -> FleetScreen:
        """The list of runs as it was left; charts, pins and ground too."""
        self.pins = [RunId(*pin) for pin in state.pins]
        self.added = list(state.added)
        self.axis = state.axis if state.axis in AXES else "step"
        self.arranged = state.layout
        self.view = ChartView(smooth=state.smooth, log_y=state.log_y, clip=state.clip)
        if state.dark is not None and "TRAINMON_THEME" not in os.environ:
            self._set_dark(state.dark)
        fleet_screen = FleetScreen()
        fleet_screen.order = state.order if state.order in ORDERS else "trouble"
        fleet_screen.filter_text, fleet_screen.only_troubled = state.filter, state.only_troubled
        return fleet_screen

    def _state(self) -> State:
        listed = next((one for one in self.screen_stack if isinstance(one, FleetScreen)), None)
        before = self.memory.state
        return State(
            pins=tuple((pin.name, pin.target) for pin in self.pins),
            acknowledged=tuple(self.memory.acknowledged),
            snoozed=tuple(one for one in self.memory.snoozed if one[3] > self.clock.wall()),
            order=listed.order if listed else before.order,
            filter=listed.filter_text if listed else before.filter,
            only_troubled=listed.only_troubled if listed else before.only_troubled,
            axis=self.axis,
            smooth=self.view.smooth,
            log_y=self.view.log_y,
            clip=self.view.clip,
            added=tuple(self.added),
            dark=None if self.look.dark == self._dark_by_terminal else self.look.dark,
            layout=self.arranged,
        )

    def remember(self) -> None:
        """Writes what is to come back next time."""
        self.memory.state = self._state()
        self.memory.write(self.memory.state, lambda said: self.call_from_thread(self.notify, said, markup=False))

    def keep_layout(self, **changes: object) -> None:
        """Keeps how a screen is arranged: fields of `Layout` with their new values."""
        after = msgspec.structs.replace(self.arranged, **changes)
        if after != self.arranged:
            self.arranged = after
            self.remember()

    def toggle_pin(self, run_id: RunId) -> None:
        """Pins, or lets go."""
        if run_id in self.pins:
            self.pins.remove(run_id)
        else:
            self.pins.append(run_id)
        self.remember()
        self._show()
