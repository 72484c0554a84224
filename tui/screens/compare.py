"""Pinned runs against each other."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.compare.judging import Comparison, compare
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import keys
from trainmon.tui.axis import AXES, why_not
from trainmon.tui.look import LINE_STYLES
from trainmon.tui.row import RunId
from trainmon.tui.screens.charted import Charted
from trainmon.tui.side_by_side import (
    apart_charts,
    best_axis,
    difference_lines,
    end_table,
    letter,
    overlay_charts,
    without,
)
from trainmon.tui.span import Line, Span, clip, width_of
from trainmon.tui.state import Layout
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.panes import TextLines, TextList

_COMPARED_EVERY_S = 3.0


class CompareScreen(Charted):
    """Loss and its difference, gradient norm and step time of all pinned runs; the table and their settings below."""

    KIND = keys.COMPARE
    BINDINGS = keys.bindings_of(keys.COMPARE)

    def __init__(self, run_ids: tuple[RunId, ...]) -> None:
        super().__init__()
        self.run_ids = run_ids
        self.axis: str | None = None
        self.apart = False
        self._drawn_axis = ""
        self._found: tuple[tuple[object, ...], float, Comparison] | None = None

    def body(self) -> ComposeResult:
        """Head, charts, table."""
        yield TextLines(1, "bar", id="head")
        yield ChartGrid(id="charts")
        yield TextList(id="table")

    def panes(self) -> list[Widget]:
        """The charts, the table."""
        return [self.query_one("#charts", ChartGrid), self.query_one("#table", TextList)]

    def draw(self, fleet: FleetSnapshot) -> None:
        """See `MonitorScreen`."""
        del fleet
        rows = [row for run_id in self.run_ids if (row := self.monitor.row(run_id)) is not None]
        runs = [row.run for row in rows]
        width = self.app.size.width
        axis = self._axis_of(runs)
        if axis != self._drawn_axis:
            self._drawn_axis = axis
            self.grid.look(replace(self.grid.view, stretch=None, follow=False, cursor=None))
        self.query_one("#head", TextLines).show([self._head([run.name for run in runs], axis, width)])
        self.grid.across = len(runs) if self.apart else 0
        charts = (apart_charts if self.apart else overlay_charts)(runs, axis, self.glyphs)
        self.query_one("#charts", ChartGrid).show(charts, nothing="none of these runs logs loss, gradient norm or time")
        table: list[Line] = []
        pane = self.query_one("#table", TextList)
        if runs:
            found = self._compared(runs, axis)
            table = [*end_table(runs, axis, width, self.glyphs, found), *difference_lines(found, width, self.glyphs)]
        pane.how = f"{self.shown_key('pane.next')}, then {self.shown_key('down')} {self.shown_key('up')}"
        self.sized(pane, height=min(len(table), max(4, self.app.size.height * 5 // 12)))
        pane.show(table)

    def recall(self, kept: Layout) -> None:
        """One chart or side by side, by which axis, and how charts are looked at."""
        self.apart, self.axis = kept.apart, kept.compared_by if kept.compared_by in AXES else None
        self.grid.look(self.monitor.view)

    def _axis_of(self, runs: list[RunSnapshot]) -> str:
        """The axis that was chosen; until one is, what the runs ask for, as far as they are read by now."""
        if self.axis is not None and not without(runs, self.axis):
            return self.axis
        return best_axis(runs) if runs else "step"

    def _compared(self, runs: list[RunSnapshot], axis: str) -> Comparison:
        """What `trainmon compare` says; worked out anew for new values every few seconds at most."""
        wanted = (axis, *map(id, runs))
        now = self.monitor.clock.monotonic()
        if self._found is not None:
            key, at, found = self._found
            if key == wanted or (key[0] == axis and len(key) == len(wanted) and now - at < _COMPARED_EVERY_S):
                return found
        found = compare(runs, "loss.train", axis)  # type: ignore[arg-type]
        self._found = (wanted, now, found)
        return found

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
        self.monitor.keep_layout(apart=self.apart)
        self.show(self.monitor.fleet)

    def action_axis(self) -> None:
        """By step, tokens, FLOPs or time, as far as all of them tell."""
        runs = [row.run for run_id in self.run_ids if (row := self.monitor.row(run_id)) is not None]
        axis = self._axis_of(runs)
        after = AXES[AXES.index(axis) + 1 :] + AXES[: AXES.index(axis) + 1]
        lacking = {one: names for one in AXES if (names := without(runs, one))}
        self.axis = next(one for one in after if one not in lacking)
        self.monitor.keep_layout(compared_by=self.axis)
        if lacking:
            words = (f"{', '.join(names[:3])}: {self._why_not(names[0], one)}" for one, names in lacking.items())
            self.notify(f"no axis by {'; '.join(words)}", markup=False)
        self.grid.look(replace(self.grid.view, stretch=None, follow=False, cursor=None))
        self.show(self.monitor.fleet)

    def _why_not(self, name: str, axis: str) -> str:
        run = next((row.run for row in self.monitor.rows if row.run.name == name), None)
        return axis if run is None else why_not(run, axis) or f"{axis}: it logs no loss"

    def action_compare(self) -> None:
        """Is where one is."""

    def attended(self) -> tuple[RunId, ...]:
        """Those that are compared."""
        return self.run_ids

    def copied(self) -> str:
        """The table as it stands; the chart where the cursor is on one."""
        if self.focused is self.grid:
            return super().copied()
        return "\n".join(
            "".join(span.text for span in line).rstrip() for line in self.query_one("#table", TextList).text
        )

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
