"""One line to type a filter into; shown only while one types."""

from __future__ import annotations

from typing import Protocol, cast

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Label


class Filtered(Protocol):
    """A screen with a filter."""

    def filter_typed(self, text: str) -> None:
        """The text so far."""

    def filter_done(self) -> None:
        """Closed; the keys go elsewhere again."""


class FilterBar(Horizontal):
    """Tells its screen each change at once; Enter keeps it, Esc (the screen's own) takes it off.

    At once, and not by a message: the next key may already mean what the filter has left.
    """

    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; }
    FilterBar.-open { display: block; }
    FilterBar Label { width: 2; color: $primary; }
    FilterBar Input { height: 1; border: none; padding: 0; width: 1fr; background: $panel; }
    FilterBar Input:focus { border: none; }
    """

    def __init__(self, hint: str, id: str | None = None) -> None:
        super().__init__(id=id)
        self.hint = hint

    def compose(self) -> ComposeResult:
        """A slash and the text."""
        yield Label("/ ")
        yield Input(placeholder=self.hint, select_on_focus=False, max_length=1000, compact=True)

    @property
    def is_open(self) -> bool:
        """Whether one types now."""
        return self.has_class("-open")

    def open(self, text: str) -> None:
        """Shows the line with `text` to go on from."""
        self.add_class("-open")
        field = self.query_one(Input)
        field.can_focus = True
        field.value = text
        field.cursor_position = len(text)
        self.screen.set_focus(field, scroll_visible=False)

    def close(self) -> None:
        """Hides it."""
        if self.is_open:
            self.remove_class("-open")
            self.query_one(Input).can_focus = False
            self._listener.filter_done()

    @property
    def _listener(self) -> Filtered:
        return cast("Filtered", self.screen)

    def type(self, text: str) -> None:
        """As if `text` had been typed."""
        self.query_one(Input).insert_text_at_cursor(text)
        self.tell()

    def tell(self) -> None:
        """Tells what stands there, while one types."""
        if self.is_open:
            self._listener.filter_typed(self.query_one(Input).value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Pasted text, too."""
        event.stop()
        if self.is_open and event.value == self.query_one(Input).value:
            self.tell()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keeps."""
        event.stop()
        self.close()
