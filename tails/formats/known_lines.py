"""Lines of shapes that were heard and say nothing in words: read without asking again who may be interested in them.

What a line of a known shape is worth was found out with the first of them: no note, no fact, no heading, no other
dialect's. So the next ones cost their prefix and one match, even where neither their outline nor their numbers' widths
come again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from trainmon.tails.formats.line import Line
from trainmon.tails.formats.places import Outlines
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Template
from trainmon.tails.formats.wide import LONG
from trainmon.tails.prefix import Prefix

_HEAD = 16  # bytes of an outline by which a line is told to be worth a match
_MOST = 256
_MOST_MUTED = 16

_Muted = tuple[bytes, Callable[[bytes, int], re.Match[bytes] | None]]  # what lines begin with, and how they go on


class KnownLines:
    """Reads such lines into `sink` and has `outlines` learn from them."""

    def __init__(self, sink: Sink, outlines: Outlines) -> None:
        self._sink = sink
        self._outlines = outlines
        self._heads: set[bytes] = set()
        self._muted: list[_Muted] = []  # of lines that give nothing any more

    def add(self, outline: bytes) -> None:
        """Hears that a line of `outline` was of a known shape."""
        if len(self._heads) >= _MOST:
            self._heads.clear()
        self._heads.add(outline[:_HEAD])

    def read(
        self, raw: bytes, outline: bytes, offset: int, line_no: int, prefix_of: Callable[[str, int], Prefix]
    ) -> bool:
        """Reads a whole line, while nothing is open; False: it must be looked at. `prefix_of` reads its prefix."""
        if outline[:_HEAD] not in self._heads or len(raw) > LONG or not raw.isascii() or b"\0" in raw or b"\x1b" in raw:
            return False
        if self.is_muted(raw, outline):
            return True
        text = raw.decode("ascii")
        prefix = prefix_of(text, line_no)
        words = text[prefix.at :]
        found = self._sink.templates.find(words)
        if found is None:
            return False
        template, groups = found
        if template.speaks or not template.was_heard:
            return False
        if self._sink.is_muted(template):
            self._mute(outline[: prefix.at], template)
            return True
        self._sink.emit(template.reading(groups), Line(words, offset, line_no, prefix))
        self._outlines.learn(outline, raw, prefix.at, template)
        return True

    def is_muted(self, raw: bytes, outline: bytes) -> bool:
        """Whether a line is known to give nothing any more."""
        return any(outline.startswith(begin) and fullmatch(raw, len(begin)) for begin, fullmatch in self._muted)

    def _mute(self, begin: bytes, template: Template) -> None:
        """Knows lines of `template` behind prefixes like `begin` without a look at what either says."""
        self._muted.insert(0, (begin, re.compile(template.regex.pattern.encode()).fullmatch))
        del self._muted[_MOST_MUTED:]
