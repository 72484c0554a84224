"""What every screen has: size classes, the key bar, panes that take the movement keys, and the common actions."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingsMap, BindingType
from textual.containers import Vertical
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tui import keys
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.row import Row, RunId
from trainmon.tui.run_lines import run_words
from trainmon.tui.screens.painted import PaintedScreen
from trainmon.tui.span import Span
from trainmon.tui.state import Layout
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.fleet_table import BriefList
from trainmon.tui.widgets.heat_pane import HeatPane
from trainmon.tui.widgets.key_bar import KeyBar
from trainmon.tui.widgets.lines import LineList
from trainmon.tui.widgets.panes import TextLines, WalkBar

if TYPE_CHECKING:
    from trainmon.tui.app import TrainmonApp

_SETTLING_S = 2.0  # a screen is whole after milliseconds; keys are not held back longer by one that is not
SMALLEST = (40, 10)
FULL = (60, 15)


def size_class(width: int, height: int) -> str:
    """What fits: "tiny" (a message) below 40x10, "brief" (status lines) below 60x15, else "full".

    >>> size_class(39, 50), size_class(40, 10), size_class(80, 24)
    ('tiny', 'brief', 'full')
    """
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return "tiny"
    return "full" if width >= FULL[0] and height >= FULL[1] else "brief"


class MonitorScreen(PaintedScreen):
    """A screen that draws snapshots. Subclasses give `KIND`, `body`, `panes` and `draw`."""

    KIND: ClassVar[str] = keys.FLEET
    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = ""
    ESCAPE_TO_MINIMIZE = False
    ALLOW_IN_MAXIMIZED_VIEW = ""
    is_spare = False  # it is built, and stands behind the others until it is wanted; its parts are as large as those of
    like: MonitorScreen | None = None
    _is_arranged = False
    _is_drawn = False  # already, before it was told that it is in front
    _parts = 0

    DEFAULT_CSS = """
    MonitorScreen { layout: vertical; overflow: hidden; }
    MonitorScreen #tiny, MonitorScreen #brief { display: none; }
    MonitorScreen.-tiny > *, MonitorScreen.-brief > * { display: none; }
    MonitorScreen.-tiny > #tiny { display: block; height: 1fr; }
    MonitorScreen.-brief > #brief { display: block; height: 1fr; }
    MonitorScreen > #body { height: 1fr; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._begun = asyncio.Event()

    def compose(self) -> ComposeResult:
        """The body between the messages for small terminals and the key bar."""
        yield TextLines(1, id="tiny")
        yield BriefList(id="brief")
        with Vertical(id="body"):
            yield from self.body()
        yield KeyBar(self.KIND, id="keys")

    def body(self) -> ComposeResult:
        """The widgets of this screen."""
        yield from ()

    def panes(self) -> list[Widget]:
        """What Tab goes through, in order."""
        return []

    def draw(self, fleet: FleetSnapshot) -> None:
        """Puts the newest snapshot on the screen."""

    def is_still(self, fleet: FleetSnapshot) -> bool:
        """Whether drawing `fleet` again would change nothing, not even an age."""
        del fleet
        return False

    @property
    def monitor(self) -> TrainmonApp:
        """The app."""
        return cast("TrainmonApp", self.app)

    @property
    def glyphs(self) -> Glyphs:
        """Of this terminal."""
        return self.monitor.look.glyphs

    def shown_key(self, name: str) -> str:
        """How a person reads the key of the action `name`."""
        return self.monitor.key_map.shown(name)

    # What the app calls --------------------------------------------------------------------------------

    def show(self, fleet: FleetSnapshot) -> None:
        """Draws `fleet` in the way that the size of the terminal allows."""
        if self.is_spare or not self._is_whole():
            return
        width, height = self.app.size
        size = size_class(width, height)
        for name in ("tiny", "brief"):
            self.set_class(size == name, f"-{name}")
        if size == "tiny":
            text = f"too small: {width}x{height}, needs {SMALLEST[0]}x{SMALLEST[1]}"
            self.query_one("#tiny", TextLines).show([[Span(text, "warn")]])
        elif size == "brief":
            self.query_one("#brief", BriefList).show(self.monitor.rows_in_trouble_order())
        else:
            self.draw(fleet)

    def stands_still(self, fleet: FleetSnapshot) -> bool:
        """Whether the screen is whole and drawing `fleet` again would change nothing on it."""
        return self._is_whole() and self.is_still(fleet)

    def _is_whole(self) -> bool:
        """False before everything is mounted, and while the app takes the screen down with timers still running."""
        return 0 < self._parts <= len(self.walk_children())

    def on_mount(self) -> None:
        """The widgets are there now; everything is drawn once the first size is known."""
        self._parts = len(self.walk_children())
        self._take_keys()
        if self.is_spare:
            self.call_later(self._stand)
            return
        self.recall(self.monitor.arranged)
        self._begin()
        self._begun.set()
        self.call_after_refresh(self._begin)

    @property
    def is_built(self) -> bool:
        """Whether a spare may be put in front."""
        return self._begun.is_set()

    def _stand(self) -> None:
        """The parts of a spare are there."""
        if self.like is not None and self.like.maximized is None:
            self.size_as(self.like)
        self.like = None
        self._focus_first()
        self.lay_out()
        self._begun.set()

    def begin(self) -> None:
        """Puts what it is about on a spare that was taken, and draws it at once."""
        self.is_spare = False
        self._layout_required = False  # since it was mounted; it is laid out by now
        self.recall(self.monitor.arranged)
        self._begin()
        self.paint(whole=True)
        self._is_drawn = True

    def come_back(self) -> None:
        """Draws at once what is in front again."""
        if self._begun.is_set():
            self.show(self.monitor.fleet)
            self.paint(whole=True)
            self._is_drawn = self._is_painted = True

    def recall(self, kept: Layout) -> None:
        """Arranges the screen as it was left last time; the pane that had all the room is seen to by the base."""

    def _take_keys(self) -> None:
        """The keys of the user's configuration in place of those of the class."""
        key_map = self.monitor.key_map
        if key_map.keys is keys.KEYS:
            return
        ours = {key.id for key in keys.KEYS}
        kept = [
            binding for some in self._bindings.key_to_bindings.values() for binding in some if binding.id not in ours
        ]
        self._bindings = BindingsMap([*kept, *key_map.bindings(self.KIND)])
        self.refresh_bindings()

    def _begin(self) -> None:
        self._focus_first()
        if not self._is_arranged:
            self._is_arranged = True
            kept = self.monitor.arranged.full.get(self.KIND)
            if (pane := next((one for one in self.panes() if one.id == kept), None)) is not None:
                self.focus_full(pane)
        self.show(self.monitor.fleet)

    def _focus_first(self) -> None:
        if self.focused is None and (panes := self.panes()):
            self.set_focus(panes[0], scroll_visible=False)

    async def settled(self) -> None:
        """Returns when the screen takes keys: what is typed ahead of it waits, and is not lost."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._begun.wait(), _SETTLING_S)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """What came while another screen was in front."""
        if self._is_drawn:
            self._is_drawn = False
            event.prevent_default()
            self.stack_updates += 1
            self.app._refresh_notifications()
            return
        self.call_after_refresh(self._show_newest)

    def _show_newest(self) -> None:
        self.show(self.monitor.fleet)

    def on_resize(self, event: events.Resize) -> None:
        """A resize storm costs one drawing after each layout, never more."""
        if self.is_spare:
            event.prevent_default()  # Textual has the screens in front laid out along with it
            return
        self.call_after_refresh(self._show_newest)

    # Actions that mean the same everywhere -------------------------------------------------------------

    def action_move(self, how: str) -> None:
        """Moves the cursor of the focused pane."""
        pane = (
            self.focused
            if isinstance(self.focused, LineList | ChartGrid | HeatPane)
            else next(iter(self.panes()), None)
        )
        if self.has_class("-brief"):
            pane = self.query_one("#brief", BriefList)
        if isinstance(pane, LineList | ChartGrid | HeatPane):
            pane.move(how)

    def action_pane(self, step: int) -> None:
        """The next pane; in all the room, if the one before had it."""
        panes = [pane for pane in self.panes() if pane.display]
        if panes:
            at = panes.index(self.focused) if self.focused in panes else -step
            pane = panes[(at + step) % len(panes)]
            self.set_focus(pane, scroll_visible=False)
            if self.maximized not in (None, pane) and not isinstance(pane, WalkBar):
                self.focus_full(pane)

    def action_back(self) -> None:
        """All panes again; else one screen back, never out of the program."""
        if self.maximized is not None:
            self.focus_full(None)
        else:
            self.go_back()

    def go_back(self) -> None:
        """One screen back, where there is one; screens with something to take off do that first."""
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()
            if isinstance(self.app.screen, MonitorScreen):
                self.app.screen.come_back()

    def action_help(self) -> None:
        """The keys."""
        self.monitor.open_help(self.KIND)

    def action_palette(self) -> None:
        """All commands by name."""
        self.app.action_command_palette()

    def action_compare(self) -> None:
        """The pinned runs."""
        self.monitor.open_compare()

    def action_pin(self) -> None:
        """Pins the run of this screen, or lets it go."""
        if (run_id := self.subject()) is not None:
            self.monitor.toggle_pin(run_id)

    def action_triage(self) -> None:
        """The walk."""
        if (run_id := self.subject()) is not None:
            self.monitor.open_triage(run_id)

    def action_log(self) -> None:
        """The raw log, where one is looking."""
        if (run_id := self.subject()) is not None:
            self.monitor.open_log(run_id, self.log_place())

    def action_theme(self) -> None:
        """Dark or light."""
        self.monitor.toggle_theme()

    def action_alerts(self) -> None:
        """Of all runs."""
        self.monitor.open_alerts()

    def action_inventory(self) -> None:
        """What this run logs."""
        if (run_id := self.subject()) is not None:
            self.monitor.open_inventory(run_id)

    def action_layers(self) -> None:
        """Layer by step."""
        if (run_id := self.subject()) is not None:
            self.monitor.open_layers(run_id)

    def action_experts(self) -> None:
        """The load of each expert."""
        if (run_id := self.subject()) is not None:
            self.monitor.open_experts(run_id)

    def action_report(self) -> None:
        """A report of the run, as a file."""
        if (row := self.subject_row()) is not None:
            self.monitor.write_report(row)
        else:
            self.notify("no run here to report on")

    def action_copy(self) -> None:
        """What the cursor is on, to the clipboard of the terminal."""
        self.monitor.copy(self.copied())

    def copied(self) -> str:
        """What copying means here; "" for nothing."""
        row = self.subject_row()
        return "" if row is None else run_words(row)

    def action_full(self) -> None:
        """The pane with the cursor in all the room, or all panes again."""
        panes = [pane for pane in self.panes() if pane.display and not isinstance(pane, WalkBar)]
        pane = self.focused if self.focused in panes else next(iter(panes), None)
        self.focus_full(None if self.maximized is not None else pane)

    def sized(self, pane: Widget, width: int | None = None, height: int | None = None) -> None:
        """Cells that `pane` is to take, except while it has all the room."""
        if pane is self.maximized:
            return
        if width is not None:
            pane.styles.width = width
        if height is not None:
            pane.styles.height = height

    def focus_full(self, pane: Widget | None) -> None:
        """`pane` alone in the terminal, the cursor in it; None: all panes."""
        if self.maximized is pane:
            pane = None
        if self.maximized is not None:
            self.maximized.styles.width = self.maximized.styles.height = None  # as the style sheet says, until drawn
        self.maximized = pane
        full = {kind: name for kind, name in self.monitor.arranged.full.items() if kind != self.KIND}
        self.monitor.keep_layout(full=full if pane is None or pane.id is None else {**full, self.KIND: pane.id})
        if pane is not None:
            pane.styles.width = pane.styles.height = "1fr"
            self.set_focus(pane, scroll_visible=False)
        self.call_after_refresh(self._show_newest)

    def action_open(self) -> None:
        """What is under the cursor."""

    async def action_quit(self) -> None:
        """Out."""
        self.app.exit()

    def subject(self) -> RunId | None:
        """The run that the keys act on."""
        return None

    def looked_at(self) -> frozenset[str] | None:
        """The names of the runs of `attended`; None while the screen is being built."""
        return frozenset(run.name for run in self.attended()) if self._is_whole() else None

    def attended(self) -> tuple[RunId, ...]:
        """The runs of which everything new is to be seen at once."""
        run_id = self.subject()
        return () if run_id is None else (run_id,)

    def log_place(self) -> tuple[str, int] | None:
        """The (path, line number) that one is looking at."""
        return None

    def subject_row(self) -> Row | None:
        """The row of the subject in the newest snapshot."""
        run_id = self.subject()
        return None if run_id is None else self.monitor.row(run_id)

    def on_line_list_opened(self, event: LineList.Opened) -> None:
        """A click on the row at the cursor does what Enter does."""
        event.stop()
        self.action_open()
