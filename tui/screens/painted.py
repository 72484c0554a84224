"""A screen that can be drawn at once, and once: what Textual does by messages from part to part and in several frames.

Left to itself, Textual has each part tell the screen that it is to be drawn, waits for the next of sixty frames a
second, lays the parts out, tells each its size, draws, hears from those that have drawn themselves anew for it, and
draws again. All of that stands between a key and its answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from textual import messages
from textual.await_remove import AwaitRemove
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from trainmon.tui.guards import size_by_now
from trainmon.tui.thin import ThinCompositor
from trainmon.tui.widgets.flat import FlatWidget


class PaintedScreen(Screen[None]):
    """Opaque, its parts side by side."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = ThinCompositor()
        self._gathers = self._is_held = False
        self._wants_layout = self._is_painted = False
        self.is_painting = False  # what a part asks for is drawn in a moment: it need not be woken for it

    @property
    def is_current(self) -> bool:
        """Textual has the screen behind this one drawn along, which nobody sees."""
        top = self.app.screen_stack[-1] if self.app.screen_stack else None
        return top is self if isinstance(top, PaintedScreen) else super().is_current

    def post_message(self, message: Message) -> bool:
        """What the parts ask for while it is gathered is not sent about."""
        if self._gathers:
            if isinstance(message, messages.Update):
                self._dirty_widgets.add(message.widget)
                return True
            if isinstance(message, messages.Layout):
                self._wants_layout = True
                return True
        return super().post_message(message)

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> PaintedScreen:
        """See `Widget`; nothing where it is only asked for because the screen was put in front: it is drawn by then."""
        if self._is_painted and not (regions or layout or recompose):
            self._is_painted = False
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def remove(self) -> AwaitRemove:
        """See `Widget`, which has the screen in front laid out and drawn anew when another one goes."""
        return self.app._prune(self)

    @property
    def is_built(self) -> bool:
        """Whether its parts stand."""
        return True

    @property
    def _can_paint(self) -> bool:
        return self.is_attached and not self.app._batch_count and self.app.screen_stack[-1] is self

    @contextmanager
    def painting(self) -> Iterator[None]:
        """What the parts ask for meanwhile is drawn at the end, before anything else happens, once they all stand."""
        self.is_painting = self.is_built and self._can_paint
        try:
            yield
        finally:
            is_painting, self.is_painting = self.is_painting, False
        if is_painting:
            self.paint()

    def paint(self, *, whole: bool = False) -> None:
        """Draws what the parts have asked for, all of it if `whole`, before anything else happens."""
        if not self._can_paint:
            return
        self._gather()
        size = self.app.size
        if self._wants_layout or self._layout_required or self._scroll_required or self._size != size:
            self._lay_out(size)
        if whole:
            self._compositor._dirty_regions.add(size.region)
        self._layout_required = self._scroll_required = self._repaint_required = False
        self._compositor.update_widgets(self._dirty_widgets)
        self._compositor_refresh()

    def size_as(self, other: PaintedScreen) -> None:
        """Makes the parts as large as those of `other`, a screen of this kind: what is drawn on them then fits."""
        self.set_classes(other.classes)
        for part, like in zip(self.walk_children(Widget), other.walk_children(Widget), strict=False):
            if part.id == like.id and type(part) is type(like):
                part.styles.inline.merge(like.styles.inline)
                part.refresh(layout=True)

    def lay_out(self) -> None:
        """Gives the parts their places and draws nothing."""
        self._gather()
        self._lay_out(self.app.size)
        self._layout_required = False

    def _gather(self) -> None:
        self._gathers = True
        try:
            for part in self.walk_children(Widget):
                part._check_refresh()
        finally:
            self._gathers = False

    def _lay_out(self, size: Size) -> None:
        """Places the parts; those whose sizes are others draw themselves anew for it at once."""
        parts = [part for part in self.walk_children(FlatWidget) if part.display]
        before = [part.size for part in parts]
        self._is_held, self._wants_layout = True, False
        try:
            self._refresh_layout(size)
        finally:
            self._is_held = False
        for part, was in zip(parts, before, strict=True):
            if part.size != was:
                part.on_resize()
        self._gather()

    def _compositor_refresh(self) -> None:
        if not self._is_held:
            super()._compositor_refresh()

    def _screen_resized(self, size: Size) -> None:  # noqa: ARG002 - Textual's signature
        super()._screen_resized(size_by_now(self))
