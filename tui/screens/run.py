"""One run: nine signals as charts, the triage checklist beside them, the alerts under them."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import keys
from trainmon.tui.row import RunId
from trainmon.tui.run_lines import run_extra
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.slots import FirstScreen, first_screen
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.panes import AlertPane, TriagePane


class RunScreen(RunBound):
    """Charts, triage, alerts."""

    KIND = keys.RUN
    BINDINGS = keys.bindings_of(keys.RUN)
    DEFAULT_CSS = """
    RunScreen #upper { height: 1fr; }
    RunScreen #alerts { height: 7; }
    RunScreen.-enlarged #triage, RunScreen.-enlarged #alerts { display: none; }
    """

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self._screen_of: RunSnapshot | None = None
        self._first: FirstScreen = FirstScreen((), ())

    def content(self) -> ComposeResult:
        """Charts and triage beside each other, alerts across the foot."""
        with Horizontal(id="upper"):
            yield ChartGrid(id="charts")
            yield TriagePane(id="triage")
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
        width, height = self.app.size
        side = max(32, min(56, width * 36 // 100))
        self.triage.styles.width = side
        self.alerts.styles.height = max(4, min(len(run.episodes) + 1, 5 if height < 30 else height // 4))
        if run is not self._screen_of:
            self._screen_of, self._first = run, first_screen(run, self.glyphs)
        first = self._first
        nothing = "no numbers yet" if run.progress < 1 or fleet.reading else "no metrics in this log; l shows its lines"
        self.charts.show(first.charts, first.absent, self._urgent(run), nothing)
        self.triage.show(run.triage, self.run_id, run_extra(run, side - 2))
        self.alerts.show(run.episodes, self.monitor.clock.wall())

    def _urgent(self, run: RunSnapshot) -> frozenset[str]:
        step = next((step for step in run.triage if step.explains), None)
        if step is None:
            return frozenset()
        wanted = {key.signal for key in step.signals}
        return frozenset(chart.number for chart in self._first.charts if wanted.intersection(chart.signals))

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
        if opening:
            self.charts.focus()
        else:
            self.triage.focus()

    def action_back(self) -> None:
        """From one chart to all, then to the list."""
        if self.charts.enlarged:
            self.action_chart(self.charts.enlarged)
        else:
            super().action_back()

    def action_other_run(self, step: int) -> None:
        """The run before or after this one in the list."""
        other = self.monitor.neighbour(self.run_id, step)
        if other is not None and other != self.run_id:
            self.run_id = other
            self.show(self.monitor.fleet)

    def episode_id(self) -> str | None:
        """That under the cursor of the alerts."""
        return self.alerts.current.id if self.alerts.current else None

    def on_chart_grid_chosen(self, event: ChartGrid.Chosen) -> None:
        """A click enlarges."""
        event.stop()
        self.action_chart(event.number)
