"""Layer by step: one family of per-layer values as a map, the layers that moved most, and one layer's curve."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot, SeriesView
from trainmon.tui import keys, numbers
from trainmon.tui.chart_view import whole_of
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.heat import HeatMap, heat_map
from trainmon.tui.layers import Family, Mover, families, movers
from trainmon.tui.row import RunId
from trainmon.tui.screens.charted import RunCharted
from trainmon.tui.slots import series_chart, x_name
from trainmon.tui.span import Line, Span, clip, fit
from trainmon.tui.state import Layout
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.heat_pane import FRAME_ROWS, HeatPane
from trainmon.tui.widgets.lines import LineList, look_of

_LEAST_SPAN = 0.5  # of its middle value: a curve of noise looks like noise
AT_MOST_EVERY_S = 1.0  # a map of a hundred layers is not drawn ten times a second


def size_key(views: tuple[SeriesView, ...]) -> Hashable:
    """Changes when a map of `views` does."""
    return tuple((view.count, view.steps.size, view.bad_steps.size, repr(view.last)) for view in views)


class MoverList(LineList):
    """The layers that moved most."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.movers: tuple[Mover, ...] = ()
        self.unit = ""

    def show(self, found: tuple[Mover, ...], unit: str) -> None:
        """Replaces the list."""
        self.movers, self.unit = found, unit
        self.redraw()

    @property
    def current(self) -> Mover | None:
        """Under the cursor."""
        return self.movers[self.cursor] if self.cursor < len(self.movers) else None

    @property
    def count(self) -> int:
        """Layers."""
        return len(self.movers)

    def head(self) -> list[Line]:
        """The title."""
        more = "  newest level against the one before"
        if self.size.width < len(" top movers") + len(more):
            more = ""
        return [[Span(" top movers", "heading", "bar"), Span(more, "faint", "bar")]]

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        return repr(self.movers[index])

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """Layer, from, to, factor, since."""
        return mover_line(self.movers[index], self.unit, width, look_of(self).glyphs, at_cursor=at_cursor)

    def empty(self) -> list[Line]:
        """Too few values."""
        return [[Span("  too few values to compare", "muted")]]


def mover_line(one: Mover, unit: str, width: int, glyphs: Glyphs, *, at_cursor: bool) -> Line:
    """Layer, from, to, factor, since which step."""
    by = f"{one.factor:.3g}x" if one.factor == one.factor else f"{one.now - one.before:+.3g}"
    before, now = (numbers.with_unit(value, unit) for value in (one.before, one.now))
    head = [
        Span(glyphs.cursor if at_cursor else " ", "key"),
        Span(f"{fit(one.layer, 5, right=True)} ", "title"),
        Span(f"{fit(by, 7, right=True)} ", "value"),
    ]
    since = f" since step {numbers.step(one.since)}" if width >= 46 else ""
    text = f"{before} {glyphs.arrow} {now}{since}"
    return [*head, Span(clip(text, max(1, width - 15), glyphs.ellipsis), "muted")]


