"""Records of one plan, many at once: the same meaning that `RecordReader.read` gives them one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from trainmon.tails.formats.config_facts import fact_of_constant
from trainmon.tails.formats.gathered import Gathered
from trainmon.tails.formats.kinds import PLAIN, SPLIT_KEYS, TYPE_KEYS, RecordKind, Role, kind_of
from trainmon.tails.formats.records import RANK, RecordReader
from trainmon.tails.formats.run_split import Placement
from trainmon.tails.formats.stamps import epoch_seconds, parse_stamp, stamp_keys, stamp_order
from trainmon.tails.formats.struct_plan import Columns, Marks
from trainmon.tails.formats.table import Batch
from trainmon.tails.record import FloatArray, IntArray, Mark, TimeKind
from trainmon.tails.steps import BoolArray, is_loss_key, is_training_key

Texts = dict[str, list[str | None]]


class Rows(NamedTuple):
    """Rows on their way into a table; columns and marks are (n,), texts and kinds lists of n, kinds empty or n long."""

    columns: Columns
    marks: Marks
    texts: Texts
    kinds: list[RecordKind]
    offsets: IntArray
    lines: IntArray

    def first(self, count: int) -> Rows:
        """The first `count` rows."""
        return self if count == len(self.offsets) else self.where(np.arange(len(self.offsets)) < count)

    def where(self, keep: BoolArray) -> Rows:
        """The rows that `keep` (n,) selects."""
        places = np.flatnonzero(keep).tolist()
        return Rows(
            {key: column[keep] for key, column in self.columns.items()},
            {key: mark[keep] for key, mark in self.marks.items()},
            {key: [own[at] for at in places] for key, own in self.texts.items()},
            [self.kinds[at] for at in places] if self.kinds else [],
            self.offsets[keep],
            self.lines[keep],
        )


class Bulk:
    """Adds decoded records to the reader's table."""

    def __init__(self, reader: RecordReader) -> None:
        self.reader = reader

    def add(self, records: Gathered, offsets: IntArray, lines: IntArray) -> int:
        """Adds `records`, which stand at `offsets` and `lines`; how many were taken in.

        Fewer than all when one of them is no row of numbers: that one must be read by itself.
        """
        texts = records.texts()
        columns, marks = records.columns()
        kinds = self._kinds(columns, marks, texts, len(records))
        stop = next((i for i, kind in enumerate(kinds) if kind.role is Role.FACTS), len(records)) if kinds else None
        if stop is not None and stop < len(records):
            if stop == 0:
                return 0
            return self.add(records.first(stop), offsets[:stop], lines[:stop])
        words = records.words(columns)
        if not words:
            self._add_rows(columns, marks, texts, kinds, offsets, lines)
            return len(records)
        steps = columns.get(self.reader.chooser.key, np.full(len(records), math.nan))
        placed = self.reader.place(words, steps, offsets, lines, final=False)
        rows = Rows(columns, marks, texts, kinds, offsets, lines).first(placed.taken)
        self._add_by_run(rows, placed)
        return placed.taken

    def _add_by_run(self, rows: Rows, placed: Placement) -> None:
        """Adds rows to the runs that they belong to."""
        if placed.runs is None:
            self._add_rows(*rows)
            return
        whose = np.array(placed.runs, np.int64)
        for run in dict.fromkeys(placed.runs):
            if run >= 0:
                self.reader.enter(run)
                self._add_rows(*(rows if (whose == run).all() else rows.where(whose == run)))
        self.reader.enter(self.reader.split.newest)

    def add_columns(
        self,
        columns: Columns,
        marks: Marks,
        texts: Texts,
        offsets: IntArray,
        lines: IntArray,
        suffixes: Sequence[str] | None = None,
        placed: Placement | None = None,
    ) -> None:
        """Adds rows that are columns already; `suffixes` (n,) go behind the keys of each row. `placed`: their runs.

        Rows whose type says that they are none are left out.
        """
        kinds = self._kinds(columns, marks, texts, len(offsets))
        if kinds and any(kind.role is Role.FACTS for kind in kinds):
            keep = np.array([kind.role is Role.ROW for kind in kinds])
            columns, marks, texts, kinds, offsets, lines = Rows(columns, marks, texts, kinds, offsets, lines).where(
                keep
            )
            suffixes = [text for text, kept in zip(suffixes, keep, strict=True) if kept] if suffixes else None
            if placed is not None and placed.runs is not None:
                runs = [run for run, kept in zip(placed.runs, keep, strict=True) if kept]
                placed = replace(placed, runs=runs, taken=len(runs))
        if suffixes is not None and any(suffixes):
            kinds = _suffixed(kinds or [PLAIN] * len(offsets), suffixes)
        if len(offsets):
            self._add_by_run(
                Rows(columns, marks, texts, kinds, offsets, lines), placed or Placement(None, len(offsets))
            )

    def _kinds(self, columns: Columns, marks: Marks, texts: Texts, count: int) -> list[RecordKind]:
        typed = [key for key in (*TYPE_KEYS, *SPLIT_KEYS) if key in texts]
        if not typed:
            return []
        losses = _any_logged(columns, marks, [key for key in columns if is_loss_key(key)], count).tolist()
        rows = list(zip(losses, *(texts[key] for key in typed), strict=True))
        known = {
            row: kind_of({key: text for key, text in zip(typed, row[1:], strict=True) if text is not None}, row[0])
            for row in set(rows)
        }
        return [known[row] for row in rows] if any(kind is not PLAIN for kind in known.values()) else []

    def _add_rows(
        self, columns: Columns, marks: Marks, texts: Texts, kinds: list[RecordKind], offsets: IntArray, lines: IntArray
    ) -> None:
        reader, count = self.reader, len(offsets)
        times, time_kinds = _times(columns, texts, count)
        step_key = reader.chooser.key
        raw = columns
        steps = columns.get(step_key, np.full(count, math.nan))
        steps = np.where(np.isinf(steps), math.nan, steps) if np.isinf(steps).any() else steps
        columns = {key: column for key, column in columns.items() if key != step_key}
        marks = {key: mark for key, mark in marks.items() if key != step_key}
        echoes = (
            [reader.echo(rank, step) for rank, step in zip(columns[RANK], steps, strict=True)]
            if RANK in columns
            else ()
        )
        if any(echoes):
            kinds = _suffixed(kinds or [PLAIN] * count, echoes)
        if kinds:
            columns, marks = _renamed(columns, marks, kinds)
        keep = self._filled(columns, marks, count)
        own = self._own_steps(steps, columns, marks, keep)
        batch = Batch(own, times, offsets, lines, columns, marks)
        self._see_constants(raw, own, lines, keep)
        known = own[~np.isnan(own)] if keep is None else own[keep & ~np.isnan(own)]
        if keep is not None:
            batch, time_kinds = batch.rows(keep), [kind for kind, kept in zip(time_kinds, keep, strict=True) if kept]
        if len(batch):
            self._put(batch, step_key, time_kinds)
            reader.rows_were_read(float(known[-1]) if len(known) else None)

    def _filled(self, columns: Columns, marks: Marks, count: int) -> BoolArray | None:
        """Which rows logged anything; None when all did."""
        for key, column in columns.items():
            if key not in marks and not np.isnan(column).any():
                return None
        filled = _any_logged(columns, marks, list(columns), count)
        return None if filled.all() else filled

    def _own_steps(self, steps: FloatArray, columns: Columns, marks: Marks, keep: BoolArray | None) -> FloatArray:
        keys = [key for key in columns if is_training_key(key)]
        training = _any_logged(columns, marks, keys, len(steps))
        if self.reader.trusts_steps:
            self.reader.run.track.own_steps(steps, training)
            return steps
        if keep is None:
            return self.reader.run.track.own_steps(steps, None if training.all() else training)
        own = steps.copy()
        own[keep] = self.reader.run.track.own_steps(steps[keep], training[keep])
        return own

    def _see_constants(self, columns: Columns, steps: FloatArray, lines: IntArray, keep: BoolArray | None) -> None:
        for key, column in columns.items():
            if fact_of_constant(key) is None or key == self.reader.chooser.key:
                continue
            logged = ~np.isnan(column) if keep is None else keep & ~np.isnan(column)
            rows = np.flatnonzero(logged)
            values = column[rows]
            # Of a stretch of one value the first two rows say all, and the first that its step allows.
            fresh = np.ones(len(rows), np.bool_)
            if len(rows) > 2:
                fresh[2:] = (
                    (values[2:] != values[1:-1]) | (values[2:] != values[:-2]) | ~(values[1:-1] > steps[rows[1:-1]])
                )
            for row in rows[fresh].tolist():
                self.reader.run.constants.see(
                    key, float(column[row]), float(steps[row]), int(lines[row]), self.reader.parsed.facts
                )

    def _put(self, batch: Batch, step_key: str, time_kinds: list[TimeKind]) -> None:
        table, by_metric = self.reader.run.table, self.reader.trusts_steps
        distinct = set(time_kinds) - {TimeKind.NONE}
        if len(distinct) < 2:
            table.add(batch, step_key, next(iter(distinct), TimeKind.NONE), by_metric)
            return
        start = 0
        current = TimeKind.NONE
        for index, kind in enumerate((*time_kinds, None)):
            if kind is TimeKind.NONE or kind is current:
                continue
            if current is TimeKind.NONE and kind is not None:
                current = kind
                continue
            table.add(batch.rows(np.arange(start, index)), step_key, current, by_metric)
            start, current = index, kind or TimeKind.NONE


