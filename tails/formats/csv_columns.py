"""Fields of a table's columns to numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trainmon.tails.formats.builder import mark_of
from trainmon.tails.formats.numbers import c_runtime_number
from trainmon.tails.record import FloatArray, Mark, MarkArray

_NULLS = frozenset(("None", "null", "NULL", "none", "<NA>"))


def number_of(text: str) -> float | None:
    """The number in a field, a decimal comma allowed. Raises ValueError when there is none; None is a logged null.

    >>> number_of("3,5"), number_of("None"), number_of("-nan(ind)")
    (3.5, None, nan)
    """
    try:
        return float(text)
    except ValueError:
        if text in _NULLS:
            return None
        if text.count(",") == 1 and "." not in text:
            return float(text.replace(",", "."))
        if (odd := c_runtime_number(text)) is not None:
            return odd
        raise


def column_of(fields: Sequence[str]) -> tuple[FloatArray, MarkArray | None] | None:
    """(n,) values of a column's fields and their marks where something that is no number was logged.

    Empty fields and texts are "not logged"; None when nothing was.
    """
    try:
        column = np.array([field or "nan" for field in fields], np.float64)
    except ValueError:
        return _one_by_one(fields)
    odd = ~np.isfinite(column)
    if not odd.any():
        return column, None
    places = np.flatnonzero(odd).tolist()
    logged = [place for place in places if fields[place]]
    if not logged:
        return None if len(places) == len(fields) else (column, None)
    return column, _marks(column, {place: mark_of(float(column[place])) for place in logged})


def _one_by_one(fields: Sequence[str]) -> tuple[FloatArray, MarkArray | None] | None:
    column = np.full(len(fields), math.nan)
    odd: dict[int, Mark] = {}
    found = False
    for index, field in enumerate(fields):
        if not field:
            continue
        try:
            number = number_of(field)
        except ValueError:
            continue
        found = True
        if number is not None:
            column[index] = number
        if number is None or not math.isfinite(number):
            odd[index] = mark_of(number)
    if not found:
        return None
    return column, _marks(column, odd) if odd else None


def _marks(column: FloatArray, odd: dict[int, Mark]) -> MarkArray:
    marks = np.where(np.isnan(column), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
    for place, mark in odd.items():
        marks[place] = mark
    return marks
