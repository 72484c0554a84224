"""Which of the doctrine's signals a run logs, which are derived, which are missing and how to get them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Final

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor import inventory, logging_cost
from trainmon.monitor.folded_names import folded
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.text import printable
from trainmon.tui import keys
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.row import RunId
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.span import Line, Span, fit, wrap
from trainmon.tui.widgets.lines import LineList, look_of
from trainmon.tui.widgets.panes import TextLines

DETAIL_ROWS: Final = 7
_STATUS = {"missing": "warn", "derivable": "info", "present": "pass", "not applicable": "na"}
_WORDS = {"missing": "missing", "derivable": "derived", "present": "logged", "not applicable": "n/a"}


class InventoryList(LineList):
    """One line a row of the table."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.rows: tuple[inventory.Row, ...] = ()

    def show(self, rows: tuple[inventory.Row, ...]) -> None:
        """Replaces the rows."""
        self.rows = rows
        self.redraw()

    @property
    def count(self) -> int:
        """Rows."""
        return len(self.rows)

    def head(self) -> list[Line]:
        """The titles."""
        title = f"  P   status   {fit('signal', 23)} how"
        return [[Span(fit(title, self.size.width), "heading", "bar")]]

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        return self.rows[index]

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One row."""
        return row_line(self.rows[index], width, look_of(self).glyphs, at_cursor=at_cursor)


def row_line(row: inventory.Row, width: int, glyphs: Glyphs, *, at_cursor: bool) -> Line:
    """Priority, status, signal, and its keys, its rule or what to log."""
    line = [
        Span(glyphs.cursor if at_cursor else " ", "key"),
        Span(f" {row.priority:<3} ", "value" if row.priority == "P0" else "muted"),
        Span(f"{_WORDS[row.status]:<8} ", _STATUS[row.status]),
        Span(fit(row.signal, 23, glyphs.ellipsis) + " ", "title" if row.priority == "P0" else "text"),
    ]
    style = "value" if row.status == "missing" and row.priority == "P0" else "muted"
    return [*line, Span(fit(how(row), max(1, width - 39), glyphs.ellipsis), style)]


def how(row: inventory.Row) -> str:
    """Where the row comes from, or how to get it."""
    often = inventory.every(row)
    every = f", {often}" if often else ""
    if row.status == "present":
        return f"{', '.join(folded(row.keys)) or 'read from the log'}{every}"
    if row.status == "derivable":
        by = row.derived or f"by rule {row.rule or 'of the format'}"
        return f"{by}{every}"
    return "this run has no such thing" if row.status == "not applicable" else row.to_get_it or f"log {row.signal}"


def cost_lines(told: Sequence[str], width: int, rows: int) -> list[Line]:
    """What the logging itself costs, and how seldom is enough: at most `rows` lines."""
    wrapped = [part for text in told for part in wrap(printable(text, 400).strip(), max(10, width))]
    return [[Span(f" {text}", "heading" if place == 0 else "muted")] for place, text in enumerate(wrapped[:rows])]


class InventoryScreen(RunBound):
    """Gaps of the first priority on top."""

    KIND = keys.INVENTORY
    BINDINGS = keys.bindings_of(keys.INVENTORY)

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self._cost: tuple[str, ...] = ()
        self._cost_of = ("", 0)

    def content(self) -> ComposeResult:
        """The list; the row at the cursor in full; what is charted under its own name; what logging costs."""
        yield TextLines(1, id="counts")
        yield InventoryList(id="rows")
        yield TextLines(DETAIL_ROWS, "bar", id="detail")

    def panes(self) -> list[Widget]:
        """The list."""
        return [self.pane]

    @property
    def pane(self) -> InventoryList:
        """The list."""
        return self.query_one("#rows", InventoryList)

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        rows = inventory.rows(run)
        self.pane.show(rows)
        counted = {status: sum(row.status == status for row in rows) for status in _WORDS}
        words = ", ".join(f"{count} {_WORDS[status]}" for status, count in counted.items() if count)
        self.query_one("#counts", TextLines).show([[Span(" inventory ", "title"), Span(f" {words}", "muted")]])
        width = self.app.size.width
        row = rows[self.pane.cursor] if self.pane.cursor < len(rows) else None
        other = ", ".join(printable(name, 60) for name in folded(inventory.unmapped(run)))
        lines: list[Line] = []
        if row is not None:
            for place, text in enumerate(wrap(f"{row.title}: {how(row)}", width - 2)[:2]):
                lines.append([Span(f" {text}", "value" if place == 0 else "text")])
        if other:
            lines.append([Span(" other keys: ", "key"), Span(fit(other, max(1, width - 14), self.glyphs.ellipsis))])
        detail = self.query_one("#detail", TextLines)
        self._ask_cost(run)
        cost = cost_lines(self._cost, width - 2, DETAIL_ROWS - len(lines))
        detail.styles.height = len(lines) + len(cost)
        detail.show([*lines, *cost])

    def _ask_cost(self, run: RunSnapshot) -> None:
        """Works out the cost beside the screen, again when the log has grown by a tenth: it looks at every series."""
        count = max((view.count for view in run.series.values()), default=0)
        name, before = self._cost_of
        if name != run.name or count >= 1.1 * before + 1:
            self._cost_of = (run.name, count)
            self.run_worker(partial(self._work_out_cost, run), thread=True, exclusive=True, group="cost")

    def _work_out_cost(self, run: RunSnapshot) -> None:
        told = tuple(logging_cost.lines(logging_cost.logging_cost(run)))
        self.app.call_from_thread(self._told_cost, told)

    def _told_cost(self, told: tuple[str, ...]) -> None:
        if told != self._cost:
            self._cost = told
            self.show(self.monitor.fleet)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """The row in full."""
        event.stop()
        self.show(self.monitor.fleet)

    def copied(self) -> str:
        """The row at the cursor: the signal, and how it is had or could be had."""
        rows = self.pane.rows
        row = rows[self.pane.cursor] if self.pane.cursor < len(rows) else None
        return "" if row is None else f"{row.signal} ({row.status}): {how(row)}"

    def action_inventory(self) -> None:
        """Is where one is."""
