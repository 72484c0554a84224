"""The fast way through JSON records: a msgspec Struct made from the keys seen, columns taken by attribute.

A plan accepts only records that the tolerant way would read the same: types narrow enough that anything else fails
to decode, unknown keys included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from trainmon.tails.formats.builder import mark_of
from trainmon.tails.formats.cells import KeyTable, Kind, number_in
from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS
from trainmon.tails.formats.long_form import could_be_long_form
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.record import FloatArray, Mark, MarkArray

_ABSENT = float("nan")  # told from every other NaN by identity
_FIELD_LIMIT = 1500
# Tokens that are not JSON, in the place of a value, become strings no log holds; if the place was inside a string, the
# quotes make the record fail, no more.
_TOKENS = re.compile(rb"(?<=[:,\[\s])(NaN|-?Infinity)(?=[\s,}\]])")
_NON_FINITE = {"\x01NaN": math.nan, "\x01Infinity": math.inf, "\x01-Infinity": -math.inf}
# "/" and "[" join the parts of nested keys.
_JOINS = re.compile(r"[/\[]")


@dataclass(slots=True)
class Seen:
    """Which JSON types the values of one key had."""

    number: bool = False
    text: bool = False
    truth: bool = False
    null: bool = False
    nested: bool = False

    def add(self, value: object) -> bool:
        """Takes in a value; whether that was news."""
        name = _type_name(value)
        if getattr(self, name):
            return False
        setattr(self, name, True)
        return True


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, int | float) else "nested"


Columns = dict[str, FloatArray]
Marks = dict[str, MarkArray]


class StructPlan:
    """Decodes lines of records of the keys `seen`; None from `make` when no plan can serve them."""

    def __init__(self, seen: dict[str, Seen], table: KeyTable) -> None:
        self._table = table
        strict: list[tuple[str, Any, Any]] = []
        loose: list[tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        self._numbers: list[tuple[str, Callable[[Any], Any], bool]] = []
        self._nested: list[tuple[str, Callable[[Any], Any]]] = []
        self._ignored: list[Callable[[Any], Any]] = []
        self._texts: dict[str, tuple[Callable[[Any], Any], bool]] = {}
        for index, (key, types) in enumerate(seen.items()):
            name = f"f{index}"
            names[name] = key
            getter = attrgetter(name)
            kind = table.kinds.get(key)
            if types.nested or (kind is Kind.TEXT and types.number) or (kind is Kind.NUMBER and types.truth):
                strict_type: Any = Any
                loose_type: Any = Any
                self._nested.append((key, getter))
            elif kind is Kind.TEXT:
                strict_type = loose_type = str | bool | None
                self._ignored.append(getter)
            elif kind is Kind.NUMBER:
                loose_type = float | str | None
                strict_type = loose_type if types.text else float | None
                self._numbers.append((key, getter, types.text))
            else:
                strict_type = loose_type = None
                self._numbers.append((key, getter, False))
            if types.text and (key in TYPE_KEYS or key in SPLIT_KEYS or stamp_order(key) is not None):
                self._texts[key] = (getter, kind is Kind.TEXT)
            strict.append((name, strict_type, _ABSENT))
            loose.append((name, loose_type, _ABSENT))
        self._strict = _decoder(strict, names)
        self._loose = self._strict if strict == loose else _decoder(loose, names)

    @classmethod
    def make(cls, seen: dict[str, Seen], table: KeyTable) -> StructPlan | None:
        """A plan for these keys, or None."""
        nested = {key for key, types in seen.items() if types.nested}
        joined = any(_JOINS.split(key)[0] in nested for key in seen if _JOINS.search(key))
        if not seen or len(seen) > _FIELD_LIMIT or joined or could_be_long_form(seen):
            return None
        return cls(seen, table)

    def decode(self, lines: bytes) -> tuple[list[Any], bool]:
        """The records of whole lines, and whether they were decoded loosely. Raises msgspec.MsgspecError,
        UnicodeDecodeError or RecursionError when any of them is not of this plan."""
        if b"NaN" not in lines and b"Infinity" not in lines:
            return self._strict.decode_lines(lines), False
        if self._nested:
            raise msgspec.ValidationError("tokens that are not JSON beside nested values")
        records = self._loose.decode_lines(_TOKENS.sub(rb'"\\u0001\1"', lines))
        for getter in self._ignored:
            if any(value in _NON_FINITE for value in map(getter, records) if isinstance(value, str)):
                raise msgspec.ValidationError("a number where text was")
        return records, True

    def columns(self, records: list[Any], *, loose: bool) -> tuple[Columns, Marks]:
        """Raw key -> (n,) values, and the marks of those in which something that is no number was logged."""
        columns: Columns = {}
        marks: Marks = {}
        for key, getter, textual in self._numbers:
            values = list(map(getter, records))
            if (loose or textual) and str in set(map(type, values)):
                values = [_plain(value) for value in values]
            _put(columns, marks, key, values)
        for key, getter in self._nested:
            self._flatten(key, list(map(getter, records)), columns, marks)
        return columns, marks

    def texts(self, records: list[Any]) -> dict[str, list[str | None]]:
        """The texts that say what a record is or when it was written, by key."""
        return {
            key: [value if isinstance(value, str) and (textual or _is_text(value)) else None for value in values]
            for key, (getter, textual) in self._texts.items()
            for values in (map(getter, records),)
        }

    def _flatten(self, key: str, values: list[Any], columns: Columns, marks: Marks) -> None:
        inner: dict[str, list[float | None]] = {}
        row = 0

        def put(name: str, value: float | None) -> None:
            cells = inner.get(name)
            if cells is None:
                cells = inner[name] = [_ABSENT] * len(values)
            cells[row] = value

        for row, value in enumerate(values):  # noqa: B007 - `put` reads it
            if value is not _ABSENT:
                self._table.flatten(key, value, put, None)
        for name, cells in inner.items():
            _put(columns, marks, name, cells)


def _decoder(fields: Iterable[tuple[str, Any, Any]], names: dict[str, str]) -> msgspec.json.Decoder[Any]:
    struct = msgspec.defstruct("Record", fields, rename=names, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(struct)


def _is_text(value: str) -> bool:
    return value not in _NON_FINITE and number_in(value) is None


def _plain(value: Any) -> float | None:
    if isinstance(value, str):
        number = _NON_FINITE[value] if value in _NON_FINITE else number_in(value)
        return _ABSENT if number is None else number
    result: float | None = value
    return result


def _put(columns: Columns, marks: Marks, key: str, values: list[float | None]) -> None:
    column = np.array(values, np.float64)
    odd = ~np.isfinite(column)
    count = int(odd.sum())
    if count:
        absent = values.count(_ABSENT)
        if absent == len(values):
            return
        if absent != count:
            marks[key] = _marks(values, odd)
    columns[key] = column


def _marks(values: list[float | None], odd: np.ndarray) -> MarkArray:
    marks = np.full(len(values), Mark.NUMBER, np.uint8)
    for index in np.flatnonzero(odd).tolist():
        value = values[index]
        marks[index] = Mark.ABSENT if value is _ABSENT else mark_of(value)
    return marks


