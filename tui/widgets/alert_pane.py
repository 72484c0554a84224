"""The alerts of one run: in which order they are told, and which one a key acts on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from trainmon.monitor.finding import Episode
from trainmon.tui import numbers
from trainmon.tui.span import Line, Span, fit
from trainmon.tui.widgets.lines import LineList, look_of


def worst_first(episodes: tuple[Episode, ...]) -> list[Episode]:
    """Unseen open ones before all others, then by severity, then by where they began, the newest first."""
    return sorted(episodes, key=lambda one: (one.recovered or one.acknowledged, -one.severity, -one.first_step, one.id))


def status_of(one: Episode, now: float) -> str:
    """One word for how far a person has dealt with it; `now` in wall seconds."""
    if one.snoozed_until is not None and one.snoozed_until > now:
        return "snoozed"
    return "recovered" if one.recovered else "seen" if one.acknowledged else "open"


def counted(episodes: Sequence[Episode], now: float) -> str:
    """How many are open, and how many of those that are not over are silenced for a while."""
    status = [status_of(one, now) for one in episodes]
    snoozed = f", {status.count('snoozed')} snoozed" if "snoozed" in status else ""
    return f"{status.count('open')} open{snoozed} of {len(status)}"


def followed(before: Episode, now: Sequence[Episode | None], cursor: int) -> int:
    """The place of `before` among the episodes `now`, also where a worse one has come above it: a key acts on what was
    looked at. The cursor stays where it is when `before` was acknowledged, for the next to be."""
    for index, one in enumerate(now):
        if one is not None and one.id == before.id:
            return index if one.acknowledged == before.acknowledged else cursor
    return cursor


class AlertPane(LineList):
    """Episodes of one run, the worst first."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.episodes: list[Episode] = []
        self.now = 0.0

    def show(self, episodes: tuple[Episode, ...], now: float) -> None:
        """`now`: wall seconds, to tell whether a snooze still lasts. The cursor follows its episode: `followed`."""
        before = self.current
        self.episodes, self.now = worst_first(episodes), now
        if before is not None:
            self.cursor = followed(before, self.episodes, self.cursor)
        self.redraw()

    @property
    def current(self) -> Episode | None:
        """The episode under the cursor."""
        return self.episodes[self.cursor] if self.cursor < len(self.episodes) else None

    @property
    def count(self) -> int:
        """Open and recovered."""
        return len(self.episodes)

    def head_key(self) -> Hashable:
        """The title counts, and tells where the cursor is."""
        return (self.cursor, *(status_of(one, self.now) for one in self.episodes))

    def head(self) -> list[Line]:
        """The title."""
        text = f"  {counted(self.episodes, self.now)}, worst first" if self.episodes else "  none"
        if self.count > max(1, self.size.height - 1):
            text += f"  ({self.cursor + 1}/{self.count})"
        return [[Span(" alerts", "heading", "bar"), Span(text, "faint", "bar")]]

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        one = self.episodes[index]
        return (one.id, one.severity, one.last_step, status_of(one, self.now), one.what)

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One episode."""
        one, glyphs = self.episodes[index], look_of(self).glyphs
        status = status_of(one, self.now)
        since = f"step {numbers.step(one.first_step)}"
        if one.last_step > one.first_step:
            since += f"-{numbers.step(one.last_step)}"
        style = one.severity.name.lower()
        line = [
            Span(glyphs.cursor if at_cursor else " ", "key"),
            Span(f" {glyphs.severities[one.severity]} {one.severity.name:<4} ", style),
            Span(f"{status:<9} ", "muted" if status != "open" else "value"),
            Span(fit(since, 16, glyphs.ellipsis) + " ", "text"),
        ]
        room = width - 36
        if width >= 120:
            line.append(Span(fit(str(one.signal), 20, glyphs.ellipsis) + " ", "muted"))
            room -= 21
        return [*line, Span(fit(one.what or one.kind, max(1, room), glyphs.ellipsis))]

    def empty(self) -> list[Line]:
        """Nothing is also an answer."""
        return [[Span("  nothing unusual so far", "muted")]]
