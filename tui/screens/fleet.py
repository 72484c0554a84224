"""The first screen: every run in one list, those in trouble on top, a preview of the run at the cursor below."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from trainmon.monitor.finding import Severity
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import keys
from trainmon.tui.filter import FilterError, parse_filter
from trainmon.tui.order import next_order, ordered
from trainmon.tui.row import Row, RunId
from trainmon.tui.run_lines import fleet_head, row_detail, status_line
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.slots import FirstScreen, first_screen
from trainmon.tui.span import Span, clip
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.filter_bar import FilterBar
from trainmon.tui.widgets.fleet_table import FleetTable
from trainmon.tui.widgets.key_bar import KeyBar
from trainmon.tui.widgets.lines import LineList
from trainmon.tui.widgets.panes import TextLines, TriagePane

_PREVIEW_ROWS = 11  # less is no preview worth its place
_DETAIL_ROWS = 3


class FleetScreen(MonitorScreen):
    """Filter, sort, pin, open."""

    KIND = keys.FLEET
    BINDINGS = keys.bindings_of(keys.FLEET)
    DEFAULT_CSS = """
    FleetScreen #preview { height: 12; display: none; }
    FleetScreen.-preview #preview { display: block; }
    FleetScreen #detail { display: none; }
    FleetScreen.-detail #detail { display: block; }
    FleetScreen.-quiet #status { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.order = "trouble"
        self.only_troubled = False
        self.filter_text = ""
        self._previewed: tuple[RunSnapshot, FirstScreen] | None = None
        self._has_news = True
        self._head = (0, "")
        self._detailed: Hashable = None
        self._drawn: tuple[FleetSnapshot, str] | None = None

    def body(self) -> ComposeResult:
        """Counts, list, preview, status."""
        yield TextLines(1, "bar", id="head")
        yield FleetTable(id="table")
        with Horizontal(id="preview"):
            yield ChartGrid(id="charts", can_focus=False)
            yield TriagePane(id="triage", can_focus=False)
        yield TextLines(_DETAIL_ROWS, "bar", id="detail")
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
        self._drawn = (fleet, self.monitor.awaited)
        self.table.show(shown, frozenset(self.monitor.pins), self._ages(), self._nothing(fleet, rows))
        status = status_line(fleet, width, self.glyphs, loading=self.monitor.loading)
        if self.monitor.awaited and not rows:  # then it is no problem that nothing was found
            status = [Span(" starting", "faint")]
        self.query_one("#status", TextLines).show([status])
        self._has_news = bool(fleet.problems or fleet.reading or self.monitor.loading is not None)
        self._head = (len(shown), wanted)
        self._follow()

    def _ages(self) -> Callable[[Row], float]:
        return partial(self.monitor.age_s, now_s=self.monitor.clock.monotonic())

    def is_still(self, fleet: FleetSnapshot) -> bool:
        """See `MonitorScreen`: a list of runs that stand still is not gone through once a second."""
        drawn = self._drawn
        is_told = drawn is not None and drawn[0] is fleet and drawn[1] == self.monitor.awaited
        return is_told and not self.has_class("-brief") and self.table.is_as_old(self._ages())

    def _follow(self) -> None:
        """What depends on where the cursor is."""
        rows = self.monitor.rows
        self._preview(len(rows))
        self._detail()
        shown, wanted = self._head
        head = fleet_head(rows, shown, self.order, wanted, self.app.size.width, self.glyphs, self.table.hidden)
        self.query_one("#head", TextLines).show([head])

    def _detail(self) -> None:
        """Where there is no room for the preview, what was found in the run at the cursor and what to do."""
        row = self.table.current
        is_shown = row is not None and row.run.progress >= 1 and not self.has_class("-preview")
        self.set_class(is_shown, "-detail")
        self.set_class(is_shown and not self._has_news, "-quiet")  # how files are watched can wait
        if row is None or not is_shown:
            return
        said = (row.fingerprint, row.run.state_reason, row.run.verdict_reason, self.app.size.width)
        if said != self._detailed:
            self._detailed = said
            lines = row_detail(row, self.app.size.width, _DETAIL_ROWS, self.glyphs)
            self.query_one("#detail", TextLines).show(lines)

    def _preview(self, runs: int) -> None:
        """Where the list leaves room, the run at the cursor: its charts and what the triage says."""
        width, height = self.app.size
        spare = height - 4 - max(3, runs)
        row = self.table.current
        self.set_class(spare >= _PREVIEW_ROWS and row is not None, "-preview")
        if spare < _PREVIEW_ROWS or row is None:
            return
        self.sized(self.query_one("#preview"), height=spare)
        side = max(32, min(max(56, width // 4), width * 36 // 100))
        triage = self.query_one("#triage", TriagePane)
        self.sized(triage, width=side)
        if self._previewed is None or self._previewed[0] is not row.run:
            self._previewed = (row.run, first_screen(row.run, self.glyphs))
        first = self._previewed[1]
        nothing = "no numbers yet" if row.run.progress < 1 else "no metrics in this log"
        self.query_one("#charts", ChartGrid).show(first.charts, first.absent, nothing=nothing)
        triage.show(row.run.triage, row.id)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """The preview follows."""
        event.stop()
        self._follow()

    def matching(self, rows: list[Row]) -> list[Row]:
        """`rows` that the filter lets through, in order. While the filter cannot be read, all."""
        keybar = self.query_one("#keys", KeyBar)
        try:
            holds = parse_filter(self.filter_text)
            keybar.show_message([])
        except FilterError as error:
            text = clip(f" {self.glyphs.severities[Severity.WARN]} {error}", self.app.size.width)
            keybar.show_message([Span(text, "warn")])
            holds = parse_filter("")
        matching = (row for row in rows if holds(row) and (row.trouble >= 2 or not self.only_troubled))
        return ordered(matching, self.order)

    def _nothing(self, fleet: FleetSnapshot, rows: list[Row]) -> str:
        if rows:
            why = "no run is in trouble" if self.only_troubled and not self.filter_text else "no run matches the filter"
            return f"{why}; {self.shown_key('back')} shows all runs again"
        if self.monitor.awaited:
            return self.monitor.awaited
        if fleet.reading:
            return f"reading: {fleet.status}" if fleet.status else "looking for runs and reading them"
        return fleet.status or "no runs found; name log files, folders or globs: trainmon watch TARGET..."

    def subject(self) -> RunId | None:
        """The run under the cursor."""
        row = self.table.current
        return row.id if row else None

    def attended(self) -> tuple[RunId, ...]:
        """None: a list is looked over. All runs are read and drawn together, at once while that is cheap."""
        return ()

    def action_open(self) -> None:
        """The run's screen."""
        if (run_id := self.subject()) is not None:
            self.monitor.open_run(run_id)

    def action_sort(self) -> None:
        """The next order."""
        self.order = next_order(self.order)
        self.monitor.remember()
        self.show(self.monitor.fleet)

    def action_troubled(self) -> None:
        """Only runs in trouble, or all."""
        self.only_troubled = not self.only_troubled
        self.monitor.remember()
        self.show(self.monitor.fleet)

    def action_filter(self) -> None:
        """Asks for a filter."""
        self.query_one(FilterBar).open(self.filter_text)

    def go_back(self) -> None:
        """Takes the filter off."""
        self.only_troubled = False
        self.set_filter("")
        self.query_one(FilterBar).close()
        self.monitor.remember()

    def set_filter(self, text: str) -> None:
        """Shows what matches `text`."""
        self.filter_text = text
        self.show(self.monitor.fleet)

    def filter_typed(self, text: str) -> None:
        """The list follows the typing."""
        self.set_filter(text)

    def filter_done(self) -> None:
        """Back to the list."""
        self.monitor.remember()
        self.set_focus(self.table, scroll_visible=False)
