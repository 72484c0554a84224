"""Which of the doctrine's signals a run logs, which are derived, which are missing and how to get them."""

from __future__ import annotations

from collections.abc import Hashable

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor import inventory
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.text import printable
from trainmon.tui import keys, numbers
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.span import Line, Span, fit, wrap
from trainmon.tui.widgets.lines import LineList, look_of
from trainmon.tui.widgets.panes import TextLines

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
    every = "" if row.cadence_steps is None else _every(row.cadence_steps)
    if row.status == "present":
        return f"{', '.join(row.keys) or 'read from the log'}{every}"
    if row.status == "derivable":
        return f"by rule {row.rule or 'of the format'}{every}"
    return "this run has no such thing" if row.status == "not applicable" else row.to_get_it or f"log {row.signal}"


def _every(steps: float) -> str:
    return ", every step" if steps == 1 else f", every {numbers.step(steps)} steps"


class InventoryScreen(RunBound):
    """Gaps of the first priority on top."""

    KIND = keys.INVENTORY
    BINDINGS = keys.bindings_of(keys.INVENTORY)

    def content(self) -> ComposeResult:
        """The list; the row at the cursor in full; what is charted under its own name."""
        yield TextLines(1, id="counts")
        yield InventoryList(id="rows")
        yield TextLines(3, "bar", id="detail")

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
        other = ", ".join(printable(name, 60) for name in inventory.unmapped(run))
        lines: list[Line] = []
        if row is not None:
            for place, text in enumerate(wrap(f"{row.title}: {how(row)}", width - 2)[:2]):
                lines.append([Span(f" {text}", "value" if place == 0 else "text")])
        if other:
            lines.append([Span(" other keys: ", "key"), Span(fit(other, max(1, width - 14), self.glyphs.ellipsis))])
        self.query_one("#detail", TextLines).show(lines)

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
