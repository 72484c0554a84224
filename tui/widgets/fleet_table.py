"""The list of runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from textual.geometry import Region

from trainmon.tui import numbers
from trainmon.tui.columns import AGE_CELLS, Sparks, brief_line, draw_age, draw_body, draw_head
from trainmon.tui.row import Row, RunId
from trainmon.tui.span import Line, Span, cells, wrap
from trainmon.tui.widgets.lines import LineList, look_of


class FleetTable(LineList):
    """One row a run; the cursor stays on its run when the order changes."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.rows: list[Row] = []
        self.pins: frozenset[RunId] = frozenset()
        self._ages: dict[RunId, float] = {}
        self.nothing = ""
        self._cache: dict[RunId, tuple[Hashable, Line]] = {}
        self._keys: dict[RunId, Hashable] = {}
        self._touched = False
        self._sparks = Sparks()
        self._head: tuple[int, int, list[Line]] | None = None
        self._longest = 0

    def show(self, rows: list[Row], pins: frozenset[RunId], age_s: Callable[[Row], float], nothing: str) -> None:
        """`age_s`: of the newest byte of a run, now; `nothing`: what to say when `rows` is empty."""
        before = self.current
        self.rows, self.pins, self.nothing = rows, pins, nothing
        self._ages = {row.id: age_s(row) for row in rows}
        self._keys = {row.id: self._identity_of(row) for row in rows}
        if self._touched and before is not None:  # until a key was pressed the cursor stays on the worst run
            self.cursor = next((i for i, row in enumerate(rows) if row.id == before.id), self.cursor)
        longest = max((cells(row.run.name) for row in rows), default=0)
        if longest > self._longest or 2 * longest < self._longest:  # columns that move about cannot be read
            self._longest, self._drawn = longest, []
        self._cache = {id_: line for id_, line in self._cache.items() if id_ in self._keys}
        self.redraw()

    @property
    def current(self) -> Row | None:
        """The run under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def move_to(self, index: int) -> None:
        """See `LineList`."""
        self._touched = True
        super().move_to(index)

    @property
    def count(self) -> int:
        """Runs that match the filter."""
        return len(self.rows)

    def is_as_old(self, age_s: Callable[[Row], float]) -> bool:
        """Whether every age is still the one that stands there."""
        return all(numbers.age(age_s(row)) == numbers.age(self._ages[row.id]) for row in self.rows)

    @property
    def hidden(self) -> tuple[int, int]:
        """How many runs are scrolled out above and below."""
        return self.top, max(0, self.count - self.top - self.page)

    def head(self) -> list[Line]:
        """The titles."""
        width = self.size.width
        if self._head is None or self._head[:2] != (width, self._longest):
            self._head = (width, self._longest, [draw_head(width, self._longest)])
        return self._head[2]

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        row = self.rows[index]
        return self._keys[row.id]

    def _identity_of(self, row: Row) -> Hashable:
        return (row.fingerprint, row.id in self.pins, numbers.age(self._ages[row.id]))

    def changed_region(self, y: int, before: Hashable, now: Hashable) -> Region:
        """The age alone, where nothing else changed."""
        whole = super().changed_region(y, before, now)
        if isinstance(before, tuple) and isinstance(now, tuple) and len(before) == len(now) == 3:
            old, new = before[0], now[0]
            if before[1:] == now[1:] and isinstance(old, tuple) and isinstance(new, tuple) and old[:-1] == new[:-1]:
                return Region(self.size.width - AGE_CELLS, y, AGE_CELLS, 1)
        return whole

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One run: while nothing comes only its age is drawn anew."""
        row, glyphs = self.rows[index], look_of(self).glyphs
        pinned = row.id in self.pins
        key = (row.fingerprint, pinned, width, at_cursor, self._longest)
        known = self._cache.get(row.id)
        if known is None or known[0] != key:
            body = draw_body(
                row, width, glyphs, at_cursor=at_cursor, pinned=pinned, sparks=self._sparks, longest=self._longest
            )
            known = self._cache[row.id] = (key, body)
        return [*known[1], *draw_age(width, glyphs, self._ages[row.id], row)]

    def empty(self) -> list[Line]:
        """What was looked for."""
        return [[], *([Span("  " + text, "muted")] for text in wrap(self.nothing, self.size.width - 4))]


class BriefList(LineList):
    """Runs on a terminal too small for more: verdict, name and age."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id)
        self.rows: list[Row] = []

    def show(self, rows: list[Row]) -> None:
        """Runs in trouble first."""
        self.rows = rows
        self.redraw()

    @property
    def count(self) -> int:
        """All runs."""
        return len(self.rows)

    def row_key(self, index: int) -> Hashable:
        """What a row shows."""
        return self.rows[index].fingerprint

    def row(self, index: int, width: int, at_cursor: bool) -> Line:
        """One run."""
        return brief_line(self.rows[index], width, look_of(self).glyphs, at_cursor=at_cursor)

    def empty(self) -> list[Line]:
        """Nothing yet."""
        return [[Span("no runs yet", "muted")]]
