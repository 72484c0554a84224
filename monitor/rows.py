"""Rows of one source between the log's blocks and the frames that detectors see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Block, FloatArray, IntArray, Mark, MarkArray, TimeKind

BoolArray = NDArray[np.bool_]
# Rows are put together up to so many cells: what few rows log is as long as all of them.
MOST_CELLS: Final = 1 << 21
# Logged once a step by one process: logged twice, there are two.
_TELLING = ("loss.train", "grad.norm", "reward.mean")


@dataclass(slots=True)
class Rows:
    """`n` rows of one source, in the order of the log, keys already mapped. Slices share memory.

    `steps`: (n,) as logged (NaN: none), effective once a tracker gave them out. `primary`: (n,) whether the row
    holds a training metric and so moves the step counter.
    """

    steps: FloatArray
    times: FloatArray
    lines: IntArray
    columns: dict[SignalKey, FloatArray]
    marks: dict[SignalKey, MarkArray] = field(default_factory=dict)
    time_kind: TimeKind = TimeKind.NONE
    primary: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))

    def __len__(self) -> int:
        return len(self.steps)

    def take(self, where: slice | IntArray | BoolArray) -> Rows:
        """The rows at `where`; columns in which none of them was logged are left out of copies, not of slices."""
        return Rows(
            self.steps[where],
            self.times[where],
            self.lines[where],
            {key: column[where] for key, column in self.columns.items()},
            {key: marks[where] for key, marks in self.marks.items()},
            self.time_kind,
            self.primary[where],
        )

    def logged(self, key: SignalKey) -> BoolArray:
        """(n,) whether `key` was logged in each row, also as NaN, Inf or null."""
        marks = self.marks.get(key)
        if marks is not None:
            return np.asarray(marks != Mark.ABSENT)
        return ~np.isnan(self.columns[key])

    def cell(self, key: SignalKey, row: int) -> tuple[float, int]:
        """Value and mark of one cell; (NaN, ABSENT) where the key was not logged."""
        column = self.columns.get(key)
        if column is None:
            return (np.nan, Mark.ABSENT)
        value = float(column[row])
        marks = self.marks.get(key)
        if marks is not None:
            return (value, int(marks[row]))
        return (value, Mark.ABSENT if np.isnan(value) else Mark.NUMBER)

    def record(self, row: int) -> dict[SignalKey, tuple[float, int]]:
        """What one row logged; NaN is written as 0 beside its mark, so that records compare."""
        found = {}
        for key in self.columns:
            value, mark = self.cell(key, row)
            if mark != Mark.ABSENT:
                found[key] = (0.0 if np.isnan(value) else value, mark)
        return found

    def repeats(self) -> tuple[BoolArray, BoolArray]:
        """For each row but the first: (is the same record as the row before it, logs a loss or so of that row again).

        Only rows that share the step of the row before are looked at. Shapes (n - 1,).
        """
        same_step = self.steps[1:] == self.steps[:-1]
        where = np.flatnonzero(same_step) + 1
        same = np.ones(len(where), np.bool_)
        again = np.zeros(len(where), np.bool_)
        for key, column in self.columns.items():
            here, before = column[where], column[where - 1]
            equal = here == before
            logged = self.logged(key)
            both = logged[where] & logged[where - 1]
            neither = ~logged[where] & ~logged[where - 1]
            marks = self.marks.get(key)
            if marks is not None:
                equal |= np.isnan(here) & np.isnan(before) & (marks[where] == marks[where - 1])
            same &= neither | (both & equal)
            if key.signal in _TELLING:
                again |= both
        is_same = np.zeros(len(same_step), np.bool_)
        is_again = np.zeros(len(same_step), np.bool_)
        is_same[where - 1] = same
        is_again[where - 1] = again
        return is_same, is_again

    def frame(self, attempt: int, path: str) -> Frame:
        """The rows as detectors see them: with the columns that tell something in them, not in those cut off since."""
        columns = {key: column for key, column in self.columns.items() if self._tells(key, column)}
        marks = {key: marks for key, marks in self.marks.items() if key in columns}
        return Frame(attempt, path, self.steps, self.times, self.lines, columns, marks, self.time_kind)

    def _tells(self, key: SignalKey, column: FloatArray) -> bool:
        if len(column) and not np.isnan(column[0]):
            return True
        marks = self.marks.get(key)
        return bool((marks != Mark.ABSENT).any()) if marks is not None else not np.isnan(column).all()


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Blocks of one source and one shape (step key, kind of time) as one; small blocks cost more than their rows."""
    if len(blocks) == 1:
        return blocks[0]
    keys = list(dict.fromkeys(key for block in blocks for key in block.columns))
    marked = dict.fromkeys(key for block in blocks for key in block.marks)
    sizes = [len(block) for block in blocks]
    return Block(
        blocks[0].source,
        np.concatenate([block.steps for block in blocks]),
        np.concatenate([block.times for block in blocks]),
        np.concatenate([block.offsets for block in blocks]),
        np.concatenate([block.lines for block in blocks]),
        {key: np.concatenate([_column(block, key, n) for block, n in zip(blocks, sizes, strict=True)]) for key in keys},
        {
            key: np.concatenate([_marks(block, key, n) for block, n in zip(blocks, sizes, strict=True)])
            for key in marked
        },
        blocks[0].step_key,
        blocks[0].time_kind,
        blocks[0].run,
        blocks[0].by_metric,
    )


def _column(block: Block, key: str, size: int) -> FloatArray:
    column = block.columns.get(key)
    return column if column is not None else np.full(size, np.nan)


def _marks(block: Block, key: str, size: int) -> MarkArray:
    return block.mark_of(key) if key in block.columns else np.zeros(size, np.uint8)


def stack(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other as one; the kind of time is the first part's."""
    if len(parts) == 1:
        return parts[0]
    keys = list(dict.fromkeys(key for part in parts for key in part.columns))
    marked = dict.fromkeys(key for part in parts for key in part.marks)
    return Rows(
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.lines for part in parts]),
        {key: np.concatenate([_rows_column(part, key) for part in parts]) for key in keys},
        {key: np.concatenate([_rows_marks(part, key) for part in parts]) for key in marked},
        parts[0].time_kind,
        np.concatenate([part.primary for part in parts]),
    )


def _rows_column(part: Rows, key: SignalKey) -> FloatArray:
    column = part.columns.get(key)
    return column if column is not None else np.full(len(part), np.nan)


def _rows_marks(part: Rows, key: SignalKey) -> MarkArray:
    marks = part.marks.get(key)
    if marks is not None:
        return marks
    column = part.columns.get(key)
    if column is None:
        return np.zeros(len(part), np.uint8)
    return np.where(np.isnan(column), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
