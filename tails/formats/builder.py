"""Rows to columns: gathers records one by one where a format cannot do it in bulk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.digits import read_numbers
from trainmon.tails.formats.raw_values import Columns, RawValues, RowValues
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Block, FloatArray, IntArray, Mark, MarkArray, TimeKind

_NAN = math.nan
# Rows that share few keys are put into blocks of at most so many cells: a block is as wide as all its keys together.
_MOST_CELLS = 1 << 21


def mark_of(value: float | None, nan: Mark = Mark.NAN) -> Mark:
    """What `value` is, once it is known to have been logged; None stands for a logged null. `nan`: what a NaN is."""
    if value is None:
        return Mark.NULL
    if math.isfinite(value):
        return Mark.NUMBER
    if math.isnan(value):
        return nan
    return Mark.POS_INF if value > 0 else Mark.NEG_INF


Row = tuple[float, float, int, int, Mapping[str, float | None]]


@dataclass(frozen=True, slots=True)
class Rows:
    """(n,) rows of the same keys: steps, times, offsets, line numbers, and (n, keys) values."""

    steps: FloatArray
    times: FloatArray
    offsets: IntArray
    lines: IntArray
    names: tuple[str, ...]
    values: FloatArray

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def heads(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        """What a row has before its values."""
        return self.steps, self.times, self.offsets, self.lines

    def where(self, keep: NDArray[np.bool_]) -> Rows:
        """The rows that `keep` (n,) selects."""
        steps, times, offsets, lines = self.heads
        return Rows(steps[keep], times[keep], offsets[keep], lines[keep], self.names, self.values[keep])


class BlockBuilder:
    """Collects records of one source; `take` gives them as blocks, in order, one for each change of step key.

    >>> builder = BlockBuilder("train.log")
    >>> builder.add({"loss": 2.5}, step=1.0, offset=0, line_no=1, step_key="step")
    >>> builder.add({"loss": math.nan, "lr": 0.1}, step=2.0, offset=20, line_no=2, step_key="step")
    >>> [block] = builder.take()
    >>> block.columns["loss"].tolist(), block.marks["loss"].tolist(), block.columns["lr"].tolist()
    ([2.5, nan], [1, 2], [nan, 0.1])
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._done: list[Block] = []
        self._shape: tuple[str, TimeKind, Mark] = ("", TimeKind.NONE, Mark.NAN)
        self._rows: list[Row | Rows] = []

    def __len__(self) -> int:
        return sum(map(_count, self._rows)) + sum(len(block) for block in self._done)

    def add(
        self,
        values: Mapping[str, float | None],
        *,
        step: float | None,
        offset: int,
        line_no: int,
        step_key: str = "",
        time: float | None = None,
        time_kind: TimeKind = TimeKind.NONE,
        nan: Mark = Mark.NAN,
    ) -> None:
        """Adds one record. A value of None is a logged null; a key left out was not logged. `nan`: what a NaN is."""
        shape = (step_key, time_kind, nan)
        if shape != self._shape:
            self._close()
            self._shape = shape
        self._rows.append((_NAN if step is None else step, _NAN if time is None else time, offset, line_no, values))

    def add_rows(
        self,
        rows: Iterable[Row | Rows],
        step_key: str,
        time_kind: TimeKind,
        nan: Mark = Mark.NAN,
    ) -> None:
        """Adds many records: (step, time, offset, line number, values), NaN for a step or time that is not known; or
        many at once."""
        if (step_key, time_kind, nan) != self._shape:
            self._close()
            self._shape = (step_key, time_kind, nan)
        self._rows += rows

    def take(self) -> list[Block]:
        """The blocks gathered since the last call."""
        self._close()
        done, self._done = self._done, []
        return done

    def _close(self) -> None:
        rows, self._rows = self._rows, []
        for part in _pieces(rows):
            self._done.append(self._block(part))

    def _block(self, rows: list[Row | Rows]) -> Block:
        step_key, time_kind, nan = self._shape
        columns, marks = _columns([row if isinstance(row, Rows) else row[4] for row in rows], nan)
        steps, times, offsets, lines = _heads(rows)
        return Block(
            source=self.source,
            steps=steps,
            times=times,
            offsets=offsets,
            lines=lines,
            columns=columns,
            marks=marks,
            step_key=step_key,
            time_kind=time_kind,
        )


def _count(row: Row | Rows) -> int:
    return len(row) if isinstance(row, Rows) else 1


