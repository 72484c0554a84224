"""Which dialect reads a line: the one its looks suggest, or the first in order to which it is of interest."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from trainmon.tails.formats.bar import is_like_a_bar
from trainmon.tails.formats.bars import Bars
from trainmon.tails.formats.dialects import DIALECTS
from trainmon.tails.formats.dict_line import DictLine
from trainmon.tails.formats.flat import FlatDialect
from trainmon.tails.formats.interest import DIALECT_BITS
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.prefix import dated, read_prefix

_MOST_PARTS = 100  # bars on one line, without a carriage return between
_NUMBER_LIKE = re.compile(r"\d|nan|inf|none|null|n/a", re.IGNORECASE)  # without one a line of pairs has no values
D = TypeVar("D", bound=Dialect)


class Choice:
    """The dialects of one file. `is_open`: whether one of them has begun a record of several lines."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._dialects = [cls() for cls in DIALECTS]
        self._dict_line = self._one(DictLine)
        self.bars = self._one(Bars)
        self._holders = [dialect for dialect in self._dialects if type(dialect).is_open is not Dialect.is_open]
        self._order = [
            (dialect, bit, dialect in self._holders, isinstance(dialect, FlatDialect))
            for dialect, bit in zip(self._dialects, DIALECT_BITS, strict=True)
        ]
        self.is_open = False

    def _one(self, kind: type[D]) -> D:
        return next(dialect for dialect in self._dialects if isinstance(dialect, kind))

    def _look_whether_open(self) -> None:
        for dialect in self._holders:
            if dialect.is_open:
                self.is_open = True
                return
        self.is_open = False

    def flush(self) -> None:
        """Has every dialect give what it held back."""
        for dialect in self._dialects:
            dialect.flush(self._sink)
        self._look_whether_open()

    def read(self, line: Line, interest: int) -> tuple[bool, Line]:
        """Whether `line` was read as a record; and what of it is left to be read as words.

        A dialect is asked only when the line is of `interest` to it, or it has something open.
        """
        sink = self._sink
        is_read = False
        for _ in range(_MOST_PARTS):
            sink.rest = None
            sink.newest_template = None
            if not self.is_open and sink.read_known(line):
                return True, line
            is_record = self._is_read(line, interest)
            self._look_whether_open()
            is_read = is_read or is_record
            if not is_record or sink.rest is None:
                return is_read, line
            rest: Line = sink.rest
            prefix = read_prefix(rest.text)
            if line.prefix.time is not None:
                prefix = dated(prefix, line.prefix)
            line = Line(rest.text[prefix.at :], rest.offset, rest.line_no, prefix)
        sink.cannot_read(line)
        return True, replace(line, text="")

    def _is_read(self, line: Line, interest: int) -> bool:
        sink = self._sink
        if not self.is_open:
            likely = self._dict_line if line.text[:1] == "{" else self.bars if is_like_a_bar(line.text) else None
            if likely is not None and likely.read(line, sink):
                return True
        has_number = _NUMBER_LIKE.search(line.text) is not None
        for dialect, bit, holds, needs_number in self._order:
            is_asked = interest & bit if has_number or not needs_number else 0
            if (is_asked or (holds and dialect.is_open)) and dialect.read(line, sink):
                if self.is_open:
                    self._tell_others(dialect)
                return True
        return False

    def _tell_others(self, reader: Dialect) -> None:
        """Has what is open elsewhere hear that `reader` read a record. A rule or a brace that nothing followed would be
        waited on to the file's end, and each line meanwhile looked at as if it were the first of its shape."""
        for dialect in self._holders:
            if dialect is not reader and dialect.is_open:
                dialect.pass_by(self._sink)
