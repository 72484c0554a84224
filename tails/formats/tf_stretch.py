"""Stretches of an event file in which every row is laid out as the one before it, read as a table of bytes.

A trainer logs the same tags in the same order, step after step: between two rows only wall times, steps, values and
check sums differ, and every row has as many bytes as the other (until the step has one more digit of its own). So
the bytes of `n` rows are a table of `n` lines, which is compared with one row that was parsed, column by column.
What a stretch gives is what `EventScan` gives for the same bytes: a row that differs in any other byte, or whose check
sums are wrong, ends it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.crc32c import contributions, mask
from trainmon.tails.formats.protobuf_wire import FIXED64, LENGTH, VARINT, WireError, fields
from trainmon.tails.formats.tf_event import Event, parse_event
from trainmon.tails.formats.tf_frames import FOOTER, HEADER
from trainmon.tails.quick_dataclass import dataclass

_PARTS = [(1, FIXED64), (2, VARINT), (5, LENGTH)]  # of an event, in the order in which writers write them
_WALL_PLACE, _WALL_BYTES = 1, 8
_STEP_PLACE, _MOST_STEP_BYTES = 10, 9
_CRC_BYTES = 4
_SAME, _HIGH_BIT = 0xFF, 0x80
_LARGEST_ROW = 1 << 16
_TEMPLATES = 16  # layouts kept, the one used last first
_FIRST_TRY, _GROWTH = 32, 8  # rows compared at once
_LEAST = 2

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Sum:
    """The check sum of one event: what its fixed bytes add, the places that vary with what each byte value there
    adds, and where the sum is stored."""

    fixed: np.uint32
    places: tuple[int, ...]
    tables: tuple[NDArray[np.uint32], ...]
    stored: int

    def holds(self, rows: Bytes) -> NDArray[np.bool_]:
        """(n,) whether the stored sums are right."""
        crc = np.full(len(rows), self.fixed)
        for place, table in zip(self.places, self.tables, strict=True):
            crc ^= table.take(rows[:, place])
        stored = np.ascontiguousarray(rows[:, self.stored : self.stored + _CRC_BYTES]).view("<u4")[:, 0]
        valid: NDArray[np.bool_] = mask(~crc) == stored
        return valid


@dataclass(frozen=True, slots=True)
class Layout:
    """How the bytes of a row lie. `cells`: tag, place and width of each value; `steps`: the places of the steps, all of
    `step_bytes`, that must be one step; `wall` that of the first event's time."""

    row: Bytes
    compared: Bytes
    wall: int
    steps: tuple[int, ...]
    step_bytes: int
    cells: tuple[tuple[int, int, int], ...]
    sums: tuple[_Sum, ...]

    def fitting(self, rows: Bytes) -> int:
        """How many of `rows` (n, size), from the first on, are laid out so."""
        other = rows ^ self.row
        other &= self.compared
        count = _zeros(other.reshape(-1)) // len(self.row)
        steps = np.zeros(count, np.uint8)
        for place in self.steps[1:]:
            for digit in range(self.step_bytes):
                steps |= rows[:count, place + digit] ^ rows[:count, self.steps[0] + digit]
        count = _zeros(steps)
        for one in self.sums:
            valid = one.holds(rows[:count])
            count = count if valid.all() else int(np.argmin(valid))
        return count

    def steps_of(self, rows: Bytes) -> Floats:
        """(n,) the step of each row."""
        out = np.zeros(len(rows), np.int64)
        for digit in range(self.step_bytes):
            out |= (rows[:, self.steps[0] + digit].astype(np.int64) & 0x7F) << (7 * digit)
        return out.astype(np.float64)

    def walls_of(self, rows: Bytes) -> Floats:
        """(n,) the wall time of each row, as written."""
        return np.ascontiguousarray(rows[:, self.wall : self.wall + _WALL_BYTES]).view("<f8")[:, 0]

    def values_of(self, rows: Bytes) -> dict[int, Floats]:
        """Tag -> (n,) values."""
        return {
            tag: np.ascontiguousarray(rows[:, place : place + width])
            .view("<f4" if width == 4 else "<f8")[:, 0]
            .astype(np.float64)
            for tag, place, width in self.cells
        }


