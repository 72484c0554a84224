"""One line to type a filter into; shown only while one types."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label


class FilterBar(Horizontal):
    """Tells each change as it is typed; Enter keeps it, Esc (the screen's own) takes it off."""

    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; }
    FilterBar.-open { display: block; }
    FilterBar Label { width: 2; color: $primary; }
    FilterBar Input { height: 1; border: none; padding: 0; width: 1fr; background: $panel; }
    FilterBar Input:focus { border: none; }
    """

    class Typed(Message):
        """The text so far."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    class Done(Message):
        """Closed; the keys go elsewhere again."""

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
            self.post_message(self.Done())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tells."""
        event.stop()
        if self.is_open:
            self.post_message(self.Typed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keeps."""
        event.stop()
        self.close()
