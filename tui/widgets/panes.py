"""Small panes: lines of text, the triage checklist, a run's log."""

from __future__ import annotations

from collections.abc import Hashable

from textual.strip import Strip

from trainmon.monitor.snapshot import TriageStep
from trainmon.tails.status import LogLine
from trainmon.tui.columns import VERDICT_STYLES
from trainmon.tui.span import Line, Span, fit, wrap
from trainmon.tui.step_detail import short_detail, step_detail
from trainmon.tui.widgets.flat import FlatWidget
from trainmon.tui.widgets.lines import LineList, look_of


class TextLines(FlatWidget):
    """A few lines that someone else composes; drawn anew only when they differ."""

    DEFAULT_CSS = "TextLines { height: auto; width: 1fr; }"

    def __init__(self, rows: int = 1, ground: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self.styles.height = rows
        self.ground = ground
        self.shown: list[Line] = []

    def show(self, lines: list[Line]) -> None:
        """Replaces what stands there."""
        if lines != self.shown:
            self.shown = lines
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line for Textual."""
        line = self.shown[y] if y < len(self.shown) else []
        return look_of(self).strip(line, self.size.width, self.ground)


class TextList(LineList):
    """Lines to read; moving scrolls. `how`: the keys that do, told in the last line while there are more below it."""

    shows_cursor = False

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.text: list[Line] = []
        self.how = ""

    def show(self, text: list[Line]) -> None:
        """Replaces the text; what stands there already is not drawn again."""
        if text != self.text:
            self.text = text
            self._drawn = []
        self.redraw()

    @property
    def count(self) -> int:
        """Lines."""
        return len(self.text)

    def move(self, how: str) -> None:
        """Scrolls: there is nothing to point at."""
        last = max(0, self.count - self.page)
        step = {"down": 1, "up": -1, "page_down": self.page - 1, "page_up": 1 - self.page}.get(how, 0)
        self.top = {"top": 0, "bottom": last}.get(how, max(0, min(last, self.top + step)))
        self.cursor = self.top
        self.redraw()

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        return (self._more(index), *self.text[index])

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One line."""
        del width, at_cursor
        more = self._more(index)
        return [Span(f" {more} more lines: {self.how}", "muted")] if more else self.text[index]

    def _more(self, index: int) -> int:
        """How many lines there are from `index` on, if it is the last that fits and its place is wanted to say so."""
        left = self.count - index
        return left if self.how and left > 1 and index == self.top + self.page - 1 else 0


class TriagePane(LineList):
    """The seven steps with their verdicts; under them what the step at the cursor found, and what to do."""

    def __init__(self, id: str | None = None, can_focus: bool = True) -> None:
        super().__init__(id)
        self.can_focus = can_focus
        self.steps: tuple[TriageStep, ...] = ()
        self.extra: list[Line] = []
        self.detail_shown = True
        self._run: Hashable = None
        self._chosen = False
        self._worded: list[Line] = []
        self._worded_for: Hashable = None

    def show(self, steps: tuple[TriageStep, ...], run: Hashable, extra: list[Line] | None = None) -> None:
        """The cursor is on the step that explains the run until it is moved. `extra` stands under the detail."""
        if extra is not None:
            self.extra = extra
        if run != self._run:
            self._run, self._chosen = run, False
        if not self._chosen:
            self.cursor = next((i for i, step in enumerate(steps) if step.explains), 0)
        self.steps = steps
        self.redraw()

    def move_to(self, index: int) -> None:
        """See `LineList`."""
        self._chosen = True
        super().move_to(index)

    @property
    def current(self) -> TriageStep | None:
        """The step at the cursor."""
        return self.steps[self.cursor] if self.cursor < len(self.steps) else None

    @property
    def count(self) -> int:
        """Seven."""
        return len(self.steps)

    def head(self) -> list[Line]:
        """The title."""
        hint = "  first cause wins" if self.size.width < 44 else "  in this order; the first cause wins"
        return [[Span(" triage", "heading", "bar"), Span(hint, "faint", "bar")]]

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        step = self.steps[index]
        return (step.id, step.title, step.verdict, step.what, step.explains)

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One step."""
        step, glyphs = self.steps[index], look_of(self).glyphs
        mark = glyphs.cursor if at_cursor else " "
        style = VERDICT_STYLES[step.verdict]
        title = fit(
            step.title if width >= 44 else step.id.replace("_", " "), 14 if width >= 44 else 10, glyphs.ellipsis
        )
        room = width - 4 - len(title) - 1
        what = step.what if step.what else step.verdict.value
        return [
            Span(mark, "key"),
            Span(f" {glyphs.verdicts[step.verdict]} ", style),
            Span(title, "title" if step.explains else "text"),
            Span(f" {fit(what, room, glyphs.ellipsis)}", "text" if step.explains else "muted"),
        ]

    def _identity_at(self, y: int) -> Hashable:
        line = self._detail_at(y + 1)
        return super()._identity_at(y) if line is None else ("detail", *line)

    def render_line(self, y: int) -> Strip:
        """Rows, then the detail."""
        line = self._detail_at(y)
        return super().render_line(y) if line is None else look_of(self).strip([Span(" "), *line], self.size.width)

    def _detail_at(self, y: int) -> Line | None:
        """What of the detail stands in line `y` of the pane; None where a row or the title does, or nothing yet."""
        below = y - 1 - self.count - 1  # under the title, the rows and an empty line
        if below < 0 or self.current is None:
            return None
        width, room = self.size.width - 2, self.size.height - 1 - self.count - 1
        wanted = (self.current, width, room, self.detail_shown)
        if wanted != self._worded_for:
            self._worded_for, self._worded = wanted, step_detail(self.current, width) if self.detail_shown else []
            if len(self._worded) > room:
                self._worded = short_detail(self.current, width, room, look_of(self).glyphs.ellipsis)
        place = below - len(self._worded)
        if place < 0:
            return self._worded[below]
        return self.extra[place] if place < len(self.extra) else []


_SHORT = {"gradients": "grad", "step_time": "time", "memory": "mem"}


class WalkBar(TriagePane):
    """The steps on one line, the current one marked: a walk from left to right."""

    DEFAULT_CSS = "WalkBar { height: 1; }"
    _told: Hashable = None

    def head(self) -> list[Line]:
        """None: there is one line."""
        return []

    def render_line(self, y: int) -> Strip:
        """One line for Textual; titles give way to verdicts where there is no room."""
        width, look = self.size.width, look_of(self)
        if y:
            return look.strip([], width)
        line: Line = [Span(" ", "text", "bar")]
        wide = sum(len(step.title) + 4 for step in self.steps) < width
        for index, step in enumerate(self.steps):
            here = index == self.cursor
            ground = "cursor" if here else "bar"
            line.append(Span(f" {look.glyphs.verdicts[step.verdict]} ", VERDICT_STYLES[step.verdict], ground))
            title = step.title if wide else _SHORT.get(step.id, step.id.partition("_")[0])
            line.append(Span(f"{title} ", "title" if here or step.explains else "muted", ground))
        return look.strip(line, width, "bar")

    def redraw(self) -> None:
        """One line is soon drawn, but over a slow link it is long."""
        self.cursor = max(0, min(self.cursor, self.count - 1))
        told = (self.cursor, tuple((step.id, step.title, step.verdict, step.explains) for step in self.steps))
        if told != self._told:
            self._told = told
            self.refresh()


_LINE_STYLES = {"text": "muted", "metric": "metric", "note": "note", "error": "error"}


class LogPane(LineList):
    """Raw lines. Follows the newest while the cursor is on the last line; stays where it is otherwise."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.lines_: tuple[LogLine, ...] = ()
        self.title = "log"
        self.shift = 0
        self.waiting = ""
        self.marked: tuple[str, int] | None = None

    def show(self, lines: tuple[LogLine, ...], title: str, waiting: str = "") -> None:
        """`waiting`: what to say in place of lines that were asked for and are not here yet."""
        following = self.cursor >= self.count - 1
        before = self.current
        self.title, self.waiting = title, waiting
        if lines is not self.lines_:
            self.lines_ = lines
            if following:
                self.cursor = len(lines) - 1
            elif before is not None:
                self.cursor = self.index_of(before.path, before.line_no, self.cursor)
        self.redraw()

    def index_of(self, path: str, line_no: int, default: int = -1) -> int:
        """Where that line is shown."""
        for index, line in enumerate(self.lines_):
            if line.line_no == line_no and line.path == path:
                return index
        return default

    def mark(self, path: str, line_no: int, *, shown: bool = True) -> bool:
        """Puts the cursor on that line, in the middle of the pane, marked if `shown`; False when it is not here."""
        index = self.index_of(path, line_no)
        if index < 0:
            return False
        if shown:
            self.marked = (path, line_no)
        self.cursor = index
        self.top = max(0, index - self.page // 2)
        self._drawn = []
        self.redraw()
        return True

    def on_resize(self) -> None:
        """The line one came for stays in the middle."""
        if self.marked is not None and self.index_of(*self.marked) == self.cursor:
            self.top = max(0, self.cursor - self.page // 2)
        super().on_resize()

    @property
    def current(self) -> LogLine | None:
        """The line under the cursor."""
        return self.lines_[self.cursor] if 0 <= self.cursor < len(self.lines_) else None

    @property
    def count(self) -> int:
        """Lines at hand."""
        return len(self.lines_)

    def head_key(self) -> Hashable:
        """The title tells where one is."""
        return (self.title, self.cursor, self.count)

    def head(self) -> list[Line]:
        """The title."""
        at = self.current.line_no if self.current else 0
        place = "" if not at else f"  line {at}" if at > 0 else f"  line {-at} from the end"
        return [[Span(f" {self.title}", "heading", "bar"), Span(place, "faint", "bar")]]

    def scroll_sideways(self, cells: int) -> None:
        """Long lines."""
        self.shift = max(0, self.shift + cells)
        self._drawn = []
        self.redraw()

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        return (self.lines_[index], self.shift, self.marked)

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One line of the log."""
        line, glyphs = self.lines_[index], look_of(self).glyphs
        marked = self.marked == (line.path, line.line_no)
        mark = glyphs.cursor if at_cursor else glyphs.pin if marked else " "
        number = f"{line.line_no:>7} "
        style = _LINE_STYLES.get(line.kind, "text")
        room = max(1, width - len(number) - 1)
        text = fit(line.text[self.shift :], room, glyphs.ellipsis)
        return [Span(mark, "key"), Span(number, "faint"), Span(text, style)]

    def empty(self) -> list[Line]:
        """Not there, or not yet."""
        return [[Span(f"  {text}", "muted")] for text in wrap(self.waiting or "no lines", self.size.width - 4)]