def _suffixed(kinds: list[RecordKind], suffixes: Sequence[str]) -> list[RecordKind]:
    known = {pair: pair[0].labelled(pair[1]) for pair in set(zip(kinds, suffixes, strict=True))}
    return [known[pair] for pair in zip(kinds, suffixes, strict=True)]


def _any_logged(columns: Columns, marks: Marks, keys: list[str], count: int) -> BoolArray:
    out = np.zeros(count, np.bool_)
    for key in keys:
        mark = marks.get(key)
        out |= ~np.isnan(columns[key]) if mark is None else mark != Mark.ABSENT
        if out.all():
            break
    return out


def _times(columns: Columns, texts: Texts, count: int) -> tuple[FloatArray, list[TimeKind]]:
    times = np.full(count, math.nan)
    kinds = [TimeKind.NONE] * count
    for key in stamp_keys({**columns, **texts}):
        if key in columns:
            seconds = epoch_seconds(columns[key])
            for index in np.flatnonzero(np.isnan(times) & ~np.isnan(seconds)).tolist():
                kinds[index] = TimeKind.ABSOLUTE
            times = np.where(np.isnan(times), seconds, times)
        for index, text in enumerate(texts.get(key, ())):
            if text is not None and times[index] != times[index]:
                times[index], kinds[index] = parse_stamp(text)
    return times, kinds


def _renamed(columns: Columns, marks: Marks, kinds: list[RecordKind]) -> tuple[Columns, Marks]:
    """The columns under the keys that each row's kind gives them."""
    out: Columns = {}
    out_marks: Marks = {}
    for kind in dict.fromkeys(kinds):
        mask = np.array([other is kind or other == kind for other in kinds])
        for key, column in columns.items():
            mark = marks.get(key)
            logged = mask & (~np.isnan(column) if mark is None else mark != Mark.ABSENT)
            if not logged.any() or (key == RANK and "rank=" in kind.suffix):
                continue
            name = key if stamp_order(key) is not None else kind.key(key)
            target = out.setdefault(name, np.full(len(column), math.nan))
            target[logged] = column[logged]
            if mark is not None or name in out_marks:
                _merge_marks(out_marks, name, target, logged, mark)
    return out, out_marks


def _merge_marks(marks: Marks, name: str, column: FloatArray, logged: BoolArray, mark: Any) -> None:
    if name not in marks:
        marks[name] = np.where(np.isnan(column), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
    marks[name][logged] = Mark.NUMBER if mark is None else mark[logged]
