"""Standard output of trainers: the net under all formats. Sends each line to the dialect that knows it.

Most lines of such a log are noise. So a chunk is searched for a few words at C speed, and only lines that hold one
are looked at; a line whose shape was read before costs one match (`templates`); only new shapes are taken apart.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from trainmon.tails import facts, notes
from trainmon.tails.formats.base import LineFormat
from trainmon.tails.formats.dialects import DIALECTS
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.prefix import NO_PREFIX, Prefix, read_prefix
from trainmon.tails.record import Note, NoteKind, Parsed
from trainmon.tails.text import strip_escapes

_METRIC_TOKENS: tuple[bytes, ...] = tuple(dict.fromkeys(token for dialect in DIALECTS for token in dialect.tokens))
_MAX_LINE = 1 << 20
_HEAD = 1 << 16
_PIECE = 1 << 18
_GLUED = "slurmstepd: error:"  # written by another process into the middle of a line
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_MAX_DULL = 8192
_SNIFF = 0.1
_TEXT_SHARE = 0.85


class Stdout(LineFormat):
    """Lines of text. `label` is the dialect that gave most records."""

    name = "stdout"
    samples = tuple(sample for dialect in DIALECTS for sample in dialect.samples)

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._sink = Sink(source)
        self._dialects = [cls() for cls in DIALECTS]
        self._multi_line = self._dialects[0]
        self._dull: set[bytes] = set()  # shapes of lines that hold a word of interest and are no record
        self._notes = notes.NoteScanner(source)
        self._line_prefix: tuple[int, Prefix] = (-1, NO_PREFIX)

    @classmethod
    def sniff(cls, head: bytes) -> float:
        if not head.strip():
            return 0.0
        values = np.frombuffer(head, np.uint8)
        odd = int(np.count_nonzero((values < 32) & (values != 0) & ((values < 7) | ((values > 13) & (values != 27)))))
        nul = int(np.count_nonzero(values == 0))
        if odd > len(values) * (1 - _TEXT_SHARE) / 5 or nul > len(values) * 0.9:
            return 0.0
        text = head.decode("utf-8", "replace")
        return 0.0 if text.count("\ufffd") > len(text) * (1 - _TEXT_SHARE) else _SNIFF

    @property
    def label(self) -> str:
        named = self._sink.dialects.most_common(1)
        return named[0][0] if named else self.name

    def feed(self, data: bytes, offset: int, line_no: int) -> Parsed:
        start = 0
        while start < len(data):
            end = start + _PIECE
            if end < len(data):
                cut = max(data.rfind(b"\n", start, end), data.rfind(b"\r", start, end))
                if cut < 0:
                    ends = [place for place in (data.find(b"\n", end), data.find(b"\r", end)) if place >= 0]
                    cut = min(ends, default=len(data) - 1)
                end = cut + 1
            piece = data[start:end]
            self._piece(piece, offset + start, line_no)
            line_no += piece.count(b"\n")
            start = end
        parsed = self._sink.take()
        parsed.lines = data.count(b"\n")
        return parsed

    def finish(self) -> Parsed:
        for dialect in self._dialects:
            dialect.flush(self._sink)
        self._sink.release()
        for note in self._notes.flush(self._sink.step):
            self._sink.note(note)
        return self._sink.take()

    def _piece(self, data: bytes, offset: int, line_no: int) -> None:
        """Looks at the lines of `data` that hold a word of interest, or all while something is open."""
        values = np.frombuffer(data, np.uint8)
        breaks = np.flatnonzero((values == 10) | (values == 13))
        ends: list[int] = breaks.tolist()
        if not ends or ends[-1] != len(data) - 1:
            ends.append(len(data))
        numbers: list[int] = (np.cumsum(values[breaks] == 10) + line_no).tolist()
        low = data.lower()
        metric = _hits(low, _METRIC_TOKENS, ends)
        noteworthy = _hits(low, notes.TOKENS, ends)
        factual = _hits(low, facts.TOKENS, ends)
        wanted = sorted(metric | noteworthy | factual)
        at = 0
        index = 0
        while True:
            is_open = self._notes.is_open or self._is_open
            if not is_open:
                while at < len(wanted) and wanted[at] < index:
                    at += 1
                if at >= len(wanted):
                    return
                index = wanted[at]
            if index >= len(ends):
                return
            begin = ends[index - 1] + 1 if index else 0
            number = numbers[index - 1] if index else line_no
            raw = data[begin : ends[index]]
            if raw:
                self._line(
                    raw, offset + begin, number, index in metric, is_open or index in noteworthy, index in factual
                )
            index += 1

    def _line(
        self, raw: bytes, offset: int, line_no: int, is_metric: bool, is_noteworthy: bool, is_factual: bool
    ) -> None:
        if len(raw) > _MAX_LINE:
            head = raw[:_HEAD].decode("utf-8", "replace")
            self._sink.note(Note(self.source, line_no, offset, NoteKind.UNREADABLE, head[:500], self._sink.step))
            self._sink.unreadable += 1
            raw = raw[:_HEAD]
        shape = b""
        if is_metric and not is_noteworthy and not is_factual:
            shape = raw.translate(_DIGITS)
            if shape in self._dull and not self._is_open:
                return
        text = raw.decode("utf-8", "replace")
        if "\0" in text:
            text = text.replace("\0", "")
        text = strip_escapes(text)
        glued = text.find(_GLUED, 1)
        if glued > 0:
            self._text(text[:glued], offset, line_no, is_metric, is_noteworthy, is_factual)
            text = text[glued:]
        is_record = self._text(text, offset, line_no, is_metric, is_noteworthy, is_factual)
        if shape and not is_record and not self._is_open:
            if len(self._dull) >= _MAX_DULL:
                self._dull.clear()
            self._dull.add(shape)

    def _text(
        self, text: str, offset: int, line_no: int, is_metric: bool, is_noteworthy: bool, is_factual: bool
    ) -> bool:
        """Reads one line's text; whether it was a record or a bar."""
        prefix = read_prefix(text)
        line_number, line_prefix = self._line_prefix
        if prefix.time is None and line_number == line_no and line_prefix.time is not None:
            prefix = _dated(prefix, line_prefix)
        self._line_prefix = (line_no, prefix)
        line = Line(text[prefix.at :], offset, line_no, prefix)
        self._sink.was_templated = False
        is_record = False
        if is_metric or self._is_open:
            had_records = self._sink.has_records
            is_record, line = self._records(line)
            if self._sink.has_records and not had_records:
                self._dull.clear()  # what is taken for a record depends on whether there were any
        if is_factual and not is_record:
            for key, value in facts.facts_of(line.text):
                self._sink.fact(key, value, line_no)
        if is_noteworthy and not self._sink.was_templated:
            for note in self._notes.scan(line.text, line.prefix, line_no, offset, self._sink.step):
                self._sink.note(note)
        return is_record

    @property
    def _is_open(self) -> bool:
        """Whether a record of several lines is begun."""
        return self._multi_line.is_open

    def _records(self, line: Line) -> tuple[bool, Line]:
        """Whether `line` was read as a record; and what of it is left to be read as words."""
        sink = self._sink
        is_read = False
        while True:
            sink.rest = None
            if not self._is_open:
                reading = sink.templates.read(line.text)
                if reading is not None:
                    sink.was_templated = True
                    sink.emit(reading, line)
                    return True, line
            sink.was_templated = False
            is_record = any(dialect.read(line, sink) for dialect in self._dialects)
            is_read = is_read or is_record
            if not is_record or sink.rest is None:
                return is_read, line
            rest: Line = sink.rest
            prefix = read_prefix(rest.text)
            if line.prefix.time is not None:
                prefix = _dated(prefix, line.prefix)
            line = Line(rest.text[prefix.at :], rest.offset, rest.line_no, prefix)


def _dated(prefix: Prefix, other: Prefix) -> Prefix:
    """`prefix` with the time of `other`, and its rank where it has none of its own."""
    return Prefix(prefix.at, prefix.rank or other.rank, other.time, other.time_kind, other.is_clock, prefix.is_warning)


def _hits(low: bytes, tokens: tuple[bytes, ...], ends: list[int]) -> set[int]:
    """Indices of the lines of `low` that hold one of `tokens`."""
    found: set[int] = set()
    for token in tokens:
        place = low.find(token)
        while place >= 0:
            index = bisect_left(ends, place)
            found.add(index)
            if index >= len(ends):
                break
            place = low.find(token, ends[index])
    return found
