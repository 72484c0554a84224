"""Experts: the load of each by layer, those that are dead or hot, and one layer's experts by step."""

from __future__ import annotations

from collections.abc import Hashable

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import experts, keys, numbers
from trainmon.tui.chart import Chart
from trainmon.tui.chart_view import whole_of
from trainmon.tui.experts import DEAD_SHARE, HOT, Layer, Odd
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.heat import HeatMap, heat_map
from trainmon.tui.row import RunId
from trainmon.tui.screens.charted import RunCharted
from trainmon.tui.screens.layers import AT_MOST_EVERY_S, size_key
from trainmon.tui.slots import series_chart, title_of, x_name
from trainmon.tui.span import Line, Span, fit, wrap
from trainmon.tui.state import Layout
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.heat_pane import FRAME_ROWS, HeatPane, heat_spans
from trainmon.tui.widgets.lines import LineList, look_of

_FRAME = 24  # cells of a row of the matrix beside the experts


class LoadMatrix(LineList):
    """A row a layer, a cell an expert: its load against the mean of the layer."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.by_layer: tuple[Layer, ...] = ()
        self.nothing = ""
        self._levels: list[list[int]] = []
        self._groups: tuple[tuple[int, int], ...] = ()
        self._cells = 0

    def show(self, layers: tuple[Layer, ...], nothing: str) -> None:
        """Replaces the layers."""
        self.by_layer, self.nothing, self._cells = layers, nothing, 0
        self._fill()
        self.redraw()

    def _fill(self) -> None:
        cells = max(1, self.size.width - _FRAME)
        if cells != self._cells:
            self._cells = cells
            self._levels, self._groups = experts.matrix(self.by_layer, cells)

    @property
    def wide(self) -> int:
        """Cells an expert takes, so that few of them are seen as well as many."""
        most = max((len(layer.experts) for layer in self.by_layer), default=1)
        return max(1, min(4, (self.size.width - _FRAME) // most))

    @property
    def count(self) -> int:
        """Layers."""
        return len(self.by_layer)

    def head(self) -> list[Line]:
        """What the cells mean."""
        if not self.by_layer:
            return [[Span(" experts", "heading", "bar")]]
        glyphs = look_of(self).glyphs
        line: Line = [Span(" layer ", "heading", "bar"), Span(" MaxVio  least   most ", "heading", "bar")]
        line.append(Span("experts, ", "muted", "bar"))
        line += [span._replace(bg="bar") for span in heat_spans([0, 2, 4, 6, 8], [False] * 5, glyphs, "turn")]
        return [[*line, Span(" 1/4 .. 4x the mean", "muted", "bar")]]

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        self._fill()
        layer = self.by_layer[index]
        return (layer.name, tuple(self._levels[index]), repr(layer.maxvio), self.wide)

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One layer."""
        del width
        self._fill()
        layer, glyphs = self.by_layer[index], look_of(self).glyphs
        known = layer.share[layer.share == layer.share]
        least, most = (float(known.min()), float(known.max())) if known.size else (float("nan"), float("nan"))
        style = "fail" if least < DEAD_SHARE else "warn" if most > HOT else "text"
        line = [
            Span(glyphs.cursor if at_cursor else " ", "key"),
            Span(fit(layer.name or "all", 5, glyphs.ellipsis, right=True), "title"),
            Span(fit(numbers.plain(layer.maxvio), 7, right=True), style),
            Span(f"{fit(numbers.percent(least), 6, right=True)} {fit(f'{most:.2g}x', 6, right=True)} ", "muted"),
        ]
        cells = [level for level in self._levels[index] for _ in range(self.wide)]
        return [*line, *heat_spans(cells, [False] * len(cells), glyphs, "turn")]

    def empty(self) -> list[Line]:
        """What to log."""
        return [[], *([Span(f"  {piece}", "muted")] for piece in wrap(self.nothing, self.size.width - 4))]


class OddList(LineList):
    """Dead and hot experts."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.odd: tuple[Odd, ...] = ()
        self.is_known = False

    def show(self, odd: tuple[Odd, ...], *, is_known: bool) -> None:
        """Replaces the list. `is_known`: the log tells of loads."""
        self.odd, self.is_known = odd, is_known
        self.redraw()

    @property
    def current(self) -> Odd | None:
        """Under the cursor."""
        return self.odd[self.cursor] if self.cursor < len(self.odd) else None

    @property
    def count(self) -> int:
        """Experts."""
        return len(self.odd)

    def head_key(self) -> Hashable:
        """The title counts."""
        return self.is_known, tuple(one.kind for one in self.odd)

    def head(self) -> list[Line]:
        """How many."""
        if not self.is_known:  # what was not logged is not 0
            return [[Span(fit(" dead and hot experts", self.size.width), "heading", "bar")]]
        dead = sum(one.kind == "dead" for one in self.odd)
        hot = len(self.odd) - dead
        text = f" {dead} dead (under {numbers.percent(DEAD_SHARE)} of the mean), {hot} hot (over {HOT:g}x)"
        if self.size.width < 50:
            text = f" {dead} dead (<{numbers.percent(DEAD_SHARE)}), {hot} hot (>{HOT:g}x)"
        return [[Span(fit(text, self.size.width), "heading", "bar")]]

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        return self.odd[index]

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One expert."""
        return odd_line(self.odd[index], width, look_of(self).glyphs, at_cursor=at_cursor)

    def empty(self) -> list[Line]:
        """Nothing is also an answer."""
        return [[Span("  every expert has its share" if self.is_known else "  not known", "muted")]]