class Stretches:
    """The layouts that one file's rows were seen in."""

    def __init__(self) -> None:
        self._layouts: list[Layout] = []

    def find(self, raw: Bytes, at: int) -> tuple[Layout, Bytes] | None:
        """The rows of one layout from place `at` of `raw` on, where a row begins: (n, size) bytes, n at least 1.

        The last row that fits is left out: what follows may belong to it.
        """
        for index, layout in enumerate(self._layouts):
            size = len(layout.row)
            most = (len(raw) - at) // size
            if most < _LEAST or ((raw[at : at + size] ^ layout.row) & layout.compared).any():
                continue
            count, tried = 0, _FIRST_TRY
            while count < most:
                stop = min(most, count + tried)
                fit = layout.fitting(raw[at + count * size : at + stop * size].reshape(-1, size))
                count += fit
                if count < stop:
                    break
                tried *= _GROWTH
            if count >= _LEAST:
                self._layouts.insert(0, self._layouts.pop(index))
                return layout, raw[at : at + (count - 1) * size].reshape(-1, size)
        return None

    def learn(self, row: bytes, tag_of: Callable[[str], int | None]) -> None:
        """Takes in how the frames of one whole `row` are laid out; `tag_of` tells a tag's number, None for one that is
        not read."""
        raw = np.frombuffer(row, np.uint8)
        if any(len(known.row) == len(raw) and known.fitting(raw.reshape(1, -1)) for known in self._layouts):
            return
        layout = _layout(row, tag_of) if len(row) <= _LARGEST_ROW else None
        if layout is not None:
            self._layouts = [layout, *self._layouts[: _TEMPLATES - 1]]


def _zeros(values: Bytes) -> int:
    """How many zeros `values` begins with. Words are looked at before bytes, which is many times faster."""
    whole = len(values) // 8 * 8
    if not values[:whole].view(np.uint64).any() and not values[whole:].any():
        return len(values)
    return int(np.argmax(values != 0))


def _layout(row: bytes, tag_of: Callable[[str], int | None]) -> Layout | None:
    """None where a row of its kind may differ in more than a stretch can tell."""
    raw = np.frombuffer(row, np.uint8)
    compared = np.full(len(row), _SAME, np.uint8)
    steps: list[tuple[int, int]] = []
    cells: list[tuple[int, int, int]] = []
    sums = []
    wall = -1
    at = 0
    while at < len(row):
        start = at + HEADER
        size = struct.unpack_from("<Q", row, at)[0] if start <= len(row) else len(row)
        at = start + size + FOOTER
        if at > len(row):
            return None
        width = _step_width(row, start, size)
        event = _event(row[start : start + size])
        if not width or event is None or any(scalar.place < 0 or scalar.size not in (4, 8) for scalar in event.scalars):
            return None
        tags = [tag_of(scalar.tag) for scalar in event.scalars]
        read = [tag for tag in tags if tag is not None]
        if read and len(read) < len(tags):
            return None
        varying = [(_WALL_PLACE, _WALL_BYTES), *((scalar.place, scalar.size) for scalar in event.scalars)]
        for place, count in varying:
            compared[start + place : start + place + count] = 0
        compared[start + _STEP_PLACE : start + _STEP_PLACE + width] = _HIGH_BIT
        compared[start + size : at] = 0
        if read:
            wall = start + _WALL_PLACE if wall < 0 else wall
            steps.append((start + _STEP_PLACE, width))
            cells += [(tag, start + scalar.place, scalar.size) for tag, scalar in zip(read, event.scalars, strict=True)]
        sums.append(_sum(raw[start : start + size], start, compared[start : start + size]))
    if len({tag for tag, _, _ in cells}) < len(cells) or len({width for _, width in steps}) != 1:
        return None
    return Layout(raw, compared, wall, tuple(place for place, _ in steps), steps[0][1], tuple(cells), tuple(sums))


def _step_width(row: bytes, start: int, size: int) -> int:
    """How many bytes the step of an event has that begins as writers write it; 0 for any other."""
    if size <= _STEP_PLACE or row[start] != 0x09 or row[start + _STEP_PLACE - 1] != 0x10:
        return 0
    digits = row[start + _STEP_PLACE : start + min(size, _STEP_PLACE + _MOST_STEP_BYTES)]
    return next((count for count, digit in enumerate(digits, 1) if digit < 0x80), 0)


def _event(body: bytes) -> Event | None:
    """The event of `body` when it holds scalars, and is a time, a step and a summary, each said once."""
    try:
        parts = [(number, kind) for number, kind, _, _ in fields(body)]
        event = parse_event(body) if parts == _PARTS else None
    except (WireError, struct.error, RecursionError):
        return None
    return event if event is not None and event.scalars else None


def _sum(payload: Bytes, start: int, compared: Bytes) -> _Sum:
    size = len(payload)
    adds = contributions(size)
    adds = np.concatenate((adds[:4, ::-1], adds[4:]))  # the initial value of all ones turns the first four bytes over
    fixed = np.flatnonzero(compared == _SAME)
    varying = np.flatnonzero(compared != _SAME)
    return _Sum(
        np.bitwise_xor.reduce(adds[fixed, payload[fixed]], initial=np.uint32(0)),
        tuple((varying + start).tolist()),
        tuple(np.ascontiguousarray(adds[place]) for place in varying.tolist()),
        start + size,
    )
