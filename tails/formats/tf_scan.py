"""The scalars of many framed events, gathered into rows.

Events of one tag differ only in time, step and value. One of each is parsed; the others are compared with it and
read in bulk.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.protobuf_wire import WireError, varint
from trainmon.tails.formats.stamps import epoch_seconds
from trainmon.tails.formats.table import Batch
from trainmon.tails.formats.tf_event import parse_event
from trainmon.tails.formats.tf_frames import FOOTER, HEADER, Frames
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Mark, MarkArray

_WALL, _STEP, _SUMMARY = 0x09, 0x10, 0x2A
_LARGEST = 1024  # larger events hold no lone scalar
_CELLS = 1 << 22
_FEW = 64  # events that are sooner parsed one by one
_NEW_TEMPLATES = 256  # learnt in one group of events; the rest is parsed one by one
_PARSED, _IGNORED = -1, -2
# Megatron writes "lm loss" and, at the number of samples seen, "lm loss vs samples"; some writers make blanks "_".
_OTHER_AXIS = re.compile(r"(.+)[ _]vs[ _].*", re.DOTALL)

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class Rows:
    """Rows of scalars: for each its step, wall time and the place of its first frame; for each cell (in the order of
    rows) its row, tag and value; `broken`: places of frames that hold no event."""

    steps: list[float] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    cell_rows: list[int] = field(default_factory=list)
    cell_tags: list[int] = field(default_factory=list)
    cell_values: list[float] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class _Template:
    """A summary of `size` bytes whose value, `width` bytes of it at `cut`, is left out; what it says is `tag`."""

    around: Bytes
    cut: int
    width: int
    tag: int
    before: bytes
    behind: bytes

    def fits(self, rests: Bytes) -> NDArray[np.bool_]:
        """(n,) whether the summaries (n, size) are of this template."""
        stop = self.cut + self.width
        out: NDArray[np.bool_] = (rests[:, : self.cut] == self.around[: self.cut]).all(axis=1)
        if stop < rests.shape[1]:
            out &= (rests[:, stop:] == self.around[stop:]).all(axis=1)
        return out

    def values(self, rests: Bytes) -> NDArray[np.float64]:
        """(n,) the values of summaries that fit."""
        stored = np.ascontiguousarray(rests[:, self.cut : self.cut + self.width])
        return stored.view("<f4" if self.width == 4 else "<f8")[:, 0].astype(np.float64)

    def value(self, body: bytes, head: int) -> float | None:
        """The value of one event whose summary begins at `head`; None when it does not fit."""
        at = head + self.cut
        if not body.startswith(self.before, head) or not body.endswith(self.behind):
            return None
        number: float = struct.unpack_from("<f" if self.width == 4 else "<d", body, at)[0]
        return number


class EventScan:
    """Reads the events of one file."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self._tag_ids: dict[str, int] = {}
        self._templates: dict[int, list[_Template]] = {}  # by the size of the summary

    def rows(self, data: bytes, frames: Frames) -> Rows:
        """The rows of whole frames: scalars that follow one another at one step, each tag once."""
        steps, tags, values, walls = self._bulk(data, frames)
        out = Rows()
        now: float | None = None
        filled: set[int] = set()
        ends = frames.starts + frames.lengths + FOOTER
        is_joined = (
            np.concatenate(([True], frames.starts[1:] - HEADER == ends[:-1])) if len(ends) else np.zeros(0, bool)
        )
        places = (frames.starts - HEADER).tolist()
        found = zip(
            places, is_joined.tolist(), steps.tolist(), walls.tolist(), tags.tolist(), values.tolist(), strict=True
        )
        for index, (place, joined, step, wall, tag, value) in enumerate(found):
            if not joined:
                now = None  # damage ends a row
            if tag == _IGNORED:
                continue
            if tag != _PARSED:
                if step != now or tag in filled:
                    now = _begin(out, step, wall, place)
                    filled = set()
                filled.add(tag)
                out.cell_rows.append(len(out.steps) - 1)
                out.cell_tags.append(tag)
                out.cell_values.append(value)
                continue
            start = place + HEADER
            parsed = self._parse(data[start : start + int(frames.lengths[index])])
            if parsed is None:
                out.broken.append(place)
                continue
            for own, number in parsed[2]:
                if own == _IGNORED:
                    continue
                if parsed[1] != now or own in filled:
                    now = _begin(out, parsed[1], parsed[0], place)
                    filled = set()
                filled.add(own)
                out.cell_rows.append(len(out.steps) - 1)
                out.cell_tags.append(own)
                out.cell_values.append(number)
        return out

    def batches(self, rows: Rows, count: int, offset: int, first_line: int, size: int) -> list[Batch]:
        """The first `count` rows as batches of at most `size`; `offset` is where the data begins in the file."""
        cell_rows = np.array(rows.cell_rows, np.int64)
        cell_tags = np.array(rows.cell_tags, np.int64)
        cell_values = np.array(rows.cell_values, np.float64)
        out = []
        for at in range(0, count, size):
            stop = min(at + size, count)
            low, high = np.searchsorted(cell_rows, (at, stop))
            columns, marks = {}, {}
            tags, values, places = cell_tags[low:high], cell_values[low:high], cell_rows[low:high] - at
            order = np.argsort(tags, kind="stable")
            bounds = np.flatnonzero(np.diff(tags[order], prepend=-1, append=-1))
            for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                chosen = order[begin:end]
                column = np.full(stop - at, math.nan)
                column[places[chosen]] = values[chosen]
                key = self.tags[int(tags[chosen[0]])]
                columns[key] = column
                mark = marks_of(places[chosen], values[chosen], stop - at)
                if mark is not None:
                    marks[key] = mark
            out.append(
                Batch(
                    np.array(rows.steps[at:stop]),
                    epoch_seconds(np.array(rows.walls[at:stop])),
                    np.array(rows.places[at:stop], np.int64) + offset,
                    np.arange(first_line + at, first_line + stop, dtype=np.int64),
                    columns,
                    marks,
                )
            )
        return out

    def _bulk(self, data: bytes, frames: Frames) -> tuple[Ints, Ints, NDArray[np.float64], NDArray[np.float64]]:
        """(n,) step, tag (`_PARSED`: to be parsed by itself), value and wall time of each event."""
        raw = np.frombuffer(data, np.uint8)
        count = len(frames.starts)
        steps, tags = np.zeros(count, np.int64), np.full(count, _PARSED, np.int64)
        values, walls = np.zeros(count), np.zeros(count)
        if count < _FEW:
            return steps, tags, values, walls
        for size in np.unique(frames.lengths[(frames.lengths > 16) & (frames.lengths <= _LARGEST)]).tolist():
            members = np.flatnonzero(frames.lengths == size)
            for at in range(0, len(members), max(1, _CELLS // size)):
                rows = members[at : at + max(1, _CELLS // size)]
                bodies = raw[frames.starts[rows][:, None] + np.arange(size)]
                heads, own_steps = _heads(bodies)
                for head in np.unique(heads[heads > 0]).tolist():
                    chosen = np.flatnonzero(heads == head)
                    found, numbers = self._match(bodies[chosen], head)
                    where = rows[chosen]
                    tags[where], values[where], steps[where] = found, numbers, own_steps[chosen]
                    walls[where] = np.ascontiguousarray(bodies[chosen, 1:9]).view("<f8")[:, 0]
        return steps, tags, values, walls

    def _match(self, bodies: Bytes, head: int) -> tuple[Ints, NDArray[np.float64]]:
        """(n,) tags and values of events (n, size) whose summary begins at `head`."""
        rests = bodies[:, head:]
        tags, values = np.full(len(rests), _PARSED, np.int64), np.zeros(len(rests))
        left = np.arange(len(rests))
        templates = self._templates.setdefault(rests.shape[1], [])
        tried = 0
        for _ in range(_NEW_TEMPLATES):
            for template in templates[tried:]:
                fits = template.fits(rests[left])
                tags[left[fits]] = template.tag
                values[left[fits]] = template.values(rests[left[fits]])
                left = left[~fits]
            tried = len(templates)
            if not len(left):
                break
            template_found = self._learn(bodies[left[0]].tobytes(), head)
            if template_found is None:
                left = left[1:]
            else:
                templates.append(template_found)
        return tags, values

    def _learn(self, body: bytes, head: int) -> _Template | None:
        """What an event's summary looks like, when it holds one number and nothing else matters in it."""
        try:
            event = parse_event(body)
            bare = parse_event(body[:head])
        except (WireError, struct.error, RecursionError):
            return None
        if (
            len(event.scalars) != 1
            or event.scalars[0].place < head
            or (event.step, event.wall) != (bare.step, bare.wall)
        ):
            return None
        scalar = event.scalars[0]
        stop = scalar.place + scalar.size
        return _Template(
            np.frombuffer(body[head:], np.uint8),
            scalar.place - head,
            scalar.size,
            self._tag(scalar.tag),
            body[head : scalar.place],
            body[stop:],
        )

    def _parse(self, body: bytes) -> tuple[float, int, list[tuple[int, float]]] | None:
        try:
            step, head = _head(body)
            templates = self._templates.setdefault(len(body) - head, []) if head else []
            for template in templates:
                value = template.value(body, head)
                if value is not None:
                    return struct.unpack_from("<d", body, 1)[0], step, [(template.tag, value)]
            event = parse_event(body)
        except (WireError, struct.error, RecursionError):
            return None
        if head and len(templates) < _FEW and (learnt := self._learn(body, head)) is not None:
            templates.append(learnt)
        return event.wall, event.step, [(self._tag(scalar.tag), scalar.value) for scalar in event.scalars]

    def tag_of(self, name: str) -> int | None:
        """The number of a tag; None for one that repeats another over another axis."""
        number = self._tag(name)
        return None if number == _IGNORED else number

    def _tag(self, name: str) -> int:
        number = self._tag_ids.get(name)
        if number is None:
            on_other_axis = _OTHER_AXIS.fullmatch(name)
            if on_other_axis and on_other_axis[1] in self._tag_ids:
                return _IGNORED
            number = self._tag_ids[name] = len(self.tags)
            self.tags.append(name)
        return number


def _begin(rows: Rows, step: int, wall: float, place: int) -> float:
    """Begins a row; returns its step."""
    rows.steps.append(float(step))
    rows.walls.append(wall)
    rows.places.append(place)
    return step


def _head(body: bytes) -> tuple[int, int]:
    """The step of an event, and where its summary begins: 0 when it does not begin as writers write it."""
    if len(body) < 12 or body[0] != _WALL or body[9] != _STEP:
        return 0, 0
    step, head = varint(body, 10)
    is_summary = head < min(len(body), 20) and body[head] == _SUMMARY  # ten digits are a negative step
    return step, head if is_summary else 0


def _heads(bodies: Bytes) -> tuple[Ints, Ints]:
    """(n,) where the summary of each event (n, size) begins, 0 when it does not begin as writers write it; its step."""
    count, size = bodies.shape
    heads, steps = np.zeros(count, np.int64), np.zeros(count, np.int64)
    starts_well = bodies[:, 0] == _WALL
    heads[starts_well & (bodies[:, 9] == _SUMMARY)] = 9
    active = starts_well & (bodies[:, 9] == _STEP)
    for digit in range(min(9, size - 11)):  # ten digits are a negative step: parsed by itself
        byte = bodies[:, 10 + digit].astype(np.int64)
        steps += np.where(active, (byte & 0x7F) << (7 * digit), 0)
        ends = active & (byte < 0x80)
        heads[ends & (bodies[:, 11 + digit] == _SUMMARY)] = 11 + digit
        active &= ~ends
        if not active.any():
            break
    return heads, steps


def marks_of(places: Ints, values: NDArray[np.float64], count: int) -> MarkArray | None:
    """(count,) marks of a column of which `places` hold `values`; None where all of them are finite.

    An event is written for a value alone: its NaN fills no gap.
    """
    if np.isfinite(values).all():
        return None
    infinite = np.where(values > 0, Mark.POS_INF, Mark.NEG_INF)
    marks = np.full(count, Mark.ABSENT, np.uint8)
    marks[places] = np.where(np.isfinite(values), Mark.NUMBER, np.where(np.isnan(values), Mark.SAID_NAN, infinite))
    return marks
