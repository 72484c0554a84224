"""Helpers of the tests of stdout logs: a text read whole or in pieces, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmon.tails.formats.stdout import Stdout
from trainmon.tails.record import Parsed

Cell = float | str
Row = tuple[Cell, int, int, Cell, dict[str, Cell]]


def read(text: str | bytes, *, cuts: Sequence[int] = ()) -> Parsed:
    """`text` read to its end; `cuts` are indices of lines before which a new feed begins."""
    data = text.encode() if isinstance(text, str) else text
    lines = data.splitlines(keepends=True) if b"\r" not in data else data.split(b"\n")
    if b"\r" in data:
        lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    reader = Stdout("train.log")
    out = Parsed()
    offset, line_no, start = 0, 1, 0
    for end in [*sorted({cut % (len(lines) + 1) for cut in cuts}), len(lines)]:
        piece = b"".join(lines[start:end])
        if piece:
            out.add(reader.feed(piece, offset, line_no))
        offset, line_no, start = offset + len(piece), line_no + piece.count(b"\n"), end
    out.add(reader.finish())
    return out


def label(text: str | bytes) -> str:
    reader = Stdout("train.log")
    reader.feed(text.encode() if isinstance(text, str) else text, 0, 1)
    reader.finish()
    return reader.label


def rows(parsed: Parsed) -> list[Row]:
    """Every record: step, line, offset, time, and its logged cells. NaN is "nan", a logged null "null"."""
    out: list[Row] = []
    for block in parsed.blocks:
        marks = {key: block.mark_of(key) for key in block.columns}
        for at in range(len(block)):
            cells = {
                key: "null" if marks[key][at] == 5 else _cell(column[at])
                for key, column in sorted(block.columns.items())
                if marks[key][at]
            }
            out.append(
                (_cell(block.steps[at]), int(block.lines[at]), int(block.offsets[at]), _cell(block.times[at]), cells)
            )
    return out


def _cell(value: float) -> Cell:
    return "nan" if math.isnan(value) else float(value)


def values(parsed: Parsed, key: str) -> list[tuple[Cell, Cell]]:
    """Step and value of each logged cell of `key`."""
    return [(step, cells[key]) for step, _, _, _, cells in rows(parsed) if key in cells]


def fact(parsed: Parsed, key: str) -> float | str | None:
    """The newest value of a fact."""
    return next((fact.value for fact in reversed(parsed.facts) if fact.key == key), None)


def kinds(parsed: Parsed, *, teardown: bool | None = None) -> list[str]:
    return [note.kind.value for note in parsed.notes if teardown is None or note.teardown is teardown]


LOSSES = [3.25, 3.125, 3.0, 2.875]
EVERY_TEN = [(10.0 * at, loss) for at, loss in enumerate(LOSSES, 1)]


def lines(form: str) -> str:
    """`form` with each `step` and `loss` of `EVERY_TEN`, and its number as `at`."""
    return "".join(form.format(step=int(step), loss=loss, at=int(step) // 10) + "\n" for step, loss in EVERY_TEN)
