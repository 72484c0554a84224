"""Helpers of the tests of structured formats: what a reading holds, row by row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from trainmon.tails.formats.base import LineFormat
from trainmon.tails.record import Block, Mark, Parsed

Row = tuple[float | None, float | None, int, int, dict[str, tuple[float | str, Mark]]]


def rows_of(parsed: Parsed) -> list[Row]:
    """Each row: step, time, offset, line, and its logged cells; None for NaN, so that rows can be compared."""
    return [row for block in parsed.blocks for row in _rows(block)]


def _rows(block: Block) -> Iterable[Row]:
    marks = {key: block.mark_of(key).tolist() for key in block.columns}
    columns = {key: column.tolist() for key, column in block.columns.items()}
    for index in range(len(block)):
        cells: dict[str, tuple[float | str, Mark]] = {}
        for key, column in columns.items():
            mark = Mark(marks[key][index])
            if mark is not Mark.ABSENT:
                cells[key] = (repr(column[index]), mark)
        yield (
            _plain(float(block.steps[index])),
            _plain(float(block.times[index])),
            int(block.offsets[index]),
            int(block.lines[index]),
            cells,
        )


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def said(parsed: Parsed) -> dict[str, Any]:
    """All that a reading says, comparable. Rows of several runs in one file stand apart: each run has its own order."""
    runs: dict[str, list[Row]] = {}
    for block in parsed.blocks:
        runs.setdefault(block.run, []).extend(_rows(block))
    return {
        "rows": runs,
        "notes": sorted((note.line_no, note.offset, note.kind.value, note.text, note.step) for note in parsed.notes),
        "facts": [(fact.line_no, fact.key, repr(fact.value)) for fact in parsed.facts],
        "lines": parsed.lines,
        "records": parsed.records,
        "unreadable": parsed.unreadable,
    }


def read_lines(reader: LineFormat, data: bytes, cuts: Sequence[int] = ()) -> Parsed:
    """Feeds `data` in pieces that end after the line numbers `cuts`."""
    lines = data.splitlines(keepends=True) if b"\r" not in data else _split(data)
    out = Parsed()
    at, line_no = 0, 1
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(lines)}), len(lines)]
    for start, stop in pairwise(bounds):
        piece = b"".join(lines[start:stop])
        if piece:
            out.add(reader.feed(piece, at, line_no))
        at, line_no = at + len(piece), line_no + stop - start
    out.add(reader.finish())
    return out


def _split(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def column(parsed: Parsed, key: str) -> list[float]:
    """The logged numbers under `key`, in order."""
    return [
        value
        for block in parsed.blocks
        if key in block.columns
        for value, mark in zip(block.columns[key].tolist(), block.mark_of(key).tolist(), strict=True)
        if mark != Mark.ABSENT
    ]


def marks(parsed: Parsed, key: str) -> list[str]:
    """The names of the marks under `key`, in order, those that say "not logged" left out."""
    return [
        Mark(mark).name
        for block in parsed.blocks
        if key in block.columns
        for mark in block.mark_of(key).tolist()
        if mark != Mark.ABSENT
    ]


def steps(parsed: Parsed) -> list[float | None]:
    """The steps of all rows; None where there is none."""
    return [row[0] for row in rows_of(parsed)]


def by_run(parsed: Parsed) -> dict[str, Parsed]:
    """The reading of each run of the file, by its label."""
    labels = dict.fromkeys(block.run for block in parsed.blocks)
    return {label: Parsed([block for block in parsed.blocks if block.run == label]) for label in labels}
