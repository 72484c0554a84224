"""The first screen: every run in one list, those in trouble on top."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.finding import Severity
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tui import keys
from trainmon.tui.filter import FilterError, parse_filter
from trainmon.tui.order import next_order, ordered
from trainmon.tui.row import Row, RunId
from trainmon.tui.run_lines import fleet_head, status_line
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.span import Span, clip
from trainmon.tui.widgets.filter_bar import FilterBar
from trainmon.tui.widgets.fleet_table import FleetTable
from trainmon.tui.widgets.key_bar import KeyBar
from trainmon.tui.widgets.panes import TextLines


class FleetScreen(MonitorScreen):
    """Filter, sort, pin, open."""

    KIND = keys.FLEET
    BINDINGS = keys.bindings_of(keys.FLEET)

    def __init__(self) -> None:
        super().__init__()
        self.order = "trouble"
        self.only_troubled = False
        self.filter_text = ""

    def body(self) -> ComposeResult:
        """Counts, list, status."""
        yield TextLines(1, "bar", id="head")
        yield FleetTable(id="table")
        yield TextLines(1, id="status")
        yield FilterBar("words   state:failed   step>1000   verdict:warn   and or not ( )", id="filter")

    def panes(self) -> list[Widget]:
        """The list."""
        return [self.table]

    @property
    def table(self) -> FleetTable:
        """The list."""
        return self.query_one("#table", FleetTable)

    def draw(self, fleet: FleetSnapshot) -> None:
        """See `MonitorScreen`."""
        rows = self.monitor.rows
        shown = self.matching(rows)
        width = self.app.size.width
        wanted = " and ".join(part for part in (self.filter_text, "troubled" if self.only_troubled else "") if part)
        head = fleet_head(rows, len(shown), self.order, wanted, width, self.glyphs)
        self.query_one("#head", TextLines).show([head])
        self.table.show(shown, frozenset(self.monitor.pins), self.monitor.aged_s(), self._nothing(fleet, rows))
        self.query_one("#status", TextLines).show([status_line(fleet, width, self.glyphs)])

    def matching(self, rows: list[Row]) -> list[Row]:
        """`rows` that the filter lets through, in order. A filter that cannot be read yet changes nothing."""
        keybar = self.query_one("#keys", KeyBar)
        try:
            holds = parse_filter(self.filter_text)
            keybar.show_message([])
        except FilterError as error:
            text = clip(f" {self.glyphs.severities[Severity.WARN]} {error}", self.app.size.width)
            keybar.show_message([Span(text, "warn")])
            return list(self.table.rows)
        kept = (row for row in rows if holds(row) and (row.trouble >= 2 or not self.only_troubled))
        return ordered(kept, self.order)

    def _nothing(self, fleet: FleetSnapshot, rows: list[Row]) -> str:
        if rows:
            why = "no run is in trouble" if self.only_troubled and not self.filter_text else "no run matches the filter"
            return f"{why}; {'! shows all runs' if self.only_troubled else 'Esc takes the filter off'}"
        if fleet.reading:
            return f"reading {fleet.status}" if fleet.status else "looking for runs and reading them"
        return fleet.status or "no runs found; name log files, folders or globs: trainmon watch TARGET..."

    def subject(self) -> RunId | None:
        """The run under the cursor."""
        row = self.table.current
        return row.id if row else None

    def action_open(self) -> None:
        """The run's screen."""
        if (run_id := self.subject()) is not None:
            self.monitor.open_run(run_id)

    def action_sort(self) -> None:
        """The next order."""
        self.order = next_order(self.order)
        self.show(self.monitor.fleet)

    def action_troubled(self) -> None:
        """Only runs in trouble, or all."""
        self.only_troubled = not self.only_troubled
        self.show(self.monitor.fleet)

    def action_filter(self) -> None:
        """Asks for a filter."""
        self.query_one(FilterBar).open(self.filter_text)

    def action_back(self) -> None:
        """Takes the filter off."""
        self.only_troubled = False
        self.set_filter("")
        self.query_one(FilterBar).close()

    def set_filter(self, text: str) -> None:
        """Shows what matches `text`."""
        self.filter_text = text
        self.show(self.monitor.fleet)

    def on_filter_bar_typed(self, event: FilterBar.Typed) -> None:
        """The list follows the typing."""
        self.set_filter(event.text)

    def on_filter_bar_done(self) -> None:
        """Back to the list."""
        self.table.focus()
