"""Tables and JSON lines whose newest row stands on top, as exports and dashboards write them: read from the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from trainmon.tails.formats.base import DocumentFormat, LineFormat
from trainmon.tails.formats.cells import as_float
from trainmon.tails.formats.json_text import objects_in
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.record import Parsed
from trainmon.tails.steps import falls, ranked_step_keys

if TYPE_CHECKING:
    from trainmon.tails.formats.csv_table import CsvTable

_BOM = b"\xef\xbb\xbf"
_FEWEST = 5  # steps that fall one after another from the top on
_SNIFFED = 200


class NewestFirst(DocumentFormat):
    """Such a file grows at its top, so it is written anew whenever it grows."""

    name = "newest first"
    samples: ClassVar[tuple[bytes, ...]] = (
        b"step,loss\n60,2.0\n50,2.1\n40,2.2\n30,2.3\n20,2.4\n10,2.5\n",
        b"".join(b'{"step": %d, "loss": 2.5}\n' % step for step in range(60, 0, -10)),
    )

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """Surer than the format of the rows where all of their steps fall."""
        lines = head[: head.rfind(b"\n") + 1].split(b"\n")[:_SNIFFED]
        steps = [step for step in _steps(lines, _first_row(lines)) if not math.isnan(step)]
        changes = [after - before for before, after in pairwise(steps) if after != before]
        if len(changes) < _FEWEST or any(change > 0 for change in changes[:_FEWEST]) or not falls(steps):
            return 0.0
        inner = _inner(lines).sniff(head)
        return inner + 0.01 if inner else 0.0

    def parse(self, data: bytes) -> Parsed:
        """Reads the rows from the last to the first."""
        lines = data.splitlines(keepends=True)
        first = _first_row(lines)
        reader: LineFormat = _inner(lines)(self.source)
        quoted = b'"' in data and any(line.count(b'"') % 2 for line in lines)  # a row may be of several lines
        out = Parsed()
        if quoted or not falls([step for step in _steps(lines, first) if not math.isnan(step)]):
            out.add(reader.feed(data, 0, 1))
            out.add(reader.finish())
            return out
        order = [*range(first), *range(len(lines) - 1, first - 1, -1)]
        turned = [lines[at] if lines[at].endswith(b"\n") else lines[at] + b"\n" for at in order]
        out.add(reader.feed(b"".join(turned), 0, 1))
        out.add(reader.finish())
        starts = np.cumsum([0, *map(len, lines)])[:-1]
        numbers = np.array([0, *order]) + 1  # of each line as it was read, the line that it is
        for place, block in enumerate(out.blocks):
            at = numbers[np.clip(block.lines, 0, len(order))]
            out.blocks[place] = replace(block, lines=at, offsets=starts[np.clip(at - 1, 0, None)])
        out.notes = [replace(note, line_no=int(numbers[min(note.line_no, len(order))])) for note in out.notes]
        return out


def _inner(lines: Sequence[bytes]) -> type[CsvTable] | type[JsonLines]:
    first = next((line for line in lines if line.strip()), b"").removeprefix(_BOM)
    if first.lstrip()[:1] == b"{":
        return JsonLines
    from trainmon.tails.formats.csv_table import CsvTable  # for tables: a tenth of all that a short command loads

    return CsvTable


def _first_row(lines: Sequence[bytes]) -> int:
    """The index of the first line that is no comment and no header."""
    if _inner(lines) is JsonLines:
        return 0
    from trainmon.tails.formats.csv_text import is_comment

    for at, line in enumerate(lines):
        text = line.decode("utf-8", "replace").strip()
        if text and not is_comment(text):
            return at + 1
    return len(lines)


def _steps(lines: Sequence[bytes], first: int) -> list[float]:
    """The step of each row from `first` on; NaN where it has none."""
    if _inner(lines) is JsonLines:
        return _steps_of_objects(lines)
    if not first:
        return []
    from trainmon.tails.formats.csv_text import best_delimiter, split

    header = lines[first - 1].removeprefix(_BOM).decode("utf-8", "replace").strip("\r\n\x00 #")
    delimiter = best_delimiter(header)
    names = split(header, delimiter)
    keys = ranked_step_keys(names)
    if not keys or len(names) < 2:
        return []
    at = names.index(keys[0])
    return [_number(split(line.decode("utf-8", "replace").strip("\r\n\x00 "), delimiter), at) for line in lines[first:]]


def _steps_of_objects(lines: Sequence[bytes]) -> list[float]:
    key = ""
    steps = []
    for line in lines:
        for _, record in objects_in(line)[0][:1]:
            key = key or next(iter(ranked_step_keys(record)), "")
            step = record.get(key)
            steps.append(as_float(step) if isinstance(step, int | float) and step is not True else math.nan)
    return steps


def _number(fields: list[str], at: int) -> float:
    from trainmon.tails.formats.csv_columns import number_of

    try:
        found = number_of(fields[at]) if at < len(fields) else None
    except ValueError:
        return math.nan
    return math.nan if found is None else found
