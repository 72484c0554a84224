"""Fields of a table's columns to numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from trainmon.tails.formats.builder import mark_of
from trainmon.tails.formats.numbers import c_runtime_number
from trainmon.tails.record import FloatArray, Mark, MarkArray

_NULLS = frozenset(("None", "null", "NULL", "none", "<NA>", "NA", "N/A", "n/a", "#N/A"))
_ABSENT = frozenset(("-", "--", "—", "."))  # how tables fill a cell that has no value
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_POINTS_BETWEEN_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:[.'\s]\d{3})+,\d+")
_MINUS = "\N{MINUS SIGN}"
_BETWEEN = re.compile(r"[.'\s]")

SAYS_NOTHING = frozenset(("", *_NULLS, *_ABSENT))

# (n,) values of a column, their marks where something that is no number was logged, and the rows that hold words.
Column = tuple[FloatArray, MarkArray | None, list[int]]


def number_of(text: str, *, decimal_comma: bool = True) -> float | None:
    """The number in a field. Raises ValueError when there is none; None is a logged null.

    `decimal_comma`: whether ``1,000`` is one; where commas stand between the fields it is a thousand.

    >>> number_of("3,5"), number_of("None"), number_of("-nan(ind)"), number_of("1.234,5"), number_of("12,345.5")
    (3.5, None, nan, 1234.5, 12345.5)
    >>> number_of("1,000"), number_of("1,000", decimal_comma=False)
    (1.0, 1000.0)
    """
    try:
        return float(text)
    except ValueError:
        if text in _NULLS:
            return None
        if _MINUS in text:
            return number_of(text.replace(_MINUS, "-"), decimal_comma=decimal_comma)
        if "," in text:
            return _with_commas(text, decimal_comma=decimal_comma)
        if (odd := c_runtime_number(text)) is not None:
            return odd
        raise


def _with_commas(text: str, *, decimal_comma: bool) -> float:
    is_sure = not decimal_comma or text.count(",") > 1 or "." in text
    if is_sure and _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    if _POINTS_BETWEEN_THOUSANDS.fullmatch(text):
        text = _BETWEEN.sub("", text)
    if "." in text:
        raise ValueError(text)
    return float(text.replace(",", "."))


def column_of(fields: Sequence[str], *, decimal_comma: bool = True) -> Column | None:
    """The numbers of a column's fields.

    Empty fields and texts are "not logged"; None when nothing was. `decimal_comma`: as for `number_of`.
    """
    try:
        column = np.array([field or "nan" for field in fields], np.float64)
    except ValueError:
        return _one_by_one(fields, decimal_comma=decimal_comma)
    odd = ~np.isfinite(column)
    if not odd.any():
        return column, None, []
    places = np.flatnonzero(odd).tolist()
    logged = [place for place in places if fields[place]]
    if not logged:
        return None if len(places) == len(fields) else (column, None, [])
    return column, _marks(column, {place: mark_of(float(column[place])) for place in logged}), []


def _one_by_one(fields: Sequence[str], *, decimal_comma: bool) -> Column | None:
    column = np.full(len(fields), math.nan)
    odd: dict[int, Mark] = {}
    words: list[int] = []
    found = False
    for index, field in enumerate(fields):
        if not field or field in _ABSENT:
            continue
        try:
            number = number_of(field.removesuffix("%"), decimal_comma=decimal_comma)
        except ValueError:
            words.append(index)
            continue
        found = True
        if number is not None:
            column[index] = number
        if number is None or not math.isfinite(number):
            odd[index] = mark_of(number)
    if not found and not words:
        return None
    return column, _marks(column, odd) if odd else None, words


def _marks(column: FloatArray, odd: dict[int, Mark]) -> MarkArray:
    marks = np.where(np.isnan(column), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
    for place, mark in odd.items():
        marks[place] = mark
    return marks
