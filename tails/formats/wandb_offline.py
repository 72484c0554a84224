"""W&B's offline files (``run-*.wandb``): history, config, system metrics and the exit, without W&B's package."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

import numpy as np

from trainmon.tails.formats.base import FramedFormat
from trainmon.tails.formats.cells import KeyTable
from trainmon.tails.formats.config_facts import config_facts
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.formats.leveldb_log import BLOCK, read_log
from trainmon.tails.formats.line_index import Lines
from trainmon.tails.formats.protobuf_wire import WireError
from trainmon.tails.formats.wandb_lines import HistoryLines, json_line
from trainmon.tails.formats.wandb_record import WandbRecord, find_record, parse_record
from trainmon.tails.record import Fact, Note, NoteKind, Parsed, TimeKind

_MAGIC = b":W&B"
_HEADER_BYTES = 7
_NOTES_LIMIT = 20


class WandbOffline(FramedFormat):
    """Records of one run; history rows carry W&B's own step, or a better one the trainer logged."""

    name = "wandb"
    glimpse_every = BLOCK
    samples: ClassVar[tuple[bytes, ...]] = (b":W&B\xe1\xbe\x00",)

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._json = JsonLines(source)
        self.reader = self._json.reader
        self._history = HistoryLines()
        self._rows: list[bytes] = []
        self._places: list[tuple[int, int]] = []  # of each row: offset and number of its record
        self._records_read = 0
        self._damage_told = 0

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """Whether the file begins with W&B's magic."""
        return 0.99 if head.startswith(_MAGIC) else 0.0

    def feed_frames(self, data: bytes, offset: int) -> tuple[Parsed, int]:
        """See `FramedFormat`."""
        skipped = 0
        if offset < _HEADER_BYTES:
            skipped = _HEADER_BYTES - offset
            if len(data) < skipped:
                return Parsed(), 0
        log = read_log(data[skipped:], offset + skipped)
        damaged = deque(log.damaged)
        for place, record in log.records:
            while damaged and damaged[0] < place:
                self._tell_of_damage(damaged.popleft())
            self._records_read += 1
            try:
                self._read(record, place)
            except (WireError, IndexError):
                self._tell_of_damage(place)
        for place in damaged:
            self._tell_of_damage(place)
        self._read_rows()
        return self.reader.take(), skipped + log.end

    def glimpse(self, data: bytes, offset: int) -> Parsed:
        """See `FramedFormat`: the records that begin in the piece, which is the head of a block."""
        return self.feed_frames(data, offset)[0]

    def _read(self, data: bytes, place: int) -> None:
        kind, start, stop = find_record(data)
        if kind == "history":
            self._add_row(self._history.line(data, start, stop), place)
        elif kind:
            record = parse_record(kind, data, start, stop)
            if kind == "stats":
                values = {f"system.{key}": value for key, value in record.values.items()}
                self._add_row(json_line({**values, "_timestamp": record.time}), place)
            else:
                self._read_rows()
                self._read_event(record, place)

    def _add_row(self, line: bytes, place: int) -> None:
        self._rows.append(line)
        self._places.append((place, self._records_read))

    def _read_rows(self) -> None:
        """Reads the rows gathered so far: together, which is many times faster than one by one."""
        if self._rows:
            lines = Lines(b"\n".join(self._rows), 1, 1)
            lines.offsets, lines.numbers = np.array(self._places, np.int64).T.copy()
            self._rows, self._places = [], []
            self._json.read_lines(lines)

    def _read_event(self, record: WandbRecord, place: int) -> None:
        number = self._records_read
        if record.kind in ("config", "run"):
            values, texts = KeyTable().row(record.values)
            for key, value in config_facts(values, texts):
                self.reader.parsed.facts.append(Fact(self.source, number, key, value))
            if record.kind == "run":
                self._note(NoteKind.RESUMED if record.resumed else NoteKind.LAUNCH, record.name, place, record.time)
        elif record.kind == "exit":
            code = record.values["exit_code"]
            self._note(NoteKind.ERROR if code else NoteKind.FINISHED, f"exit code {code}", place)
        elif record.kind == "preempting":
            self._note(NoteKind.PREEMPTED, "the run told W&B that it is being preempted", place)

    def _note(self, kind: NoteKind, text: str, place: int, time: float | None = None) -> None:
        self.reader.note(kind, text, place, self._records_read)
        if time is not None:
            notes = self.reader.parsed.notes
            last = notes[-1]
            notes[-1] = Note(
                last.source, last.line_no, last.offset, last.kind, last.text, last.step, time, TimeKind.ABSOLUTE
            )

    def _tell_of_damage(self, place: int) -> None:
        self._read_rows()
        self.reader.parsed.unreadable += 1
        if self._damage_told < _NOTES_LIMIT:
            self._damage_told += 1
            self.reader.note(NoteKind.UNREADABLE, "a damaged record was passed over", place, self._records_read)
