"""Parquet tables (W&B history exports and the like), through pyarrow, which is imported when one is met."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.formats.bulk import Bulk
from trainmon.tails.formats.by_metric import stand_by_metric
from trainmon.tails.formats.csv_columns import column_of
from trainmon.tails.formats.csv_header import INDEX, Header, is_number
from trainmon.tails.formats.csv_long import pivot, places
from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS
from trainmon.tails.formats.records import RecordReader
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.formats.struct_plan import Columns, Marks
from trainmon.tails.record import Mark, Note, NoteKind, Parsed
from trainmon.tails.text import printable

_MAGIC = b"PAR1"
_HEAD_ROWS = 64
_NAME_LIMIT = 200
_UNNAMED_INDEX = "__index_level_0__"


class Parquet(DocumentFormat):
    """A table; a null is "not logged", a NaN was logged."""

    name = "parquet"
    samples: ClassVar[tuple[bytes, ...]] = (b"PAR1\x15\x04\x15\x10\x15\x14L\x15\x02\x15\x00",)

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """Whether the file begins with Parquet's magic."""
        return 0.99 if head.startswith(_MAGIC) else 0.0

    def parse(self, data: bytes) -> Parsed:
        """See `DocumentFormat`."""
        try:
            arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError:
            name = printable(self.source, _NAME_LIMIT)
            self.problem = f"{name}: reading parquet needs pyarrow: pip install 'trainmon[parquet]'"
            return self._only_note(self.problem)
        try:
            table = parquet.read_table(arrow.BufferReader(data))
        except (arrow.ArrowException, OSError, ValueError) as error:
            out = self._only_note(f"{self.source}: not a whole parquet file ({str(error).splitlines()[0][:120]})")
            out.unreadable = 1
            return out
        return self._read(table, arrow.types)

    def _read(self, table: Any, types: Any) -> Parsed:
        columns: Columns = {}
        marks: Marks = {}
        texts: dict[str, list[str | None]] = {}
        while any(types.is_struct(field.type) for field in table.schema):
            table = table.flatten()
        for name, field in _named(table):
            if types.is_integer(field.type) or types.is_floating(field.type) or types.is_decimal(field.type):
                made = _column(field)
                if made is not None:
                    columns[name] = made[0]
                    if made[1] is not None:
                        marks[name] = made[1]
            elif types.is_timestamp(field.type):
                columns[name] = _seconds(field)
            elif types.is_string(field.type) or types.is_large_string(field.type) or types.is_dictionary(field.type):
                words = field.to_pylist()
                if all(isinstance(word, str | None) for word in words):
                    _add_words(name, words, columns, marks, texts)
        columns.update(_counted_index(table, columns))
        metrics: list[str] = []  # of each row of a long table
        wide = columns
        columns, marks = _by_name(columns, marks, texts, metrics)
        reader = RecordReader(self.source)
        reader.trusts_steps = bool(metrics) and stand_by_metric(metrics)
        head = [
            {key: float(column[row]) for key, column in columns.items() if not np.isnan(column[row])}
            for row in range(min(_HEAD_ROWS, table.num_rows))
        ]
        for index, values in enumerate(head):
            if reader.chooser.consider(values, head[index + 1 : index + 1 + reader.chooser.LOOK_AHEAD], final=True):
                break
        rows = np.arange(table.num_rows, dtype=np.int64)
        offsets = np.zeros(len(rows), np.int64)
        wants = reader.split.wants
        words = {key: own for key, own in texts.items() if wants(key, is_number=False)}
        numbers = {key: column for key, column in columns.items() if key in wide and wants(key, is_number=True)}
        steps = columns.get(reader.chooser.key, np.full(len(rows), np.nan))
        placed = reader.place({**words, **numbers}, steps, offsets, rows + 1, final=True)
        kinds = (*TYPE_KEYS, *SPLIT_KEYS)
        texts = {key: own for key, own in texts.items() if key in kinds or stamp_order(key) is not None}
        Bulk(reader).add_columns(columns, marks, texts, offsets, rows + 1, None, placed)
        out = reader.take()
        out.lines = table.num_rows
        return out

    def _only_note(self, text: str) -> Parsed:
        return Parsed(notes=[Note(self.source, 0, 0, NoteKind.FILE, text)])


