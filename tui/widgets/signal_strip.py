"""Signals that have no room for a chart: one short entry each, with the current value and a small curve."""

from __future__ import annotations

import math

from textual.strip import Strip

from trainmon.tui.chart import Chart
from trainmon.tui.columns import VERDICT_STYLES
from trainmon.tui.curve import spark_text
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.slots import SHORT_TITLES, Absent
from trainmon.tui.span import Line, Span, clip, fit, pad
from trainmon.tui.widgets.flat import FlatWidget
from trainmon.tui.widgets.lines import look_of

_TITLE = 13
_VALUE = 10


def across(width: int) -> int:
    """Entries side by side: with a curve from 80 columns on, without one in fewer.

    >>> across(45), across(60), across(80), across(119)
    (1, 2, 2, 3)
    """
    return 1 if width < 56 else 2 if width < 114 else 3


class SignalStrip(FlatWidget):
    """Drawn anew only when an entry says something else."""

    DEFAULT_CSS = "SignalStrip { height: 4; width: 1fr; }"

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.entries: tuple[Chart | Absent, ...] = ()
        self._lines: list[Line] = []

    def show(self, entries: tuple[Chart | Absent, ...]) -> None:
        """Replaces the entries; those without data stand last."""
        self.entries = tuple(sorted(entries, key=lambda one: isinstance(one, Absent)))
        self._draw()

    def on_resize(self) -> None:
        """Another number fits side by side."""
        self._draw()

    def _draw(self) -> None:
        width, glyphs = self.size.width, look_of(self).glyphs
        columns = across(width)
        cells = width // columns
        rows = math.ceil(len(self.entries) / columns)
        lines: list[Line] = []
        for row in range(rows):
            line: Line = []
            for entry in self.entries[row * columns : (row + 1) * columns]:
                line += pad(entry_line(entry, cells - 1, glyphs), cells)
            lines.append(line)
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line for Textual."""
        return look_of(self).strip(self._lines[y] if y < len(self._lines) else [], self.size.width)


def entry_line(entry: Chart | Absent, width: int, glyphs: Glyphs) -> Line:
    """Number, sign, title, value, curve; for a signal that is not logged, that."""
    title = fit(SHORT_TITLES.get(entry.title, entry.title), _TITLE, glyphs.ellipsis)
    if isinstance(entry, Absent):
        sign, style = glyphs.verdicts[entry.verdict], VERDICT_STYLES[entry.verdict]
        reason = "not applicable" if entry.verdict.value == "N/A" else "not logged"
        words = clip(f" {reason}", max(0, width - 4 - _TITLE), glyphs.ellipsis)
        return [Span(f"{entry.number} ", "key"), Span(f"{sign} ", style), Span(title, "muted"), Span(words, "faint")]
    worst = max(entry.shades, key=lambda shade: ("info", "warn", "fail").index(shade.style), default=None)
    sign, style = (worst.glyph, worst.style) if worst else (" ", "text")
    value = entry.value.removesuffix(" nats").removesuffix(" z").removesuffix(" bits/B").removesuffix(" tok/s")
    value = fit(value, _VALUE, glyphs.ellipsis)
    room = width - 4 - _TITLE - _VALUE - 2
    curve = ""
    if room >= 4 and entry.curves:
        curve = spark_text(entry.curves[0], min(room, 24), glyphs.spark, glyphs.bad, entry.least_span)
    head = [Span(f"{entry.number} ", "key"), Span(f"{sign} ", style), Span(title, "text")]
    return [*head, Span(f" {value} ", "value"), Span(curve, "line0")]
