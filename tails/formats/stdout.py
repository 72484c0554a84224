"""Standard output of trainers: the net under all formats. Sends each line to the dialect that knows it.

Most lines of such a log are noise, and most others look like one read before. So a line is known by its outline
(`places`) at the cost of a look-up; one of a new outline but a known shape costs one match (`templates`); only what is
new altogether is taken apart, and only if it holds a word of interest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from trainmon.tails import facts, notes
from trainmon.tails.formats.alike import Alike, AlikeLines
from trainmon.tails.formats.bar import QUICK_BAR, BarKind
from trainmon.tails.formats.base import LineFormat
from trainmon.tails.formats.choice import Choice
from trainmon.tails.formats.container_parts import ContainerParts
from trainmon.tails.formats.cut_lines import CutLines, Piece
from trainmon.tails.formats.dialects import DIALECTS
from trainmon.tails.formats.folded import Folds
from trainmon.tails.formats.foreign import WIDE_COLON, in_english
from trainmon.tails.formats.glued import between_writers
from trainmon.tails.formats.interest import FACTS, FOREIGN, METRICS, NOTES, interest_of, is_silent
from trainmon.tails.formats.known_lines import KnownLines
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.line_kind import LineKind
from trainmon.tails.formats.logger_names import LoggerNames
from trainmon.tails.formats.places import DIGITS, Outlines, bare
from trainmon.tails.formats.quick_bar import QUICK_FRAME, QUICK_PLACE, QuickBars
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.stretch import Known, stretch_of
from trainmon.tails.formats.text_share import is_text
from trainmon.tails.formats.wrapped import Wrapped, unwrap
from trainmon.tails.prefix import NO_PREFIX, Prefix, dated, read_prefix
from trainmon.tails.record import Parsed
from trainmon.tails.text import strip_escapes

_MAX_LINE = 1 << 20
_HEAD = 1 << 16
_NEAR = 400  # bytes of a line in which what is wrapped in JSON begins
_SNIFF = 0.1
_TOGETHER = 8  # fewer lines are read one by one
_TRACEBACK = b"Traceback (most"


class Stdout(LineFormat):
    """Lines of text. `label` is the dialect that gave most records."""

    name = "stdout"
    samples = tuple(sample for dialect in DIALECTS for sample in dialect.samples)

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._sink = Sink(source)
        self._choice = Choice(self._sink)
        self._notes = notes.NoteScanner(source)
        self._outlines = Outlines()
        self._alike = AlikeLines(self._outlines.loose)
        self._known = KnownLines(self._sink, self._outlines)
        self._cut = CutLines()
        self._parts = ContainerParts()
        self._line_before = b""  # the newest line of an earlier feed
        self._is_within = False  # whether the next bytes go on with a line
        self._folds = Folds()
        self._names = LoggerNames()
        self._line_prefix: tuple[int, Prefix] = (-1, NO_PREFIX)
        self._quick_bars, self._quick_since = QuickBars(), 0
        # The newest frame of a bar, not yet looked at: its match and the line, its offset and number.
        self._frame: tuple[re.Match[bytes] | None, bytes, int, int] | None = None
        self._frame_place = b""
        self._busy = False  # whether something is open for which every line must be looked at

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """A small share of certainty for anything that is mostly text."""
        return _SNIFF if is_text(head) else 0.0

    @property
    def label(self) -> str:
        """The dialect that gave most records."""
        named = self._sink.dialects.most_common(1)
        return named[0][0] if named else self.name

    def feed(self, data: bytes, offset: int, line_no: int) -> Parsed:
        """Reads whole lines, or lines up to a frame's end."""
        begin = self._parts.begin_in(data)
        parsed = self._read_lines(data[:begin], offset, line_no) if begin else Parsed()
        if begin < len(data):
            for whole in self._cut.flush():
                self._uncut(whole)
            for whole in self._parts.take(data[begin:], offset + begin, line_no + parsed.lines):
                self._uncut(whole)
            behind = self._sink.take()
            behind.lines = data.count(b"\n", begin)
            parsed.add(behind)
        return parsed

    def _read_lines(self, data: bytes, offset: int, line_no: int) -> Parsed:
        first = line_no
        for begin, end, alike in self._alike.pieces(data):
            read = self._read_each if alike is None else partial(self._read_alike, alike)
            line_no += read(data[begin:end], offset + begin, line_no)
        parsed = self._sink.take()
        parsed.lines = line_no - first
        return parsed

    def _read_alike(self, alike: Alike, data: bytes, offset: int, line_no: int) -> int:
        """Reads whole lines of one shape, together where nothing is open; lines as long as a cut one by themselves."""
        at, lines = 0, data.split(b"\n")[:-1]
        while at < len(alike):
            is_open = self._busy or self._is_within or self._cut.is_open or self._sink.heading.is_open
            last = at + 1 if is_open or line_no + at == self._line_prefix[0] else alike.upto(at, self._cut.least)
            self._look_at_frame()
            part = alike.part(at, last)
            if last - at >= _TOGETHER and self._sink.emit_alike(part, lines[at:last], offset, line_no + at):
                self._line_before = lines[last - 1]
            else:
                self._read_each(part.of(data), offset + int(part.begins[0]), line_no + at)
            at = last
        return at

    def _read_each(self, data: bytes, offset: int, line_no: int) -> int:
        lines, outlines = data.split(b"\n"), data.translate(DIGITS).split(b"\n")
        if not lines[-1]:
            lines.pop()
        dull, places, loose = self._outlines.dull, self._outlines.places, self._outlines.loose
        together: list[Known] = []
        cut, least = self._cut, self._cut.least
        is_rest, self._is_within = self._is_within, not data.endswith(b"\n")
        has_sequences = b"\x1b[" in data
        for index, (raw, outline) in enumerate(zip(lines, outlines, strict=False)):
            size = len(raw) + 1
            if has_sequences:
                raw, outline = bare(raw, outline)
            if len(raw) >= least and not is_rest:
                self._read_together(together)
                together = []
                if index and not cut.is_open:
                    self._line_before = lines[index - 1]
                for whole in cut.take(Piece(raw, offset, line_no)):
                    self._uncut(whole)
                least, offset, line_no = cut.least, offset + size, line_no + 1
                continue
            is_rest = False
            of_any_width = None
            known = None if self._busy else places.get(outline)
            if raw and known is None and loose and not self._busy and outline not in dull and b"\r" not in raw:
                of_any_width = self._outlines.read_loose(outline, raw)
            if of_any_width is not None:
                together.append((of_any_width[0], raw, offset, line_no, of_any_width[1]))
            elif known is not None and known.bulk is not None:
                together.append((known, raw, offset, line_no, None))
            elif raw and (self._busy or not (outline in dull or self._known.is_muted(raw, outline))):
                if together:
                    self._read_together(together)
                    together = []
                if _TRACEBACK in raw:
                    self._notes.line_before = lines[index - 1] if index else self._line_before
                if b"\r" in raw:
                    self._frames(raw, outline, offset, line_no)
                else:
                    self._line(raw, outline, offset, line_no, is_whole=True)
            offset += size
            line_no += 1
        self._read_together(together)
        if lines and not cut.is_open:
            self._line_before = lines[-1]
        return len(outlines) - 1

    def _read_together(self, lines: list[Known]) -> None:
        """Reads lines of known outlines."""
        # The first may go on from a frame that had the time.
        alone = 1 if lines and (lines[0][3] == self._line_prefix[0] or self._sink.heading.is_open) else 0
        read = stretch_of(lines[alone:]) if len(lines) >= _TOGETHER else None
        for _, raw, offset, line_no, _ in lines if read is None else lines[:alone]:
            self._line(raw, raw.translate(DIGITS), offset, line_no)
        if read is not None:
            self._look_at_frame()
            self._sink.emit_many(lines[alone:], read)

    def _uncut(self, piece: Piece) -> None:
        """Reads a line that is whole, or joined again."""
        raw, outline = piece.raw, piece.raw.translate(DIGITS)
        if piece.is_torn:
            self._sink.cannot_read(Line(raw.decode("utf-8", "replace"), piece.offset, piece.line_no))
        if _TRACEBACK in raw:
            self._notes.line_before = self._line_before
        if b"\r" in raw:
            self._frames(raw, outline, piece.offset, piece.line_no)
        elif raw and (outline not in self._outlines.dull or self._busy):
            self._line(raw, outline, piece.offset, piece.line_no, is_whole=True)
        self._line_before = raw

    def finish(self) -> Parsed:
        """Gives what was held back."""
        for whole in (*self._cut.flush(), *self._parts.flush()):
            self._uncut(whole)
        self._look_at_frame()
        for line in self._folds.flush():
            self._whole(line)
        for line in self._names.flush():
            self._choice.read(line, METRICS)
        self._choice.flush()
        self._sink.release()
        for note in self._notes.flush(self._sink.step):
            self._sink.note(note)
        return self._sink.take()

    def _frames(self, raw: bytes, outline: bytes, offset: int, line_no: int) -> None:
        """Looks at each ``\\r`` frame of a line as at a line."""
        for frame, frame_outline in zip(raw.split(b"\r"), outline.split(b"\r"), strict=True):
            if frame:
                self._line(frame, frame_outline, offset, line_no)
            offset += len(frame) + 1

    def _line(self, raw: bytes, outline: bytes, offset: int, line_no: int, *, is_whole: bool = False) -> None:
        if not self._busy:
            if outline in self._outlines.dull:
                if not is_whole and line_no != self._line_prefix[0]:
                    self._look_at_frame()
                    self._hear_prefix(raw, line_no)
                return
            if outline in self._outlines.plain_bars and b" 0/" not in raw:
                self._defer(None, raw, offset, line_no, b"")
                return
            places = self._outlines.places.get(outline)
            if places is not None:
                self._look_at_frame()
                prefix = self._prefix(raw.decode("ascii"), line_no) if places.at else self._inherit(NO_PREFIX, line_no)
                self._sink.emit(places.read(raw), Line("", offset, line_no, prefix))
                return
            if b"[" in raw:
                quick = QUICK_FRAME.match(raw)
                if (match := quick or QUICK_BAR.match(raw)) is not None:
                    self._defer(quick, raw, offset, line_no, match[1])
                    return
        self._look_at_frame()
        if is_whole and not self._busy and len(raw) <= _MAX_LINE:
            if self._known.read(raw, outline, offset, line_no, self._prefix):
                return
            if is_silent(raw):
                self._outlines.add_dull(outline)
                return
        self._look(raw, outline, offset, line_no)

    def _defer(self, match: re.Match[bytes] | None, raw: bytes, offset: int, line_no: int, place: bytes) -> None:
        """Keeps a bar's frame until it is known whether the next one draws the same step again."""
        if place != self._frame_place:
            self._look_at_frame()
            self._frame_place = place
        elif self._frame is not None and self._frame[3] == line_no != self._line_prefix[0]:
            self._hear_prefix(self._frame[1], line_no)
        self._frame = (match, raw, offset, line_no)

    def _hear_prefix(self, raw: bytes, line_no: int) -> None:
        """Reads of a frame that is passed over what the frames behind it have their time and rank from."""
        self._prefix(strip_escapes(raw.decode("utf-8", "replace")), line_no)

    def _look_at_frame(self) -> None:
        frame, self._frame, self._frame_place = self._frame, None, b""
        if frame is None:
            return
        match, raw, offset, line_no = frame
        match = match or QUICK_PLACE.match(raw)
        if match is None or self._busy:
            self._look(raw, raw.translate(DIGITS), offset, line_no)
        elif not self._read_quickly(match, offset, line_no):
            is_new = not self._quick_bars.knows(match)
            self._look(raw, raw.translate(DIGITS), offset, line_no)
            if is_new and not self._busy:
                is_other = self._sink.newest_template is not None or interest_of(raw.lower()) & FOREIGN
                kind = BarKind.NONE if is_other else self._sink.bar_kind
                self._quick_bars.learn(match, kind, self._choice.bars.newest_label)

    def _read_quickly(self, match: re.Match[bytes], offset: int, line_no: int) -> bool:
        """Reads a frame of a bar, if frames of its words are known."""
        sink = self._sink
        if sink.templates.added != self._quick_since:  # another shape, which these frames may have
            self._quick_since = sink.templates.added
            self._quick_bars.clear()
        frame = self._quick_bars.read(match)
        if frame is None:
            return False
        had_records = sink.has_records
        self._choice.bars.take(frame, Line("", offset, line_no, self._inherit(frame.prefix, line_no)), sink)
        if sink.has_records and not had_records:
            self._outlines.dull.clear()
        return True

    def _look(self, raw: bytes, outline: bytes, offset: int, line_no: int) -> None:
        """Looks at a line of an outline that is not known, and learns the outline if it can."""
        if len(raw) > _MAX_LINE:
            raw = raw[:_HEAD]
            self._sink.cannot_read(Line(raw.decode("utf-8", "replace"), offset, line_no))
        text = strip_escapes(raw.decode("utf-8", "replace").replace("\0", ""))
        glued = between_writers(text)
        for part in glued[:-1]:
            self._text(part.text, offset, line_no)
            if part.is_torn:
                self._sink.cannot_read(Line(text, offset, line_no))
        if glued:
            text = glued[-1].text
        was_busy = self._busy
        wrapped = unwrap(text.rstrip()) if b'{"' in raw[:_NEAR] else None
        kind = self._text(text, offset, line_no) if wrapped is None else self._unwrapped(wrapped, offset, line_no)
        self._busy = self._choice.is_open or self._notes.is_open or self._folds.is_open
        if was_busy or self._busy or glued:
            return
        if kind is LineKind.KNOWN and self._sink.newest_template is not None:
            self._known.add(outline)
            self._outlines.learn(outline, raw, self._line_prefix[1].at, self._sink.newest_template)
        elif kind is LineKind.DULL:
            self._outlines.add_dull(outline)
        elif kind is LineKind.PLAIN_BAR:
            self._outlines.add_plain_bar(outline)

    def _unwrapped(self, wrapped: Wrapped, offset: int, line_no: int) -> LineKind:
        """Reads the lines inside a wrapped one."""
        kinds = set()
        for part in wrapped.lines:
            self._line_prefix = (line_no, wrapped.prefix)
            kinds.add(self._text(part, offset, line_no))
        return LineKind.DULL if kinds <= {LineKind.DULL} else LineKind.OTHER

    def _prefix(self, text: str, line_no: int) -> Prefix:
        return self._inherit(self._names.behind(text, read_prefix(text)), line_no)

    def _inherit(self, prefix: Prefix, line_no: int) -> Prefix:
        """`prefix` with the time and rank that an earlier frame of the same line, or its wrapper, began with."""
        number, before = self._line_prefix
        if prefix.time is None and number == line_no and (before.time is not None or before.rank):
            prefix = dated(prefix, before)
        self._line_prefix = (line_no, prefix)
        return prefix

    def _text(self, text: str, offset: int, line_no: int) -> LineKind:
        """Reads one line's text, or keeps it until the line below has shown whether it goes on there."""
        prefix = self._prefix(text, line_no)
        line = Line(text[prefix.at :], offset, line_no, prefix)
        ready = self._folds.take(line) if not self._choice.is_open else [*self._folds.flush(), line]
        kinds = [self._whole(one) for one in ready]
        return kinds[0] if ready == [line] else LineKind.OTHER

    def _whole(self, line: Line) -> LineKind:
        """Reads one line."""
        sink, offset, line_no = self._sink, line.offset, line.line_no
        interest = interest_of(line.text.lower().encode("utf-8", "replace"))
        is_record = is_foreign = False
        may_be_foreign = interest & FOREIGN or (interest & METRICS and WIDE_COLON in line.text)
        if may_be_foreign and (english := in_english(line.text)) != line.text:
            is_foreign, said = True, line
            line, interest = replace(line, text=english), interest_of(english.lower().encode("utf-8", "replace"))
        sink.newest_template, sink.bar_kind, sink.is_telling = None, BarKind.NONE, False
        is_heading = bool(interest & METRICS) and sink.heading.hear(line.text)
        if self._choice.is_open or interest & METRICS:
            had_records = sink.has_records
            is_named = self._is_named(line, is_read=True)
            is_record, line = (True, line) if is_named else self._choice.read(line, interest)
            is_record = is_record or self._is_named(line)
            if sink.is_telling:  # a heading may say of bars below it what they are
                self._quick_bars.clear()
            if sink.has_records and not had_records:
                self._outlines.dull.clear()  # what is taken for a record depends on whether there were any
        if is_foreign:
            line = said
        if is_factual := not is_record and bool(interest & FACTS):
            for key, value in facts.facts_of(line.text):
                sink.fact(key, value, line_no)
        template = sink.newest_template
        is_bar_alone = sink.bar_kind is not BarKind.NONE
        may_speak = template is None or template.speaks or not template.was_heard
        if template is not None:
            template.was_heard = True
        is_telling = bool(interest & NOTES) or line.prefix.is_fatal or line.prefix.is_error
        if is_wordy := self._notes.is_open or (may_speak and not is_bar_alone and is_telling):
            for note in self._notes.scan(line.text, line.prefix, line_no, offset, sink.step):
                sink.note(note)
                if template is not None:
                    template.speaks = True
        if template is not None:
            return LineKind.OTHER if template.speaks or is_foreign else LineKind.KNOWN
        if is_wordy or is_factual:
            return LineKind.OTHER
        if is_bar_alone:
            return LineKind.of_bar(sink.bar_kind)
        return LineKind.OTHER if is_record or sink.is_telling or is_heading else LineKind.DULL

    def _is_named(self, line: Line, *, is_read: bool = False) -> bool:
        """Whether a logger's bare name stands before what is, or may turn out to be, a record."""
        if self._choice.is_open or (self._sink.has_records and not line.prefix.at):
            return False
        freed = self._names.hold(line, is_read=is_read)
        for one in freed or ():
            self._choice.read(one, METRICS)
            self._outlines.dull.clear()
            self._sink.newest_template = None
        return freed is not None
