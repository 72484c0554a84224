"""The walk: one step of the triage at a time, with what, why, what next, its charts and its log lines."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot, TriageStep
from trainmon.tui import evidence, keys
from trainmon.tui.chart_view import ChartView
from trainmon.tui.columns import VERDICT_STYLES
from trainmon.tui.compact import action_lines
from trainmon.tui.limits import limit_lines
from trainmon.tui.log_view import LogView
from trainmon.tui.row import RunId
from trainmon.tui.screens.charted import RunCharted
from trainmon.tui.span import Line, Span, wrap
from trainmon.tui.widgets.alert_pane import worst_first
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.lines import LineList
from trainmon.tui.widgets.panes import LogPane, TextLines, WalkBar

_FEW_LINES = 7


class TriageScreen(RunCharted):
    """`n` and `N` walk, `Enter` opens the evidence."""

    KIND = keys.TRIAGE
    BINDINGS = keys.bindings_of(keys.TRIAGE)
    DEFAULT_CSS = """
    TriageScreen #charts { height: 1fr; }
    """

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self.view = LogView()
        self._place: tuple[str, int] | None = None

    def content(self) -> ComposeResult:
        """The walk, what its step found, the evidence in short."""
        yield WalkBar(id="steps")
        yield TextLines(1, id="detail")
        yield ChartGrid(id="charts")
        yield LogPane(id="log")

    @property
    def steps(self) -> WalkBar:
        """The checklist."""
        return self.query_one("#steps", WalkBar)

    def panes(self) -> list[Widget]:
        """The steps, the log, the charts."""
        return [self.steps, self.query_one("#log", LogPane), self.query_one("#charts", ChartGrid)]

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        width, height = self.app.size
        self.steps.show(run.triage, self.run_id)
        step = self.steps.current
        if step is None:
            return
        lines = self._detail(run, step, width)
        detail = self.query_one("#detail", TextLines)
        rows = max(6, height - 14)
        if len(lines) > rows:  # what to do is cut last
            lines = [lines[0], *action_lines(run, step, width, rows - 1, self.glyphs)]
        self.sized(detail, height=min(len(lines), rows))
        detail.show(lines)
        found = evidence.of_step(run, step)
        if self.grid.view == ChartView():
            self.grid.look(self.monitor.view)
        charts = evidence.charts(run, found, self.glyphs, self.axis())
        self.query_one("#charts", ChartGrid).show(charts, nothing="no chart: none of this step's signals is logged")
        self._draw_log(run, found.place, height)

    def _draw_log(self, run: RunSnapshot, place: tuple[str, int] | None, height: int) -> None:
        pane = self.query_one("#log", LogPane)
        pane.display = place is not None and height >= 22
        if not pane.display or place is None:
            return
        self.sized(pane, height=4 if height < 30 else max(6, height // 4))
        if place != self._place:
            self._place = place
            self.view.go(run, place, self.monitor.source)
        self.view.draw(run, pane)

    def _detail(self, run: RunSnapshot, step: TriageStep, width: int) -> list[Line]:
        glyphs = self.glyphs
        lines: list[Line] = [
            [
                Span(f" {glyphs.verdicts[step.verdict]} {step.verdict.value} ", VERDICT_STYLES[step.verdict]),
                Span(step.title, "title"),
                Span(f"  step {run.triage.index(step) + 1} of {len(run.triage)}: {self._where(run, step)}", "muted"),
            ]
        ]
        found = (("what", step.what, "text"), ("why", step.why, "text"), ("next", step.next, "value"))
        for label, text, style in found:
            for index, piece in enumerate(wrap(text, width - 8)):
                lines.append([Span(f" {label if index == 0 else '':<5} ", "key"), Span(piece, style)])
        rows = 4 if self.app.size.height >= 36 else 2 if len(lines) <= _FEW_LINES else 1
        return [*lines, *limit_lines(run, step, width, rows, glyphs)]

    def _where(self, run: RunSnapshot, step: TriageStep) -> str:
        on = self.shown_key("step.next")
        if step.explains:
            return f"this explains it, the walk stops here; {on} goes on"
        explaining = next((one for one in run.triage if one.explains), None)
        if explaining is None:
            return f"{on} next step"
        after = run.triage.index(step) > run.triage.index(explaining)
        return f"{explaining.title} explains the symptom already" if after else f"not the cause; {on} goes on"

    def episode_id(self) -> str | None:
        """The worst episode of the step."""
        run, step = self.run_now(), self.steps.current
        if run is None or step is None:
            return None
        named = tuple(one for one in run.episodes if one.id in step.episodes)
        return worst_first(named)[0].id if named else None

    def copied(self) -> str:
        """What the step found, why, and what next; the line or the chart where the cursor is on those."""
        run, step = self.run_now(), self.steps.current
        log = self.query_one("#log", LogPane)
        if self.focused is log and log.current is not None:
            return log.current.text
        if self.focused is self.grid or run is None or step is None:
            return super().copied()
        parts = (("what", step.what), ("why", step.why), ("next", step.next))
        head = f"{run.name}: {step.title}: {step.verdict.value}"
        return "\n".join([head, *(f"{label}: {text}" for label, text in parts if text)])

    def action_next_step(self, by: int) -> None:
        """The next or the previous step."""
        self.steps.move("down" if by > 0 else "up")

    def action_open(self) -> None:
        """The evidence of this step."""
        if self.steps.current is not None:
            self.monitor.open_evidence(self.run_id, step=self.steps.current.id)

    def action_other_run(self, by: int) -> None:
        """The same walk for the run before or after this one in the list."""
        other = self.monitor.neighbour(self.run_id, by)
        if other is not None:
            self.run_id = other
            self.show(self.monitor.fleet)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Another step: its detail and evidence."""
        event.stop()
        if event.pane is self.steps:
            self.show(self.monitor.fleet)
