"""Records of one plan on their way to columns, gathered piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainmon.tails.formats.struct_plan import Columns, Marks, StructPlan
from trainmon.tails.record import FloatArray, Mark, MarkArray


class Gathered:
    """Records of `plan`. Those of numbers alone are kept as an array, made while they are fresh in the processor's
    caches: the objects of one piece are gone before the next is decoded."""

    def __init__(self, plan: StructPlan) -> None:
        self.plan = plan
        self._records: list[Any] = []
        self._loose = False
        self._tables: list[FloatArray] = []
        self._odd: list[dict[int, MarkArray]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, records: list[Any], loose: bool) -> None:
        """Adds what the plan decoded; `loose`: whether it was decoded loosely."""
        self._count += len(records)
        if self.plan.is_plain:
            table, odd = self.plan.table(records)
            self._tables.append(table)
            self._odd.append(odd)
        else:
            self._records += records
            self._loose = self._loose or loose

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
        whole = self._tables[0] if len(self._tables) == 1 else np.concatenate(self._tables, axis=1)
        columns: Columns = dict(zip(self.plan.number_keys, whole, strict=True))
        marks: Marks = {}
        for place in sorted({place for odd in self._odd for place in odd}):
            key = self.plan.number_keys[place]
            mark = self._marks_of(place)
            if not mark.any():
                del columns[key]
            elif (mark > Mark.NUMBER).any():
                marks[key] = mark
        return columns, marks

    def _marks_of(self, place: int) -> MarkArray:
        """(n,) the marks of one column."""
        parts = zip(self._odd, self._tables, strict=True)
        return np.concatenate(
            [odd[place] if place in odd else np.full(table.shape[1], Mark.NUMBER, np.uint8) for odd, table in parts]
        )
