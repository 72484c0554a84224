"""Lines that are JSON arrays under one of names: ``["step", "loss"]`` and then ``[10, 3.25]``."""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec

from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.record import Parsed

_SNIFFED_LINES = 50
_BRACKETS = re.compile(rb"(?m)^([ \t]{0,8})\[|\]([ \t]{0,8},?[ \t\r]{0,8})$")


class JsonRows(CsvTable):
    """A table whose rows are arrays: without their brackets they are those of a table with commas."""

    name = "json rows"
    samples: ClassVar[tuple[bytes, ...]] = (
        b'["step", "loss", "lr"]\n[10, 3.25, 1e-05]\n[20, 3.125, NaN]\n',
        b'["iter", "val_loss"],\n[10, 3.25],\n[20, null],\n',
    )

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """An array of words over arrays of as many values, numbers for the most part."""
        whole = [line for line in (head[: head.rfind(b"\n") + 1] or head).split(b"\n") if line.strip()]
        rows = [_row(line) for line in whole[: _SNIFFED_LINES + 1]]
        names = rows[0] if rows else None
        if names is None or len(names) < 2 or not all(isinstance(name, str) for name in names):
            return 0.0
        known = [row for row in rows[1:] if row is not None]
        if len(known) * 10 < 9 * len(rows[1:]) or any(len(row) != len(names) for row in known):
            return 0.0
        is_table = all(any(isinstance(cell, float) for cell in row) for row in known)
        return (0.98 if known else 0.5) if is_table else 0.0

    def feed(self, data: bytes, offset: int, line_no: int) -> Parsed:
        """See `LineFormat`."""
        return super().feed(_BRACKETS.sub(_blanked, data), offset, line_no)


def _blanked(match: re.Match[bytes]) -> bytes:
    """As many blanks as were matched, so that places stay; a line's end is kept."""
    text = match.group()
    return b" " * (len(text) - text.endswith(b"\r")) + (b"\r" if text.endswith(b"\r") else b"")


def _row(line: bytes) -> list[str | float | None] | None:
    """The values of an array in one line; None for any other line, and for one with arrays or objects inside."""
    text = line.strip().rstrip(b",")
    if not text.startswith(b"[") or not text.endswith(b"]") or b"[" in text[1:].replace(b'["', b"") or b"{" in text:
        return None
    try:
        return msgspec.json.decode(text.replace(b"NaN", b"null"), type=list[str | float | None])
    except (msgspec.MsgspecError, RecursionError):
        return None
