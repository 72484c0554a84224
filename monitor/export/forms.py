"""How exported values are written: CSV, JSON lines, one JSON document, parquet."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from trainmon import version
from trainmon.monitor.document import dumps
from trainmon.tails.text import printable, table_cell

if TYPE_CHECKING:
    from trainmon.monitor.export.axis import Row


class ExportError(ValueError):
    """What cannot be exported so; the message says why."""


class Told:
    """What went wrong while values were read, for the document that is closed with it."""

    def __init__(self) -> None:
        self.problems: list[str] = []


class Out(Protocol):
    """Where rows go, or the names of signals where none was asked for."""

    def row(self, run: str, row: Row) -> None:
        """One row of values, `row` in the order of the columns."""

    def name(self, run: str, name: str) -> None:
        """One name that a run has."""


def number(value: float | None) -> str:
    """The shortest form that reads back the same; "" for a value that was not logged.

    >>> number(3.0), number(0.1), number(1e-05), number(float("nan")), number(None)
    ('3', '0.1', '1e-05', 'nan', '')
    """
    if value is None:
        return ""
    if math.isfinite(value) and value.is_integer() and abs(value) < 2**53:
        return str(int(value)) if value or math.copysign(1.0, value) > 0 else "-0"
    return repr(value)


@contextmanager
def opened(columns: Sequence[str], form: str, output: Path | None, told: Told) -> Iterator[Out]:
    """A place to write rows of `columns` to: ``csv``, ``jsonl``, ``json`` or ``parquet``, in `output` or on stdout.

    Raises ExportError for a form that cannot be written so, OSError where it cannot be opened.
    """
    if form == "parquet":
        with _parquet(columns, output) as out:
            yield out
        return
    if output is None:
        with _text(sys.stdout, columns, form, told) as text:
            yield text
        sys.stdout.flush()
        return
    with output.open("w", encoding="utf-8", newline="") as file, _text(file, columns, form, told) as text:
        yield text


@contextmanager
def _text(file: IO[str], columns: Sequence[str], form: str, told: Told) -> Iterator[Out]:
    if form == "json":
        document = _Document(file, columns)
        yield document
        document.close(told.problems)
    elif form == "jsonl":
        yield _JsonLines(file, columns)
    else:
        yield _Csv(file, columns)


class _Csv:
    """Numbers in the shortest form that reads back the same; names one a line, after a tab, for people."""

    def __init__(self, file: IO[str], columns: Sequence[str]) -> None:
        self._file, self._table = file, csv.writer(file, lineterminator="\n")
        if columns:
            self._table.writerow(["run", "attempt", "step", *map(table_cell, columns)])

    def row(self, run: str, row: Row) -> None:
        attempt, step, values = row
        self._table.writerow([table_cell(run), attempt, number(step), *map(number, values)])

    def name(self, run: str, name: str) -> None:
        self._file.write(f"{printable(run)}\t{printable(name)}\n")


class _JsonLines:
    """One object a row; a value that was not logged is left out."""

    def __init__(self, file: IO[str], columns: Sequence[str]) -> None:
        self._file, self._columns = file, columns

    def row(self, run: str, row: Row) -> None:
        attempt, step, values = row
        named = {name: value for name, value in zip(self._columns, values, strict=True) if value is not None}
        self._write({"run": run, "attempt": attempt, "step": step, **named})

    def name(self, run: str, name: str) -> None:
        self._write({"run": run, "name": name})

    def _write(self, entry: dict[str, object]) -> None:
        self._file.write(dumps(entry) + "\n")


class _Document(_JsonLines):
    """``trainmon.export/1``: rows and names are written as they come, so that no more than one is held."""

    def __init__(self, file: IO[str], columns: Sequence[str]) -> None:
        super().__init__(file, columns)
        begun = dumps({"schema": "trainmon.export/1", "version": version(), "columns": list(columns)})
        file.write(begun[:-1] + (', "rows": [' if columns else ', "names": ['))
        self._between, self._other = "", "names" if columns else "rows"

    def _write(self, entry: dict[str, object]) -> None:
        self._file.write(self._between + dumps(entry))
        self._between = ", "

    def close(self, problems: Sequence[str]) -> None:
        """Ends the document."""
        self._file.write("], " + dumps({self._other: [], "problems": list(problems)})[1:] + "\n")


class _Columns:
    """Kept until the end, as parquet is written by columns."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns: dict[str, list[object]] = {name: [] for name in ("run", "attempt", "step", *columns)}

    def row(self, run: str, row: Row) -> None:
        attempt, step, values = row
        for name, value in zip(self.columns, (run, attempt, step, *values), strict=True):
            self.columns[name].append(value)

    def name(self, run: str, name: str) -> None:
        """Names are not written so: `_parquet` asks for columns."""


@contextmanager
def _parquet(columns: Sequence[str], output: Path | None) -> Iterator[Out]:
    if output is None:
        raise ExportError("--format parquet is binary: name a file with --output")
    if not columns:
        raise ExportError("--format parquet wants --signal: a list of names is text")
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ExportError("--format parquet needs: pip install 'trainmon[parquet]'") from None
    kept = _Columns(columns)
    yield kept
    parquet.write_table(pa.table(kept.columns), output)
