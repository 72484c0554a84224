"""Splitting delimited text: the delimiter, the records with their quoted newlines, the fields."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

_SEPARATOR = re.compile(r"""["']?sep=[,;|\t]["']?\s*""")  # a spreadsheet's first line
DELIMITERS = ",;\t|"
# A quote left open swallows what follows; beyond this it was no quote.
_OPEN_LIMIT_BYTES = 256 * 1024
_OPEN_LIMIT_LINES = 200


def split(line: str, delimiter: str) -> list[str]:
    """The fields of one record, quotes taken off, blanks around them too.

    >>> split('a, "b,c",d', ",")
    ['a', 'b,c', 'd']
    """
    if '"' not in line:
        fields = line.split(delimiter)
        fields = [field.strip() for field in fields] if " " in line else fields
        return [_unquoted(field) for field in fields] if "'" in line else fields
    try:
        for row in csv.reader([line], delimiter=delimiter, skipinitialspace=True):
            return [field.strip() for field in row]
    except csv.Error:
        pass
    return [field.strip() for field in line.split(delimiter)]


def _unquoted(field: str) -> str:
    """`field` without single quotes around it.

    >>> _unquoted("'loss'"), _unquoted("it's")
    ('loss', "it's")
    """
    return field[1:-1].strip() if len(field) > 1 and field[0] == field[-1] == "'" else field


def best_delimiter(line: str) -> str:
    """The delimiter that cuts `line` into most fields; "," when none does."""
    return max(DELIMITERS, key=lambda delimiter: (len(split(line, delimiter)), -DELIMITERS.index(delimiter)))


def is_comment(line: str) -> bool:
    """Whether a line is a remark, not the header behind a ``#``.

    >>> is_comment("# run: x, host: y"), is_comment('#{"format": 1}'), is_comment("#step,loss"), is_comment("step,loss")
    (True, True, False, False)
    """
    if _SEPARATOR.fullmatch(line):
        return True
    if not line.startswith("#"):
        return False
    names = split(line[1:], best_delimiter(line))
    return len(names) < 2 or any(mark in name for name in names for mark in ":={")


def leaves_open(line: bytes, delimiter: bytes, inside: bool) -> bool:
    """Whether a quoted field is open at the end of `line`; `inside` tells whether one was at its beginning.

    A quote opens a field only at the field's beginning.
    """
    if b'"' not in line:
        return inside
    at = 0
    while True:
        if inside:
            at = line.find(b'"', at)
            if at < 0:
                return True
            if line[at + 1 : at + 2] == b'"':
                at += 2
                continue
            inside, at = False, at + 1
            continue
        at = line.find(b'"', at)
        if at < 0:
            return False
        before = line[:at].rstrip(b" ") if at < 200 else line[at - 200 : at].rstrip(b" ")
        if not before or before.endswith((delimiter, b"\n")):
            inside = True
        at += 1


class RecordSplitter:
    """Cuts lines into records that may hold newlines between quotes.

    Once a quote was not closed within `_OPEN_LIMIT_LINES`, quotes are no longer trusted to hold newlines.
    """

    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter
        self._trusts_quotes = True

    def records(self, lines: list[bytes], *, final: bool) -> Iterator[tuple[int, int, bytes]]:
        """The records of `lines` (their ends kept): first line, line behind the last, bytes.

        A record whose quote is still open at the end is left out unless `final`.
        """
        at = 0
        while at < len(lines):
            stop = at + 1
            opens = b'"' in lines[at] and leaves_open(lines[at], self._delimiter, False)
            if opens and self._trusts_quotes:
                closing = self._closing(lines, at)
                if closing < 0 and not final:
                    return
                self._trusts_quotes = closing != 0
                stop = closing if closing > 0 else at + 1
            yield at, stop, lines[at] if stop == at + 1 else b"".join(lines[at:stop])
            at = stop

    def _closing(self, lines: list[bytes], start: int) -> int:
        """The index behind the line that closes the quote opened in line `start`; 0 when none does within the
        limits, -1 when more lines are needed to tell."""
        size = len(lines[start])
        for index in range(start + 1, min(len(lines), start + _OPEN_LIMIT_LINES)):
            if not leaves_open(lines[index], self._delimiter, True):
                return index + 1
            size += len(lines[index])
            if size > _OPEN_LIMIT_BYTES:
                return 0
        return 0 if len(lines) - start >= _OPEN_LIMIT_LINES else -1


def records_in(text: str, delimiter: str) -> list[str]:
    """The records of a whole text.

    >>> records_in('a,b\\n1,"two\\nlines"\\n', ",")
    ['a,b\\n', '1,"two\\nlines"\\n']
    """
    lines = [line + b"\n" for line in text.removesuffix("\n").encode("utf-8", "replace").split(b"\n")]
    splitter = RecordSplitter(delimiter.encode())
    return [record.decode("utf-8", "replace") for _, _, record in splitter.records(lines, final=True)]