def _heads(rows: list[Row | Rows]) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Steps, times, offsets and line numbers of `rows`."""
    parts: list[tuple[FloatArray, FloatArray, IntArray, IntArray]] = []
    alone: list[Row] = []
    for row in rows:
        if type(row) is tuple:
            alone.append(row)
        elif isinstance(row, Rows):
            parts += (_heads_alone(alone), row.heads) if alone else (row.heads,)
            alone = []
    if alone:
        parts.append(_heads_alone(alone))
    if len(parts) == 1:
        return parts[0]
    steps, times, offsets, lines = zip(*parts, strict=True)
    return np.concatenate(steps), np.concatenate(times), np.concatenate(offsets), np.concatenate(lines)


def _heads_alone(rows: list[Row]) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    offsets, lines = (np.array([row[at] for row in rows], np.int64) for at in (2, 3))
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), offsets, lines


def _pieces(rows: list[Row | Rows]) -> Iterator[list[Row | Rows]]:
    """`rows` in pieces of at most `_MOST_CELLS` rows times keys."""
    keys: set[str] = set()
    begin, last, count = 0, None, 0
    for index, row in enumerate(rows):
        count += 1
        names: Iterable[str]
        if isinstance(row, Rows):
            count += len(row) - 1
            names = row.names
        elif type(values := row[4]) is RawValues:  # `isinstance` of a Mapping takes ten times as long
            names = values.columns.names
        else:
            names = values.names if type(values) is RowValues else values
        if names is last:  # the next line of one shape; a dictionary is never the one before
            continue
        last = names
        keys.update(names)
        if count * len(keys) > _MOST_CELLS and index > begin:
            yield rows[begin:index]
            begin, keys, count = index, set(names), _count(row)
    if begin < len(rows):
        yield rows[begin:]


def _columns(
    rows: list[Mapping[str, float | None] | Rows], nan: Mark
) -> tuple[dict[str, FloatArray], dict[str, MarkArray]]:
    """Columns and marks of `rows`. Rows of the same keys are filled in together."""
    raw: dict[Columns, tuple[list[int], list[bytes]]] = {}
    parsed: dict[tuple[int, int], tuple[list[int], list[int], RowValues]] = {}
    read: dict[tuple[str, ...], tuple[list[int], list[list[float | None]]]] = {}
    many: list[tuple[IntArray, Rows]] = []
    newest: RowValues | None = None
    row_places: list[int] = []
    numbers: list[int] = []
    index = -1
    for values in rows:
        index += 1
        if type(values) is RawValues:
            places, lines = raw.get(values.columns) or raw.setdefault(values.columns, ([], []))
            lines.append(values.line)
        elif type(values) is RowValues:
            if newest is None or values.matrix is not newest.matrix or values.names is not newest.names:
                newest = values
                group = id(values.names), id(values.matrix)  # rows of one reading share both
                row_places, numbers, _ = parsed.get(group) or parsed.setdefault(group, ([], [], values))
            places = row_places
            numbers.append(values.row)
        elif isinstance(values, Rows):
            many.append((np.arange(index, index + len(values)), values))
            index += len(values) - 1
            continue
        else:
            places, cells = read.setdefault(tuple(values), ([], []))
            cells.append(list(values.values()))
        places.append(index)
    filler = _Filler(index + 1, nan)
    for shape, (places, lines) in raw.items():
        filler.fill(shape.names, places, read_numbers(shape.numbers, lines), None)
    for places, numbers, one in parsed.values():
        filler.fill(one.names, places, one.matrix[numbers], None)
    for together, rows_of in many:
        filler.fill(rows_of.names, together, rows_of.values, None)
    for keys, (places, cells) in read.items():
        matrix = np.array(cells, np.float64).reshape(len(places), len(keys))  # None becomes NaN
        filler.fill(keys, places, matrix, cells)
    return filler.columns, filler.marks()


class _Filler:
    """Columns of `count` rows, filled by groups of rows. `nan`: the mark of a NaN."""

    def __init__(self, count: int, nan: Mark) -> None:
        self.count, self.nan = count, nan
        self.columns: dict[str, FloatArray] = {}
        self._odd: dict[str, list[tuple[int, Mark]]] = {}

    def fill(
        self,
        keys: tuple[str, ...],
        places: list[int] | IntArray,
        matrix: FloatArray,
        cells: list[list[float | None]] | None,
    ) -> None:
        """Puts `matrix` (places, keys) into the rows `places`; `cells` tells a logged null from NaN."""
        where = slice(None) if len(places) == self.count else np.asarray(places)
        for at, key in enumerate(keys):
            column = self.columns.get(key)
            if column is None:
                column = self.columns[key] = np.full(self.count, _NAN)
            column[where] = matrix[:, at]
        for row, at in np.argwhere(~np.isfinite(matrix)).tolist():
            value = cells[row][at] if cells is not None else float(matrix[row, at])
            self._odd.setdefault(keys[at], []).append((int(places[row]), mark_of(value, self.nan)))

    def marks(self) -> dict[str, MarkArray]:
        """Marks of the columns in which something that is no number was logged."""
        marks: dict[str, MarkArray] = {}
        for key, found in self._odd.items():
            marks[key] = np.where(np.isnan(self.columns[key]), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
            for index, mark in found:
                marks[key][index] = mark
        return marks
