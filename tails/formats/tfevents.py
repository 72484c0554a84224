"""TensorBoard event files: scalars, simple or as tensors, one row a step."""

from __future__ import annotations

from bisect import bisect_left
from typing import ClassVar

from trainmon.tails.formats.base import FramedFormat
from trainmon.tails.formats.crc32c import crc_of
from trainmon.tails.formats.table import Table
from trainmon.tails.formats.tf_frames import HEADER, frames_of
from trainmon.tails.formats.tf_scan import EventScan, Rows
from trainmon.tails.record import Note, NoteKind, Parsed, TimeKind

STEP_KEY = "step"
_NOTES_LIMIT = 20
_ROWS = 4096


class TfEvents(FramedFormat):
    """Events of one file; values logged one after the other at the same step make one row.

    The newest row stays open until another step begins, or until the same bytes are given again with none behind
    them: then the writer is idle, and the row is given.
    """

    name = "tfevents"
    samples: ClassVar[tuple[bytes, ...]] = (
        bytes.fromhex("1800000000000000a37f4b2209000000c00b5ad6411a0d627261696e2e4576656e743a324ca9a464"),
    )

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._scan = EventScan()
        self._is_lost = False
        self._asked: tuple[int, int] | None = None
        self._damage_told = 0
        self._rows_read = 0
        self._step: float | None = None

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """Whether a framed event that names its version comes first."""
        if len(head) < HEADER or crc_of(head[:8]) != int.from_bytes(head[8:12], "little"):
            return 0.0
        return 0.99 if b"brain.Event:" in head[:64] else 0.7

    def feed_frames(self, data: bytes, offset: int) -> tuple[Parsed, int]:
        """See `FramedFormat`."""
        is_idle = self._asked == (offset, len(data))
        frames = frames_of(data, is_lost=self._is_lost)
        rows = self._scan.rows(data, frames)
        gives_all = is_idle or frames.is_lost or not rows
        count = len(rows) if gives_all else len(rows) - 1
        consumed = frames.end if gives_all else rows.places[count]
        self._is_lost = frames.is_lost if gives_all else False
        self._asked = (offset, len(data)) if consumed == 0 else None
        out = Parsed(records=count)
        self._tell_of_damage([at for at in (*frames.damaged, *rows.broken) if at < consumed], rows, offset, out)
        table = Table(self.source)
        for batch in self._scan.batches(rows, count, offset, self._rows_read + 1, _ROWS):
            table.add(batch, STEP_KEY, TimeKind.ABSOLUTE)
        self._rows_read += count
        self._step = rows.steps[count - 1] if count else self._step
        out.blocks = table.take()
        return out, consumed

    def _tell_of_damage(self, places: list[int], rows: Rows, offset: int, out: Parsed) -> None:
        out.unreadable = len(places)
        for place in sorted(places)[: max(0, _NOTES_LIMIT - self._damage_told)]:
            self._damage_told += 1
            text = "a damaged event was passed over"
            before = bisect_left(rows.places, place)
            step = rows.steps[before - 1] if before else self._step
            out.notes.append(Note(self.source, 0, offset + place, NoteKind.UNREADABLE, text, step))
