"""Tables: CSV, TSV and the like, wide or in long form, sparse, with several runs, with a header that comes again."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import partial
from typing import ClassVar

import numpy as np

from trainmon.tails.formats.base import LineFormat
from trainmon.tails.formats.bulk import Bulk, Rows
from trainmon.tails.formats.by_metric import Stretches
from trainmon.tails.formats.csv_columns import column_of, number_of
from trainmon.tails.formats.csv_header import (
    Header,
    are_plain,
    bare_form,
    is_number,
    is_of_words,
    looks_like_header,
    metric_of_place,
    named_by_file,
    names_metric,
)
from trainmon.tails.formats.csv_labels import Labels
from trainmon.tails.formats.csv_long import pivot, places
from trainmon.tails.formats.csv_places import Places
from trainmon.tails.formats.csv_ragged import Ragged, TableRow
from trainmon.tails.formats.csv_text import RecordSplitter, best_delimiter, is_comment, records_in, split
from trainmon.tails.formats.csv_units import ColumnKinds
from trainmon.tails.formats.csv_wide import WideRuns
from trainmon.tails.formats.measured import measured
from trainmon.tails.formats.records import RecordReader, Values
from trainmon.tails.formats.run_keys import names_run
from trainmon.tails.formats.run_split import LOOK_AHEAD
from trainmon.tails.formats.struct_plan import Columns, Marks
from trainmon.tails.formats.torn import Torn
from trainmon.tails.record import NoteKind, Parsed
from trainmon.tails.steps import WEAK_RANK, step_key_of, step_rank

_BOM = b"\xef\xbb\xbf"
_SETTLE_ROWS = 64  # rows in which a step may show; a table's columns do not change
_BATCH = 4096
_SNIFFED_LINES = 50


class CsvTable(LineFormat):
    """A table with a header line."""

    name = "csv"
    samples: ClassVar[tuple[bytes, ...]] = (
        b"step,loss,lr\n1,10.5,1e-05\n2,9.25,2e-05\n",
        b"epoch\tloss\tval_loss\n0\t2.5\t2.75\n1\t1.5\t\n",
        b'"Step","run - lm_loss","run - lm_loss__MIN"\n"4","12.1","12.0"\n',
        b"Wall time,Step,Value\n1696394223.5,0,49.5\n",
        b"1736935200000 2.5 10\n1736935212000 nan 20\n",
        b"0.0,2025-01-15 10:00:00.125 UTC,2.5\n1.0,2025-01-15 10:00:10.125 UTC,2.25\n",
    )

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.reader = RecordReader(source)
        self._bulk = Bulk(self.reader)
        self._held: tuple[bytes, int, int] | None = None
        self._delimiter = ""
        self._header: Header | None = None
        self._fields: list[str] = []
        self._splitter = RecordSplitter(b",")
        self._labels = Labels()
        self._stretches = Stretches()
        self._head: list[TableRow] | None = []
        self._rows: list[TableRow] = []
        self._torn = Torn()
        self._ragged = Ragged(())
        self._wide = WideRuns((), self._bulk)
        self._kinds = ColumnKinds()
        self._strange = Torn()
        self._places = Places((), self.reader)

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """A line of names over lines with as many fields, some of them numbers."""
        whole = head[: head.rfind(b"\n") + 1] or head
        text = whole.removeprefix(_BOM).decode("utf-8", "replace")
        lines = [line for line in text.split("\n") if line.strip() and not is_comment(line)][: _SNIFFED_LINES + 1]
        if not lines or lines[0].lstrip()[:1] in ("{", "["):
            return 0.0
        bare = sum(bare_form(line.strip()) is not None for line in lines)
        if bare * 10 >= len(lines) * 9:
            return 0.85
        first = lines[0].removeprefix("#")
        delimiter = best_delimiter(first)
        names = split(first, delimiter)
        if not looks_like_header(names):
            return 0.0
        if '"' in text:  # its records may hold newlines
            lines = [line for line in records_in(text, delimiter) if line.strip() and not is_comment(line)]
        rows = [split(line, delimiter) for line in lines[1 : _SNIFFED_LINES + 1]]
        if not rows:
            return 0.5 if are_plain(names) and delimiter != "|" else 0.0
        may_be_ragged = are_plain(names)
        fit = sum(1 for row in rows if _fits(row, len(names), may_be_ragged))
        if fit * 10 >= len(rows) * 6:
            return 0.85 * fit / len(rows)
        return 0.4 if is_of_words(names, rows) else 0.0

    def feed(self, data: bytes, offset: int, line_no: int) -> Parsed:
        """See `LineFormat`."""
        return self._read(data, offset, line_no, final=False)

    def finish(self) -> Parsed:
        """See `LineFormat`."""
        return self._read(b"", 0, 1, final=True)

    def _read(self, data: bytes, offset: int, line_no: int, *, final: bool) -> Parsed:
        counted = data.count(b"\n")
        if self._held is not None:
            before, offset, line_no = self._held
            data, self._held = before + data, None
        lines = data.splitlines(keepends=True)
        # A frame that a "\r" ends has the number of its line.
        frames = [at for at, line in enumerate(lines) if line.endswith(b"\r")] if b"\r" in data else []
        done = place = 0
        for start, stop, record in self._splitter.records(lines, final=final):
            self._take(record, offset + place, line_no + start - bisect_left(frames, start))
            if len(self._rows) >= _BATCH:
                self._flush(final=False)
            place, done = place + len(record), stop
        if done < len(lines):
            self._held = (b"".join(lines[done:]), offset + place, line_no + done - bisect_left(frames, done))
        if final:
            self._give_up_long()
        self._flush(final=final)
        out = self.reader.take()
        out.lines = counted
        return out

    def _take(self, record: bytes, offset: int, line_no: int) -> None:
        """Takes in one record: a row, a header, or what is neither."""
        text = record.removeprefix(_BOM if offset == 0 else b"").decode("utf-8", "replace").strip("\r\n\x00 ")
        if not text or is_comment(text):
            return
        if self._header is None:
            if (form := bare_form(text)) is None:
                self._begin(self._first_header(text.removeprefix("#")))
                return
            self._delimiter, names = form
            self._fields = [name or metric_of_place(self.source) for name in names]
            self._splitter = RecordSplitter(self._delimiter.encode())
            self._begin(Header.of(self._fields))
        fields = split(text, self._delimiter)
        width = len(self._ragged.names)
        if len(fields) > width and not any(fields[width:]):
            fields = fields[:width]
        if fields == self._fields:
            self._say(NoteKind.LAUNCH, "the header comes again", offset, line_no)
        elif self._is_new_header(fields):
            self._give_up_long()
            self._flush(final=True)
            if self._shares_columns(fields):  # else it is another table of the same run
                self._say(NoteKind.LAUNCH, "a new header", offset, line_no)
            self._fields = fields
            self._begin(Header.of(named_by_file(fields, self.source)))
        elif len(fields) > width:
            self._take_long((fields, offset, line_no))
        else:
            self._give_up_long()
            if len(fields) < width:
                row, is_whole = self._ragged.short(fields)
                if not is_whole:
                    self._say_ragged(fields, offset, line_no)
                fields = row
            self._places.bare(fields, line_no)
            self._rows.append((fields, offset, line_no))

    def _take_long(self, row: TableRow) -> None:
        """A row of more fields than there are columns."""
        names = self._ragged.long(row)
        if names:
            rows = self._ragged.waiting
            self._flush(final=True)
            self._begin(Header.of(named_by_file(names, self.source)), names)
            self._rows += rows
        elif not self._ragged.waiting or self._ragged.waiting[-1] is not row:
            self._give_up_long()
            self._ragged.long(row)

    def _give_up_long(self) -> None:
        """The long rows that waited are too few to be how the table is written."""
        waiting, self._ragged.waiting = self._ragged.waiting, []
        for fields, offset, line_no in waiting:
            self._say_ragged(fields, offset, line_no)

    def _say_ragged(self, fields: list[str], offset: int, line_no: int) -> None:
        self.reader.parsed.unreadable += 1
        if self._torn.begins(line_no):
            text = f"{len(fields)} fields, the header names {len(self._ragged.names)}: {self._delimiter.join(fields)}"
            self._flush(final=False)
            self.reader.note_of_place(NoteKind.UNREADABLE, text[:200], offset, line_no)

    def _say(self, kind: NoteKind, text: str, offset: int, line_no: int) -> None:
        """Notes an event, at the step of the rows before it."""
        self._flush(final=False)
        self.reader.note(kind, text, offset, line_no)

    def _first_header(self, text: str) -> Header | None:
        self._delimiter = best_delimiter(text)
        fields = split(text, self._delimiter)
        if len(fields) < 2 and not text.isidentifier():
            return None
        self._splitter = RecordSplitter(self._delimiter.encode())
        self._fields = fields if not all(map(is_number, fields)) else [f"column_{i}" for i in range(len(fields))]
        return Header.of(named_by_file(self._fields, self.source))

    def _is_new_header(self, fields: list[str]) -> bool:
        """Whether a row names columns: most of those that are known, or a step and a metric."""
        if not looks_like_header(fields) or not all(fields):
            return False
        has_step = any(step_rank(field) is not None for field in fields)
        return self._shares_columns(fields) or (has_step and are_plain(fields) and any(map(names_metric, fields)))

    def _shares_columns(self, fields: list[str]) -> bool:
        return len(set(fields) & set(self._fields)) >= max(2, len(self._fields) // 3)

    def _begin(self, header: Header | None, names: list[str] | None = None) -> None:
        """Rows from here on stand under `header`; `names`: its columns, where they are more than were named."""
        self._header = header
        self._ragged = Ragged(names or self._fields)
        self._labels = Labels(header)
        self._stretches = Stretches()
        self._wide = WideRuns(header.names if header is not None else (), self._bulk)
        self._kinds = ColumnKinds()
        self._places = Places(header.names if header is not None else (), self.reader)
        self._head = []

    def _flush(self, *, final: bool) -> None:
        """Takes in the rows so far; the first ones wait until the step and what tells runs apart are settled."""
        rows, self._rows = self._rows, []
        if self._header is None:
            return
        size = _BATCH if not self._header.long else _BATCH // 8
        most = size
        if self._head is not None:
            self._head += rows
            if not self._settle(self._header, self._head, final=final):
                return
            if self._labels.count and len(self._head) < self._labels.rows + LOOK_AHEAD and not final:
                return
            # What tells runs apart in the rows by which labels were settled labels none of them.
            rows, self._head, most = self._head, None, self._labels.rows or size
        while rows:
            taken = self._emit(self._header, rows[: most + LOOK_AHEAD], most, final=final)
            if not taken:
                break
            rows, most = rows[taken:], size
        self._rows = rows

    def _settle(self, header: Header, rows: list[TableRow], *, final: bool) -> bool:
        if not rows or not self._labels.settle([row[0] for row in rows], final=final):
            return False
        chooser = self.reader.chooser
        seen = [self._values(header, row[0]) for row in rows[: _SETTLE_ROWS + chooser.LOOK_AHEAD]]
        has_better = any((step_rank(name) or math.inf) < WEAK_RANK for name in header.names)
        for index, values in enumerate(seen[:_SETTLE_ROWS]):
            behind = seen[index + 1 : index + 1 + chooser.LOOK_AHEAD]
            is_all = final or len(behind) == chooser.LOOK_AHEAD
            if has_better and not is_all and chooser.offers(values) and not any(map(step_key_of, (values, *behind))):
                return False  # an epoch may rise before the column of steps is filled
            answer = chooser.consider(values, behind, final=final)
            if answer is None:
                return False
            if answer:
                return True
        return final or len(rows) >= _SETTLE_ROWS or not any(map(chooser.could_choose, header.names))

    def _values(self, header: Header, fields: list[str]) -> Values:
        values: Values = {}
        for index in header.numbers:
            try:
                values[header.names[index]] = number_of(fields[index], decimal_comma=self._delimiter != ",")
            except ValueError:
                continue
        return values

    def _emit(self, header: Header, rows: list[TableRow], most: int, *, final: bool) -> int:
        """Adds the first `most` rows; how many. The others wait for those that tell which run they belong to."""
        if header.long and not (most := self._see_stretches(header, rows, most, final=final)):
            return 0
        rows, ahead = rows[:most], rows[most:]
        table = list(zip(*(row[0] for row in rows), strict=True))
        columns: Columns = {}
        marks: Marks = {}
        strange: dict[int, int] = {}  # rows with a word where a number belongs -> its column
        kept = header.numbers if not header.long else places(header)
        for index in kept:
            name = header.names[index]
            holds = self._kinds.holds_numbers(index, name, table[index])
            made = self._kinds.column(index, table[index], decimal_comma=self._delimiter != ",")
            if made is None:
                continue
            if made[2] and holds and step_rank(name) is None:
                strange = dict.fromkeys(made[2], index) | strange
            if len(made[2]) < len(rows):
                name = self._kinds.name_of(index, name)
                columns[name] = made[0]
                if made[1] is not None:
                    marks[name] = made[1]
        texts: dict[str, list[str | None]] = {
            header.names[index]: [text if text and not is_number(text) else None for text in table[index]]
            for index in header.texts
        }
        offsets = np.array([row[1] for row in rows], np.int64)
        lines = np.array([row[2] for row in rows], np.int64)
        if self._wide:
            self._wide.add(Rows(columns, marks, texts, [], offsets, lines))
            return len(rows)
        placed = None
        if words := self._words(header, table):
            steps = columns.get(self.reader.chooser.key, np.full(len(rows), math.nan)).tolist()
            for name, column in words.items() if ahead else ():
                column += [row[0][header.names.index(name)] for row in ahead]
            steps += [_nan_if_none(self._values(header, row[0]).get(self.reader.chooser.key)) for row in ahead]
            placed = self.reader.place(words, steps, offsets, lines, final=final, most=len(rows))
            if placed.taken < len(rows):
                table = [column[: placed.taken] for column in table]
                columns, marks, texts, _, offsets, lines = Rows(columns, marks, texts, [], offsets, lines).first(
                    placed.taken
                )
        suffixes = self._labels.suffixes(table, self.reader.split.keys)
        if header.long:
            type_at, name_at, value_at = header.long
            if (made := column_of(table[value_at], decimal_comma=self._delimiter != ",")) is not None:
                kinds = table[type_at] if type_at >= 0 else None
                named = pivot(kinds, table[name_at], made[0], made[1], suffixes)
                columns, marks = columns | named[0], marks | named[1]
            suffixes = None
        self._bulk.add_columns(columns, marks, texts, offsets, lines, suffixes, placed)
        self._say_strange([(at, strange[at]) for at in sorted(strange) if at < len(offsets)], rows)
        return len(offsets)

    def _see_stretches(self, header: Header, rows: list[TableRow], most: int, *, final: bool) -> int:
        """How many of the first `most` rows of a long table are alike in whether its metrics stand one by one; 0 while
        only those behind them can tell."""
        self.reader.trusts_steps = rows[0][1] < self._stretches.end
        if not self.reader.trusts_steps:
            return most
        places = [at for at in (*header.runs, *header.labels, *header.long[:2]) if at >= 0]
        names = ["\t".join(fields[at] for at in places) for fields, _, _ in rows[: most + Stretches.LOOK_AHEAD]]
        for place, name in enumerate(names[:most]):
            behind = partial(names.__getitem__, slice(place + 1, None))
            answer = self._stretches.take(name, rows[place][1], behind, final=final)
            if not answer:
                self.reader.trusts_steps = place > 0
                return place if place or answer is None else most
        return most

    def _say_strange(self, found: list[tuple[int, int]], rows: list[TableRow]) -> None:
        """Counts the rows that hold a word in a column of numbers; (row, column) of each."""
        self.reader.parsed.unreadable += len(found)
        for at, index in found:
            fields, offset, line_no = rows[at]
            if self._strange.begins(line_no):
                text = f"no number under {self._ragged.names[index]}: {self._delimiter.join(fields)}"
                self.reader.note_of_place(NoteKind.UNREADABLE, text[:200], offset, line_no)

    def _words(self, header: Header, table: list[tuple[str, ...]]) -> dict[str, list[str | None]]:
        """What may tell the runs of the rows apart."""
        words: dict[str, list[str | None]] = {}
        for index, name in enumerate(header.names):
            if not name or index in header.long or (header.long and not names_run(name)):
                continue
            is_numeric = self._kinds.holds_numbers(index, name, table[index])
            if is_numeric is None:
                continue
            if name != self.reader.chooser.key and self.reader.split.wants(name, is_number=is_numeric):
                words[name] = list(table[index])
        return words


def _nan_if_none(value: float | None) -> float:
    return math.nan if value is None else value


def _fits(row: list[str], count: int, may_be_ragged: bool) -> bool:
    numbers = sum(is_number(field) or measured(field) is not None for field in row)
    filled = sum(map(bool, row))
    has_width = len(row) == count or (may_be_ragged and len(row) > 1)
    return has_width and numbers > 0 and numbers * 3 >= filled
