"""JSON lines with any keys: flat or nested, typed events, long form, with NaN tokens and torn lines."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import msgspec

from trainmon.tails.formats.base import LineFormat
from trainmon.tails.formats.bulk import Bulk
from trainmon.tails.formats.cells import KeyTable
from trainmon.tails.formats.gathered import Gathered
from trainmon.tails.formats.json_text import objects_in
from trainmon.tails.formats.line_index import Lines
from trainmon.tails.formats.operations import with_single_values
from trainmon.tails.formats.records import Cells, RecordReader
from trainmon.tails.formats.seen import Seen, learn
from trainmon.tails.formats.struct_plan import StructPlan, UnfitError
from trainmon.tails.formats.torn import Torn
from trainmon.tails.formats.wrapped import message_of
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.newlines import count_newlines
from trainmon.tails.notes import NoteScanner
from trainmon.tails.prefix import read_prefix
from trainmon.tails.record import NoteKind, Parsed
from trainmon.tails.text import strip_escapes

_BOM = b"\xef\xbb\xbf"
_PIECE = 64 * 1024
_SMALLEST_PIECE = 2 * 1024
_BATCH = 4096
_SLICE = 2 * 1024 * 1024
_HOLD_LIMIT = 4 * 1024 * 1024
_LEARN_FIRST = 4  # records read one by one before the first plan
_HEAD = 64 * 1024
_OBJECT_LINE = lazy(rb'\s*\{\s*(?:"|\}\s*$)')
_ARRAY_LINE = lazy(rb'\s*\[\s*\{\s*"')
# What shows that a line was meant to be JSON.
_CLAIMS = lazy(rb"^\s*[\[{]|[\]}]\s*$|\{\"")
_SNIFFED_LINES = 200
_JSON_SHARE = 0.8  # with more text between, it is text that holds records
_TEXT_LIMIT = 64 * 1024
_BRACKETS = 64  # bytes; a longer line of nothing but brackets does not belong to an array around the records
_UNFIT = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class JsonLines(LineFormat):
    """One JSON object a line."""

    name = "jsonl"
    samples: ClassVar[tuple[bytes, ...]] = (
        b'{"step": 1, "loss": 10.9, "lr": 1e-05}\n{"step": 2, "loss": 10.1, "lr": 2e-05}\n',
        b'{"event": "run_start", "config": {"max_iters": 10}}\n{"event": "train_step", "iter": 0, "loss": NaN}\n',
        b'{"loss/total": 3.25, "step": 20}\n',
        b'\xef\xbb\xbf{"name": "loss", "step": 0, "value": 3.5}\r\n',
    )

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.reader = RecordReader(source)
        self._bulk = Bulk(self.reader)
        self._held: tuple[bytes, int, int] | None = None
        self._seen: dict[str, Seen] = {}
        self._plan: StructPlan | None = None
        self._stale = 0
        self._patience = _LEARN_FIRST
        self._piece = _PIECE
        self._news = False
        self._torn = Torn()
        self._scanner = NoteScanner(source)

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """The share of lines that begin an object and can be read."""
        lines = head.removeprefix(_BOM).split(b"\n")
        whole = [line for line in lines[:-1] if line.strip(b" \t\r\x00")]
        if not whole:
            return 0.45 if _OBJECT_LINE.match(lines[-1]) and not lines[-1].lstrip()[1:2].isspace() else 0.0
        whole = whole[:_SNIFFED_LINES]
        begun = [line for line in whole if _OBJECT_LINE.match(line)]
        if not begun and len(whole) > 1:  # each line an array of records
            begun = [line for line in whole if _ARRAY_LINE.match(line) and objects_in(line)[0]]
        readable = any(objects_in(line)[0] for line in begun[:5])
        if readable and _are_wrappers(begun):
            return 0.0
        return 0.9 * len(begun) / len(whole) if readable and len(begun) >= _JSON_SHARE * len(whole) else 0.0

    def feed(self, data: bytes, offset: int, line_no: int) -> Parsed:
        """See `LineFormat`."""
        return self._read(data, offset, line_no, final=False)

    def finish(self) -> Parsed:
        """See `LineFormat`."""
        out = self._read(b"", 0, 1, final=True)
        out.notes += self._scanner.flush(self.reader.step)
        return out

    def read_lines(self, lines: Lines) -> None:
        """Reads lines that stand elsewhere, such as the records of a document, into `reader`."""
        self._read_lines(lines, final=True)

    def _read(self, data: bytes, offset: int, line_no: int, *, final: bool) -> Parsed:
        out = Parsed(lines=count_newlines(data))
        if self._held is not None:
            before, offset, line_no = self._held
            data, self._held = before + data, None
        at = 0
        while at < len(data):
            end = data.rfind(b"\n", at, at + _SLICE) + 1 or data.find(b"\n", at) + 1 or len(data)
            if len(data) - at <= _SLICE:
                end = len(data)
            lines = Lines(data[at:end], offset + at, line_no)
            stopped = self._read_lines(lines, final=final or len(data) - at > _HOLD_LIMIT)
            if stopped is not None:
                start = at + lines.starts[stopped]
                first = int(lines.numbers[stopped])
                self._held = (data[start:], offset + start, first)
                break
            at, line_no = end, line_no + lines.newlines
        out.add(self.reader.take())
        return out

    def _read_lines(self, lines: Lines, *, final: bool) -> int | None:
        """Reads all lines; the index of the first that must be held back, if any."""
        at, total = 0, len(lines)
        while at < total:
            self._renew_plan(total - at)
            if self._plan is not None and lines.simple[at]:
                taken, blocked = self._read_fast(self._plan, lines, at)
                at += taken
                if not blocked:
                    continue
            if not self._read_slow(lines, at, final=final):
                return at
            at += 1
        return None

    def _read_fast(self, plan: StructPlan, lines: Lines, start: int) -> tuple[int, bool]:
        """Reads simple lines in bulk; how many, and whether the next one must be read by itself."""
        at, stop = start, lines.piece_end(start, self._piece)
        gathered = Gathered(plan)
        blocked = False
        while True:
            decoded = _decode(plan, lines, at, stop)
            if decoded is None:
                self._piece = max(_SMALLEST_PIECE, self._piece // 2)
                if stop - at == 1:
                    blocked = True
                    break
                stop = at + (stop - at) // 2
                continue
            gathered.add(*decoded)
            at = stop
            if len(gathered) >= _BATCH or at >= len(lines) or not lines.simple[at]:
                break
            self._piece = min(_PIECE, self._piece * 2)
            stop = lines.piece_end(at, self._piece)
        if not gathered:
            return 0, blocked
        where = slice(start, at)
        taken = self._bulk.add(gathered, lines.offsets[where], lines.numbers[where])
        return taken, blocked or taken < len(gathered)

    def _read_slow(self, lines: Lines, index: int, *, final: bool) -> bool:
        """Reads one line whatever is in it; False when it must be held back."""
        text = lines.text(index)
        offset, line_no = int(lines.offsets[index]), int(lines.numbers[index])
        is_bracket = len(text) <= _BRACKETS and not text.strip(b" \t\r\x00[],")
        objects, lost = ([], 0) if is_bracket else objects_in(text)
        objects, is_apart = with_single_values(objects)
        for place, record in objects:
            following = partial(self._following, lines, index, objects, place)
            if not self.reader.read(record, offset + place, line_no, following, final=final):
                return False
            if len(objects) == 1 and self.reader.took_row and not is_apart:
                self._news = learn(self._seen, record) or self._news
                self._stale += 1
        if lost and not objects and not _CLAIMS.search(text):
            self._read_text(text, offset, line_no)
        elif lost:
            self._note_unreadable(text, offset, line_no)
        return True

    def _following(
        self, lines: Lines, index: int, objects: list[tuple[int, dict[str, Any]]], place: int, count: int
    ) -> list[Cells]:
        """The numbers and texts of the `count` records behind this one that hold any."""
        out: list[Cells] = []
        rest = [record for at, record in objects if at > place]
        while len(out) < count:
            while not rest:
                index += 1
                if index >= len(lines):
                    return out
                rest = [record for _, record in with_single_values(objects_in(lines.text(index))[0])[0]]
            cells = KeyTable().row(rest.pop(0))
            if cells[0]:
                out.append(cells)
        return out

    def _renew_plan(self, lines_left: int) -> None:
        """Makes a new plan when enough records did not fit the old one; ever rarer, since making one costs."""
        if self._plan is not None and self._plan.is_outdated:
            self._plan, self._news = None, True
        if not self._news or self._stale < self._patience or lines_left < _LEARN_FIRST:
            return
        self._news, self._stale = False, 0
        self._patience = min(self._patience * 2, max(4096, 4 * len(self._seen)))  # a plan of many keys is dear
        try:
            self._plan = (
                StructPlan(self._seen, self.reader.keys, self.reader.split) if self._step_is_settled() else None
            )
        except UnfitError:
            self._plan = None

    def _step_is_settled(self) -> bool:
        """Whether no record read in bulk could still bring the choice of the step."""
        chooser = self.reader.chooser
        return chooser.decided or not any(map(chooser.could_choose, self.reader.keys.kinds))

    def _read_text(self, raw: bytes, offset: int, line_no: int) -> None:
        """A line that never claimed to be a record, such as one of a traceback."""
        text = strip_escapes(raw[:_TEXT_LIMIT].decode("utf-8", "replace"))
        self.reader.parsed.notes += self._scanner.scan(text, read_prefix(text), line_no, offset, self.reader.step)

    def _note_unreadable(self, text: bytes, offset: int, line_no: int) -> None:
        self.reader.parsed.unreadable += 1
        if self._torn.begins(line_no):
            self.reader.note(NoteKind.UNREADABLE, text[:200].decode("utf-8", "replace"), offset, line_no)


def _are_wrappers(lines: list[bytes]) -> bool:
    """Whether the lines are another log's, each wrapped in an object: then they are read as text."""
    records = [record for line in lines for _, record in objects_in(line)[0]]
    return bool(records) and all(message_of(record) is not None for record in records)


def _decode(plan: StructPlan, lines: Lines, start: int, stop: int) -> tuple[list[Any], bool] | None:
    """The records of some lines, one a line; None when the plan does not fit all of them."""
    try:
        records, loose = plan.decode(lines.span(start, stop))
    except _UNFIT:
        return None
    return (records, loose) if len(records) == stop - start else None
