"""TensorBoard event files: scalars, simple or as tensors, one row a step."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.base import FramedFormat
from trainmon.tails.formats.crc32c import crc_of
from trainmon.tails.formats.stamps import epoch_seconds
from trainmon.tails.formats.table import Batch, Table
from trainmon.tails.formats.tf_counters import TagCounters
from trainmon.tails.formats.tf_frames import HEADER, frames_of
from trainmon.tails.formats.tf_scan import EventScan, Rows, marks_of
from trainmon.tails.formats.tf_stretch import Stretches
from trainmon.tails.record import Note, NoteKind, Parsed, TimeKind

STEP_KEY = "step"
_NOTES_LIMIT = 20
_ROWS = 4096
_WINDOW = 4096  # bytes that are read event by event before rows of one layout are looked for again


class TfEvents(FramedFormat):
    """Events of one file; values logged one after the other at the same step make one row.

    The newest row stays open until another step begins, or until the same bytes are given again with none behind
    them: then the writer is idle, and the row is given.
    """

    name = "tfevents"
    glimpse_every = 1
    samples: ClassVar[tuple[bytes, ...]] = (
        bytes.fromhex("1800000000000000a37f4b2209000000c00b5ad6411a0d627261696e2e4576656e743a324ca9a464"),
    )

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._scan = EventScan()
        self._stretches = Stretches()
        self._counters = TagCounters()
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
        raw = np.frombuffer(data, np.uint8)
        out, table = Parsed(), Table(self.source)
        at, window = 0, _WINDOW
        while at < len(data):
            skipped = 0 if self._is_lost else self._read_stretch(raw, at, offset, table)
            at += skipped
            stop = min(len(data), at + window)
            used = self._read_events(data[at:stop], offset + at, is_idle and stop - at == len(data), table, out)
            if not used and stop == len(data):
                break
            at += used
            window = _WINDOW if skipped > _WINDOW else 2 * window
        self._asked = (offset, len(data)) if not at else None
        out.blocks = table.take()
        out.records = sum(map(len, out.blocks))
        return out, at

    def glimpse(self, data: bytes, offset: int) -> Parsed:
        """See `FramedFormat`: the rows behind the first frame that begins in the piece."""
        self._is_lost = True
        return self.feed_frames(data, offset)[0]

    def _read_stretch(self, raw: NDArray[np.uint8], at: int, offset: int, table: Table) -> int:
        """Reads rows of one layout; returns their bytes."""
        found = self._stretches.find(raw, at)
        if found is None:
            return 0
        layout, rows = found
        size = len(layout.row)
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            values = {self._scan.tags[tag]: column for tag, column in layout.values_of(part).items()}
            place, every = at + start * size, np.arange(len(part), dtype=np.int64)
            marks = {key: marks_of(every, column, len(part)) for key, column in values.items()}
            self._add(
                Batch(
                    layout.steps_of(part),
                    epoch_seconds(layout.walls_of(part)),
                    offset + place + every * size,
                    self._rows_read + 1 + every,
                    values,
                    {key: mark for key, mark in marks.items() if mark is not None},
                ),
                table,
            )
        return rows.size

    def _read_events(self, data: bytes, offset: int, is_idle: bool, table: Table, out: Parsed) -> int:
        """Reads events one by one, all but the newest row; returns the bytes used up."""
        frames = frames_of(data, is_lost=self._is_lost)
        rows = self._scan.rows(data, frames)
        gives_all = is_idle or frames.is_lost or not rows
        count = len(rows) if gives_all else len(rows) - 1
        consumed = frames.end if gives_all else rows.places[count]
        self._is_lost = frames.is_lost if gives_all else False
        self._tell_of_damage([at for at in (*frames.damaged, *rows.broken) if at < consumed], rows, offset, out)
        for batch in self._scan.batches(rows, count, offset, self._rows_read + 1, _ROWS):
            self._add(batch, table)
        if count and count < len(rows):
            self._stretches.learn(data[rows.places[count - 1] : consumed], self._scan.tag_of)
        return consumed

    def _add(self, batch: Batch, table: Table) -> None:
        self._rows_read += len(batch)
        self._step = float(batch.steps[-1])
        table.add(replace(batch, steps=self._counters.own_steps(batch)), STEP_KEY, TimeKind.ABSOLUTE)

    def _tell_of_damage(self, places: list[int], rows: Rows, offset: int, out: Parsed) -> None:
        out.unreadable += len(places)
        for place in sorted(places)[: max(0, _NOTES_LIMIT - self._damage_told)]:
            self._damage_told += 1
            text = "a damaged event was passed over"
            before = bisect_left(rows.places, place)
            step = rows.steps[before - 1] if before else self._step
            out.notes.append(Note(self.source, 0, offset + place, NoteKind.UNREADABLE, text, step))
