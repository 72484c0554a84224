"""The fast way through JSON records: a msgspec Struct made from the keys seen, columns taken by attribute.

A plan accepts only records that the tolerant way would read the same: types narrow enough that anything else fails
to decode, unknown keys included.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, auto
from itertools import chain, starmap
from operator import attrgetter
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from msgspec.structs import astuple

from trainmon.tails.formats.builder import mark_of
from trainmon.tails.formats.cells import KeyTable, Kind, number_in
from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS
from trainmon.tails.formats.long_form import could_be_long_form
from trainmon.tails.formats.run_split import RunSplit
from trainmon.tails.formats.seen import Seen, levels
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, Mark, MarkArray
from trainmon.tails.samples import SAMPLE_KEYS

_ABSENT = float("nan")  # told from every other NaN by identity
_FIELD_LIMIT = 1500
_DEPTH_LIMIT = 6
# Tokens that are not JSON, in the place of a value, become strings that read as the same number and that no log
# writes; if the place was inside a string, the quotes make the record fail, no more.
_TOKENS = {
    word: tuple(
        (b":" + blank + token, b":" + blank + b'"\\t' + text + b'"') for token, text in tokens for blank in (b" ", b"")
    )
    for word, tokens in (
        (b"NaN", ((b"NaN", b"nan"),)),
        (b"Infinity", ((b"Infinity", b"inf"), (b"-Infinity", b"-inf"))),
    )
}
_NonFinite = Literal["\tnan", "\tinf", "\t-inf"]
_NON_FINITE = frozenset(get_args(_NonFinite))
_PREFIXES = lazy(r"[/\[]")

Columns = dict[str, FloatArray]
Marks = dict[str, MarkArray]
Getter = Callable[[Any], Any]


class UnfitError(ValueError):
    """The keys seen cannot be served by a plan."""


class _Use(Enum):
    """What becomes of a field."""

    NUMBER = auto()
    NESTED = auto()  # anything: flattened record by record
    IGNORED = auto()


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A field that holds values; `is_textual`: strings too."""

    key: str
    use: _Use
    getter: Getter
    is_textual: bool = False


@dataclass(frozen=True, slots=True)
class _Level:
    """The fields of one struct type, in order; an object in a record is a level of its own."""

    fields: list[_Leaf | _Level]

    def leaves(self) -> Iterator[_Leaf]:
        """All of them, those of inner levels in their places."""
        for field in self.fields:
            if isinstance(field, _Leaf):
                yield field
            else:
                yield from field.leaves()

    def spread(self, records: Iterable[Any]) -> Iterator[tuple[_Leaf, tuple[Any, ...]]]:
        """Each leaf with its values (n,)."""
        for field, values in zip(self.fields, zip(*map(astuple, records), strict=True), strict=True):
            if isinstance(field, _Leaf):
                yield field, values
            else:
                yield from field.spread(values)


