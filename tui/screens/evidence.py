"""The evidence: charts cut to the window around an episode, and the log at that moment."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import evidence, keys
from trainmon.tui.chart_view import ChartView
from trainmon.tui.log_view import LogView
from trainmon.tui.row import RunId
from trainmon.tui.screens.charted import RunCharted
from trainmon.tui.span import Span, clip
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.panes import LogPane, TextLines


class EvidenceScreen(RunCharted):
    """Of a triage step, or of one episode."""

    KIND = keys.EVIDENCE
    BINDINGS = keys.bindings_of(keys.EVIDENCE)
    DEFAULT_CSS = """
    EvidenceScreen #charts { height: 3fr; }
    EvidenceScreen #log { height: 2fr; }
    """

    def __init__(self, run_id: RunId, step: str | None = None, episode: str | None = None) -> None:
        super().__init__(run_id)
        self.step = step
        self.episode = episode
        self.found: evidence.Evidence | None = None
        self.view = LogView()

    def content(self) -> ComposeResult:
        """Title, charts, log."""
        yield TextLines(1, id="title")
        yield ChartGrid(id="charts")
        yield LogPane(id="log")

    def panes(self) -> list[Widget]:
        """The log, the charts."""
        return [self.query_one("#log", LogPane), self.query_one("#charts", ChartGrid)]

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        found = self._find(run)
        if found is None:
            text = f"this episode was withdrawn: what came later made it no fault. {self.shown_key('back')} goes back"
            self.query_one("#title", TextLines).show([[Span(f" {text}", "warn")]])
            return
        moved = self.found is None or found.place != self.found.place
        self.found = found
        window = "the whole run"
        if found.window is not None:
            window = f"steps {found.window[0]:.0f}-{found.window[1]:.0f}"
        room = self.app.size.width - len(window) - 6
        self.query_one("#title", TextLines).show(
            [[Span(" " + clip(found.title, room, self.glyphs.ellipsis), "title"), Span(f"  {window}", "muted")]]
        )
        if self.grid.view == ChartView():
            self.grid.look(self.monitor.view)
        charts = evidence.charts(run, found, self.glyphs, self.axis())
        self.query_one("#charts", ChartGrid).show(charts, nothing="no chart: none of these signals is logged")
        if moved and found.place is not None:
            self.view.go(run, found.place, self.monitor.source)
        self.view.draw(run, self.query_one("#log", LogPane))

    def _find(self, run: RunSnapshot) -> evidence.Evidence | None:
        if self.episode is not None:
            one = next((one for one in run.episodes if one.id == self.episode), None)
            return None if one is None else evidence.of_episode(run, one)
        step = next((step for step in run.triage if step.id == self.step), None)
        return None if step is None else evidence.of_step(run, step)

    def episode_id(self) -> str | None:
        """The one shown."""
        return self.found.episode if self.found else None

    def log_place(self) -> tuple[str, int] | None:
        """The line under the cursor, else where the episode begins."""
        line = self.query_one("#log", LogPane).current
        return (line.path, line.line_no) if line else super().log_place()

    def copied(self) -> str:
        """The line of the log at the cursor, or the chart."""
        line = self.query_one("#log", LogPane).current
        return super().copied() if self.focused is self.grid or line is None else line.text

    def action_next_step(self, by: int) -> None:
        """The evidence of the next step of the walk; for an episode, the next episode."""
        run = self.run_now()
        if run is None:
            return
        if self.episode is not None:
            ids = [one.id for one in run.episodes]
            self.episode = _beside(ids, self.episode, by)
        else:
            self.step = _beside([step.id for step in run.triage], self.step or "", by)
        self.found, self.view = None, LogView()
        self.show(self.monitor.fleet)

    def action_other_run(self, by: int) -> None:
        """The evidence of the same step of the run before or after this one."""
        other = self.monitor.neighbour(self.run_id, by)
        if other is not None and self.step is not None:
            self.run_id, self.found, self.view = other, None, LogView()
            self.show(self.monitor.fleet)

    def action_open(self) -> None:
        """The whole log, at the line under the cursor."""
        self.action_log()


def _beside(ids: list[str], current: str, by: int) -> str:
    if current not in ids:
        return ids[0] if ids else current
    return ids[max(0, min(len(ids) - 1, ids.index(current) + by))]
