"""The app: takes snapshots from a source, at most ten a second, and gives them to the screen in front."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.widgets import Input

from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tui.commands import KeyCommands, RunCommands
from trainmon.tui.glyphs import choose_glyphs
from trainmon.tui.look import DARK_THEME, LIGHT_THEME, Look, prefers_dark
from trainmon.tui.order import ordered
from trainmon.tui.row import Row, RunId, row_of
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.screens.compare import CompareScreen
from trainmon.tui.screens.evidence import EvidenceScreen
from trainmon.tui.screens.fleet import FleetScreen
from trainmon.tui.screens.help import HelpScreen
from trainmon.tui.screens.log import LogScreen
from trainmon.tui.screens.run import RunScreen
from trainmon.tui.screens.triage import TriageScreen
from trainmon.tui.source import SnapshotSource

FRAME_S = 0.1
_TICK_S = 1.0
# What a terminal, a shell or a batch system ends programs with; each must find the terminal as it was.
_ENDING = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")


def terminal_look() -> Look:
    """Glyphs and ground for the terminal that stdout is."""
    encoding = sys.__stdout__.encoding if sys.__stdout__ is not None else "ascii"
    return Look(choose_glyphs(os.environ, encoding or "ascii"), prefers_dark(os.environ))


class TrainmonApp(App[None]):
    """`source` publishes snapshots; `frame_s` is the shortest time between two drawings (0.1 s or more)."""

    TITLE = "trainmon"
    ALLOW_SELECT = False
    COMMANDS: ClassVar[set[type[KeyCommands] | type[RunCommands]]] = {KeyCommands, RunCommands}  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = []
    COMMAND_PALETTE_BINDING = "ctrl+p"

    def __init__(
        self,
        source: SnapshotSource,
        clock: Clock | None = None,
        look: Look | None = None,
        frame_s: float = FRAME_S,
    ) -> None:
        super().__init__()
        self.source = source
        self.clock: Clock = clock or SystemClock()
        self.look = look or terminal_look()
        self.frame_s = max(FRAME_S, frame_s)
        self.fleet: FleetSnapshot = source.latest()
        self.rows: list[Row] = [row_of(run) for run in self.fleet.runs]
        self.pins: list[RunId] = []
        self._received = self.clock.monotonic()
        self._by_id = {row.id: row for row in self.rows}
        self.register_theme(DARK_THEME)
        self.register_theme(LIGHT_THEME)
        self.theme = DARK_THEME.name if self.look.dark else LIGHT_THEME.name

    # Snapshots -----------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """The list of runs, and the two timers."""
        self._leave_on_signals()
        self.push_screen(FleetScreen())
        self.set_interval(self.frame_s, self.poll)
        self.set_interval(max(_TICK_S, self.frame_s), self._tick)

    def _leave_on_signals(self) -> None:
        """Ends as `q` does, with the exit status of a signal, so that the terminal is left as it was found."""
        loop = asyncio.get_running_loop()
        for number in (getattr(signal, name) for name in _ENDING if hasattr(signal, name)):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # not in the main thread
                loop.add_signal_handler(number, self._leave, 128 + number)

    def _leave(self, status: int) -> None:
        self.exit(return_code=status)

    async def on_event(self, event: events.Event) -> None:
        """A key acts before the next one is looked at, so that what is typed behind it goes where it leads."""
        if isinstance(event, events.Key) and not event.is_forwarded and await self._act_on(event.key):
            return
        await super().on_event(event)

    async def _act_on(self, key: str) -> bool:
        """Runs what `key` is bound to on a screen of ours; False where one types text, or it is bound to nothing."""
        screen = self.screen
        if not isinstance(screen, MonitorScreen) or isinstance(screen.focused, Input):
            return False
        if not await self._check_bindings(key):
            return False
        if isinstance(self.screen, MonitorScreen):
            await self.screen.settled()
        return True

    def poll(self) -> None:
        """Draws the newest snapshot, if it is another than the one on the screen."""
        newest = self.source.latest()
        if newest is self.fleet:
            return
        known = {id(row.run): row for row in self.rows}
        self.fleet = newest
        self.rows = [known.get(id(run)) or row_of(run) for run in newest.runs]
        self._by_id = {row.id: row for row in self.rows}
        self._received = self.clock.monotonic()
        self._show()

    def _tick(self) -> None:
        """Ages grow also when nothing comes."""
        self._show()

    def _show(self) -> None:
        screen = self.screen
        if isinstance(screen, MonitorScreen):
            screen.show(self.fleet)

    def aged_s(self) -> float:
        """Seconds since the newest snapshot came."""
        return max(0.0, self.clock.monotonic() - self._received)

    def row(self, run_id: RunId) -> Row | None:
        """The row of a run in the newest snapshot; None when it is gone."""
        return self._by_id.get(run_id)

    def rows_in_trouble_order(self) -> list[Row]:
        """All runs, the worst first."""
        return ordered(self.rows, "trouble")

    def neighbour(self, run_id: RunId, step: int) -> RunId | None:
        """The run `step` places from `run_id` in the list as it is sorted and filtered now."""
        fleet_screen = next((one for one in self.screen_stack if isinstance(one, FleetScreen)), None)
        rows = fleet_screen.matching(self.rows) if fleet_screen else self.rows
        ids = [row.id for row in rows]
        if run_id not in ids:
            return ids[0] if ids else None
        return ids[max(0, min(len(ids) - 1, ids.index(run_id) + step))]

    # Screens -------------------------------------------------------------------------------------------

    def open_run(self, run_id: RunId) -> None:
        """The run's screen."""
        self.push_screen(RunScreen(run_id))

    def open_triage(self, run_id: RunId) -> None:
        """The walk of a run; from a screen of the walk itself, that screen again."""
        if not self._return_to(lambda screen: isinstance(screen, TriageScreen) and screen.run_id == run_id):
            self.push_screen(TriageScreen(run_id))

    def open_evidence(self, run_id: RunId, step: str | None = None, episode: str | None = None) -> None:
        """The evidence of a step or of an episode."""
        self.push_screen(EvidenceScreen(run_id, step, episode))

    def open_log(self, run_id: RunId, place: tuple[str, int] | None) -> None:
        """The log, at `place` or at its end."""
        if not isinstance(self.screen, LogScreen):
            self.push_screen(LogScreen(run_id, place))

    def open_help(self, asked_on: str) -> None:
        """The keys."""
        self.push_screen(HelpScreen(asked_on))

    def open_compare(self) -> None:
        """The pinned runs that are still there; at least two."""
        there = tuple(run_id for run_id in self.pins if run_id in self._by_id)
        if len(there) < 2:
            self.notify("pin two runs or more with Space, then c compares them")
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

    def toggle_pin(self, run_id: RunId) -> None:
        """Pins, or lets go."""
        if run_id in self.pins:
            self.pins.remove(run_id)
        else:
            self.pins.append(run_id)
        self._show()

    def on_unmount(self) -> None:
        """Nothing will be asked any more."""
        self.source.stop()
