"""All charts of a screen in one widget: a chart is drawn anew only when its data or its place changed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import replace

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from trainmon.monitor.finding import Verdict
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tui.arrange import Place, arrange
from trainmon.tui.chart import Chart, draw_chart, draw_title, plot_offset
from trainmon.tui.chart_view import ChartView, Stretch, whole_of
from trainmon.tui.columns import VERDICT_STYLES
from trainmon.tui.slots import SHORT_TITLES, Absent
from trainmon.tui.span import Line, Span, clip, fit, pad
from trainmon.tui.widgets.flat import FlatWidget, clock_of
from trainmon.tui.widgets.lines import look_of

_ROOMY = 20  # rows from which absent charts get a line each, and charts may be low
_PACKED_WIDTH = 23
_PLOT_S = 2.0  # a curve that grew by less than can be seen is drawn anew no more often


@dataclass(slots=True)
class _Block:
    """A chart as it was drawn: `outline` is all of it but the values, `drawn_s` when its curve was drawn."""

    key: Hashable
    strips: list[Strip]
    outline: Hashable
    values: int
    drawn_s: float
    title: Line
    chosen: bool


def _outline(chart: Chart) -> Hashable:
    """All that is drawn but the curves' newest values and what stands in the title."""
    curves = tuple((curve.label, curve.bad_x.size, *curve.attempts[-1:].tolist()) for curve in chart.curves)
    looks = (
        chart.window,
        chart.log_y,
        chart.clip_start,
        chart.clip_outliers,
        chart.smooth,
        chart.cursor,
        chart.preview,
    )
    points = tuple(curve.x.size for curve in chart.points)
    return (chart.title, chart.number, chart.unit, chart.x_name, chart.shades, chart.ticks, curves, looks, points)


def _stretches(rows: Iterable[int]) -> list[tuple[int, int]]:
    """(first, how many) of rows that follow each other.

    >>> _stretches({4, 1, 2})
    [(1, 2), (4, 1)]
    """
    found: list[tuple[int, int]] = []
    for row in sorted(rows):
        if found and row == sum(found[-1]):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((row, 1))
    return found


