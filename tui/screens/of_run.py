"""What the screens of one run share: the head, the status line, acknowledging and snoozing."""

from __future__ import annotations

from textual.app import ComposeResult

from trainmon.monitor.finding import Verdict
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui.row import RunId
from trainmon.tui.run_lines import run_head, status_line
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.span import Span
from trainmon.tui.widgets.panes import TextLines

SNOOZE_S = 3600.0


class RunBound(MonitorScreen):
    """A screen about the run `run_id`. Subclasses give `content` and `draw_run`."""

    def __init__(self, run_id: RunId) -> None:
        super().__init__()
        self.run_id = run_id

    def body(self) -> ComposeResult:
        """Head, content, status."""
        yield TextLines(2, "bar", id="head")
        yield from self.content()
        yield TextLines(1, id="status")

    def content(self) -> ComposeResult:
        """Between head and status."""
        yield from ()

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """Puts the run's newest snapshot on the screen."""

    def draw(self, fleet: FleetSnapshot) -> None:
        """See `MonitorScreen`."""
        row = self.subject_row()
        width, glyphs = self.app.size.width, self.glyphs
        if row is None:
            text = f"this run is no longer there; {self.shown_key('back')} goes back"
            gone = [Span(f" {glyphs.verdicts[Verdict.NO_DATA]} {text}", "warn")]
            self.query_one("#head", TextLines).show([gone])
            return
        age_s = row.age_at(self.monitor.clock.monotonic())
        head = run_head(row, width, glyphs, age_s, pinned=row.id in self.monitor.pins)
        self.query_one("#head", TextLines).show(head)
        files = (f"{file.path}: {file.problem}" for file in row.run.files if file.problem)
        self.query_one("#status", TextLines).show(
            [status_line(fleet, width, glyphs, (*row.run.problems, *files), self._loading())]
        )
        self.draw_run(row.run, fleet)

    def _loading(self) -> tuple[float, str] | None:
        run = self.run_now()
        return self.monitor.loading if run is not None and run.progress < 1 else None

    def subject(self) -> RunId | None:
        """The run."""
        return self.run_id

    def run_now(self) -> RunSnapshot | None:
        """Its newest snapshot."""
        row = self.subject_row()
        return row.run if row else None

    def episode_id(self) -> str | None:
        """The episode that acknowledging would mean; None when there is none."""
        return None

    def log_place(self) -> tuple[str, int] | None:
        """Where the episode at hand begins in the log."""
        run, wanted = self.run_now(), self.episode_id()
        if run is not None and wanted is not None:
            for one in run.episodes:
                if one.id == wanted and one.path and one.line > 0:
                    return one.path, one.line
        return None

    def action_acknowledge(self) -> None:
        """Seen by a person."""
        if (episode := self.episode_id()) is not None:
            self.monitor.acknowledge(self.run_id, episode)
        else:
            self.notify("no episode here to acknowledge")

    def action_snooze(self) -> None:
        """Silent for an hour."""
        if (episode := self.episode_id()) is not None:
            self.monitor.snooze(self.run_id, episode, SNOOZE_S)
        else:
            self.notify("no episode here to snooze")
