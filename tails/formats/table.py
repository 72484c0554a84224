"""Puts rows and batches of rows of one source together into blocks, in file order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from trainmon.tails.formats.builder import mark_of
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Block, FloatArray, IntArray, Mark, MarkArray, TimeKind

# A block of many keys that few rows carry is cut early: cells, not bytes, are what it costs.
_CELL_LIMIT = 2_000_000
_FEWEST_ROWS = 64


@dataclass(frozen=True, slots=True)
class Batch:
    """`n` rows at once. `columns`: key -> (n,) float64; `marks` as in `Block`; the other arrays are (n,)."""

    steps: FloatArray
    times: FloatArray
    offsets: IntArray
    lines: IntArray
    columns: dict[str, FloatArray]
    marks: dict[str, MarkArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.steps)

    def rows(self, keep: np.ndarray) -> Batch:
        """The rows that `keep` (mask or indices) selects."""
        return Batch(
            self.steps[keep],
            self.times[keep],
            self.offsets[keep],
            self.lines[keep],
            {key: column[keep] for key, column in self.columns.items()},
            {key: marks[keep] for key, marks in self.marks.items()},
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One row; a value of None is a logged null."""

    values: Mapping[str, float | None]
    step: float
    time: float
    offset: int
    line_no: int


class Table:
    """Collects `Row` and `Batch` of a run; `take` gives blocks, cut where the step key, the kind of time or whether
    they stand metric by metric changes."""

    def __init__(self, source: str, run: str = "") -> None:
        self.source = source
        self.run = run
        self._parts: list[Batch | Row] = []
        self._keys: set[str] = set()
        self._count = 0
        self._step_key = ""
        self._time_kind = TimeKind.NONE
        self._by_metric = False
        self._blocks: list[Block] = []

    def add(self, part: Batch | Row, step_key: str, time_kind: TimeKind, by_metric: bool = False) -> None:
        """Adds what comes next; `time_kind` NONE where it has no times, `by_metric` as `Block.by_metric`."""
        changed = (step_key and self._step_key not in ("", step_key)) or (
            time_kind is not TimeKind.NONE and self._time_kind not in (TimeKind.NONE, time_kind)
        )
        changed = changed or by_metric != self._by_metric
        if changed or (self._count > _FEWEST_ROWS and len(self._keys) * self._count > _CELL_LIMIT):
            self._close()
        self._by_metric = by_metric
        self._step_key = step_key or self._step_key
        self._time_kind = time_kind if time_kind is not TimeKind.NONE else self._time_kind
        self._parts.append(part)
        self._keys.update(part.columns if isinstance(part, Batch) else part.values)
        self._count += len(part) if isinstance(part, Batch) else 1

    def take(self) -> list[Block]:
        """The blocks of what was added since the last call."""
        self._close()
        done, self._blocks = self._blocks, []
        return done

    def _close(self) -> None:
        if self._count:
            made = _block(self.source, self._parts, self._count, self._step_key, self._time_kind)
            is_plain = not (self.run or self._by_metric)
            self._blocks.append(made if is_plain else replace(made, run=self.run, by_metric=self._by_metric))
        self._parts, self._keys, self._count = [], set(), 0
        self._step_key, self._time_kind = "", TimeKind.NONE


def _block(source: str, parts: list[Batch | Row], count: int, step_key: str, time_kind: TimeKind) -> Block:
    if len(parts) == 1 and isinstance(parts[0], Batch):
        only = parts[0]
        return Block(
            source, only.steps, only.times, only.offsets, only.lines, only.columns, only.marks, step_key, time_kind
        )
    steps, times = np.full(count, math.nan), np.full(count, math.nan)
    offsets, lines = np.zeros(count, np.int64), np.zeros(count, np.int64)
    columns: dict[str, FloatArray] = {}
    odd: dict[str, list[tuple[int | slice, Mark | MarkArray]]] = {}
    at = 0
    for part in parts:
        size = len(part) if isinstance(part, Batch) else 1
        place = slice(at, at + size)
        if isinstance(part, Batch):
            steps[place], times[place], offsets[place], lines[place] = part.steps, part.times, part.offsets, part.lines
            for key, column in part.columns.items():
                _column(columns, key, count)[place] = column
            for key, marks in part.marks.items():
                odd.setdefault(key, []).append((place, marks))
        else:
            steps[at], times[at], offsets[at], lines[at] = part.step, part.time, part.offset, part.line_no
            for key, value in part.values.items():
                target = _column(columns, key, count)
                if value is not None:
                    target[at] = value
                if value is None or not math.isfinite(value):
                    odd.setdefault(key, []).append((at, mark_of(value)))
        at += size
    return Block(source, steps, times, offsets, lines, columns, _marks(columns, odd), step_key, time_kind)


def _column(columns: dict[str, FloatArray], key: str, count: int) -> FloatArray:
    column = columns.get(key)
    if column is None:
        column = columns[key] = np.full(count, math.nan)
    return column


def _marks(
    columns: dict[str, FloatArray], odd: dict[str, list[tuple[int | slice, Mark | MarkArray]]]
) -> dict[str, MarkArray]:
    out: dict[str, MarkArray] = {}
    for key, places in odd.items():
        marks = out[key] = np.where(np.isnan(columns[key]), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
        for place, mark in places:
            marks[place] = mark
    return out
