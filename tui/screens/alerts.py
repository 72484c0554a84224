"""Every episode of every run in one list: open ones first, of those the worst on top."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.finding import Episode
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import keys, numbers
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.log_view import short_path
from trainmon.tui.row import Row, RunId
from trainmon.tui.run_lines import episode_words, status_line
from trainmon.tui.screens.filtered import FilteredScreen
from trainmon.tui.screens.of_run import SNOOZE_S
from trainmon.tui.span import Line, Span, clip, fit, fit_middle, width_of, wrap
from trainmon.tui.widgets.alert_pane import counted, followed, status_of
from trainmon.tui.widgets.filter_bar import FilterBar
from trainmon.tui.widgets.lines import LineList, look_of
from trainmon.tui.widgets.panes import TextLines

_ROOMY = 20  # rows from which the episode at the cursor is told in full


class Entry(NamedTuple):
    """An episode and the run it belongs to."""

    run: RunId
    episode: Episode


def entries_of(rows: list[Row], words: str) -> list[Entry]:
    """Those whose text holds all `words`: unseen open ones by severity, then the rest, by time where it is known."""
    wanted = words.lower().split()
    found = [Entry(row.id, one) for row in rows for one in row.run.episodes]
    found = [entry for entry in found if all(word in _text(entry) for word in wanted)]
    return sorted(found, key=_order)


def _text(entry: Entry) -> str:
    one = entry.episode
    return f"{entry.run.name} {one.severity.name} {one.kind} {one.signal} {one.what}".lower()


def _order(entry: Entry) -> tuple[object, ...]:
    one = entry.episode
    closed = one.recovered or one.acknowledged
    return (closed, -one.severity, -(one.first_time or 0.0), -one.first_step, entry.run, one.id)


class AllAlerts(LineList):
    """The list."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.entries: list[Entry] = []
        self.now = 0.0
        self.nothing = ""

    def show(self, entries: list[Entry], now: float, nothing: str) -> None:
        """The cursor follows its episode, as in `followed`; `now` in wall seconds."""
        before = self.current
        self.entries, self.now, self.nothing = entries, now, nothing
        if before is not None:
            own = [one.episode if one.run == before.run else None for one in entries]
            self.cursor = followed(before.episode, own, self.cursor)
        self.redraw()

    @property
    def current(self) -> Entry | None:
        """Under the cursor."""
        return self.entries[self.cursor] if self.cursor < len(self.entries) else None

    @property
    def count(self) -> int:
        """All."""
        return len(self.entries)

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        run, one = self.entries[index]
        return (run, one.id, one.severity, one.last_step, status_of(one, self.now), one.what)

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One episode."""
        return entry_line(self.entries[index], width, self.now, look_of(self).glyphs, at_cursor=at_cursor)

    def empty(self) -> list[Line]:
        """Nothing is also an answer."""
        return [[Span(f"  {self.nothing}", "muted")]]


def entry_line(entry: Entry, width: int, now: float, glyphs: Glyphs, *, at_cursor: bool) -> Line:
    """Severity, status, run, step, what."""
    run, one = entry
    status = status_of(one, now)
    name, step = (16, 10) if width < 110 else (28, 12)
    since = f"step {numbers.step(one.first_step)}"
    line = [
        Span(glyphs.cursor if at_cursor else " ", "key"),
        Span(f" {glyphs.severities[one.severity]} {one.severity.name:<4} ", one.severity.name.lower()),
        Span(f"{status:<9} ", "value" if status == "open" else "muted"),
        Span(fit_middle(run.name, name, glyphs.ellipsis) + " ", "title"),
        Span(fit(since, step, glyphs.ellipsis) + " "),
    ]
    room = max(1, width - width_of(line))
    return [*line, Span(fit(one.what or one.kind, room, glyphs.ellipsis))]


def detail_lines(entry: Entry, run: RunSnapshot, width: int) -> list[Line]:
    """What, where and what to do, in four lines; what is too long for its lines is on the screen of the evidence."""
    one = entry.episode
    last = f"-{numbers.step(one.last_step)}" if one.last_step > one.first_step else ""
    steps = f"steps {numbers.step(one.first_step)}{last}" if last else f"step {numbers.step(one.first_step)}"
    where = f"{one.signal}, {steps}" + (
        f", {short_path(one.path)} line {one.line}" if one.path and one.line > 0 else ""
    )
    todo = next((check.next for check in run.checks if check.id == one.check), "")
    parts = (("what", one.what or one.kind, "text", 1), ("where", where, "muted", 1), ("next", todo, "value", 2))
    lines: list[Line] = []
    for label, text, style, rows in parts:
        pieces = wrap(text, width - 8)
        if len(pieces) > rows:
            pieces = [*pieces[: rows - 1], clip(" ".join(pieces[rows - 1 :]), width - 8)]
        lines += [
            [Span(f" {label if place == 0 else '':<5} ", "key"), Span(piece, style)]
            for place, piece in enumerate(pieces)
        ]
    return lines


class AlertsScreen(FilteredScreen):
    """Filter, acknowledge, open the evidence."""

    KIND = keys.ALERTS
    BINDINGS = keys.bindings_of(keys.ALERTS)

    def __init__(self) -> None:
        super().__init__()
        self.words = ""

    def body(self) -> ComposeResult:
        """Counts, list, status, filter."""
        yield TextLines(1, "bar", id="head")
        yield AllAlerts(id="all")
        yield TextLines(4, "bar", id="detail")
        yield TextLines(1, id="status")
        yield FilterBar("words of the run, the signal or the text", id="filter")

    @property
    def pane(self) -> AllAlerts:
        """The list."""
        return self.query_one("#all", AllAlerts)

    def panes(self) -> list[Widget]:
        """The list."""
        return [self.pane]

    def draw(self, fleet: FleetSnapshot) -> None:
        """See `MonitorScreen`."""
        entries = entries_of(self.monitor.rows, self.words)
        told = counted([one.episode for one in entries], self.monitor.clock.wall())
        head = [Span(" all alerts", "title"), Span(f"  {told}, open ones first", "muted")]
        if self.words:
            head.append(Span(f"  with {self.words}; {self.shown_key('back')} shows all", "muted"))
        self.query_one("#head", TextLines).show([head])
        nothing = "no alert holds these words" if self.words else "nothing unusual so far"
        self.pane.show(entries, self.monitor.clock.wall(), nothing)
        self.query_one("#status", TextLines).show([status_line(fleet, self.app.size.width, self.glyphs)])
        self._draw_detail()

    def _draw_detail(self) -> None:
        """The whole of the episode at the cursor, and what its check says to do."""
        detail, entry = self.query_one("#detail", TextLines), self.pane.current
        row = self.subject_row()
        detail.display = entry is not None and row is not None and self.app.size.height >= _ROOMY
        if entry is not None and row is not None:
            detail.show(detail_lines(entry, row.run, self.app.size.width))

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """The detail follows."""
        event.stop()
        self._draw_detail()

    def subject(self) -> RunId | None:
        """The run of the episode under the cursor."""
        return self.pane.current.run if self.pane.current else None

    def log_place(self) -> tuple[str, int] | None:
        """Where that episode begins."""
        entry = self.pane.current
        return (entry.episode.path, entry.episode.line) if entry and entry.episode.line > 0 else None

    def copied(self) -> str:
        """The episode at the cursor."""
        entry = self.pane.current
        return episode_words(entry.run.name, entry.episode) if entry is not None else ""

    def action_open(self) -> None:
        """Its evidence."""
        if (entry := self.pane.current) is not None:
            self.monitor.open_evidence(entry.run, episode=entry.episode.id)

    def action_acknowledge(self) -> None:
        """Seen by a person."""
        if (entry := self.pane.current) is not None:
            self.monitor.acknowledge(entry.run, entry.episode.id)

    def action_snooze(self) -> None:
        """Silent for an hour."""
        if (entry := self.pane.current) is not None:
            self.monitor.snooze(entry.run, entry.episode.id, SNOOZE_S)

    def action_alerts(self) -> None:
        """Is where one is."""
