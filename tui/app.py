"""The app: takes snapshots from a source, at most ten a second, and gives them to the screen in front."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.command import CommandPalette
from textual.filter import Monochrome, NoColor
from textual.widgets import Input

from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.give_way import KEYS
from trainmon.tails.here import here
from trainmon.tails.text import printable
from trainmon.tui.answer import Answer
from trainmon.tui.chart_view import ChartView
from trainmon.tui.clipboard import copy_sequence
from trainmon.tui.commands import KeyCommands, RunCommands
from trainmon.tui.crash import told
from trainmon.tui.ending import Ending, Terminal
from trainmon.tui.glyphs import choose_glyphs
from trainmon.tui.ground import ask_dark
from trainmon.tui.guards import Palette, accept_any_keyboard, is_late, outlive_the_terminal, wait_calmly
from trainmon.tui.hand_over import write_report
from trainmon.tui.keymap import KeyMap
from trainmon.tui.later import call_after
from trainmon.tui.loading import Pace, read_bytes, read_runs, words
from trainmon.tui.look import AsciiFilter, Look, PlainFilter, has_few_colours, prefers_dark
from trainmon.tui.memory import Memory
from trainmon.tui.opening import OpeningApp
from trainmon.tui.order import ordered
from trainmon.tui.palettes import DARK_THEME, LIGHT_THEME
from trainmon.tui.row import Row, RunId, row_of
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.source import LiveSource, SnapshotSource
from trainmon.tui.state import Layout, StateFile
from trainmon.tui.widgets.filter_bar import FilterBar

if TYPE_CHECKING:
    from trainmon.monitor.sinks.alerting import Alerting

FRAME_S = 0.1
SLOW_FRAME_S = 1.0  # with --low-bandwidth
_TICK_S = 1.0
_KEY_FIRST_S = 0.03  # news wait so long, and again, while an answer to a key is drawn
_LATEST_S = 0.5  # but no longer than this
_MOST_ASKED = 64  # files of a run that are asked after: ranks write together
_AWAITED_S = 60.0  # what has not come by then is missing
_WARM_S = 0.5  # after all is read other screens are built; what is new on this one is drawn first
_TURN_S = 0.001  # of threads that work, until a key that was pressed is heard
_STILL_S = 1.7  # a screen that was drawn so lately shows the ages nearly as they are


def terminal_look() -> Look:
    """Glyphs and ground for the terminal that stdout is."""
    encoding = sys.__stdout__.encoding if sys.__stdout__ is not None else "ascii"
    glyphs = choose_glyphs(os.environ, encoding or "ascii")
    dark = ask_dark(SystemClock()) if os.environ.get("TRAINMON_THEME") == "auto" else None
    return Look(
        glyphs,
        prefers_dark(os.environ) if dark is None else dark,
        has_few_colours(os.environ),
        no_colours="NO_COLOR" in os.environ,
    )


def _answered() -> None:
    """The answer to a key is drawn: whoever gave way to it goes on."""
    KEYS.done()
    gc.enable()


class TrainmonApp(OpeningApp):
    """`source` publishes snapshots; `frame_s` is the shortest time between two drawings (0.1 s or more).

    `state` is where pins and the like are remembered: in a real terminal the file of the current directory, else none.
    """

    TITLE = "trainmon"
    ALLOW_SELECT = False
    COMMANDS: ClassVar[set[type[KeyCommands] | type[RunCommands]]] = {KeyCommands, RunCommands}  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = []
    COMMAND_PALETTE_BINDING = "ctrl+p"
    CSS = """
    App:nocolor CommandList > .option-list--option-highlighted { text-style: reverse; }
    """

    def __init__(
        self,
        source: SnapshotSource,
        clock: Clock | None = None,
        look: Look | None = None,
        frame_s: float = FRAME_S,
        state: StateFile | None = None,
        key_map: KeyMap | None = None,
    ) -> None:
        super().__init__(driver_class=Terminal)
        self._ending = Ending(self._leave, self._give_back)
        self._hears_signals = False  # it does while it has the terminal
        if self.no_color:
            self._filters = [
                PlainFilter(),
                *(one for one in self._filters if not isinstance(one, Monochrome | NoColor)),
            ]
        accept_any_keyboard()
        outlive_the_terminal()
        wait_calmly()
        self.source = source
        self.clock: Clock = clock or SystemClock()
        self.look = look or terminal_look()
        self._dark_by_terminal = self.look.dark
        if not self.look.glyphs.braille:
            self._filters.append(AsciiFilter())
        is_slow = os.environ.get("TRAINMON_LOW_BANDWIDTH", "") not in ("", "0")
        self.frame_s = max(SLOW_FRAME_S if is_slow else FRAME_S, frame_s)
        self._answer = Answer(self) if is_slow else None
        if is_slow:
            self.animation_level = "none"
        self.fleet: FleetSnapshot = source.latest()
        self.rows: list[Row] = [row_of(run, self.clock.monotonic()) for run in self.fleet.runs]
        self.pins: list[RunId] = []
        self.added: list[str] = []
        self.axis = "step"
        self.view = ChartView()
        self.arranged = Layout()
        self.memory = Memory(state)
        self.key_map = key_map or KeyMap()
        self.alerting: Alerting | None = None  # set by who starts the app, before it runs; so is this:
        self.awaited = ""  # what to say while no run is there yet, where some are sure to come; and this:
        self.when_painted: Callable[[], None] | None = None  # what begins once the first screen stands
        self.trouble: SimpleQueue[str] = SimpleQueue()  # lines for the user, from any thread
        self._received = self._began_s = self.clock.monotonic()
        self._by_id = {row.id: row for row in self.rows}
        self._pace = Pace()
        self._live = source if isinstance(source, LiveSource) else None
        self._polled_s = self._shown_s = -self.frame_s
        self._is_due = self._is_warm = False
        self.loading: tuple[float, str] | None = None
        self.register_theme(DARK_THEME)
        self.register_theme(LIGHT_THEME)
        self.theme = DARK_THEME.name if self.look.dark else LIGHT_THEME.name

    def action_command_palette(self) -> None:
        """Opens the list of all commands."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(id="--command-palette"))

    def _handle_exception(self, error: Exception) -> None:
        if not is_late(error, leaving=self._exit):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Leaves the screen with one line, in place of Textual's traceback of all that was on it."""
        self._exit_renderables.append(Text(told(self._exception)))
        self._close_messages_no_wait()

    # Snapshots -----------------------------------------------------------------------------------------

    def get_default_screen(self) -> MonitorScreen:
        """The list of runs, as it was left."""
        if self.memory.file is None and not self.is_headless:
            self.memory = Memory(StateFile(here()))
        self.loading = self._loading()
        return self._recalled(self.memory.state)

    def on_load(self) -> None:
        """Before the terminal is taken: from then on each signal must give it back."""
        if self._hears_signals:
            self._ending.start()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Until the screens are left; signals then do again what they did before."""
        self._hears_signals = True
        turn_s = sys.getswitchinterval()
        sys.setswitchinterval(_TURN_S)
        try:
            return super().run(*args, **kwargs)
        finally:
            sys.setswitchinterval(turn_s)
            self._ending.stop()

    def on_mount(self) -> None:
        """The two timers."""
        if self.when_painted is not None:
            self.screen.call_after_refresh(self.when_painted)
        for problem in (self.memory.problem, *self.key_map.problems):
            if problem:
                self.notify(problem, markup=False, severity="warning", timeout=10)
        if self._live is not None:
            self._live.call_when_new(self._hear)
            self.poll()
        else:
            self.set_interval(self.frame_s, self.poll)
        self.set_interval(max(_TICK_S, self.frame_s), self._tick)

    def _leave(self, status: int) -> None:
        """Ends as `q` does, with the exit status of a signal."""
        self.exit(return_code=status)

    def _give_back(self) -> None:
        if isinstance(self._driver, Terminal):
            self._driver.give_back()

    async def on_event(self, event: events.Event) -> None:
        """A key acts before the next one is looked at, so that what is typed behind it goes where it leads."""
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
            return
        KEYS.ask()
        gc.disable()  # a look for cycles can wait until the answer is drawn
        try:
            if not await self._act_on(event):
                await super().on_event(event)
        finally:
            if self.screen_stack:
                self.screen.call_after_refresh(_answered)
            else:
                gc.enable()

    async def _act_on(self, event: events.Key) -> bool:
        """Does what the key means on a screen of ours; False where it is bound to nothing."""
        if self._answer is not None:
            self._answer.key()
        screen = self.screen
        if not isinstance(screen, MonitorScreen):
            return False
        bar = screen.focused.parent if isinstance(screen.focused, Input) else None
        if isinstance(bar, FilterBar) and (event.is_printable or event.key == "enter"):
            if event.key == "enter":
                bar.close()
            else:
                bar.type(event.character or "")
            return True
        if not await self._check_bindings(event.key):
            return False
        if isinstance(bar, FilterBar):
            bar.tell()
        if isinstance(self.screen, MonitorScreen):
            await self.screen.settled()
            self.screen.paint()
        return True

    def _hear(self) -> None:
        """There is something new; called from the source's thread."""
        with contextlib.suppress(RuntimeError):  # the screens are closed already
            self.call_later(self._poll_soon)

    def _poll_soon(self) -> None:
        """Polls now, or when the last drawing is `frame_s` old and a key that was pressed is answered."""
        if self._is_due:
            return
        since_s = self.clock.monotonic() - self._polled_s
        wait_s = self.frame_s - since_s
        if KEYS.is_asked and since_s < _LATEST_S:
            wait_s = max(wait_s, _KEY_FIRST_S)
        if wait_s <= 0:
            self.poll()
        else:
            self._is_due = True
            call_after(self, wait_s, self._poll_due)

    def _poll_due(self) -> None:
        self._is_due = False
        self._poll_soon()

    def poll(self) -> None:
        """Draws the newest snapshot, if it is another than the one on the screen."""
        self._is_due, self._polled_s = False, self.clock.monotonic()
        newest = self.source.latest()
        self._say_trouble()
        if newest is self.fleet:
            return
        if self._live is not None and newest.runs and not newest.reading and not self._is_warm:
            self._is_warm = True
            call_after(self, _WARM_S, self.warm)
        known = {id(row.run): row for row in self.rows}
        self.fleet = newest
        now_s = self.clock.monotonic()
        self.rows = [known.get(id(run)) or row_of(run, now_s) for run in newest.runs]
        self._by_id = {row.id: row for row in self.rows}
        self._received = self.clock.monotonic()
        self.loading = self._loading()
        self.memory.reapply(newest.runs, self.source, self.clock.wall())
        if self.alerting is not None:
            self.alerting.take(newest)
        self._show()

    def _say_trouble(self) -> None:
        while True:
            try:
                self.notify(printable(self.trouble.get_nowait(), 300), markup=False, severity="warning", timeout=10)
            except Empty:
                return

    def send_to_terminal(self, sequence: str) -> None:
        """A control sequence that shows nothing on the screen (a bell, a notification, a clipboard)."""
        if self._driver is not None:
            self._driver.write(sequence)

    def _loading(self) -> tuple[float, str] | None:
        """(share that is read, how much and how long that is) of the histories that are being read; None for none."""
        if (counted := read_runs(self.fleet.runs)) is not None:
            return counted
        done, size = read_bytes(self.fleet.runs)
        if not size > 0:
            return None
        left_s = self._pace.note(self._received, done, size)
        return done / size, words(done, size, left_s)

    def _tick(self) -> None:
        """Ages grow also when nothing comes, and what was told is told again."""
        gc.enable()  # should an answer never be drawn
        self._say_trouble()
        if self.clock.monotonic() - self._began_s > _AWAITED_S:
            self.awaited = ""
        if self.alerting is not None:
            self.alerting.take(self.fleet)
            for mark in self.alerting.heard():
                self.notify(mark.words, markup=False)
        if self.clock.monotonic() - self._shown_s >= _STILL_S and not self._is_still():
            self._show()

    def _is_still(self) -> bool:
        screen = self.screen_stack[-1] if self.screen_stack else None
        return isinstance(screen, MonitorScreen) and screen.stands_still(self.fleet)

    def _show(self) -> None:
        if not self.screen_stack:  # the screens are being closed, the timers not yet
            return
        screen = self.screen
        self._shown_s = self.clock.monotonic()
        if isinstance(screen, MonitorScreen):
            with screen.painting():
                screen.show(self.fleet)
            if self._live is not None and (names := screen.looked_at()) is not None:
                if any(run.preview for run in self.fleet.runs):  # told once they stand on the screen
                    screen.call_after_refresh(self._live.attend, names)
                else:
                    self._live.attend(names)

    def age_s(self, row: Row, now_s: float) -> float:
        """Seconds since the newest byte of a run, whether it was read already or not."""
        age_s = row.age_at(now_s)
        if self._live is None or age_s < _TICK_S:
            return age_s
        files = row.run.files[:_MOST_ASKED]
        written = [at for file in files if (at := self._live.written_s(file.path)) is not None]
        return min(age_s, max(0.0, now_s - max(written))) if written else age_s

    def rows_in_trouble_order(self) -> list[Row]:
        """All runs, the worst first."""
        return ordered(self.rows, "trouble")

    def copy(self, text: str) -> None:
        """To the clipboard of the terminal, which may be far away; only text that is safe to show."""
        if not text:
            self.notify("nothing here to copy")
            return
        sequence, kept = copy_sequence(text, os.environ)
        self.send_to_terminal(sequence)
        lines = kept.count("\n") + 1
        self.notify(f"copied {lines} line{'s' if lines > 1 else ''} to the terminal's clipboard")

    def write_report(self, row: Row) -> None:
        """A report of the run, written by a thread: a home directory that hangs must not hold the screen."""
        self.notify("writing the report")

        def work() -> None:
            told = write_report(row.run, self.clock.wall())
            with contextlib.suppress(RuntimeError):  # the screens are closed already
                self.call_from_thread(self.notify, told, markup=False, timeout=10)

        threading.Thread(target=work, name="trainmon-report", daemon=True).start()

    def on_unmount(self) -> None:
        """Nothing will be asked any more."""
        gc.enable()  # the answer to the last key is never drawn
        self.memory.close(self.memory.state)
        self.source.stop()
