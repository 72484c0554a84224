"""Only the cells of a region that is to be drawn anew go to the terminal: over a slow link every byte counts.

Textual 8 begins each partial update of a line at the left edge of its widget, however far right the change is
(`textual._compositor.ChopsUpdate.render_segments` cuts on the right only); a ticking age at the end of a row so
costs the whole row. This cuts on both sides.
"""

from __future__ import annotations

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate, Compositor


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


class ThinCompositor(Compositor):
    """Gives thin updates."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """See `Compositor`."""
        update = super().render_partial_update()
        return None if update is None else ThinUpdate(update.chops, update.spans, update.chop_ends)
