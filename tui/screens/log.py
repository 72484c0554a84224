"""The raw lines of one run."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import keys
from trainmon.tui.log_view import LogView
from trainmon.tui.row import RunId
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.widgets.filter_bar import FilterBar
from trainmon.tui.widgets.panes import LogPane


class LogScreen(RunBound):
    """Follows the newest line until one scrolls up; `G` follows again."""

    KIND = keys.LOG
    BINDINGS = keys.bindings_of(keys.LOG)

    def __init__(self, run_id: RunId, place: tuple[str, int] | None = None) -> None:
        super().__init__(run_id)
        self.view = LogView()
        self.wanted = place

    def content(self) -> ComposeResult:
        """The lines."""
        yield LogPane(id="log")
        yield FilterBar("show only lines with these words", id="filter")

    @property
    def pane(self) -> LogPane:
        """The lines."""
        return self.query_one("#log", LogPane)

    def panes(self) -> list[Widget]:
        """The lines."""
        return [self.pane]

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        if self.wanted is not None:
            wanted, self.wanted = self.wanted, None
            self.view.go(run, wanted, self.monitor.source)
        self.view.draw(run, self.pane)

    def action_move(self, how: str) -> None:
        """`G` goes to the newest line of all, and follows."""
        if how == "bottom" and self.view.place is not None:
            self.view.follow()
            self.show(self.monitor.fleet)
        self.pane.move(how)

    def action_sideways(self, by: int) -> None:
        """Long lines."""
        self.pane.scroll_sideways(20 * by)

    def action_next_error(self, by: int) -> None:
        """To the next error that the log has, wherever it is."""
        run = self.run_now()
        place = None if run is None else self.view.next_error(run, self.pane, by)
        if run is None or place is None:
            self.notify("no errors in this log")
            return
        self.view.words = ""
        self.view.go(run, place, self.monitor.source)
        self.monitor.poll()
        self.show(self.monitor.fleet)

    def copied(self) -> str:
        """The line at the cursor."""
        line = self.pane.current
        return line.text if line is not None else ""

    def action_filter(self) -> None:
        """Asks for words."""
        self.query_one(FilterBar).open(self.view.words)

    def filter_typed(self, text: str) -> None:
        """The lines follow the typing."""
        self.view.words = text.strip()
        self.show(self.monitor.fleet)

    def filter_done(self) -> None:
        """Back to the lines."""
        self.set_focus(self.pane, scroll_visible=False)

    def go_back(self) -> None:
        """Takes the filter off, then goes back."""
        bar = self.query_one(FilterBar)
        if bar.is_open or self.view.words:
            self.view.words = ""
            bar.close()
            self.show(self.monitor.fleet)
        else:
            super().go_back()
