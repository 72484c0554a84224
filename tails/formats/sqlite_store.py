"""Databases in which trackers keep metrics (Trackio, MLflow, home-made ones): SQLite, with what is still in its log."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, ClassVar, Final

from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.formats.line_index import Lines
from trainmon.tails.formats.long_form import NAME_KEYS, VALUE_KEYS
from trainmon.tails.formats.sqlite_wal import MAGIC, with_log
from trainmon.tails.record import NoteKind, Parsed
from trainmon.tails.steps import is_training_key, step_rank

_BATCH: Final = 4096
_MOST_ROWS: Final = 5_000_000
_MOST_COLUMNS: Final = 2000
_NAMES, _VALUES = frozenset(NAME_KEYS), frozenset(VALUE_KEYS)


class SqliteStore(DocumentFormat):
    """Tables with a step, and a metric a column, a name and a value, or all metrics of a step in JSON.

    A row is read as a JSON line of its columns would be; `companion`: what the log beside the database is called.
    """

    name = "sqlite"
    companion = "-wal"
    samples: ClassVar[tuple[bytes, ...]] = (MAGIC + b"\x10\x00\x01\x01\x00\x40\x20\x20",)

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """Whether the file begins as SQLite's do."""
        return 0.99 if head.startswith(MAGIC) else 0.0

    def joined(self, data: bytes, beside: bytes) -> bytes:
        """See `DocumentFormat`."""
        return with_log(data, beside)

    def parse(self, data: bytes) -> Parsed:
        """See `DocumentFormat`. What is damaged is told, and what could be read before it is kept."""
        reader = JsonLines(self.source)
        count = 0
        try:
            with closing(sqlite3.connect(":memory:")) as store:
                store.deserialize(with_log(data, b""))
                store.execute("PRAGMA trusted_schema = OFF")
                store.execute("PRAGMA query_only = ON")
                store.text_factory = _text
                for table, columns in _tables(store):
                    count = _read(reader, store, table, columns, count)
        except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError) as error:
            reader.reader.parsed.unreadable += 1
            reader.reader.note(NoteKind.UNREADABLE, f"not a whole database ({str(error)[:120]})", 0, 1)
        out = reader.finish()
        out.lines = count
        return out


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _tables(store: sqlite3.Connection) -> Iterator[tuple[str, list[str]]]:
    """The tables that hold metrics by step, and their columns. Summaries of others (``latest_metrics``) are none."""
    listed = store.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    for table, sql in listed:
        if not sql or str(sql).upper().startswith("CREATE VIRTUAL") or str(table).startswith(("sqlite_", "latest_")):
            continue
        columns = [str(row[1]) for row in store.execute(f"PRAGMA table_info({_quoted(table)})")][:_MOST_COLUMNS]
        names = {column.lower() for column in columns}
        has_step = any(step_rank(column) is not None for column in columns)
        is_long = not names.isdisjoint(_NAMES) and not names.isdisjoint(_VALUES)
        if has_step and (is_long or "metrics" in names or any(map(is_training_key, columns))):
            yield str(table), columns


def _quoted(name: str) -> str:
    return '"' + str(name).replace('"', '""') + '"'


def _read(reader: JsonLines, store: sqlite3.Connection, table: str, columns: list[str], count: int) -> int:
    """Reads a table row by row, in the order in which the rows were added; how many rows there were so far."""
    listed = ", ".join(map(_quoted, columns))
    rows = store.execute(f"SELECT {listed} FROM {_quoted(table)} LIMIT {_MOST_ROWS}")
    while batch := rows.fetchmany(_BATCH):
        lines = Lines(b"\n".join(_line(columns, row) for row in batch), 0, count + 1)
        reader.read_lines(lines)
        count += len(batch)
    return count


def _line(columns: list[str], row: tuple[Any, ...]) -> bytes:
    record = {column: value for column, value in zip(columns, row, strict=True) if not isinstance(value, bytes)}
    if record.pop("is_nan", None) and "value" in record:
        record["value"] = math.nan  # MLflow's way to keep it
    told = record.get("metrics")
    if isinstance(told, str) and told.lstrip().startswith("{"):
        del record["metrics"]
        try:
            metrics = json.loads(told)
        except (ValueError, RecursionError):
            metrics = {}
        record = {**metrics, **record} if isinstance(metrics, dict) else record
    record.pop("id", None)
    return json.dumps(record, default=str).encode()
