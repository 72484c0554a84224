"""A log read as the program reads it, and what must hold of any reading."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tests.tails.formats.structured import said
from trainmon.tails.formats import registry
from trainmon.tails.formats.base import DocumentFormat, Format, LineFormat
from trainmon.tails.ingest import Ingest
from trainmon.tails.logpane import LogPane
from trainmon.tails.record import Mark, Parsed
from trainmon.tails.text import printable

__all__ = ["always", "holds_together", "read", "said"]

NOTE_LIMIT = 500


def always(data: bytes) -> Callable[[bytes, str], Format | None]:
    """A detection that gives, whatever has come so far, the format of the whole of `data`; text when it has none."""
    found = registry.detect(data[: 1 << 16], "log")
    cls = type(found) if found is not None else registry.format_class("stdout")

    def detect(_head: bytes, source: str) -> Format | None:
        return cls(source)

    return detect


def read(
    pieces: Sequence[bytes], detect: Callable[[bytes, str], Format | None] = registry.detect
) -> tuple[Parsed, Ingest]:
    """All that comes of the pieces, the end included."""
    pane = LogPane("log", 100)
    ingest = Ingest("log", detect, pane)
    out = Parsed()
    for piece in pieces:
        out.add(ingest.feed(piece, is_at_end=False))
    out.add(ingest.finish(is_final=True))
    if isinstance(ingest.format, DocumentFormat):
        out.add(ingest.format.parse(b"".join(pieces)))
    assert all(line.text == printable(line.text, 1 << 30) for line in pane.lines), "an unprintable line in the pane"
    return out, ingest


def holds_together(parsed: Parsed, ingest: Ingest, data: bytes) -> None:
    """Counts agree with what is there; places lie inside the log; what was not logged is no number."""
    newlines = data.count(b"\n")
    for block in parsed.blocks:
        size = len(block)
        assert size == len(block.times) == len(block.offsets) == len(block.lines) > 0
        assert all(len(column) == size for column in block.columns.values())
        assert not size or (0 <= block.offsets.min() <= block.offsets.max() <= len(data))
        for key, column in block.columns.items():
            marks = block.mark_of(key)
            logged = marks == Mark.NUMBER
            assert all(map(math.isfinite, column[logged].tolist())), (key, column, marks)
            assert all(map(math.isnan, column[(marks == Mark.ABSENT) | (marks == Mark.NULL)].tolist())), key
        if isinstance(ingest.format, LineFormat):
            assert 1 <= block.lines.min() <= block.lines.max() <= newlines + 1
    assert parsed.records == sum(len(block) for block in parsed.blocks)
    assert parsed.unreadable >= 0
    if isinstance(ingest.format, LineFormat):
        assert ingest.splitter.lines == newlines + (
            not data.endswith(b"\n") and bool(data.replace(b"\0", b"").split(b"\n")[-1])
        )
        assert parsed.unreadable <= newlines + 1 + data.count(b"\r")
    for note in parsed.notes:
        assert len(note.text) <= NOTE_LIMIT
        assert 0 <= note.line_no <= newlines + 1
        assert note.step is None or not math.isinf(note.step), note
    for fact in parsed.facts:
        assert isinstance(fact.value, str) or not math.isnan(fact.value), fact
