"""The last line: the keys of this screen, as many as fit, made from the key table. Each can be clicked."""

from __future__ import annotations

from textual import events
from textual.strip import Strip

from trainmon.tui.keys import FLEET, Key, shown_keys
from trainmon.tui.span import Line, Span
from trainmon.tui.widgets.flat import FlatWidget
from trainmon.tui.widgets.lines import key_map_of, look_of

_ALWAYS = ("back", "help", "quit")


class KeyBar(FlatWidget):
    """Keys and what they do."""

    DEFAULT_CSS = "KeyBar { height: 1; width: 1fr; dock: bottom; }"

    def __init__(self, kind: str, id: str | None = None) -> None:
        super().__init__(id=id)
        self.kind = kind
        self.message: Line = []

    def show_message(self, line: Line) -> None:
        """A message in place of the keys; [] brings the keys back."""
        if line != self.message:
            self.message = line
            self.refresh()

    def fitting(self, width: int) -> list[Key]:
        """Help, quit and back always; of the others those that come first in the table."""
        every = [
            key
            for key in key_map_of(self).of(self.kind)
            if key.label and key.keys and (self.kind, key.id) != (FLEET, "back")
        ]
        last = [key for key in every if key.id in _ALWAYS]
        room = width - sum(_cells(key) for key in last) - 1
        first = []
        for key in every:
            if key.id in _ALWAYS:
                continue
            if (room := room - _cells(key)) < 0:
                break
            first.append(key)
        return first + last

    def render_line(self, y: int) -> Strip:
        """One line for Textual."""
        width, look = self.size.width, look_of(self)
        line: Line = [Span(" ")] if y == 0 else []
        for key in self.fitting(width):
            line += [Span(shown_keys(key), "key"), Span(f" {key.label}  ", "muted")]
        return look.strip(self.message or line, width, "bar")

    async def on_click(self, event: events.Click) -> None:
        """Does what the key under the mouse does."""
        at = 1
        for key in self.fitting(self.size.width):
            if at <= event.x < at + _cells(key):
                await self.screen.run_action(key.action)
                return
            at += _cells(key)


def _cells(key: Key) -> int:
    return len(shown_keys(key)) + len(key.label) + 3
