"""A map of levels with a row for each layer (or for some, where there are more than rows): cursor, axis, legend."""

from __future__ import annotations

from collections.abc import Hashable

from textual import events
from textual.message import Message
from textual.strip import Strip

from trainmon.tui import numbers
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.heat import LEVELS, HeatMap, layer_rows
from trainmon.tui.span import Line, Span, fit, pad, width_of
from trainmon.tui.widgets.flat import FlatWidget
from trainmon.tui.widgets.lines import look_of

FRAME_ROWS = 3  # title, axis, legend


class HeatPane(FlatWidget, can_focus=True):
    """The cursor is on one layer; every layer can be reached, also where several share a row."""

    DEFAULT_CSS = "HeatPane { height: 1fr; width: 1fr; }"

    class Moved(Message):
        """The cursor is on another layer."""

    class Opened(Message):
        """The layer under the cursor was clicked."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.labels: tuple[str, ...] = ()
        self.cursor = 0
        self.title: Line = []
        self.unit = ""
        self.x_name = "step"
        self.nothing = ""
        self.against = "of its layer's usual level"
        self.drawn: HeatMap | None = None
        self._lines: list[Line] = []
        self._key: Hashable = None

    # What the screen asks ------------------------------------------------------------------------------

    @property
    def label_cells(self) -> int:
        """Cells to the left of the map."""
        longest = max((len(label) for label in self.labels), default=1)
        shared = len(self.labels) > max(1, self.size.height - FRAME_ROWS)
        return min(14, (2 * longest + 1 if shared else longest) + 3)

    @property
    def room(self) -> tuple[int, int]:
        """(columns, rows) of the map."""
        return max(1, self.size.width - self.label_cells), max(1, self.size.height - FRAME_ROWS)

    def show(self, drawn: HeatMap | None, labels: tuple[str, ...], title: Line, unit: str, nothing: str = "") -> None:
        """`labels`: one a layer; `nothing`: what to say where there is no map."""
        self.drawn, self.labels, self.title, self.unit, self.nothing = drawn, labels, title, unit, nothing
        self.cursor = max(0, min(self.cursor, len(labels) - 1))
        self.redraw()

    def move(self, how: str) -> None:
        """Up is to the layer above, as it is drawn."""
        last = len(self.labels) - 1
        page = max(1, self.room[1] - 1)
        step = {"down": 1, "up": -1, "page_down": page, "page_up": -page}.get(how, 0)
        target = {"top": 0, "bottom": last}.get(how, self.cursor + step)
        self.move_to(target)

    def move_to(self, layer: int) -> None:
        """The cursor to `layer`, as near as there is one."""
        before, self.cursor = self.cursor, max(0, min(len(self.labels) - 1, layer))
        self.redraw()
        if before != self.cursor:
            self.post_message(self.Moved())

    # Drawing -------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draws what is different."""
        if not self.size.width:
            return
        lines = self._draw(look_of(self).glyphs)
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def _draw(self, glyphs: Glyphs) -> list[Line]:
        width = self.size.width
        lines: list[Line] = [pad(self.title, width, "bar")]
        if self.drawn is None:
            return [*lines, [], [Span(fit(f"  {self.nothing}", width), "muted")]]
        for row, (first, end) in enumerate(self.drawn.rows):
            lines.append(self._row(row, first, end, glyphs))
        return [*lines, self._axis(glyphs), self._legend(glyphs)]

    def _row(self, row: int, first: int, end: int, glyphs: Glyphs) -> Line:
        assert self.drawn is not None
        here = first <= self.cursor < end
        if here:
            label = self.labels[self.cursor]
        else:
            label = self.labels[first] if end - first == 1 else f"{self.labels[first]}-{self.labels[end - 1]}"
        mark = glyphs.cursor if here else " "
        ground = ("cursor" if self.has_focus else "cursor_idle") if here else ""
        head = [
            Span(mark, "key", ground),
            Span(fit(label, self.label_cells - 2, glyphs.ellipsis, right=True), "title" if here else "muted", ground),
            Span(glyphs.vertical, "faint"),
        ]
        return [*head, *heat_spans(self.drawn.level[row].tolist(), self.drawn.bad[row].tolist(), glyphs, self._family)]

    @property
    def _family(self) -> str:
        return "turn" if self.drawn is not None and self.drawn.by_change else "heat"

    def _axis(self, glyphs: Glyphs) -> Line:
        assert self.drawn is not None
        across = self.size.width - self.label_cells
        first, last = (numbers.count(end) for end in self.drawn.ends)
        middle = f" {self.x_name} "
        rule = first + glyphs.horizontal * max(0, across - len(first) - len(last)) + last
        at = (across - len(middle)) // 2
        if at > len(first) + 1 and at + len(middle) < across - len(last):
            rule = rule[:at] + middle + rule[at + len(middle) :]
        return [Span(" " * (self.label_cells - 1) + glyphs.corner, "faint"), Span(rule[:across], "faint")]

    def _legend(self, glyphs: Glyphs) -> Line:
        drawn = self.drawn
        assert drawn is not None
        line: Line = [Span(" " * self.label_cells)]
        if drawn.by_change:
            times = (f"{drawn.low:.2g}x", "usual", f"{drawn.high:.2g}x") if drawn.log else None
            words = times or (f"{drawn.low:+.2g}", "usual", f"{drawn.high:+.2g}")
            line.append(Span(f"{words[0]} or less ", "muted"))
            line += heat_spans(list(range(LEVELS)), [False] * LEVELS, glyphs, "turn")
            line.append(Span(f" {words[2]} or more", "muted"))
            if width_of(line) + 1 + len(self.against) <= self.size.width:
                line.append(Span(f" {self.against}", "muted"))
        else:
            low, high = (numbers.with_unit(value, self.unit) for value in (drawn.low, drawn.high))
            line.append(Span(f"{low} ", "muted"))
            line += heat_spans(list(range(LEVELS)), [False] * LEVELS, glyphs, "heat")
            line.append(Span(f" {high}{', logarithmic' if drawn.log else ''}", "muted"))
        if drawn.bad.any():
            line += [Span(f"  {glyphs.bad}", "fail"), Span(" NaN or Inf", "muted")]
        return line

    def render_line(self, y: int) -> Strip:
        """One line for Textual."""
        look = look_of(self)
        return look.strip(self._lines[y] if y < len(self._lines) else [], self.size.width)

    # Events --------------------------------------------------------------------------------------------

    def on_focus(self) -> None:
        """The cursor's colour tells which pane the keys go to."""
        self.redraw()

    def on_blur(self) -> None:
        """See `on_focus`."""
        self.redraw()

    def on_click(self, event: events.Click) -> None:
        """Puts the cursor there; on the row of the cursor, goes through the layers that share it."""
        rows = self.drawn.rows if self.drawn is not None else layer_rows(len(self.labels), self.room[1])
        row = event.y - 1
        if 0 <= row < len(rows):
            first, end = rows[row]
            inside = first <= self.cursor < end
            if inside and end - first == 1:
                self.post_message(self.Opened())
            self.move_to(first + (self.cursor - first + 1) % (end - first) if inside else first)


def heat_spans(levels: list[int], bad: list[bool], glyphs: Glyphs, family: str) -> Line:
    """Cells of the levels, those of one level as one span; level -1 is blank."""
    marks = glyphs.heat if family == "heat" else glyphs.turn
    line: Line = []
    start = 0
    for cell in range(1, len(levels) + 1):
        if cell < len(levels) and levels[cell] == levels[start] and bad[cell] == bad[start]:
            continue
        size, level = cell - start, levels[start]
        if bad[start]:
            line.append(Span(glyphs.bad * size, "fail"))
        elif level < 0:
            line.append(Span(" " * size))
        else:
            line.append(Span(marks[level * len(marks) // LEVELS] * size, f"{family}{level}"))
        start = cell
    return line
