"""Records of one plan on their way to columns, gathered piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.struct_plan import Columns, Marks, StructPlan
from trainmon.tails.record import FloatArray, Mark, MarkArray


class Gathered:
    """Records of `plan`. Those of numbers alone are kept as an array, made while they are fresh in the processor's
    caches: the objects of one piece are gone before the next is decoded."""

    def __init__(self, plan: StructPlan) -> None:
        self.plan = plan
        self._records: list[Any] = []
        self._loose = False
        self._packed: list[bytes] = []
        self._tables: list[FloatArray] = []
        self._odd: list[dict[int, MarkArray]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, records: list[Any], loose: bool) -> None:
        """Adds what the plan decoded; `loose`: whether it was decoded loosely."""
        self._count += len(records)
        if self.plan.is_plain:
            packed = self.plan.packed(records)
            if packed is not None:
                self._packed.append(packed)
            else:
                self._unpack()
                self._add_table(*self.plan.odd_table(records))
        else:
            self._records += records
            self._loose = self._loose or loose

    def _unpack(self) -> None:
        """Makes a table of what was packed: in one go, which costs a third of a table for each piece."""
        if self._packed:
            self._add_table(*self.plan.table(b"".join(self._packed)))
            self._packed.clear()

    def _add_table(self, table: FloatArray, odd: dict[int, MarkArray]) -> None:
        self._tables.append(table)
        self._odd.append(odd)

    def first(self, count: int) -> Gathered:
        """The first `count` records of a plan that is not plain."""
        part = Gathered(self.plan)
        part.add(self._records[:count], self._loose)
        return part

    def texts(self) -> dict[str, list[str | None]]:
        """See `StructPlan.texts`."""
        return self.plan.texts(self._records)

    def words(self, columns: Columns) -> dict[str, list[str | None] | FloatArray]:
        """See `StructPlan.words`."""
        return self.plan.words(self._records, columns)

    def columns(self) -> tuple[Columns, Marks]:
        """Raw key -> (n,) values, and the marks of those in which something that is no number was logged."""
        if not self.plan.is_plain:
            return self.plan.columns(self._records, loose=self._loose)
        self._unpack()
        whole = self._tables[0] if len(self._tables) == 1 else np.concatenate(self._tables, axis=1)
        is_absent: NDArray[np.bool_] = np.asarray(np.isnan(whole).all(axis=1))
        marks: Marks = {}
        keys = self.plan.number_keys
        for place in sorted({place for odd in self._odd for place in odd}):
            marks[keys[place]] = mark = self._marks_of(place)
            is_absent[place] = is_absent[place] and not mark.any()
        columns: Columns = {key: whole[place] for place, key in enumerate(keys) if not is_absent[place]}
        return columns, {key: mark for key, mark in marks.items() if key in columns and (mark > Mark.NUMBER).any()}

    def _marks_of(self, place: int) -> MarkArray:
        """(n,) the marks of one column."""
        parts = zip(self._odd, self._tables, strict=True)
        return np.concatenate([odd[place] if place in odd else _marks_of_numbers(table[place]) for odd, table in parts])


def _marks_of_numbers(column: FloatArray) -> MarkArray:
    """(n,) the marks of a column in which nothing but numbers was logged."""
    return np.where(np.isnan(column), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
