"""One run: nine signals as charts, the triage checklist beside them, the alerts under them."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import keys
from trainmon.tui.compact import action_lines, budget, is_compact, wanted_rows
from trainmon.tui.row import RunId
from trainmon.tui.run_lines import episode_words, run_extra, run_words
from trainmon.tui.screens.charted import RunCharted
from trainmon.tui.slots import FirstScreen, added_charts, first_screen
from trainmon.tui.state import Layout
from trainmon.tui.widgets.alert_pane import AlertPane
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.lines import LineList
from trainmon.tui.widgets.panes import TextLines, TriagePane
from trainmon.tui.widgets.signal_strip import SignalStrip, across


class RunScreen(RunCharted):
    """Charts, triage, alerts; where there is little room, the chart that explains and what to do."""

    KIND = keys.RUN
    BINDINGS = keys.bindings_of(keys.RUN)
    DEFAULT_CSS = """
    RunScreen #upper { height: 1fr; }
    RunScreen #alerts { height: 7; }
    RunScreen #action, RunScreen #signals { display: none; }
    RunScreen.-compact #action, RunScreen.-compact #signals { display: block; }
    RunScreen.-enlarged #triage, RunScreen.-enlarged #alerts { display: none; }
    RunScreen.-enlarged #action, RunScreen.-enlarged #signals { display: none; }
    """

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self._drawn_run: RunSnapshot | None = None
        self._drawn_by: tuple[object, ...] = ()
        self._first: FirstScreen = FirstScreen((), (), {})
        self._to_enlarge = ""

    def recall(self, kept: Layout) -> None:
        """The chart that had all the room, and how charts are looked at."""
        self._to_enlarge = kept.enlarged.get(self.KIND, "")
        self.charts.look(self.monitor.view)

    def content(self) -> ComposeResult:
        """Charts and triage beside each other, alerts across the foot."""
        with Horizontal(id="upper"):
            yield ChartGrid(id="charts")
            yield TriagePane(id="triage")
        yield TextLines(3, id="action")
        yield SignalStrip(id="signals")
        yield AlertPane(id="alerts")

    def panes(self) -> list[Widget]:
        """Triage, alerts, charts."""
        return [self.triage, self.alerts, self.charts]

    @property
    def charts(self) -> ChartGrid:
        """The charts."""
        return self.query_one("#charts", ChartGrid)

    @property
    def triage(self) -> TriagePane:
        """The checklist."""
        return self.query_one("#triage", TriagePane)

    @property
    def alerts(self) -> AlertPane:
        """The episodes."""
        return self.query_one("#alerts", AlertPane)

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        drawn_by = (self.axis(), *self.monitor.added)
        if run is not self._drawn_run or drawn_by != self._drawn_by:
            self._drawn_run, self._drawn_by, self._first = run, drawn_by, self._charts_of(run)
        first = self._first
        nothing = "no numbers yet" if run.progress < 1 or fleet.reading else "no metrics in this log; l shows its lines"
        width, height = self.app.size
        compact = is_compact(width, height)
        self.set_class(compact, "-compact")
        self.charts.foot_shown, self.triage.detail_shown = not compact, not compact
        if compact:
            self._fit(run)
        else:
            side = max(32, min(max(56, width // 4), width * 36 // 100))
            self.sized(self.triage, width=side)
            self.sized(self.alerts, height=max(4, min(len(run.episodes) + 1, height // 4)))
            self.triage.show(run.triage, self.run_id, run_extra(run, side - 2, self.glyphs))
        self.charts.show(first.charts, first.absent, self._urgent(run), nothing)
        if compact:
            self.query_one("#signals", SignalStrip).show((*self.charts.left_out, *first.absent))
        self.alerts.show(run.episodes, self.monitor.clock.wall())
        if self._to_enlarge:
            number, self._to_enlarge = self._to_enlarge, ""
            if any(chart.number == number for chart in first.charts):
                self.action_chart(number)

    def _charts_of(self, run: RunSnapshot) -> FirstScreen:
        """The nine, and those that were added and are not among the nine of this run."""
        first = first_screen(run, self.glyphs, self.axis())
        more = [signal for signal in self.monitor.added if signal not in first.leads]
        return replace(first, charts=(*first.charts, *added_charts(run, more, self.glyphs, self.axis())))

    def _fit(self, run: RunSnapshot) -> None:
        """Little room: each part as many rows as it needs to be of use."""
        width, height = self.app.size
        side = max(28, min(40, width * 42 // 100))
        self.sized(self.triage, width=side)
        self.triage.show(run.triage, self.run_id, run_extra(run, side - 2, self.glyphs))
        step = self.triage.current
        if step is None:
            return
        entries = len(self._first.charts) - 1 + len(self._first.absent)
        strip = -(-entries // across(width))
        rows = budget(height - 4, wanted_rows(run, step, width), strip, len(run.episodes))
        action, signals = self.query_one("#action", TextLines), self.query_one("#signals", SignalStrip)
        for pane, given in ((action, rows.action), (signals, rows.signals), (self.alerts, rows.alerts)):
            self.sized(pane, height=given)
        action.show(action_lines(run, step, width, rows.action, self.glyphs))

    def _urgent(self, run: RunSnapshot) -> frozenset[str]:
        step = next((step for step in run.triage if step.explains), None)
        if step is None:
            return frozenset()
        wanted = {key.signal for key in step.signals}
        urgent = [chart.number for chart in self._first.charts if wanted.intersection(chart.signals)]
        added = [chart.number for chart in self._first.charts if chart.number.startswith("+")]
        return frozenset((*urgent, *added))

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Another step of the triage: what it found and what to do."""
        event.stop()
        if event.pane is self.triage:
            self.show(self.monitor.fleet)

    # Actions -------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        """The evidence of the step or episode at the cursor; a chart is enlarged."""
        if self.focused is self.charts:
            if (chart := self.charts.current) is not None:
                self.action_chart(chart.number)
        elif self.focused is self.alerts and self.alerts.current is not None:
            self.monitor.open_evidence(self.run_id, episode=self.alerts.current.id)
        elif self.triage.current is not None:
            self.monitor.open_evidence(self.run_id, step=self.triage.current.id)

    def action_chart(self, number: int | str) -> None:
        """Enlarges a chart, or goes back to all of them."""
        number = str(number)
        absent = next((one for one in self._first.absent if one.number == number), None)
        if absent is not None:
            self.notify(f"{absent.number} {absent.title}: {absent.reason}", markup=False)
            return
        place = next((i for i, chart in enumerate(self.charts.charts) if chart.number == number), None)
        if place is None:
            return
        self.charts.cursor = place
        opening = number != self.charts.enlarged
        self.set_class(opening, "-enlarged")
        self.charts.enlarge(number)
        kept = {kind: one for kind, one in self.monitor.arranged.enlarged.items() if kind != self.KIND}
        self.monitor.keep_layout(enlarged={**kept, self.KIND: number} if opening else kept)
        if opening:
            self.set_focus(self.charts, scroll_visible=False)
        else:
            self.set_focus(self.triage, scroll_visible=False)

    def go_back(self) -> None:
        """From one chart to all, then to the list."""
        if self.charts.enlarged:
            self.action_chart(self.charts.enlarged)
        else:
            super().go_back()

    def copied(self) -> str:
        """The chart or the episode at the cursor, else the run in a line."""
        if self.focused is self.charts:
            return super().copied()
        one = self.alerts.current
        if self.focused is self.alerts and one is not None:
            return episode_words(self.run_id.name, one)
        row = self.subject_row()
        return run_words(row) if row is not None else ""

    def action_other_run(self, step: int) -> None:
        """The run before or after this one in the list."""
        other = self.monitor.neighbour(self.run_id, step)
        if other is not None and other != self.run_id:
            self.run_id = other
            self.show(self.monitor.fleet)

    def action_draw(self) -> None:
        """Any other signal, from a list."""
        self.monitor.open_signals(self.run_id)

    def episode_id(self) -> str | None:
        """That under the cursor of the alerts."""
        return self.alerts.current.id if self.alerts.current else None

    def on_chart_grid_chosen(self, event: ChartGrid.Chosen) -> None:
        """A click enlarges."""
        event.stop()
        self.action_chart(event.number)
