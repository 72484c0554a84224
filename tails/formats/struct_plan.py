"""The fast way through JSON records: a msgspec Struct made from the keys seen, columns taken by attribute.

A plan accepts only records that the tolerant way would read the same: types narrow enough that anything else fails
to decode, unknown keys included.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from trainmon.tails.formats.builder import mark_of
from trainmon.tails.formats.cells import KeyTable, Kind, number_in
from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS
from trainmon.tails.formats.long_form import could_be_long_form
from trainmon.tails.formats.run_split import RunSplit
from trainmon.tails.formats.seen import Seen
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import FloatArray, Mark, MarkArray
from trainmon.tails.samples import SAMPLE_KEYS

_ABSENT = float("nan")  # told from every other NaN by identity
_FIELD_LIMIT = 1500
_DEPTH_LIMIT = 6
# Tokens that are not JSON, in the place of a value, become strings that read as the same number and that no log
# writes; if the place was inside a string, the quotes make the record fail, no more.
_TOKENS = tuple(
    (b":" + blank + token, b":" + blank + b'"\\t' + text + b'"')
    for token, text in ((b"NaN", b"nan"), (b"Infinity", b"inf"), (b"-Infinity", b"-inf"))
    for blank in (b" ", b"")
)
_NonFinite = Literal["\tnan", "\tinf", "\t-inf"]
_NON_FINITE = frozenset(get_args(_NonFinite))
_PREFIXES = lazy(r"[/\[]")

Columns = dict[str, FloatArray]
Marks = dict[str, MarkArray]
Getter = Callable[[Any], Any]


class UnfitError(ValueError):
    """The keys seen cannot be served by a plan."""


class StructPlan:
    """Decodes lines of records of the keys `seen`. Raises `UnfitError` when such records have no plan.

    `split`: what tells the runs of the file apart.
    """

    def __init__(self, seen: dict[str, Seen], table: KeyTable, split: RunSplit) -> None:
        if not seen or could_be_long_form(seen) or not SAMPLE_KEYS.isdisjoint(seen):  # samples are scored one by one
            raise UnfitError
        self._table = table
        self._numbers: list[tuple[str, Getter, bool]] = []
        self._nested: list[tuple[str, Getter]] = []
        self._ignored: list[Getter] = []
        self._texts: dict[str, tuple[Getter, bool]] = {}
        self._split = split
        self._run_texts: dict[str, Getter] = {}
        self._inner = False
        self._nulls = False
        self._texts_found = table.texts_found
        strict, loose = self._structs(seen, "", "", 0)
        self._check_keys()
        # Every field a number: rows become an array at once.
        self._plain = not (self._nested or self._ignored or self._inner or any(text for _, _, text in self._numbers))
        self._strict: msgspec.json.Decoder[Any] = msgspec.json.Decoder(strict)
        self._loose: msgspec.json.Decoder[Any] = msgspec.json.Decoder(loose)

    @property
    def is_outdated(self) -> bool:
        """Whether a key whose nulls the plan counts may have turned out to be text, whose nulls do not count."""
        return self._nulls and self._table.texts_found != self._texts_found

    def decode(self, lines: bytes) -> tuple[list[Any], bool]:
        """The records of whole lines, and whether they were decoded loosely. Raises msgspec.MsgspecError,
        UnicodeDecodeError or RecursionError when any of them is not of this plan."""
        try:
            return self._strict.decode_lines(lines), False
        except msgspec.DecodeError:
            if self._nested or (b"NaN" not in lines and b"Infinity" not in lines):
                raise
        for token, text in _TOKENS:
            lines = lines.replace(token, text)
        records = self._loose.decode_lines(lines)
        for getter in self._ignored:
            if any(value in _NON_FINITE for value in map(getter, records) if isinstance(value, str)):
                raise msgspec.ValidationError("a number where text was")
        return records, True

    def columns(self, records: list[Any], *, loose: bool) -> tuple[Columns, Marks]:
        """Raw key -> (n,) values, and the marks of those in which something that is no number was logged."""
        columns: Columns = {}
        marks: Marks = {}
        if self._plain:
            table = np.ascontiguousarray(_rows(records, len(self._numbers)).T)
            are_finite = [bool(np.isfinite(column).all()) for column in table]
            for (key, getter, _), column, is_finite in zip(self._numbers, table, are_finite, strict=True):
                if is_finite:
                    columns[key] = column
                else:
                    _put(columns, marks, key, list(map(getter, records)))
            return columns, marks
        for key, getter, textual in self._numbers:
            values = list(map(getter, records))
            if textual or (loose and str in set(map(type, values))):
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

    def words(self, records: list[Any], columns: Columns) -> dict[str, list[str | None] | FloatArray]:
        """What may tell the runs of the records apart, by key; `columns`: those of `records`."""
        wants = self._split.wants
        words: dict[str, list[str | None] | FloatArray] = {
            key: [value if isinstance(value, str) else None for value in map(getter, records)]
            for key, getter in self._run_texts.items()
            if wants(key, is_number=False)
        }
        return words | {key: column for key, column in columns.items() if wants(key, is_number=True)}

    def _structs(self, seen: dict[str, Seen], path: str, attributes: str, depth: int) -> tuple[type, type]:
        """The struct types for the keys of one level, narrow and with room for strings."""
        strict: list[tuple[str, Any, Any]] = []
        loose: list[tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        for index, (name, types) in enumerate(seen.items()):
            field = f"f{index}"
            names[field] = name
            place, key = attributes + field, path + name
            if types.only_inner and depth < _DEPTH_LIMIT and types.inner is not None:
                inner = self._structs(types.inner, key + "/", place + ".", depth + 1)
                self._inner = True
                strict.append((field, inner[0], inner[0]()))
                loose.append((field, inner[1], inner[1]()))
                continue
            narrow, wide = self._leaf(key, types, attrgetter(place), is_top=depth == 0)
            strict.append((field, narrow, _ABSENT))
            loose.append((field, wide, _ABSENT))
        return _struct(strict, names), _struct(loose, names)

    def _leaf(self, key: str, types: Seen, getter: Getter, *, is_top: bool) -> tuple[Any, Any]:
        kind = self._table.kinds.get(key)
        if is_top and types.text and (key in TYPE_KEYS or key in SPLIT_KEYS or stamp_order(key) is not None):
            self._texts[key] = (getter, kind is Kind.TEXT)
        if is_top and kind is Kind.TEXT and types.text and self._split.wants(key, is_number=False):
            self._run_texts[key] = getter
        mixed = (kind is Kind.TEXT and types.number) or (kind is Kind.NUMBER and types.truth)
        if types.listed or types.inner is not None or mixed or kind is None:
            self._nested.append((key, getter))
            return Any, Any
        if kind is Kind.TEXT:
            self._ignored.append(getter)
            return str | bool | None, str | bool | None
        self._numbers.append((key, getter, types.text))
        if kind is Kind.UNKNOWN:
            self._nulls = True
            return None, None
        wide: Any = float | str | None
        return (wide, wide) if types.text else (float | None, float | _NonFinite | None)

    def _check_keys(self) -> None:
        keys = [key for key, _, _ in self._numbers]
        wild = {key for key, _ in self._nested}
        if len(keys) + len(wild) > _FIELD_LIMIT or len(set(keys)) != len(keys):
            raise UnfitError
        for key in (*keys, *wild):
            if wild and any(key[: join.start()] in wild for join in _PREFIXES.finditer(key)):
                raise UnfitError

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


def _rows(records: list[Any], width: int) -> FloatArray:
    """(n, width) the fields of `records`, all of them numbers or None."""
    rows = map(msgspec.structs.astuple, records)
    try:
        return np.fromiter(chain.from_iterable(rows), np.float64, len(records) * width).reshape(-1, width)
    except TypeError:  # a None among them: slower, and NaN in its place
        return np.array(list(map(msgspec.structs.astuple, records)), np.float64)


def _struct(fields: list[tuple[str, Any, Any]], names: dict[str, str]) -> type:
    try:
        return msgspec.defstruct("Record", fields, rename=names, forbid_unknown_fields=True, gc=False, frozen=True)
    except ValueError as error:
        # msgspec has no fields named with quotes, backslashes, control characters or lone surrogates (a
        # UnicodeEncodeError is a ValueError too): such records are read one by one.
        raise UnfitError from error


def _is_text(value: str) -> bool:
    return number_in(value) is None


def _plain(value: Any) -> float | None:
    if isinstance(value, str):
        number = number_in(value)
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
        marks[index] = Mark.ABSENT if value is _ABSENT else mark_of(_plain(value))
    return marks