def odd_line(one: Odd, width: int, glyphs: Glyphs, *, at_cursor: bool) -> Line:
    """Which expert, how far off, since when."""
    marks = {"dead": (glyphs.turn[0], "fail"), "hot": (glyphs.turn[-1], "warn")}
    mark, style = marks[one.kind]
    share = numbers.percent(one.share) if one.kind == "dead" else f"{one.share:.2g}x"
    where = f"layer {one.layer} expert {one.expert}" if one.layer else f"expert {one.expert}"
    age = "" if one.is_judged else f", {numbers.step(one.lasted)} steps so far"
    text = f"{where}: {share} of the mean since step {numbers.step(one.since)}{age}"
    if width < 50:
        place = f"L{one.layer} e{one.expert}" if one.layer else f"e{one.expert}"
        text = f"{place} {share} since {numbers.step(one.since)}{age}"
    head = [Span(glyphs.cursor if at_cursor else " ", "key"), Span(f" {mark} {one.kind:<4} ", style)]
    return [*head, Span(fit(text, max(1, width - 9), glyphs.ellipsis))]


class ExpertsScreen(RunCharted):
    """The matrix of now, the list of the odd ones, and the experts of the layer at the cursor by step."""

    KIND = keys.EXPERTS
    BINDINGS = keys.bindings_of(keys.EXPERTS)
    DEFAULT_CSS = """
    ExpertsScreen #matrix { height: 8; }
    ExpertsScreen #lower { height: 1fr; }
    ExpertsScreen #heat { width: 1fr; height: 1fr; }
    ExpertsScreen #side { width: 46; }
    ExpertsScreen #charts { height: 9; }
    """

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self.by_change = True
        self._found: tuple[Hashable, float, tuple[Layer, ...], tuple[Odd, ...]] = (None, 0.0, (), ())
        self._map: tuple[Hashable, float, HeatMap | None] = (None, 0.0, None)

    def recall(self, kept: Layout) -> None:
        """Loads or their relation to the mean, and how charts are looked at."""
        self.by_change = not kept.values.get(self.KIND, False)
        self.grid.look(self.monitor.view)

    def content(self) -> ComposeResult:
        """Matrix, map and odd ones, balance over time."""
        yield LoadMatrix(id="matrix")
        with Horizontal(id="lower"):
            yield HeatPane(id="heat")
            yield OddList(id="odd")
        yield ChartGrid(id="charts")

    def panes(self) -> list[Widget]:
        """The layers, the odd ones, the map, the charts."""
        return [self.table, self.query_one("#odd", OddList), self.query_one("#heat", HeatPane), self.grid]

    @property
    def table(self) -> LoadMatrix:
        """A row a layer."""
        return self.query_one("#matrix", LoadMatrix)

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        width, height = self.app.size
        layers, odd = self._layers(run)
        nothing = "no expert loads in this log; log tokens per expert by layer"
        if not layers and not experts.has_balance(run):
            nothing = (
                "no experts in this run, as far as its log tells; of a mixture of experts the load of each is shown, "
                f"once tokens per expert by layer are logged; {self.shown_key('back')} goes back"
            )
        charts = self._charts(run, layers[min(self.table.cursor, len(layers) - 1)].name if layers else "")
        for pane, has_any in ((self.query_one("#odd"), layers), (self.query_one("#heat"), layers), (self.grid, charts)):
            pane.display = bool(has_any)  # one empty pane says what three would
        self.sized(self.table, height=max(3 if layers else 6, min(len(layers) + 1, height // 3)))
        self.table.show(layers, nothing)
        self.sized(self.query_one("#odd", OddList), width=max(30, min(64, width * 45 // 100)))
        self.query_one("#odd", OddList).show(odd, is_known=bool(layers))
        spare = height - 4 - max(3, min(len(layers) + 1, height // 3))
        most = max((len(layer.experts) for layer in layers), default=4)
        self.sized(self.grid, height=max(7, spare - max(8, most + FRAME_ROWS)) if height >= 24 else 6)
        layer = layers[min(self.table.cursor, len(layers) - 1)] if layers else None
        self.grid.show(charts, nothing="neither MaxVio nor entropy is known")
        heat = self.query_one("#heat", HeatPane)
        heat.x_name, heat.against = x_name(run), "of the layer's mean"
        if layer is None:
            heat.show(None, (), [Span(" experts by step", "title", "bar")], "", nothing)
            return
        heat.labels = layer.experts
        other = f"{self.shown_key('heat')} {'loads' if self.by_change else 'against the mean'}"
        how = "experts against the mean" if self.by_change else "load of each expert"
        title = [Span(f" layer {layer.name or 'all'}", "title", "bar"), Span(f"  {how}  {other}", "muted", "bar")]
        heat.show(self._heat(heat, layer), layer.experts, title, layer.views[0].unit, "nothing logged yet")

    def _charts(self, run: RunSnapshot, layer: str) -> tuple[Chart, ...]:
        charts: list[Chart] = []
        for signal in ("moe.maxvio", "moe.entropy"):
            view = experts.of_layer(run, signal, layer) or experts.of_layer(run, signal, "")
            if view is not None and view.steps.size:
                where = f" of layer {layer}" if view.key.labels else ""
                title = title_of(view.key) + where
                charts.append(series_chart(run, [view], str(len(charts) + 1), self.glyphs, title))
        return tuple(charts)

    def _layers(self, run: RunSnapshot) -> tuple[tuple[Layer, ...], tuple[Odd, ...]]:
        key, at, layers, odd = self._found
        now = self.monitor.clock.monotonic()
        wanted = (self.run_id, id(run))
        if key == wanted or (isinstance(key, tuple) and key[0] == self.run_id and now - at < AT_MOST_EVERY_S):
            return layers, odd
        layers = experts.layers_of(run)
        odd = experts.odd_ones(layers)
        self._found = (wanted, now, layers, odd)
        return layers, odd

    def _heat(self, pane: HeatPane, layer: Layer) -> HeatMap | None:
        columns, rows = pane.room
        whole = whole_of(self.grid.charts)
        ends = self.grid.view.shown(whole) if whole is not None and self.grid.view.stretch is not None else None
        wanted = (self.run_id, layer.name, columns, rows, ends, self.by_change, size_key(layer.views))
        key, at, drawn = self._map
        now = self.monitor.clock.monotonic()
        same = isinstance(key, tuple) and key[:-1] == wanted[:-1]
        if key == wanted or (same and now - at < AT_MOST_EVERY_S):
            return drawn
        mean = layer.usual_mean if self.by_change else None
        drawn = heat_map(layer.views, columns, rows, ends, by_change=self.by_change, usual_is=mean)
        self._map = (wanted, now, drawn)
        return drawn

    def look_changed(self) -> None:
        """Zoom and pan hold for the map too."""
        self.show(self.monitor.fleet)

    # Actions -------------------------------------------------------------------------------------------

    def action_heat(self) -> None:
        """By load, or against the mean of the layer."""
        self.by_change = not self.by_change
        self.monitor.keep_layout(values={**self.monitor.arranged.values, self.KIND: not self.by_change})
        self.show(self.monitor.fleet)

    def action_open(self) -> None:
        """The layer of the expert at the cursor; else the map in all the room."""
        odd = self.query_one("#odd", OddList)
        if self.focused is odd and odd.current is not None:
            names = [layer.name for layer in self.table.by_layer]
            if odd.current.layer in names:
                self.table.move_to(names.index(odd.current.layer))
                self.show(self.monitor.fleet)
        else:
            self.focus_full(self.query_one("#heat", HeatPane))

    def action_other_run(self, by: int) -> None:
        """The same of the run before or after this one in the list."""
        other = self.monitor.neighbour(self.run_id, by)
        if other is not None and other != self.run_id:
            self.run_id = other
            self.action_fit()
            self.show(self.monitor.fleet)

    def copied(self) -> str:
        """The dead and hot experts, else the balance of the layer at the cursor."""
        odd = self.query_one("#odd", OddList)
        if odd.odd:
            lines = (odd_line(one, 200, self.glyphs, at_cursor=False) for one in odd.odd)
            return "\n".join("".join(span.text for span in line).strip() for line in lines)
        table = self.table
        if table.cursor >= len(table.by_layer):
            return ""
        layer = table.by_layer[table.cursor]
        shares = ", ".join(f"{name} {share:.3g}" for name, share in zip(layer.experts, layer.share, strict=True))
        return f"layer {layer.name or 'all'}: MaxVio {layer.maxvio:.3g}; load against the mean: {shares}"

    def action_experts(self) -> None:
        """Is where one is."""

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """The map follows the layer."""
        event.stop()
        if event.pane is self.table:
            self.show(self.monitor.fleet)
