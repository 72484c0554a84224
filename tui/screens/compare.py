"""Pinned runs against each other."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tui import keys
from trainmon.tui.axis import AXES
from trainmon.tui.look import LINE_STYLES
from trainmon.tui.row import RunId
from trainmon.tui.screens.charted import Charted
from trainmon.tui.side_by_side import (
    apart_charts,
    best_axis,
    end_table,
    letter,
    overlay_charts,
    without,
)
from trainmon.tui.span import Line, Span, clip, width_of
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.panes import TextLines


class CompareScreen(Charted):
    """Loss, gradient norm and step time of all pinned runs; end values below."""

    KIND = keys.COMPARE
    BINDINGS = keys.bindings_of(keys.COMPARE)

    def __init__(self, run_ids: tuple[RunId, ...]) -> None:
        super().__init__()
        self.run_ids = run_ids
        self.axis: str | None = None
        self.apart = False

    def body(self) -> ComposeResult:
        """Head, charts, table."""
        yield TextLines(1, "bar", id="head")
        yield ChartGrid(id="charts")
        yield TextLines(1, id="table")

    def panes(self) -> list[Widget]:
        """The charts."""
        return [self.query_one("#charts", ChartGrid)]

    def draw(self, fleet: FleetSnapshot) -> None:
        """See `MonitorScreen`."""
        del fleet
        rows = [row for run_id in self.run_ids if (row := self.monitor.row(run_id)) is not None]
        runs = [row.run for row in rows]
        width = self.app.size.width
        if self.axis is None and runs:
            self.axis = best_axis(runs)
        axis = self.axis or "step"
        self.query_one("#head", TextLines).show([self._head([run.name for run in runs], axis, width)])
        charts = (apart_charts if self.apart else overlay_charts)(runs, axis, self.glyphs)
        self.query_one("#charts", ChartGrid).show(charts, nothing="none of these runs logs loss, gradient norm or time")
        table = end_table(runs, axis, width, self.glyphs)
        pane = self.query_one("#table", TextLines)
        self.sized(pane, height=min(len(table), max(3, self.app.size.height // 3)))
        pane.show(table)

    def _head(self, names: list[str], axis: str, width: int) -> Line:
        how = "side by side" if self.apart else "in one chart"
        line: Line = [Span(f" {len(names)} runs {how}, by {axis} ", "title")]
        share = max(8, (width - width_of(line)) // max(1, len(names)) - 4)
        for place, name in enumerate(names):
            line.append(Span(f" {letter(place)} ", f"label{place % LINE_STYLES}"))
            line.append(Span(clip(name, share, self.glyphs.ellipsis), "text"))
        return line

    def action_view(self) -> None:
        """All in one chart, or one beside the other."""
        self.apart = not self.apart
        self.show(self.monitor.fleet)

    def action_axis(self) -> None:
        """By step, by tokens or by time, as far as all of them tell."""
        runs = [row.run for run_id in self.run_ids if (row := self.monitor.row(run_id)) is not None]
        axis = self.axis or "step"
        after = AXES[AXES.index(axis) + 1 :] + AXES[: AXES.index(axis) + 1]
        lacking = {one: names for one in AXES if (names := without(runs, one))}
        self.axis = next(one for one in after if one not in lacking)
        if lacking:
            words = (f"no axis by {one}: {', '.join(names[:3])} logs none" for one, names in lacking.items())
            self.notify("; ".join(words), markup=False)
        self.grid.look(replace(self.grid.view, stretch=None, follow=False, cursor=None))
        self.show(self.monitor.fleet)

    def action_compare(self) -> None:
        """Is where one is."""

    def action_open(self) -> None:
        """Enlarges the chart at the cursor."""
        grid = self.query_one("#charts", ChartGrid)
        if grid.current is not None and not self.apart:
            grid.enlarge(grid.current.number)

    def go_back(self) -> None:
        """From one chart to all, then back."""
        grid = self.query_one("#charts", ChartGrid)
        if grid.enlarged:
            grid.enlarge("")
        else:
            super().go_back()
