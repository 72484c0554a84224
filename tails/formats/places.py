"""Where the numbers stand in a line whose digits alone differ from one read before: no matching at all, only slicing.

A line with each digit replaced by ``0`` is its outline. Lines of one outline have the same words at the same places, so
what was learned of one holds for all: that it is noise, or which bytes are which value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from trainmon.tails.formats.raw_values import Columns, RawValues
from trainmon.tails.formats.template import Reading, Template

DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LIMIT = 8192
_DIGIT = re.compile(r"\d")


_Cut = Callable[[bytes], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Places:
    """Reads a line of one outline. Its words begin at `at`; `heads` cuts its step out, `columns` knows its metrics."""

    template: Template
    at: int
    heads: _Cut
    columns: Columns

    def read(self, raw: bytes) -> Reading:
        """What a line of this outline says."""
        return self.template.with_heads(RawValues(self.columns, raw), self.heads(raw))


def _cutter(spans: list[tuple[int, int]]) -> _Cut:
    """Cuts `spans` out of a line, at C speed."""
    slices = [slice(start, end) for start, end in spans]
    if len(slices) == 1:
        only = slices[0]
        return lambda raw: (raw[only],)
    return itemgetter(*slices) if slices else lambda raw: ()  # noqa: ARG005


class Outlines:
    """What is known of outlines; bounded. Forgetting costs time, never a result."""

    def __init__(self) -> None:
        self.dull: set[bytes] = set()  # noise
        self.plain_bars: set[bytes] = set()  # frames that give a position and nothing else
        self.places: dict[bytes, Places] = {}

    def add_dull(self, outline: bytes) -> None:
        """Keeps the outline of a line that says nothing, whatever its digits are."""
        if len(self.dull) >= _LIMIT:
            self.dull.clear()
        self.dull.add(outline)

    def add_plain_bar(self, outline: bytes) -> None:
        """Keeps the outline of a progress bar's frame without metrics."""
        if len(self.plain_bars) >= _LIMIT:
            self.plain_bars.clear()
        self.plain_bars.add(outline)

    def learn(self, outline: bytes, raw: bytes, at: int, template: Template) -> None:
        """Keeps where the values of `raw` stand, if its outline alone says which line it is."""
        if not raw.isascii() or b"\x1b" in raw or b"\0" in raw:
            return
        text = raw.decode("ascii")
        match = template.regex.fullmatch(text, at)
        if match is None:
            return
        spans = tuple(match.span(index) for index in range(1, match.re.groups + 1))
        end = at
        for start, stop in (*spans, (len(text), len(text))):
            if _DIGIT.search(text, end, start):
                return  # a digit outside the values may be part of a key: the outline does not tell it
            end = stop
        if not template.is_plain(match.groups()):
            return
        if len(self.places) >= _LIMIT:
            self.places.clear()
        blank = (0, 0)
        heads = [spans[index] if index in template.head_groups else blank for index in range(_heads_end(template))]
        cells = [spans[index] for index in template.field_groups]
        columns = Columns(template.keys, outline, cells)
        self.places[outline] = Places(template, at, _cutter(heads), columns)


def _heads_end(template: Template) -> int:
    """How many raw values must be cut for the step and its like to be among them."""
    return max(template.head_groups, default=-1) + 1
