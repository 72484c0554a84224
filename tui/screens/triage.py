"""The walk: one step of the triage at a time, with what, why, what next and the evidence beside it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot, TriageStep
from trainmon.tui import evidence, keys
from trainmon.tui.columns import VERDICT_STYLES
from trainmon.tui.row import RunId
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.span import Line, Span, pad, width_of, wrap
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.lines import LineList
from trainmon.tui.widgets.panes import TextLines, TriagePane, newest_first


class TriageScreen(RunBound):
    """`n` and `N` walk, `Enter` opens the evidence."""

    KIND = keys.TRIAGE
    BINDINGS = keys.bindings_of(keys.TRIAGE)
    DEFAULT_CSS = """
    TriageScreen #left { width: 34; }
    TriageScreen #steps { height: 9; }
    TriageScreen #detail { height: auto; }
    """

    def __init__(self, run_id: RunId, step: str | None = None) -> None:
        super().__init__(run_id)
        self.wanted = step

    def content(self) -> ComposeResult:
        """The steps and their evidence beside what the one at the cursor found."""
        with Horizontal():
            yield TriagePane(id="steps", detail=False)
            with Vertical(id="right"):
                yield TextLines(1, id="detail")
                yield ChartGrid(id="charts")

    @property
    def steps(self) -> TriagePane:
        """The checklist."""
        return self.query_one("#steps", TriagePane)

    def panes(self) -> list[Widget]:
        """The steps, the evidence."""
        return [self.steps, self.query_one("#charts", ChartGrid)]

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        width, height = self.app.size
        self.steps.styles.width = max(30, min(46, width * 2 // 5))
        self.steps.styles.height = "1fr"
        self.steps.show(run.triage, self.run_id)
        if self.wanted is not None:
            wanted, self.wanted = self.wanted, None
            place = next((i for i, step in enumerate(run.triage) if step.id == wanted), None)
            if place is not None:
                self.steps.move_to(place)
        step = self.steps.current
        if step is None:
            return
        room = width - (self.steps.styles.width.cells or 30) - 1 if self.steps.styles.width else width - 31
        lines = self._detail(run, step, int(room))
        detail = self.query_one("#detail", TextLines)
        detail.styles.height = max(4, min(len(lines), height - 4 - 7))
        detail.show(lines)
        found = evidence.of_step(run, step)
        charts = evidence.charts(run, found, self.glyphs)
        self.query_one("#charts", ChartGrid).show(charts, nothing="no chart: none of this step's signals is logged")

    def _detail(self, run: RunSnapshot, step: TriageStep, width: int) -> list[Line]:
        glyphs = self.glyphs
        place = f"step {run.triage.index(step) + 1} of {len(run.triage)}"
        title: Line = [
            Span(f" {glyphs.verdicts[step.verdict]} {step.verdict.value} ", VERDICT_STYLES[step.verdict], "bar"),
            Span(step.title, "title", "bar"),
            Span(f"  {place}", "faint", "bar"),
        ]
        lines: list[Line] = [pad(title, width, "bar")]
        for label, text, style in (
            ("what", step.what, "text"),
            ("why", step.why, "muted"),
            ("next", step.next, "value"),
        ):
            for index, piece in enumerate(wrap(text, width - 7)):
                lines.append([Span(f" {label if index == 0 else '':<5}", "key"), Span(piece, style)])
        lines.append([Span(" " + self._where(run, step), "faint")])
        limits = self._limits(run, step)
        lines += [[Span(" limit " if i == 0 else "       ", "faint"), Span(x, "faint")] for i, x in enumerate(limits)]
        return [line for line in lines if width_of(line) > 1]

    def _where(self, run: RunSnapshot, step: TriageStep) -> str:
        if step.explains:
            return f"This explains it: the walk stops here. n goes on, Enter opens the evidence {self.glyphs.arrow}"
        explaining = next((one for one in run.triage if one.explains), None)
        if explaining is None:
            return "n next step, Enter opens the evidence"
        after = run.triage.index(step) > run.triage.index(explaining)
        return f"{explaining.title} explains the symptom already" if after else "does not explain it; n goes on"

    def _limits(self, run: RunSnapshot, step: TriageStep) -> list[str]:
        """The thresholds of the checks whose episodes the step names."""
        checks = {one.check for one in run.episodes if one.id in step.episodes}
        out = []
        for check in run.checks:
            if check.id in checks and check.thresholds:
                out.append(", ".join(f"{name} {value}" for name, value in check.thresholds.items()))
        return out[:2]

    def episode_id(self) -> str | None:
        """The newest episode of the step."""
        run, step = self.run_now(), self.steps.current
        if run is None or step is None:
            return None
        named = tuple(one for one in run.episodes if one.id in step.episodes)
        return newest_first(named)[0].id if named else None

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
        self.show(self.monitor.fleet)
