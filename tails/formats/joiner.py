"""Dictionaries printed over several lines (``pprint``, ``json.dumps(indent=4)``) put together again."""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.formats.line import Line

_OPENS = re.compile(r"(?:.{0,200}[\s:=(]|)\{(?:\s*(?:'[^']{1,160}'|\"[^\"]{1,160}\")\s*:.*[,{\[])?\s*")
_ITEM = re.compile(r"\s*(?:(?:'[^']{1,160}'|\"[^\"]{1,160}\")\s*:.*|[\]})\s,]+|[-+\d.eE,\s]+|['\"].*)")
_AFTER_BRACE = re.compile(r"\{\s+")
_MOST_LINES = 400
_MOST_BETWEEN = 8  # records of others inside of a dictionary
_LONGEST = 4000  # of the line that opens a dictionary
_MOST_CHARACTERS = 1 << 16


class Joiner:
    """Holds the lines from one that opens a dictionary to the one that closes it.

    >>> joiner = Joiner()
    >>> [joiner.take(Line(text, 0, 1)) for text in ("{'loss': 2.5,", " 'step': 3}")]
    [True, True]
    >>> joiner.done().text
    "{'loss': 2.5, 'step': 3}"
    """

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._depth = 0
        self._size = 0
        self._passed = 0

    @property
    def is_open(self) -> bool:
        """Whether a dictionary is begun and not closed."""
        return bool(self._lines) and self._depth > 0

    @property
    def lines(self) -> list[Line]:
        """What is held."""
        return self._lines

    def take(self, line: Line) -> bool:
        """Takes `line` if it opens a dictionary or goes on with one; False: what is held must be let go."""
        text = line.text
        if not self._lines:
            if (
                text[-200:].rstrip()[-1:] not in ("{", ",", "[")
                or "{" not in text
                or len(text) > _LONGEST
                or not _OPENS.fullmatch(text)
            ):
                return False
        elif not _ITEM.fullmatch(text):
            return False
        self._lines.append(line)
        self._passed = 0
        self._depth += text.count("{") - text.count("}")
        self._size += len(text)
        return len(self._lines) <= _MOST_LINES and self._size <= _MOST_CHARACTERS

    def may_go_on(self) -> bool:
        """Hears of a record that another dialect read; whether more of the dictionary may still follow."""
        self._passed += 1
        return self._passed <= _MOST_BETWEEN

    def done(self) -> Line:
        """The dictionary as one line, at the place of its first."""
        text = " ".join(line.text.strip() for line in self._lines)
        return replace(self._lines[0], text=_AFTER_BRACE.sub("{", text), _scan=None)

    def clear(self) -> None:
        """Forgets what is held."""
        self._lines, self._depth, self._size = [], 0, 0
