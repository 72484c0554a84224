"""Small formats, one for each base, so that tails are tested without the formats of the registry."""

from __future__ import annotations

import json
import re
import struct

from trainmon.tails.formats.base import DocumentFormat, Format, FramedFormat, LineFormat
from trainmon.tails.formats.builder import BlockBuilder
from trainmon.tails.record import Note, NoteKind, Parsed


class Pairs(LineFormat):
    """Lines `STEP LOSS`; a line `hold STEP LOSS` is held until `finish`, `error ...` is a note."""

    name = "pairs"

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.builder = BlockBuilder(source)
        self.held: list[tuple[list[bytes], int, int]] = []

    @classmethod
    def sniff(cls, head: bytes) -> float:
        return 0.0 if b"\0" in head[:64].strip(b"\0") else 0.5

    def feed(self, data: bytes, offset: int, line_no: int) -> Parsed:
        assert data.endswith((b"\n", b"\r"))
        out = Parsed()
        for raw in re.findall(rb"[^\r\n]*(?:\r\n|\n|\r)", data):
            fields = raw.split()
            if len(fields) == 3 and fields[0] == b"hold":
                self.held.append((fields[1:], offset, line_no))
            elif fields and fields[0] == b"error":
                out.notes.append(Note(self.source, line_no, offset, NoteKind.ERROR, raw.decode().strip()))
            else:
                self.record(fields, offset, line_no)
            offset += len(raw)
            line_no += raw.endswith(b"\n")
        out.lines = data.count(b"\n")
        out.records = len(self.builder)
        out.blocks = self.builder.take()
        return out

    def finish(self) -> Parsed:
        for fields, offset, line_no in self.held:
            self.record(fields, offset, line_no)
        self.held.clear()
        out = Parsed(records=len(self.builder))
        out.blocks = self.builder.take()
        return out

    def record(self, fields: list[bytes], offset: int, line_no: int) -> None:
        try:
            step, loss = map(float, fields)
        except ValueError:
            return
        self.builder.add({"loss": loss}, step=step, offset=offset, line_no=line_no, step_key="step")


class Words(Pairs):
    """A second line format, surest of a head that begins with `words`."""

    name = "words"

    @classmethod
    def sniff(cls, head: bytes) -> float:
        return 0.9 if b"words" in head else 0.0


class History(DocumentFormat):
    """`[[step, loss], ...]`."""

    name = "history"

    @classmethod
    def sniff(cls, head: bytes) -> float:
        return 0.8 if head.lstrip().startswith(b"[") else 0.0

    def parse(self, data: bytes) -> Parsed:
        builder = BlockBuilder(self.source)
        try:
            rows = json.loads(data)
        except ValueError:
            return Parsed(unreadable=1)
        for number, (step, loss) in enumerate(rows):
            builder.add({"loss": loss}, step=step, offset=0, line_no=number + 1, step_key="step")
        return Parsed(blocks=builder.take(), records=len(rows), lines=data.count(b"\n"))


class Frames(FramedFormat):
    """`FRMS`, then frames of a length byte and as many bytes: `STEP LOSS` in ASCII."""

    name = "frames"

    @classmethod
    def sniff(cls, head: bytes) -> float:
        return 1.0 if head.startswith(b"FRMS") else 0.0

    def feed_frames(self, data: bytes, offset: int) -> tuple[Parsed, int]:
        builder = BlockBuilder(self.source)
        place = 4 if offset == 0 else 0
        while place < len(data) and place + 1 + data[place] <= len(data):
            step, loss = map(float, data[place + 1 : place + 1 + data[place]].split())
            builder.add({"loss": loss}, step=step, offset=offset + place, line_no=0, step_key="step")
            place += 1 + data[place]
        return Parsed(records=len(builder), blocks=builder.take()), min(place, len(data))


def frame(step: int, loss: float) -> bytes:
    body = b"%d %g" % (step, loss)
    return struct.pack("B", len(body)) + body


def detect(head: bytes, source: str) -> Format | None:
    best = max((Frames, History, Words, Pairs), key=lambda cls: cls.sniff(head))
    return best(source) if best.sniff(head) > 0 else None