class StructPlan:
    """Decodes lines of records of the keys `seen`. Raises `UnfitError` when such records have no plan.

    `split`: what tells the runs of the file apart.
    """

    def __init__(self, seen: dict[str, Seen], table: KeyTable, split: RunSplit) -> None:
        has_samples = not SAMPLE_KEYS.isdisjoint(seen)  # they are scored one by one
        if not seen or has_samples or any(map(could_be_long_form, levels(seen))):
            raise UnfitError
        self._table = table
        self._texts: dict[str, tuple[Getter, bool]] = {}
        self._split = split
        self._run_texts: dict[str, Getter] = {}
        self._nulls = False
        self._texts_found = table.texts_found
        strict, loose, self._level = self._structs(seen, "", "", 0)
        leaves = list(self._level.leaves())
        self.number_keys = tuple(leaf.key for leaf in leaves if leaf.use is _Use.NUMBER)
        self._nested = tuple(leaf.key for leaf in leaves if leaf.use is _Use.NESTED)
        self._ignored = tuple(leaf.getter for leaf in leaves if leaf.use is _Use.IGNORED)
        self._check_keys()
        # Every field a number: rows become an array at once.
        self.is_plain = all(
            isinstance(field, _Leaf) and field.use is _Use.NUMBER and not field.is_textual
            for field in self._level.fields
        )
        self._pack = struct.Struct(f"{len(self.number_keys)}d").pack
        self._strict: msgspec.json.Decoder[Any] = msgspec.json.Decoder(strict)
        self._loose: msgspec.json.Decoder[Any] = msgspec.json.Decoder(loose)

    @property
    def is_outdated(self) -> bool:
        """Whether a key whose nulls the plan counts may have turned out to be text, whose nulls do not count."""
        return self._nulls and self._table.texts_found != self._texts_found

    def decode(self, lines: memoryview) -> tuple[list[Any], bool]:
        """The records of whole lines, and whether they were decoded loosely. Raises msgspec.MsgspecError,
        UnicodeDecodeError or RecursionError when any of them is not of this plan."""
        try:
            return self._strict.decode_lines(lines), False
        except msgspec.DecodeError:
            if self._nested:
                raise
            text = _with_strings(bytes(lines))
            if text is None:
                raise
        records = self._loose.decode_lines(text)
        for getter in self._ignored:
            if any(value in _NON_FINITE for value in map(getter, records) if isinstance(value, str)):
                raise msgspec.ValidationError("a number where text was")
        return records, True

    def packed(self, records: list[Any]) -> bytes | None:
        """The values of records of a plain plan for `table`; None where one is no number."""
        try:
            return b"".join(starmap(self._pack, map(astuple, records)))  # half of what numpy takes for it
        except struct.error:
            return None

    def table(self, packed: bytes) -> tuple[FloatArray, dict[int, MarkArray]]:
        """(keys, n) the values of packed records, NaN where a key is absent; and the marks (n,) of the columns in which
        something that is no number was logged, by place."""
        table = np.frombuffer(packed, np.float64).reshape(-1, len(self.number_keys)).T
        odd: dict[int, MarkArray] = {}
        infinite = np.isinf(table)
        if infinite.any():
            for place in np.flatnonzero(infinite.any(axis=1)).tolist():
                odd[place] = _marks(table[place].tolist(), infinite[place])
                odd[place][np.isnan(table[place])] = Mark.ABSENT  # no NaN is JSON
        return np.ascontiguousarray(table), odd

    def odd_table(self, records: list[Any]) -> tuple[FloatArray, dict[int, MarkArray]]:
        """The same of records with nulls, or with strings that are numbers."""
        table = np.ascontiguousarray(_odd_rows(records, len(self.number_keys)).T)
        are_finite = np.isfinite(table)
        odd: dict[int, MarkArray] = {}
        for place in np.flatnonzero(~are_finite.all(axis=1)).tolist():
            values = list(map(attrgetter(_field(place)), records))
            if values.count(_ABSENT) < int((~are_finite[place]).sum()):
                odd[place] = _marks(values, ~are_finite[place])
        return table, odd

    def columns(self, records: list[Any], *, loose: bool) -> tuple[Columns, Marks]:
        """Raw key -> (n,) values, and the marks of those in which something that is no number was logged."""
        columns: Columns = {}
        marks: Marks = {}
        nested: list[tuple[str, tuple[Any, ...]]] = []
        for leaf, values in self._level.spread(records):
            if leaf.use is _Use.NESTED:
                nested.append((leaf.key, values))
            elif leaf.use is _Use.NUMBER and (leaf.is_textual or (loose and str in set(map(type, values)))):
                _put(columns, marks, leaf.key, tuple(map(_plain, values)))
            elif leaf.use is _Use.NUMBER:
                _put(columns, marks, leaf.key, values)
        for key, values in nested:
            self._flatten(key, values, columns, marks)
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

    def _structs(self, seen: dict[str, Seen], path: str, attributes: str, depth: int) -> tuple[type, type, _Level]:
        """The struct types for the keys of one level, narrow and with room for strings, and what their fields are."""
        strict: list[tuple[str, Any, Any]] = []
        loose: list[tuple[str, Any, Any]] = []
        names: dict[str, str] = {}
        fields: list[_Leaf | _Level] = []
        for index, (name, types) in enumerate(seen.items()):
            field = _field(index)
            names[field] = name
            place, key = attributes + field, path + name
            if types.only_inner and depth < _DEPTH_LIMIT and types.inner is not None:
                inner = self._structs(types.inner, key + "/", place + ".", depth + 1)
                strict.append((field, inner[0], inner[0]()))
                loose.append((field, inner[1], inner[1]()))
                fields.append(inner[2])
                continue
            narrow, wide, leaf = self._leaf(key, types, attrgetter(place), is_top=depth == 0)
            strict.append((field, narrow, _ABSENT))
            loose.append((field, wide, _ABSENT))
            fields.append(leaf)
        return _struct(strict, names), _struct(loose, names), _Level(fields)

    def _leaf(self, key: str, types: Seen, getter: Getter, *, is_top: bool) -> tuple[Any, Any, _Leaf]:
        kind = self._table.kinds.get(key)
        if is_top and types.text and (key in TYPE_KEYS or key in SPLIT_KEYS or stamp_order(key) is not None):
            self._texts[key] = (getter, kind is Kind.TEXT)
        if is_top and kind is Kind.TEXT and types.text and self._split.wants(key, is_number=False):
            self._run_texts[key] = getter
        mixed = (kind is Kind.TEXT and types.number) or (kind is Kind.NUMBER and types.truth)
        if types.listed or types.inner is not None or mixed or kind is None or kind is Kind.MEASURED:
            return Any, Any, _Leaf(key, _Use.NESTED, getter)
        if kind is Kind.TEXT:
            return str | bool | None, str | bool | None, _Leaf(key, _Use.IGNORED, getter)
        number = _Leaf(key, _Use.NUMBER, getter, types.text)
        if kind is Kind.UNKNOWN:
            self._nulls = True
            return None, None, number
        wide: Any = float | str | None
        return (wide, wide, number) if types.text else (float | None, float | _NonFinite | None, number)

    def _check_keys(self) -> None:
        keys, wild = self.number_keys, set(self._nested)
        if len(keys) + len(wild) > _FIELD_LIMIT or len(set(keys)) != len(keys):
            raise UnfitError
        for key in (*keys, *wild):
            if wild and any(key[: join.start()] in wild for join in _PREFIXES.finditer(key)):
                raise UnfitError

    def _flatten(self, key: str, values: Sequence[Any], columns: Columns, marks: Marks) -> None:
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