class LayersScreen(RunCharted):
    """`v` goes through the families, `w` from values to changes; zoom and cursor hold for map and curve."""

    KIND = keys.LAYERS
    BINDINGS = keys.bindings_of(keys.LAYERS)
    DEFAULT_CSS = """
    LayersScreen #lower { height: 1fr; }
    LayersScreen #movers { width: 46; }
    """

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self.family = ""
        self.by_change = True
        self._shown = ""
        self.families: tuple[Family, ...] = ()
        self._found: tuple[RunSnapshot, tuple[Family, ...]] | None = None
        self._map: tuple[Hashable, float, HeatMap | None, tuple[Mover, ...]] = (None, 0.0, None, ())

    def recall(self, kept: Layout) -> None:
        """Values or changes, and how charts are looked at."""
        self.by_change = not kept.values.get(self.KIND, False)
        self.grid.look(self.monitor.view)

    def content(self) -> ComposeResult:
        """The map; under it the curve of the layer at the cursor and the top movers."""
        yield HeatPane(id="heat")
        with Horizontal(id="lower"):
            yield ChartGrid(id="charts")
            yield MoverList(id="movers")

    def panes(self) -> list[Widget]:
        """The map, the movers, the curve."""
        return [self.heat, self.query_one("#movers", MoverList), self.grid]

    @property
    def heat(self) -> HeatPane:
        """The map."""
        return self.query_one("#heat", HeatPane)

    @property
    def current(self) -> Family | None:
        """The family that is shown."""
        return next((one for one in self.families if one.id == self.family), None)

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        if self._found is None or self._found[0] is not run:
            self._found = (run, families(run))
        self.families = self._found[1]
        if self.current is None:
            kept = self.monitor.arranged.family
            ids = [one.id for one in self.families]
            self.family = kept if kept in ids else ids[0] if ids else ""
        family = self.current
        for pane in (self.grid, self.query_one("#movers")):
            pane.display = family is not None  # one empty pane says what three would
        if family is None:
            words = "no per-layer values in this log; log update.ratio or AbsMax by layer every 100 steps"
            self.heat.show(None, (), [Span(" layers", "title", "bar")], "", words)
            self.grid.show((), nothing="")
            self.query_one("#movers", MoverList).show((), "")
            return
        self.sized(self.heat, height=max(6, min(len(family.layers) + FRAME_ROWS, (self.app.size.height - 4) * 3 // 5)))
        drawn, found = self._drawn(family)
        if family.id != self._shown and found:  # one begins where something moved
            self._shown = family.id
            self.heat.cursor = family.layers.index(found[0].layer)
        self._draw_lower(run, family)
        self.heat.show(drawn, family.layers, self._title(family), family.unit, "nothing logged yet")
        self.query_one("#movers", MoverList).show(found, family.unit)

    def _draw_lower(self, run: RunSnapshot, family: Family) -> None:
        movers_pane = self.query_one("#movers", MoverList)
        self.sized(movers_pane, width=max(30, min(64, self.app.size.width * 42 // 100)))
        view = family.views[min(self.heat.cursor, len(family.views) - 1)]
        layer = family.layers[min(self.heat.cursor, len(family.layers) - 1)]
        chart = series_chart(run, [view], "1", self.glyphs, f"layer {layer}: {family.title}")
        self.grid.show((replace(chart, least_span=_LEAST_SPAN),), nothing="no values of this layer")
        self.heat.x_name = x_name(run)

    def _drawn(self, family: Family) -> tuple[HeatMap | None, tuple[Mover, ...]]:
        """Made anew when one looks at something else, and for new values once a second at most."""
        columns, rows = self.heat.room
        whole = whole_of(self.grid.charts)
        ends = self.grid.view.shown(whole) if whole is not None and self.grid.view.stretch is not None else None
        self.heat.labels = family.layers  # the gutter, and with it the room, depends on them
        columns, rows = self.heat.room
        asked = (family.id, columns, rows, ends, self.by_change)
        key, at, drawn, found = self._map
        now = self.monitor.clock.monotonic()
        wanted = (asked, size_key(family.views))
        if (
            key is not None
            and isinstance(key, tuple)
            and key[0] == asked
            and (key == wanted or now - at < AT_MOST_EVERY_S)
        ):
            return drawn, found
        drawn = heat_map(family.views, columns, rows, ends, by_change=self.by_change)
        found = movers(family)
        self._map = (wanted, now, drawn, found)
        return drawn, found

    def _title(self, family: Family) -> Line:
        place = self.families.index(family) + 1
        view, heat = self.shown_key("view"), self.shown_key("heat")
        how, other = ("by change", "values") if self.by_change else ("by value", "changes")
        more = f"{view} family {place} of {len(self.families)}, " if len(self.families) > 1 else ""
        known = BY_ID.get(family.signal)
        unit = f" [{family.unit}]" if family.unit and known is not None else ""
        return [
            Span(f" {family.title}{unit}", "title", "bar"),
            Span(f"  {len(family.layers)} layers {how}  ", "muted", "bar"),
            Span(f"{more}{heat} {other}", "faint", "bar"),
        ]

    def look_changed(self) -> None:
        """Zoom and pan hold for the map too."""
        self.show(self.monitor.fleet)

    # Actions -------------------------------------------------------------------------------------------

    def action_view(self) -> None:
        """The next family."""
        if self.families:
            ids = [one.id for one in self.families]
            self.family = ids[(ids.index(self.family) + 1) % len(ids)] if self.family in ids else ids[0]
            self.monitor.keep_layout(family=self.family)
            self.show(self.monitor.fleet)

    def action_heat(self) -> None:
        """By value, or each layer against its own usual level."""
        self.by_change = not self.by_change
        self.monitor.keep_layout(values={**self.monitor.arranged.values, self.KIND: not self.by_change})
        self.show(self.monitor.fleet)

    def action_open(self) -> None:
        """The layer of the mover at the cursor; the curve of a layer in all the room."""
        pane = self.query_one("#movers", MoverList)
        family = self.current
        if self.focused is pane and pane.current is not None and family is not None:
            self.heat.move_to(family.layers.index(pane.current.layer))
            self.show(self.monitor.fleet)
        elif family is not None:
            self.focus_full(self.grid)

    def action_other_run(self, by: int) -> None:
        """The same of the run before or after this one in the list."""
        other = self.monitor.neighbour(self.run_id, by)
        if other is not None and other != self.run_id:
            self.run_id = other
            self.action_fit()
            self.show(self.monitor.fleet)

    def copied(self) -> str:
        """The family, and the layer at the cursor or the mover."""
        family = self.current
        if family is None:
            return ""
        pane = self.query_one("#movers", MoverList)
        layer = family.layers[min(self.heat.cursor, len(family.layers) - 1)]
        if self.focused is pane and pane.current is not None:
            layer = pane.current.layer
        view = family.views[family.layers.index(layer)]
        moved = next((one for one in pane.movers if one.layer == layer), None)
        text = f"{family.title}, layer {layer}: {numbers.with_unit(view.last, view.unit)}"
        if moved is not None:
            text += f" ({moved.factor:.3g}x since step {numbers.step(moved.since)})"
        return text

    def action_layers(self) -> None:
        """Is where one is."""

    def on_heat_pane_moved(self, event: HeatPane.Moved) -> None:
        """The curve follows."""
        event.stop()
        self.show(self.monitor.fleet)

    def on_heat_pane_opened(self, event: HeatPane.Opened) -> None:
        """A click on the layer at the cursor does what Enter does."""
        event.stop()
        self.action_open()