class ChartGrid(FlatWidget, can_focus=True):
    """Charts in a grid. Those that do not fit, and those without data, are one short entry each at the foot."""

    DEFAULT_CSS = "ChartGrid { height: 1fr; width: 1fr; }"

    class Chosen(Message):
        """A chart was clicked."""

        def __init__(self, number: str) -> None:
            self.number = number
            super().__init__()

    def __init__(self, id: str | None = None, can_focus: bool = True) -> None:
        super().__init__(id=id)
        self.can_focus = can_focus
        self.charts: tuple[Chart, ...] = ()
        self.absent: tuple[Absent, ...] = ()
        self.first: frozenset[str] = frozenset()
        self.enlarged = ""
        self.cursor = 0
        self.nothing = ""
        self.across = 0
        self.view = ChartView()
        self.foot_shown = True
        self.left_out: tuple[Chart, ...] = ()
        self._blocks: dict[Place, _Block] = {}
        self._foot: list[Strip] = []
        self._places: list[tuple[Place, Chart]] = []
        self._plan: Hashable = None

    def show(
        self,
        charts: tuple[Chart, ...],
        absent: tuple[Absent, ...] = (),
        first: frozenset[str] = frozenset(),
        nothing: str = "",
    ) -> None:
        """`first`: numbers of the charts that must not be left out; `nothing`: what to say when there is no chart."""
        self.charts, self.absent, self.first, self.nothing = charts, absent, first, nothing
        self.cursor = max(0, min(self.cursor, len(charts) - 1))
        self._draw()

    def enlarge(self, number: str) -> None:
        """One chart in all the room; "" or the same number again: all of them."""
        self.enlarged = "" if number == self.enlarged else number
        self._draw()

    def look(self, view: ChartView) -> None:
        """Looks at the charts in another way."""
        if view != self.view:
            self.view = view
            self._draw()

    def zoom(self, by: int) -> None:
        """In (1) or out (-1); a window that the charts were cut to opens as well."""
        if (whole := self._whole()) is not None:
            view = self._windowed().zoomed(whole, by)
            cut = view.stretch is None and self._window() is not None
            self.look(replace(view, stretch=whole) if cut else view)

    def pan(self, by: int) -> None:
        """To the left (-1) or right (1)."""
        if (whole := self._whole()) is not None:
            self.look(self._windowed().panned(whole, by))

    def read(self, by: int) -> None:
        """Moves the cursor of the x axis."""
        if (whole := self._whole()) is not None:
            self.look(self._windowed().read(whole, by))

    def read_at(self, x: int) -> bool:
        """The cursor of the x axis to column `x` of the widget; False where no chart is."""
        found = next(((place, chart) for place, chart in self._places if place.x <= x < place.x + place.width), None)
        whole = self._whole()
        if found is None or whole is None:
            return False
        place, chart = found
        start, stop = self.view.shown(whole) if self.view.stretch else (chart.window or whole)
        gutter = min(place.width - 1, plot_offset(chart, place.width, place.height, look_of(self).glyphs))
        share = (x - place.x - gutter) / max(1, place.width - gutter - 1)
        self.look(replace(self.view, cursor=start + min(1.0, max(0.0, share)) * (stop - start)))
        return True

    def follow(self) -> None:
        """The newest part, moving along."""
        if (whole := self._whole()) is not None:
            self.look(self.view.following(whole))

    def _window(self) -> Stretch | None:
        return self.charts[0].window if self.charts else None

    def _windowed(self) -> ChartView:
        """The view, its stretch that of the charts where none was chosen yet."""
        window = self._window()
        return self.view if self.view.stretch is not None or window is None else replace(self.view, stretch=window)

    def _whole(self) -> Stretch | None:
        """The extent of the charts that share the x axis of the first."""
        return whole_of(tuple(chart for chart in self.charts if chart.x_name == self.charts[0].x_name))

    def seen(self, chart: Chart) -> Chart:
        """`chart` as it is looked at now, its value that at the cursor."""
        return self._viewed(chart, self._whole())

    def _viewed(self, chart: Chart, whole: Stretch | None) -> Chart:
        return self.view.on(chart, whole) if chart.x_name == self.charts[0].x_name else chart

    def move(self, how: str) -> None:
        """The cursor to another chart."""
        step = {"down": 1, "page_down": 1, "up": -1, "page_up": -1}.get(how, 0)
        last = len(self.charts) - 1
        self.cursor = {"top": 0, "bottom": last}.get(how, max(0, min(last, self.cursor + step)))
        if self.enlarged and self.charts:
            self.enlarged = self.charts[self.cursor].number
        self._draw()

    @property
    def current(self) -> Chart | None:
        """The chart under the cursor."""
        return self.charts[self.cursor] if self.cursor < len(self.charts) else None

    # Drawing -------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        width, height = self.size
        if not width or not height:
            return
        shown, packed, listed = self._choose(width, height)
        whole = self._whole()
        foot = [*self._packed(packed, width), *self._listed(listed, width)]
        places = arrange(len(shown), width, height - len(foot), self._min_height(height), self.across)
        self._places = list(zip(places, shown, strict=False))
        strips = look_of(self).strips(foot, width)
        plan = (width, height, tuple(places), len(foot))
        if plan != self._plan:
            self._plan, self._blocks = plan, {}
            self.refresh()
        at = self.current
        changed: set[int] = set()  # lines: each is drawn once for all charts on it
        for place, chart in self._places:
            rows = self._draw_block(place, self._viewed(chart, whole), chosen=self.has_focus and chart is at)
            changed.update(place.y + row for row in rows)
        if strips != self._foot:
            self._foot = strips
            changed.update(range(height - len(foot), height))
        if changed:
            self.refresh(*(Region(0, y, width, rows) for y, rows in _stretches(changed)))

    def _min_height(self, height: int) -> int:
        return 6 if height >= _ROOMY else 8

    def _choose(self, width: int, height: int) -> tuple[list[Chart], list[Chart | Absent], list[Absent]]:
        if self.enlarged:
            return [chart for chart in self.charts if chart.number == self.enlarged], [], []
        if not self.foot_shown:
            fits = len(arrange(len(self.charts), width, height, self._min_height(height), self.across))
            kept = {chart.number for chart in self._urgent()[: max(1, fits)]}
            self.left_out = tuple(chart for chart in self.charts if chart.number not in kept)
            return [chart for chart in self.charts if chart.number in kept], [], []
        roomy = height >= _ROOMY
        listed = list(self.absent) if roomy else []
        packed: list[Chart | Absent] = [] if roomy else list(self.absent)
        rows = math.ceil(len(packed) / max(1, width // _PACKED_WIDTH))
        fits = len(arrange(len(self.charts), width, height - len(listed) - rows, self._min_height(height), self.across))
        if fits < len(self.charts):
            # the entries of those left out take room themselves
            rows = math.ceil((len(self.charts) - fits + len(packed)) / max(1, width // _PACKED_WIDTH))
            fits = len(arrange(fits, width, height - len(listed) - rows, self._min_height(height), self.across))
        urgent = self._urgent()
        kept = {chart.number for chart in urgent[:fits]}
        left_out = [chart for chart in self.charts if chart.number not in kept]
        packed = sorted([*left_out, *packed], key=lambda one: one.number)
        return [chart for chart in self.charts if chart.number in kept], packed, listed

    def _urgent(self) -> list[Chart]:
        """Those that explain the trouble, then the loss, then the others."""
        return sorted(self.charts, key=lambda chart: (chart.number not in self.first, chart.number != "1"))

    def _packed(self, entries: list[Chart | Absent], width: int) -> list[Line]:
        across = max(1, width // _PACKED_WIDTH)
        cells = width // across
        lines: list[Line] = []
        for start in range(0, len(entries), across):
            line: Line = []
            for entry in entries[start : start + across]:
                line += pad(self._entry(entry, cells - 1), cells)
            lines.append(line)
        return lines

    def _entry(self, entry: Chart | Absent, width: int) -> Line:
        glyphs = look_of(self).glyphs
        if isinstance(entry, Absent):
            glyph, style = glyphs.verdicts[entry.verdict], VERDICT_STYLES[entry.verdict]
            return [Span(f"{entry.number} ", "key"), Span(f"{glyph} ", style), Span(entry.title, "muted")]
        worst = max(entry.shades, key=lambda shade: ("info", "warn", "fail").index(shade.style), default=None)
        glyph, style = (worst.glyph, worst.style) if worst else (" ", "text")
        value = entry.value.removesuffix(" nats").removesuffix(" z")
        title = entry.title
        if len(title) + len(value) > width - 5:
            title = SHORT_TITLES.get(title, title)
            value = value.removeprefix("peak ").removeprefix("lowest ").partition(" ")[0]
        title = clip(title, max(min(12, len(title)), width - 5 - len(value)), glyphs.ellipsis)
        value = clip(value, max(1, width - 5 - len(title)), glyphs.ellipsis)
        head = [Span(f"{entry.number} ", "key"), Span(f"{glyph} ", style)]
        return [*head, Span(title, "text"), Span(f" {value}", "value")]

    def _listed(self, absent: list[Absent], width: int) -> list[Line]:
        glyphs = look_of(self).glyphs
        lines: list[Line] = []
        for one in absent:
            glyph, style = glyphs.verdicts[one.verdict], VERDICT_STYLES[one.verdict]
            head: Line = [Span(f"{one.number} ", "key"), Span(f"{glyph} ", style)]
            reason = one.reason if one.verdict == Verdict.NOT_APPLICABLE else f"no data; {one.reason}"
            lines.append([*head, Span(fit(f"{one.title}: {reason}", width - 4, glyphs.ellipsis), "muted")])
        return lines

    def _draw_block(self, place: Place, chart: Chart, chosen: bool) -> list[int]:
        """Which lines of the chart, counted from its title on, are others now."""
        look = look_of(self)
        chosen = chosen and not self.enlarged
        key = (chart.key, chart.value, chart.change, chosen, look.dark, look.glyphs.braille)
        known = self._blocks.get(place)
        if known is not None and known.key == key:
            return []
        now_s, outline = clock_of(self).monotonic(), (_outline(chart), key[3:])
        values = sum(curve.x.size for curve in chart.curves)
        grown = values - known.values if known is not None else values
        if (
            known is not None
            and outline == known.outline
            and 0 <= grown * 2 * place.width < known.values
            and 0.0 <= now_s - known.drawn_s < _PLOT_S
        ):
            return [0] if self._draw_title(known, chart, place) else []
        lines = draw_chart(chart, place.width, place.height, look.glyphs)
        strips = look.full_strips(lines, place.width)
        if chosen:
            strips[0] = look.strip(lines[0], place.width, "cursor")
        self._blocks[place] = _Block(key, strips, outline, values, now_s, lines[0], chosen)
        before = known.strips if known is not None else []
        return [row for row, strip in enumerate(strips) if row >= len(before) or strip != before[row]]

    def _draw_title(self, known: _Block, chart: Chart, place: Place) -> bool:
        """The value alone: what came since is less than half a dot of the curve."""
        look = look_of(self)
        title = draw_title(chart, place.width, look.glyphs)
        if title == known.title:
            return False
        known.title = title
        known.strips = [look.strip(title, place.width, "cursor" if known.chosen else ""), *known.strips[1:]]
        return True

    def render_line(self, y: int) -> Strip:
        """One line for Textual, from the blocks that lie on it."""
        width, look = self.size.width, look_of(self)
        foot_at = self.size.height - len(self._foot)
        if y >= foot_at:
            return self._foot[y - foot_at]
        if not self._places:
            text = self.nothing if y == 1 else ""
            return look.strip([Span(fit(f"  {text}", width), "muted")], width)
        parts: list[Strip] = []
        at = 0
        for place, _ in self._places:
            if place.y <= y < place.y + place.height and place in self._blocks:
                if place.x > at:
                    parts.append(Strip([Segment(" " * (place.x - at), look.style("text"))], place.x - at))
                parts.append(self._blocks[place].strips[y - place.y])
                at = place.x + place.width
        return Strip.join(parts).adjust_cell_length(width, look.style("text")) if parts else look.strip([], width)

    # Events --------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Everything is somewhere else now."""
        self._draw()

    def on_focus(self) -> None:
        """The cursor's colour tells which pane the keys go to."""
        self._draw()

    def on_blur(self) -> None:
        """See `on_focus`."""
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """Enlarges the chart under the mouse; on an enlarged chart, puts the cursor there."""
        if self.enlarged and self.read_at(event.x):
            return
        for place, chart in self._places:
            if place.x <= event.x < place.x + place.width and place.y <= event.y < place.y + place.height:
                self.post_message(self.Chosen(chart.number))
                return
