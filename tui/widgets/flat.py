"""The ground of all widgets here: lines go to the screen as they were drawn."""

from __future__ import annotations

from typing import Protocol, cast

from textual.filter import ANSIToTruecolor
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from trainmon.tails.clock import Clock
from trainmon.tui.look import Look


class _App(Protocol):
    look: Look
    clock: Clock


def clock_of(widget: Widget) -> Clock:
    """The clock of the app that `widget` belongs to."""
    return cast("_App", widget.app).clock


class FlatWidget(Widget):
    """A widget without border, padding or tint, whose `render_line` gives whole lines with colours of their own.

    Textual's `StylesCache` would go over each line again for the sake of those: half the time of a frame.
    """

    _drawn_size: Size | None = None

    @property
    def size(self) -> Size:
        """See `Widget`; looked up once for all lines that are drawn together."""
        return super().size if self._drawn_size is None else self._drawn_size

    def check_idle(self) -> None:
        """See its base; not where the screen draws this part in a moment anyway."""
        screen = next((node for node in self.ancestors if isinstance(node, Screen)), None)
        if not getattr(screen, "is_painting", False):
            super().check_idle()

    def on_resize(self) -> None:
        """Subclasses that keep what they have drawn draw it anew where it does not fit any more."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """See `Widget`."""
        self._drawn_size = super().size
        try:
            strips = [self.render_line(y) for y in crop.line_range]
        finally:
            self._drawn_size = None
        for each in self.get_line_filters():
            if isinstance(each, ANSIToTruecolor) and not cast("_App", self.app).look.few_colours:
                continue  # there is none of the sixteen colours to put another in place of
            background = self.background_colors[1]
            strips = [strip.apply_filter(each, background) for strip in strips]
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips
