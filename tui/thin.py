"""Only the cells that differ are drawn and go to the terminal: over a slow link every byte counts.

Textual 8 draws every line of every widget that a partial update touches, and begins each line at the left edge of its
widget, however far right the change is (`textual._compositor.ChopsUpdate.render_segments` cuts on the right only).
Here a dirty region is drawn by the one widget that it lies in, line by line, and of each line only the stretch is
written in which it differs from what stands there. Where widgets overlap, Textual's own way is taken, cut on both
sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from trainmon.tui.widgets.flat import FlatWidget

_ALIKE = 24  # cells
_GROUNDS = (Horizontal, Vertical)  # of which nothing is seen where they are filled


def _place(piece: tuple[int, int, Strip]) -> tuple[int, int]:
    return piece[1], piece[0]


class ThinUpdate(ChopsUpdate):
    """As its base, without the cells to the left of each span."""

    def render_segments(self, console: Console) -> str:
        """What to write to the terminal."""
        parts: list[str] = []
        for y, first, end in self.spans:
            for chop_end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                start, stop = max(x, first), min(chop_end, end)
                if strip is None or start >= stop:
                    continue
                parts.append(Control.move_to(start, y).segment.text)
                parts.append(strip.crop(start - x, stop - x).render(console))
        return "".join(parts)


class LinesUpdate(ChopsUpdate):
    """Pieces of lines, each with the column and the row at which it begins."""

    def __init__(self, pieces: list[tuple[int, int, Strip]]) -> None:
        super().__init__([], [], [])
        self.pieces = pieces

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for x, y, strip in self.pieces:
            yield Control.move_to(x, y).segment
            yield from strip

    def render_segments(self, console: Console) -> str:
        """What to write to the terminal."""
        parts: list[str] = []
        at = (-1, -1)
        for x, y, strip in self.pieces:
            if at != (x, y):
                parts.append(Control.move_to(x, y).segment.text)
            parts.append(strip.render(console))
            at = (x + strip.cell_length, y)
        return "".join(parts)


class ThinCompositor(Compositor):
    """Gives thin updates."""

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[tuple[int, int], tuple[int, Strip]] = {}  # (column, row) of a line -> its end, itself
        self._written_for: Mapping[Widget, tuple[Region, Region]] | None = None

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
    ) -> RenderableType | None:
        """See `Compositor`. The whole screen is drawn line by line, as its parts draw themselves, if they lie side by
        side; not where a picture is asked for (`full`), which knows no places."""
        if full or self.size.region not in self._dirty_regions or (parts := self._side_by_side()) is None:
            return super().render_update(full, screen_stack, simplify)
        self._written.clear()
        self._written_for = self.visible_widgets
        self._dirty_regions.clear()
        pieces = [piece for part, region in parts for piece in self._pieces(part, region, region)]
        return LinesUpdate(sorted(pieces, key=_place))

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """See `Compositor`."""
        self._written.clear()
        return super().render_full_update(simplify)

    def _side_by_side(self) -> list[tuple[FlatWidget, Region]] | None:
        """The parts with their regions, if they fill the screen, none over another; None where Textual must see to what
        shines through."""
        parts: list[tuple[FlatWidget, Region]] = []
        room = self.size.area
        for widget, (region, clip) in self.visible_widgets.items():
            if isinstance(widget, FlatWidget):
                if not clip.contains_region(region) or any(region.overlaps(other) for _, other in parts):
                    return None
                parts.append((widget, region))
                room -= region.area
            elif type(widget) not in _GROUNDS and not isinstance(widget, Screen):
                return None
        return parts if not room else None

    def render_partial_update(self) -> ChopsUpdate | None:
        """See `Compositor`."""
        if self._written_for is not self.visible_widgets:
            self._written.clear()
            self._written_for = self.visible_widgets
        whole = self.size.region
        places = [self._owner(region.intersection(whole)) for region in self._dirty_regions]
        if places and None not in places:
            self._dirty_regions.clear()
            pieces = [piece for place in places if place is not None for piece in self._pieces(*place)]
            return LinesUpdate(pieces) if pieces else None
        self._written.clear()
        update = super().render_partial_update()
        return None if update is None else ThinUpdate(update.chops, update.spans, update.chop_ends)

    def _owner(self, dirty: Region) -> tuple[Widget, Region, Region] | None:
        """The widget that draws all of `dirty`, its region, and `dirty`; None where several do."""
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip)
            if shown.contains_region(dirty):
                return widget, region, dirty
            if shown.overlaps(dirty):
                return None
        return None

    def _pieces(self, widget: Widget, region: Region, dirty: Region) -> list[tuple[int, int, Strip]]:
        """What differs in the lines of `dirty` from what was written there last."""
        if not dirty:
            return []
        pieces = []
        lines = Region(0, dirty.y - region.y, region.width, dirty.height)
        for y, strip in zip(dirty.line_range, widget.render_lines(lines), strict=False):
            before = self._written.get((region.x, y))
            whole = (0, region.width)
            if before is None or before[0] != region.right:
                stretches = [(dirty.x - region.x, dirty.right - region.x)]
                is_known = stretches == [whole]  # else what stands beside these cells may be older
            else:
                stretches = differing(before[1], strip)
                is_known = True
            if is_known:
                self._written[region.x, y] = (region.right, strip)
            for first, end in stretches:
                pieces.append((region.x + first, y, strip if (first, end) == whole else strip.crop(first, end)))
        return pieces


def draw_now(screen: Screen[object]) -> None:
    """Draws what is to be drawn without waiting for the next frame (Textual's own tests do it so)."""
    screen._on_timer_update()


def differing(before: Strip, now: Strip) -> list[tuple[int, int]]:
    """The (first, end) cells of the stretches in which the segments differ; what is alike between two is written along
    where that is less than another move of the cursor with the style that follows.

    >>> from rich.segment import Segment
    >>> one, two = (Strip([Segment("ab"), Segment(text), Segment("e" * 99), Segment(text)]) for text in ("cd", "xy"))
    >>> differing(one, two), differing(one, one)
    ([(2, 4), (103, 105)], [])
    """
    if before is now:
        return []
    if before.cell_length != now.cell_length:
        return [(0, now.cell_length)]
    found: list[tuple[int, int]] = []
    old, new = iter(before), iter(now)
    at = 0
    for one, other in zip(old, new, strict=False):
        first, at = at, at + one.cell_length
        if one == other:
            continue
        end = first + other.cell_length
        while at != end:  # until both have a segment that begins here
            if at < end:
                at += next(old).cell_length
            else:
                end += next(new).cell_length
        if found and first - found[-1][1] < _ALIKE:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return found