def _with_strings(lines: bytes) -> bytes | None:
    """`lines` with strings in the place of tokens; None where there is none."""
    found = [word for word in _TOKENS if word in lines]
    for word in found:
        for token, text in _TOKENS[word]:
            lines = lines.replace(token, text)
    return lines if found else None


def _odd_rows(records: list[Any], width: int) -> FloatArray:
    """(n, width) the fields of `records`: numbers, None, or the strings that stand for tokens."""
    rows = map(astuple, records)
    try:
        return np.fromiter(chain.from_iterable(rows), np.float64, len(records) * width).reshape(-1, width)
    except TypeError:  # a None among them: slower, and NaN in its place
        return np.array(list(map(astuple, records)), np.float64)


def _struct(fields: list[tuple[str, Any, Any]], names: dict[str, str]) -> type:
    try:
        return msgspec.defstruct("Record", fields, rename=names, forbid_unknown_fields=True, gc=False, frozen=True)
    except ValueError as error:
        # msgspec has no fields named with quotes, backslashes, control characters or lone surrogates (a
        # UnicodeEncodeError is a ValueError too): such records are read one by one.
        raise UnfitError from error


def _field(index: int) -> str:
    return f"f{index}"


def _is_text(value: str) -> bool:
    return number_in(value) is None


def _plain(value: Any) -> float | None:
    if isinstance(value, str):
        number = number_in(value)
        return _ABSENT if number is None else number
    result: float | None = value
    return result


def _put(columns: Columns, marks: Marks, key: str, values: Sequence[float | None]) -> None:
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


def _marks(values: Sequence[float | None], odd: np.ndarray) -> MarkArray:
    marks = np.full(len(values), Mark.NUMBER, np.uint8)
    for index in np.flatnonzero(odd).tolist():
        value = values[index]
        marks[index] = Mark.ABSENT if value is _ABSENT else mark_of(_plain(value))
    return marks
