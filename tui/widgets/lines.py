"""A list drawn line by line: cursor, scrolling, mouse, and only those lines anew that changed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, cast

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from trainmon.tui.keymap import KeyMap
from trainmon.tui.look import Look
from trainmon.tui.span import Line
from trainmon.tui.widgets.flat import FlatWidget


class _HasLook(Protocol):
    look: Look
    key_map: KeyMap


def look_of(widget: Widget) -> Look:
    """The look of the app that `widget` belongs to."""
    return cast("_HasLook", widget.app).look


def key_map_of(widget: Widget) -> KeyMap:
    """The keys of the app that `widget` belongs to."""
    return cast("_HasLook", widget.app).key_map


class LineList(FlatWidget, can_focus=True):
    """Rows under an optional head. Subclasses give `count`, `head`, `row` and `row_key`."""

    DEFAULT_CSS = "LineList { height: 1fr; width: 1fr; }"
    shows_cursor = True

    class Opened(Message):
        """A row was clicked while under the cursor."""

        def __init__(self, pane: LineList) -> None:
            self.pane = pane
            super().__init__()

        @property
        def control(self) -> LineList:
            """The list."""
            return self.pane

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, pane: LineList) -> None:
            self.pane = pane
            super().__init__()

        @property
        def control(self) -> LineList:
            """The list."""
            return self.pane

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor = 0
        self.top = 0
        self._drawn: list[Hashable] = []
        self._drawn_for: Size | None = None

    # What subclasses say -------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many rows there are."""
        return 0

    def head(self) -> list[Line]:
        """Lines above the rows that never scroll."""
        return []

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """Row `index`, drawn."""
        raise LookupError(index, width, at_cursor)

    def row_key(self, index: int) -> Hashable:
        """Changes when the row must be drawn anew."""
        return index

    def head_key(self) -> Hashable:
        """Changes when the head must be drawn anew."""
        return None

    def empty(self) -> list[Line]:
        """What stands there when there are no rows."""
        return []

    # Drawing -------------------------------------------------------------------------------------------

    @property
    def page(self) -> int:
        """Rows that fit."""
        return max(1, self.size.height - len(self.head()))

    def render_line(self, y: int) -> Strip:
        """One line for Textual."""
        width, look = self.size.width, look_of(self)
        head = self.head()
        if y < len(head):
            return look.strip(head[y], width, "bar")
        index = self.top + y - len(head)
        if not self.count:
            lines = self.empty()
            return look.strip(lines[y - len(head)] if y - len(head) < len(lines) else [], width)
        if index >= self.count:
            return look.strip([], width)
        at_cursor = index == self.cursor
        ground = ("cursor" if self.has_focus else "cursor_idle") if at_cursor and self.shows_cursor else ""
        return look.strip(self.row(index, width, at_cursor), width, ground)

    def redraw(self) -> None:
        """After the data changed: keeps the cursor inside and draws what is different, nothing else."""
        self.cursor = max(0, min(self.cursor, self.count - 1))
        self._scroll_to_cursor()
        head = len(self.head())
        keys: list[Hashable] = [
            self.head_key() if y < head else self._identity_at(y - head) for y in range(self.size.height)
        ]
        before, self._drawn = self._drawn, keys
        size_before, self._drawn_for = self._drawn_for, self.size
        if len(before) != len(keys) or size_before != self._drawn_for:
            self.refresh()
            return
        changed = [self.changed_region(y, before[y], key) for y, key in enumerate(keys) if before[y] != key]
        if changed:
            self.refresh(*changed)

    def changed_region(self, y: int, before: Hashable, now: Hashable) -> Region:
        """What of line `y` differs; over a slow link every cell counts."""
        del before, now
        return Region(0, y, self.size.width, 1)

    def _identity_at(self, y: int) -> Hashable:
        index = self.top + y
        if index >= self.count:
            return ("none", self.count == 0)
        return (self.row_key(index), index == self.cursor, self.has_focus)

    # Moving --------------------------------------------------------------------------------------------

    def move(self, how: str) -> None:
        """`how`: down, up, page_down, page_up, top or bottom."""
        before = self.cursor
        target = {
            "down": before + 1,
            "up": before - 1,
            "page_down": before + max(1, self.page - 1),
            "page_up": before - max(1, self.page - 1),
            "top": 0,
            "bottom": self.count - 1,
        }.get(how, before)
        self.move_to(target)

    def move_to(self, index: int) -> None:
        """The cursor to `index`, or as near as there are rows."""
        before = self.cursor
        self.cursor = max(0, min(index, self.count - 1))
        self.redraw()
        if self.cursor != before:
            self.post_message(self.Moved(self))

    def _scroll_to_cursor(self) -> None:
        page = self.page
        self.top = max(0, min(self.top, self.count - page))
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + page:
            self.top = self.cursor - page + 1

    # Events --------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Everything is somewhere else now."""
        self.redraw()

    def on_focus(self) -> None:
        """The cursor's colour tells which pane the keys go to."""
        self.redraw()

    def on_blur(self) -> None:
        """See `on_focus`."""
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Three rows."""
        event.stop()
        self.move_to(self.cursor + 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Three rows."""
        event.stop()
        self.move_to(self.cursor - 3)

    def on_click(self, event: events.Click) -> None:
        """Puts the cursor there; a click on the cursor opens."""
        index = self.top + event.y - len(self.head())
        if not 0 <= index < self.count or event.y < len(self.head()):
            return
        if index == self.cursor:
            self.post_message(self.Opened(self))
        self.move_to(index)
