"""The columns of the fleet list: which fit into a width, and what stands in each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tui import numbers
from trainmon.tui.curve import curve_of, spark_text
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.rates import PER_CARD
from trainmon.tui.row import FAILED, Row, RunId
from trainmon.tui.span import Line, Span, fit, fit_middle
from trainmon.tui.trouble import reason_words, state_words, trouble_words

VERDICT_STYLES = {
    Verdict.PASS: "pass",
    Verdict.WARN: "warn",
    Verdict.FAIL: "fail",
    Verdict.NO_DATA: "nodata",
    Verdict.NOT_APPLICABLE: "na",
}
AGE_CELLS = 4  # the last column: all that changes in a row while nothing comes
_MOST_SPARKS = 5000
_TRAILING_ZEROS = lazy(r"\.0+(?=\D|$)")
_Draw = Callable[["Cell"], Line]


class Sparks:
    """The small loss curves as they were drawn last: one that grew by less than can be seen is not drawn anew."""

    def __init__(self) -> None:
        self._drawn: dict[RunId, tuple[tuple[object, ...], int, str]] = {}

    def of(self, row: Row, view: SeriesView, width: int, glyphs: Glyphs) -> str:
        """The curve of the loss `view` of `row` in `width` characters, at most a quarter of one behind."""
        attempt = int(view.attempts[-1]) if view.attempts.size else 0
        key = (width, glyphs.spark, view.bad_steps.size, attempt, float(view.steps[0]) if view.steps.size else None)
        known = self._drawn.get(row.id)
        if known is not None and known[0] == key and 0 <= (view.count - known[1]) * 4 * width < max(known[1], 1):
            return known[2]
        if len(self._drawn) > _MOST_SPARKS:
            self._drawn.clear()
        text = sparkline_of(row.run, width, glyphs)
        self._drawn[row.id] = (key, view.count, text)
        return text


@dataclass(frozen=True, slots=True)
class Cell:
    """What a column is given to draw with; `age_s` is now's, not the snapshot's."""

    row: Row
    width: int
    glyphs: Glyphs
    age_s: float
    sparks: Sparks | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """`keep`: the lower, the longer it stays when room is short; 0 always stays. `grow`: share of spare room.

    `wish`: cells that it has before any column joins that can be done without.
    """

    title: str
    width: int
    keep: int
    draw: _Draw
    grow: int = 0
    right: bool = False
    most: int = 10_000
    wish: int = 0


def _known(value: float, text: Callable[[float], str]) -> str:
    return numbers.MISSING if math.isnan(value) else text(value)


def _right(text: Callable[[Row], str], style: str = "text") -> _Draw:
    return lambda cell: [Span(fit(text(cell.row), cell.width, cell.glyphs.ellipsis, right=True), style)]


def _state(cell: Cell) -> Line:
    state = cell.row.run.state
    style = "fail" if state in FAILED else "text"
    if not cell.row.run.progress > 0:  # nothing was looked at: to call that unknown would alarm
        return [Span(fit(cell.glyphs.dot, cell.width), "faint")]
    if cell.width < 3:
        return [Span(fit(cell.glyphs.states[state], cell.width), style)]
    return [Span(fit(f"{cell.glyphs.states[state]} {state_words(state)}", cell.width, cell.glyphs.ellipsis), style)]


def _name(cell: Cell) -> Line:
    return [Span(fit_middle(cell.row.run.name, cell.width, cell.glyphs.ellipsis), "title")]


def _step(cell: Cell) -> Line:
    row = cell.row
    text = _known(row.step, numbers.count)
    if not math.isnan(row.total):
        text += f"/{_TRAILING_ZEROS.sub('', numbers.count(row.total))}"
    return [Span(fit(text, cell.width, cell.glyphs.ellipsis, right=True))]


def bar(share: float, width: int, glyphs: Glyphs) -> Line:
    """A progress bar of `width` cells; blank when the share is not known."""
    if math.isnan(share):
        return [Span(" " * width)]
    full = min(width, int(share * width + 0.5))
    return [Span(glyphs.bar_full * full, "key"), Span(glyphs.bar_empty * (width - full), "faint")]


def _loss_style(run: RunSnapshot) -> str:
    return "fail" if any(s.id == "loss" and s.verdict == Verdict.FAIL for s in run.triage) else "value"


def _loss(cell: Cell) -> Line:
    run = cell.row.run
    view = run.series.get(SignalKey("loss.train"))
    value = numbers.within(view.last, 6) if view else numbers.MISSING
    if cell.width <= 6:
        return [Span(fit(value, cell.width, cell.glyphs.ellipsis, right=True), _loss_style(run))]
    if view is None or cell.sparks is None:
        spark = sparkline_of(run, cell.width - 7, cell.glyphs)
    else:
        spark = cell.sparks.of(cell.row, view, cell.width - 7, cell.glyphs)
    return [
        Span(fit(value, 6, cell.glyphs.ellipsis, right=True), _loss_style(run)),
        Span(fit(f" {spark}", cell.width - 6, cell.glyphs.ellipsis), "line0"),
    ]


def sparkline_of(run: RunSnapshot, width: int, glyphs: Glyphs) -> str:
    """The loss of `run` in `width` characters."""
    view = run.series.get(SignalKey("loss.train"))
    return "" if view is None else spark_text(curve_of(view), width, glyphs.spark, glyphs.bad)


def _spike(cell: Cell) -> Line:
    z = cell.row.z
    return [Span(fit(_known(z, numbers.score), cell.width, right=True), "warn" if z > 6 else "text")]


def _memory(cell: Cell) -> Line:
    row = cell.row
    text = numbers.percent(row.memory) if not math.isnan(row.memory) else _known(row.memory_bytes, _short_size)
    return [Span(fit(text, cell.width, right=True), "warn" if row.memory >= 0.9 else "text")]


def _short_size(value: float) -> str:
    return numbers.axis(value, "B")


def _rate(row: Row) -> str:
    text = _known(row.tokens_per_second, numbers.count)
    return text + PER_CARD if row.per_card else text


def job_words(run: RunSnapshot) -> str:
    """What a scheduler adds to a row: time left, and the share of the trained steps that restarts left standing."""
    job, good = run.job, run.goodput
    words = []
    if job is not None and job.time_left_s is not None:
        words.append(f"{numbers.duration(job.time_left_s)} left")
    if good is not None and good.restarts:
        words.append(f"{numbers.percent(good.share)} kept")
    return ", ".join(words)


def verdict_word(run: RunSnapshot) -> str:
    """The verdict; before there can be one, how far the history is read."""
    if run.progress < 1 and run.verdict is Verdict.NO_DATA:
        return f"reading {numbers.percent(run.progress)}" if run.progress > 0 else "not read"
    return run.verdict.value


def _verdict(cell: Cell) -> Line:
    run, why = cell.row.run, cell.row.explained_by
    style = VERDICT_STYLES[run.verdict]
    head = f"{cell.glyphs.verdicts[run.verdict]} {verdict_word(run)}"
    rest = f" {trouble_words(run, why)}" if why else ""
    is_read = verdict_word(run) == run.verdict.value
    told = ((reason_words(why, run) if why else run.verdict_reason if is_read else "") or "", job_words(run))
    reason = "; ".join(filter(None, told if why else reversed(told)))
    room = cell.width - len(head) - len(rest)
    if reason and room >= 12:
        rest += (": " if why else " ") + reason
    return [Span(head, style), Span(fit(rest, cell.width - len(head), cell.glyphs.ellipsis), "text")]


def _age(cell: Cell) -> Line:
    return [Span(fit(_known(cell.age_s, numbers.age), cell.width, right=True), "muted")]


COLUMNS: tuple[Column, ...] = (
    Column("state", 11, 0, _state, most=15, grow=1),
    Column("name", 17, 0, _name, grow=3, most=40),
    Column("step", 11, 0, _step, right=True, most=12),
    Column("progress", 10, 5, lambda cell: bar(cell.row.progress, cell.width, cell.glyphs)),
    Column("ETA", 7, 1, _right(lambda row: numbers.duration(row.eta_s)), right=True),
    Column("  loss", 13, 0, _loss, grow=2, most=32),
    Column("spike z", 7, 3, _spike, right=True),
    Column("tokens/s", 9, 4, _right(_rate), right=True),
    Column("mem", 6, 2, _memory, right=True),
    Column("MFU", 5, 6, _right(lambda row: _known(row.mfu, numbers.percent)), right=True),
    Column("verdict", 16, 0, _verdict, grow=6, wish=29),
    Column("age", AGE_CELLS, 0, _age, right=True),
)
# In little room a run's state is its sign, in less its loss a number: what is wrong comes first.
_SIGNS = tuple(replace(column, title=" ", width=1, grow=0) if column.title == "state" else column for column in COLUMNS)
_BRIEF = tuple(
    replace(column, title="loss", width=6, grow=0, right=True) if column.title == "  loss" else column
    for column in _SIGNS
)
_NARROW, _WIDE = 77, 92
_MARGIN = 2  # cursor or pin


@lru_cache(16)
def layout(width: int, longest: int = 40) -> tuple[tuple[Column, int], ...]:
    """The columns that fit into `width` cells and how wide each is, in the order of the table.

    `longest`: cells of the longest name: what it does not need is the verdict's.
    """
    room = width - _MARGIN
    columns = COLUMNS if width >= _WIDE else _SIGNS if width >= _NARROW else _BRIEF
    columns = tuple(
        replace(column, most=max(column.width, min(longest, column.most))) if column.title == "name" else column
        for column in columns
    )
    kept = [column for column in columns if column.keep == 0]
    for column in sorted((column for column in columns if column.keep), key=lambda column: column.keep):
        if _needed(kept) + sum(max(0, each.wish - each.width) for each in kept) + column.width + 1 > room:
            break
        kept.append(column)
    kept.sort(key=columns.index)
    widths = {column.title: column.width for column in kept}
    spare = room - _needed(kept)
    for column in kept:
        more = max(0, min(spare, column.wish - column.width))
        widths[column.title] += more
        spare -= more
    while spare > 0:
        growing = [column for column in kept if column.grow and widths[column.title] < column.most]
        if not growing:
            break
        shares = sum(column.grow for column in growing)
        given = 0
        for column in growing:
            more = min(max(1, spare * column.grow // shares), column.most - widths[column.title], spare - given)
            widths[column.title] += more
            given += more
        spare -= given
    while spare < 0:  # narrower than all that must stay: the widest gives way
        widest = max(widths, key=lambda title: widths[title])
        widths[widest] -= 1
        spare += 1
    return tuple((column, max(1, widths[column.title])) for column in kept)


def _needed(columns: list[Column]) -> int:
    return sum(column.width + 1 for column in columns) - 1


def draw_row(
    row: Row,
    width: int,
    glyphs: Glyphs,
    age_s: float,
    *,
    at_cursor: bool = False,
    pinned: bool = False,
    longest: int = 40,
) -> Line:
    """One run in `width` cells."""
    body = draw_body(row, width, glyphs, at_cursor=at_cursor, pinned=pinned, longest=longest)
    return [*body, *draw_age(width, glyphs, age_s, row)]


def draw_body(
    row: Row,
    width: int,
    glyphs: Glyphs,
    *,
    at_cursor: bool = False,
    pinned: bool = False,
    sparks: Sparks | None = None,
    longest: int = 40,
) -> Line:
    """One run up to its age. `sparks`: where the small curves are kept; `longest`: see `layout`."""
    mark = glyphs.cursor if at_cursor else " "
    line = [Span(mark, "key"), Span(glyphs.pin if pinned else " ", "key")]
    for column, cells in layout(width, longest)[:-1]:
        line += [*column.draw(Cell(row, cells, glyphs, math.nan, sparks)), Span(" ")]
    return line


def draw_age(width: int, glyphs: Glyphs, age_s: float, row: Row) -> Line:
    """The last column of a run in `width` cells."""
    column, cells = layout(width)[-1]
    return column.draw(Cell(row, cells, glyphs, age_s))


def draw_head(width: int, longest: int = 40) -> Line:
    """The titles of the columns."""
    line = [Span(" " * _MARGIN, "heading", "bar")]
    for place, (column, cells) in enumerate(layout(width, longest)):
        text = fit(column.title, cells, right=column.right)
        line.append(Span((" " if place else "") + text, "heading", "bar"))
    return line


def brief_line(row: Row, width: int, glyphs: Glyphs, *, at_cursor: bool = False) -> Line:
    """One run where there is no room for columns: verdict, name, step, loss."""
    run = row.run
    view = run.series.get(SignalKey("loss.train"))
    loss = numbers.MISSING if view is None else numbers.within(view.last, 6)
    head = f"{glyphs.verdicts[run.verdict]} {verdict_word(run)[:7]:<7} "
    tail = f" {_known(row.step, numbers.count):>6} {loss:>6}"
    mark = glyphs.cursor if at_cursor else " "
    name = fit_middle(run.name, width - len(mark) - len(head) - len(tail), glyphs.ellipsis)
    return [Span(mark, "key"), Span(head, VERDICT_STYLES[run.verdict]), Span(name, "title"), Span(tail)]
