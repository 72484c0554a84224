"""Every signal of a run's log, to choose which are drawn as charts beside the nine."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot, SeriesView
from trainmon.tails.text import printable
from trainmon.tui import keys, numbers
from trainmon.tui.curve import curve_of, spark_text
from trainmon.tui.rates import unit_of
from trainmon.tui.row import RunId
from trainmon.tui.screens.filtered import FilteredScreen
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.slots import family, first_screen
from trainmon.tui.span import Line, Span, fit
from trainmon.tui.widgets.filter_bar import FilterBar
from trainmon.tui.widgets.lines import LineList, key_map_of, look_of
from trainmon.tui.widgets.panes import TextLines


class SignalList(LineList):
    """One line a signal; those with labels are one family."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.families: list[list[SeriesView]] = []
        self.chosen: tuple[str, ...] = ()
        self.run: RunSnapshot | None = None

    def show(self, run: RunSnapshot, families: list[list[SeriesView]], chosen: tuple[str, ...]) -> None:
        """`families` of the signals of `run`; `chosen`: names of those that are drawn already."""
        before = self.current
        self.run = run
        self.families, self.chosen = families, chosen
        if before is not None:
            self.cursor = next((i for i, one in enumerate(families) if one[0].key.signal == before), self.cursor)
        self.redraw()

    @property
    def current(self) -> str | None:
        """The signal under the cursor."""
        return self.families[self.cursor][0].key.signal if self.cursor < len(self.families) else None

    @property
    def count(self) -> int:
        """Signals."""
        return len(self.families)

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        views = self.families[index]
        return (views[0].key, views[0].count, repr(views[0].last), views[0].key.signal in self.chosen)

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """Drawn or not, name, value, curve."""
        views, glyphs = self.families[index], look_of(self).glyphs
        lead = views[0]
        name = printable(lead.key.signal, 80) + (f" ({len(views)} series)" if len(views) > 1 else "")
        cells = max(20, width - 41)
        unit = lead.unit if self.run is None else unit_of(self.run, lead)
        value = fit(numbers.with_unit(lead.last, unit), 15, glyphs.ellipsis, right=True)
        curve = spark_text(curve_of(lead), 18, glyphs.spark, glyphs.bad, least_span=0.05)
        mark = glyphs.acknowledged if lead.key.signal in self.chosen else " "
        head = [Span(glyphs.cursor if at_cursor else " ", "key"), Span(f" {mark} ", "pass")]
        return [*head, Span(fit(name, cells, glyphs.ellipsis)), Span(f"{value}  ", "value"), Span(curve, "line0")]

    def empty(self) -> list[Line]:
        """Nothing to choose from."""
        return [[Span(f"  no signal matches; {key_map_of(self).shown('back')} shows all", "muted")]]


class SignalsScreen(FilteredScreen, RunBound):
    """`Enter` draws, or no longer."""

    KIND = keys.SIGNALS
    BINDINGS = keys.bindings_of(keys.SIGNALS)

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self.words = ""
        self._numbers: Mapping[str, str] = {}

    def content(self) -> ComposeResult:
        """What to do, the list, the filter."""
        yield TextLines(1, id="counts")
        yield SignalList(id="signals")
        yield FilterBar("words of the signal's name", id="filter")

    @property
    def pane(self) -> SignalList:
        """The list."""
        return self.query_one("#signals", SignalList)

    def panes(self) -> list[Widget]:
        """The list."""
        return [self.pane]

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        words = self.words.lower().split()
        names = sorted({key.signal for key in run.series})
        matching = [name for name in names if all(word in name.lower() for word in words)]
        families = [views for name in matching if (views := family(run, name))]
        self._numbers = first_screen(run, self.glyphs).leads
        self.pane.show(run, families, (*self.monitor.added, *self._numbers))
        draws = self.shown_key("open")
        text = f"  {len(families)} of {len(names)}; {draws} draws one on the run's screen, or no longer"
        self.query_one("#counts", TextLines).show([[Span(" signals", "title"), Span(text, "muted")]])

    def copied(self) -> str:
        """The signal at the cursor and its newest value."""
        pane = self.pane
        if pane.cursor >= len(pane.families):
            return ""
        lead = pane.families[pane.cursor][0]
        unit = lead.unit if pane.run is None else unit_of(pane.run, lead)
        return f"{lead.key} = {numbers.with_unit(lead.last, unit)}"

    def action_open(self) -> None:
        """Drawn, or no longer; what is one of the nine charts is drawn already."""
        name = self.pane.current
        if name is None:
            return
        if name in self._numbers and name not in self.monitor.added:
            self.notify(f"that is chart {self._numbers[name]} already", timeout=3)
        else:
            self.monitor.toggle_chart(name)
