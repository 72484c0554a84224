"""Where the numbers stand in a line whose digits alone differ from one read before: no matching at all, only slicing.

A line with each digit replaced by ``0`` is its outline. Lines of one outline have the same words at the same places, so
what was learned of one holds for all: that it is noise, or which bytes are which value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter

from trainmon.tails.formats.digits import NumberAt
from trainmon.tails.formats.raw_values import Columns, RawValues
from trainmon.tails.formats.skeleton import Skeleton, skeletons
from trainmon.tails.formats.template import Reading, Template
from trainmon.tails.prefix_times import PrefixTimes
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.steps import is_training_key

DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LIMIT = 8192
_PREFIX_LIMIT = 256
_LOOSE_LIMIT = 1024
_BEGINS_LIMIT = 16
_OFTEN = 24
_BEHIND = 24  # characters behind a prefix that say where it ends
_DIGIT = re.compile(r"\d")


_Cut = Callable[[bytes], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is needed to read many lines at once. `trains`: whether they tell of training.

    `heads`: the step, and the total if there is one, in lines of one outline.
    """

    heads: list[NumberAt]
    prefix: PrefixTimes | None
    trains: bool


class Loose:
    """Reads lines of one skeleton. `begin`: the outline of their prefix; `reader` knows heads, then metrics."""

    __slots__ = ("begin", "bulk", "reader", "template")

    def __init__(self, template: Template, begin: bytes, reader: Skeleton, bulk: Bulk) -> None:
        self.template = template
        self.begin = begin
        self.reader = reader
        self.bulk = bulk


@dataclass(frozen=True, slots=True)
class Places:
    """Reads a line of one outline. Its words begin at `at`; `heads` cuts its step out, `columns` knows its metrics."""

    template: Template
    at: int
    heads: _Cut
    columns: Columns
    bulk: Bulk | None = None
    loose: Loose | None = None

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
        self.loose: dict[bytes, list[Loose]] = {}
        self._often: dict[bytes, int] = {}
        self._prefixes: dict[bytes, PrefixTimes | None] = {}

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
        bulk = self._bulk(outline, text, at, template, spans)
        loose = None
        if bulk is not None:
            head_cells = [spans[index] for index in template.head_groups]
            loose = self._learn_loose(outline, raw, at, template, bulk, [*head_cells, *cells])
        self.places[outline] = Places(template, at, _cutter(heads), columns, bulk, loose)

    def loose_of(self, skeleton: bytes, outline: bytes, raw: bytes) -> Loose | None:
        """What is known of a line that differs from others in the width of its numbers too.

        The outline of such a line is learned once it has come up several times: it is read faster than a skeleton.
        """
        for one in self.loose.get(skeleton, ()):
            if outline.startswith(one.begin):
                self._often[outline] = count = self._often.get(outline, 0) + 1
                if count == _OFTEN:
                    self.learn(outline, raw, len(one.begin), one.template)
                elif len(self._often) > _LIMIT:
                    self._often.clear()
                return one
        return None

    def _learn_loose(
        self, outline: bytes, raw: bytes, at: int, template: Template, bulk: Bulk, cells: list[tuple[int, int]]
    ) -> Loose | None:
        skeleton = skeletons(outline)[0]
        kept = self.loose.setdefault(skeleton, [])
        for one in kept:
            if outline.startswith(one.begin):
                return one
        try:
            new = Loose(template, outline[:at], Skeleton(raw, cells), bulk)
        except ValueError:
            return None  # a number that is none in these lines, such as nan
        if len(self.loose) > _LOOSE_LIMIT or len(kept) >= _BEGINS_LIMIT:
            self.loose.clear()
            kept = self.loose.setdefault(skeleton, [])
        kept.append(new)
        return new

    def _bulk(
        self, outline: bytes, text: str, at: int, template: Template, spans: tuple[tuple[int, int], ...]
    ) -> Bulk | None:
        """How to read many lines at once; None where one line's step depends on others, or is no plain number."""
        shape, groups = template.shape, template.head_groups
        if (
            not template.keys
            or shape.step is None
            or shape.epoch is not None
            or shape.epochs is not None
            or shape.rank is not None
            or shape.secondary
        ):
            return None
        numbers = [NumberAt(outline, *spans[group]) for group in groups]
        if len(numbers) != 1 + (shape.total is not None) or not all(number.is_plain for number in numbers):
            return None
        prefix = None
        if at:
            place = outline[: at + _BEHIND]
            if place not in self._prefixes:
                if len(self._prefixes) >= _PREFIX_LIMIT:
                    self._prefixes.clear()
                self._prefixes[place] = PrefixTimes.learn(text, at)
            prefix = self._prefixes[place]
            if prefix is None:
                return None
        return Bulk(numbers, prefix, any(map(is_training_key, template.keys)))


def _heads_end(template: Template) -> int:
    """How many raw values must be cut for the step and its like to be among them."""
    return max(template.head_groups, default=-1) + 1
