"""Rows with fewer or more fields than the header names: what of them can be kept.

A lone short row may have been torn: its last field may be a part of one and is left out. A lone long row is two that
ran into each other, and nothing of it is sure. Where rows of one length come again and again, that is how the table is
written: with its last columns left away, with new ones behind those that are named, or with a row's number before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from trainmon.tails.formats.csv_header import is_number
from trainmon.tails.steps import step_rank

_AGAIN: Final = 3  # rows of one length, and it is no accident
_MOST_COLUMNS: Final = 20_000
ROW_NUMBER: Final = "row"

TableRow = tuple[list[str], int, int]  # of a table: its fields, byte offset and line number


class Ragged:
    """The rows of one header that do not fit it. `names`: those of the columns so far.

    >>> ragged = Ragged(["step", "loss", "lr"])
    >>> ragged.short(["1", "2.5"]), ragged.short(["2", "2.25"]), ragged.short(["3", "2."])
    ((['1', '', ''], False), (['2', '', ''], False), (['3', '2.', ''], True))
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.waiting: list[TableRow] = []  # long ones, one after the other, until they are no accident
        self._short: dict[int, int] = {}

    def short(self, fields: list[str]) -> tuple[list[str], bool]:
        """A row of too few fields, filled up, and whether all that is there was kept."""
        count = len(fields)
        self._short[count] = self._short.get(count, 0) + 1
        is_whole = self._short[count] >= _AGAIN or not any(self.names[count:])
        kept = fields if is_whole else fields[:-1]
        return kept + [""] * (len(self.names) - len(kept)), is_whole

    def long(self, row: TableRow) -> list[str]:
        """Takes a row of too many fields into `waiting`; the names of all its columns once those are no accident."""
        if self.waiting and len(self.waiting[-1][0]) != len(row[0]):
            return []
        self.waiting.append(row)
        extra = len(row[0]) - len(self.names)
        if len(self.waiting) < _AGAIN or len(row[0]) > _MOST_COLUMNS:
            return []
        if extra == 1 and self._are_numbered():
            return [ROW_NUMBER, *self.names]
        return [*self.names, *(f"column_{len(self.names) + place}" for place in range(1, extra + 1))]

    def _are_numbered(self) -> bool:
        """Whether the rows that wait begin with a number or name of their own, before the columns that are named."""
        rows = [row for row, _, _ in self.waiting]
        steps = [place for place, name in enumerate(self.names) if step_rank(name) is not None]
        if steps:  # under its name stands a step only if the names are shifted by one
            return all(row[steps[0] + 1].isdigit() for row in rows) and not _is_step(rows, steps[0])
        first = [row[0] for row in rows]
        return not any(map(is_number, first)) or _counts(first)


def _is_step(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Whether the column stands for steps better than the one behind it."""
    here, behind = [row[place] for row in rows], [row[place + 1] for row in rows]
    return _counts(here) and not _rises(behind)


def _counts(fields: Sequence[str]) -> bool:
    return all(field.isdigit() for field in fields) and all(int(b) == int(a) + 1 for a, b in pairwise(fields))


def _rises(fields: Sequence[str]) -> bool:
    return all(field.isdigit() for field in fields) and all(int(b) > int(a) for a, b in pairwise(fields))