def _named(table: Any) -> list[tuple[str, Any]]:
    """The columns by name; of two of one name the first. A data frame's unnamed index is called one."""
    named: dict[str, Any] = {}
    for place, name in enumerate(table.column_names):
        is_unnamed = name == _UNNAMED_INDEX and INDEX not in table.column_names
        named.setdefault(INDEX if is_unnamed else name, table.column(place))
    return list(named.items())


def _add_words(
    name: str, words: list[str | None], columns: Columns, marks: Marks, texts: dict[str, list[str | None]]
) -> None:
    """Adds a column of texts: of numbers, where its first one is a number."""
    first = next((word for word in words if word), "")
    made = column_of([word or "" for word in words]) if is_number(first) else None
    if made is None:
        texts[name] = words
        return
    columns[name] = made[0]
    if made[1] is not None:
        marks[name] = made[1]


def _counted_index(table: Any, columns: Columns) -> Columns:
    """The index of a data frame that counts and has a name: the file holds where it begins and by how much it rises."""
    try:
        described = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
        for index in described:
            if isinstance(index, dict) and isinstance(index.get("name"), str) and index["name"] not in columns:
                start, stride = float(index["start"]), float(index["step"])
                return {index["name"]: start + stride * np.arange(table.num_rows, dtype=np.float64)}
    except (AttributeError, KeyError, TypeError, ValueError):
        pass  # another program's words under that key
    return {}


def _by_name(
    columns: Columns, marks: Marks, texts: dict[str, list[str | None]], metrics: list[str]
) -> tuple[Columns, Marks]:
    """The columns of a table in long form by the metrics that its rows name; those of any other table as they are.

    `metrics` is filled with what each row measures, of which run.
    """
    header = Header.of([*columns, *texts])
    if not header.long:
        return columns, marks
    kind, name, value = (header.names[at] if at >= 0 else "" for at in header.long)
    if value not in columns or name not in texts:
        return columns, marks
    kept = {header.names[at] for at in (*places(header), *header.runs)}
    runs = [header.names[at] for at in (*header.runs, *header.labels)]
    told = [own for key in (*runs, kind, name) if (own := texts.get(key, columns.get(key))) is not None]
    metrics += ["\t".join(map(str, row)) for row in zip(*told, strict=True)]
    named = pivot(texts.get(kind), texts[name], columns[value], marks.get(value))
    for key in texts.keys() - kept:
        del texts[key]  # words of a measurement, not of a run
    return {key: column for key, column in columns.items() if key in kept} | named[0], {
        key: mark for key, mark in marks.items() if key in kept
    } | named[1]


def _column(field: Any) -> tuple[np.ndarray, np.ndarray | None] | None:
    """(n,) float64 and the marks of values that are logged but no numbers; None when nothing was logged."""
    absent = np.asarray(field.is_null().combine_chunks().to_numpy(zero_copy_only=False), np.bool_)
    if absent.all():
        return None
    column = np.array(field.to_pylist(), np.float64)
    odd = ~absent & ~np.isfinite(column)
    if not odd.any():
        return column, None
    marks = np.where(absent, Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
    marks[odd & np.isnan(column)] = Mark.NAN
    marks[odd & (column > 0)] = Mark.POS_INF
    marks[odd & (column < 0)] = Mark.NEG_INF
    return column, marks


def _seconds(field: Any) -> np.ndarray:
    """(n,) seconds since the epoch of a column of time stamps."""
    nanoseconds = field.cast("timestamp[ns]").cast("int64").to_pylist()
    return np.array([np.nan if value is None else value / 1e9 for value in nanoseconds], np.float64)
