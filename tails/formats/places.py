"""Where the numbers stand in a line whose digits alone differ from one read before: no matching at all, only slicing.

A line with each digit replaced by ``0`` is its outline. Lines of one outline have the same words at the same places, so
what was learned of one holds for all: that it is noise, or which bytes are which value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from operator import itemgetter

from trainmon.tails.formats.any_width import AnyWidth
from trainmon.tails.formats.digits import NumberAt
from trainmon.tails.formats.raw_values import Columns, RawValues
from trainmon.tails.formats.template import Reading, Template
from trainmon.tails.prefix import NO_PREFIX, Prefix
from trainmon.tails.prefix_times import PrefixTimes
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.steps import is_training_key

DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LIMIT = 8192
_PREFIX_LIMIT = 256
_LOOSE_LIMIT = 48
_COUNTED = 5  # one line in so many is counted: no number of ranks that take turns
_OFTEN = 8  # of so many counted as are in the window: where an outline stands is dear to learn
_WINDOW = 128
_BEHIND = 24  # characters behind a prefix that say where it ends
_DIGIT = re.compile(r"\d")
_SEQUENCE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")  # colour, cursor


_Cut = Callable[[bytes], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is needed to read many lines at once. `trains`: whether they tell of training.

    `heads`: the step, and the total, epoch and epochs that there are, in lines of one outline; `slots` says which of
    these four each is.
    """

    heads: list[NumberAt]
    slots: list[int]
    prefix: PrefixTimes | None
    trains: bool

    def prefixes(self, lines: list[bytes]) -> tuple[list[Prefix], list[float]] | None:
        """Of each line the prefix, which holds no time, and the time (NaN without); None: they must be read alone."""
        if self.prefix is None:
            return [NO_PREFIX] * len(lines), [math.nan] * len(lines)
        found = self.prefix.read(lines)
        if found is None:
            return None
        prefixes, times = found
        return prefixes, [math.nan] * len(lines) if times is None else times.tolist()


@dataclass(frozen=True, slots=True)
class Places:
    """Reads a line of one outline. Its words begin at `at`; `heads` cuts its step out, `columns` knows its metrics."""

    template: Template
    at: int
    heads: _Cut
    columns: Columns
    bulk: Bulk | None = None
    loose: AnyWidth | None = None

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
        self.loose: list[AnyWidth] = []  # the newest first
        self._often: dict[int, int] = {}
        self._since = 0  # lines since one was counted
        self._counted = 0
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
        """Keeps how the line `raw` was read; where its values stand too, if its outline alone says which line it is."""
        if not raw.isascii() or b"\x1b" in raw or b"\0" in raw:
            return
        known = next((one for one in self.loose if one.template is template and outline.startswith(one.begin)), None)
        if known is None or known.numbers(raw) is None or self._is_often(outline):
            self._learn(outline, raw, at, template, known)

    def _learn(self, outline: bytes, raw: bytes, at: int, template: Template, known: AnyWidth | None) -> None:
        text = raw.decode("ascii")
        match = template.regex.fullmatch(text, at)
        if match is None:
            return
        spans = tuple(match.span(index) for index in range(1, match.re.groups + 1))
        bulk = self._bulk(outline, text, at, template, spans)
        loose = self._learn_loose(known, outline[:at], raw, template, bulk, match) if bulk is not None else None
        if _is_told(text, at, spans) and template.is_plain(match.groups()):
            self._learn_places(outline, at, template, spans, bulk, loose)

    def _learn_places(
        self,
        outline: bytes,
        at: int,
        template: Template,
        spans: tuple[tuple[int, int], ...],
        bulk: Bulk | None,
        loose: AnyWidth | None,
    ) -> None:
        if len(self.places) >= _LIMIT:
            self.places.clear()
        blank = (0, 0)
        heads = [spans[index] if index in template.head_groups else blank for index in range(_heads_end(template))]
        columns = Columns(template.keys, outline, [spans[index] for index in template.field_groups])
        self.places[outline] = Places(template, at, _cutter(heads), columns, bulk, loose)

    def read_loose(self, outline: bytes, raw: bytes) -> tuple[AnyWidth, list[float]] | None:
        """How a line is read that differs from others in the width of its numbers too, and its numbers; None: it is
        none such.

        The outline of such a line is learned once it has come up several times: it is read faster so.
        """
        for one in self.loose:
            if outline.startswith(one.begin) and (numbers := one.numbers(raw)) is not None:
                self._since += 1
                if self._since >= _COUNTED and self._is_often(outline):
                    self._learn(outline, raw, len(one.begin), one.template, one)
                return one, numbers
        return None

    def _is_often(self, outline: bytes) -> bool:
        """Counts an outline; whether it has come up often of late."""
        self._since = 0
        self._counted += 1
        if self._counted >= _WINDOW:
            self._counted = 0
            self._often.clear()
        key = hash(outline)
        self._often[key] = count = self._often.get(key, 0) + 1
        return count == _OFTEN

    def _learn_loose(
        self,
        known: AnyWidth | None,
        begin: bytes,
        raw: bytes,
        template: Template,
        bulk: Bulk,
        match: re.Match[str],
    ) -> AnyWidth | None:
        """How lines like `raw` are read, whatever their numbers' widths; None where this one is not."""
        if known is not None and known.numbers(raw) is not None:
            return known
        commas = frozenset(place for place, group in enumerate(match.groups()) if "," in group)
        if known is not None:
            if commas <= known.commas:
                return None
            self.loose.remove(known)
            commas |= known.commas
        elif not AnyWidth.may_read(template):
            return None
        new = AnyWidth(template, begin, bulk, commas)
        self.loose.insert(0, new)
        del self.loose[_LOOSE_LIMIT:]
        return new if new.numbers(raw) is not None else None

    def _bulk(
        self, outline: bytes, text: str, at: int, template: Template, spans: tuple[tuple[int, int], ...]
    ) -> Bulk | None:
        """How to read many lines at once; None where one line's step depends on others, or is no plain number."""
        shape, groups = template.shape, template.head_groups
        if not template.keys or shape.step is None or shape.rank is not None or shape.secondary:
            return None
        numbers = [NumberAt(outline, *spans[group]) for group in groups]
        told = (shape.step, shape.total, shape.epoch, shape.epochs)
        slots = [slot for slot, span in enumerate(told) if span is not None]
        if len(numbers) != len(slots) or not all(number.is_plain for number in numbers):
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
        return Bulk(numbers, slots, prefix, any(map(is_training_key, template.keys)))


def _is_told(text: str, at: int, spans: tuple[tuple[int, int], ...]) -> bool:
    """Whether the outline of a line tells its words: a digit outside the values may be part of a key."""
    end = at
    for start, stop in (*spans, (len(text), len(text))):
        if _DIGIT.search(text, end, start):
            return False
        end = stop
    return True


def _heads_end(template: Template) -> int:
    """How many raw values must be cut for the step and its like to be among them."""
    return max(template.head_groups, default=-1) + 1


def bare(raw: bytes, outline: bytes) -> tuple[bytes, bytes]:
    """A line and its outline without colours and movements of the cursor: whatever these are, lines of the same words
    are known by one outline. Frames keep theirs, since places are counted in them."""
    if b"\x1b[" not in raw or b"\r" in raw:
        return raw, outline
    plain = _SEQUENCE.sub(b"", raw)
    return plain, plain.translate(DIGITS)
