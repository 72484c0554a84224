"""The scalars of many framed events, gathered into rows."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

import numpy as np

from trainmon.tails.formats.protobuf_wire import WireError, signed
from trainmon.tails.formats.stamps import epoch_seconds
from trainmon.tails.formats.table import Batch
from trainmon.tails.formats.tf_event import parse_event
from trainmon.tails.formats.tf_frames import FOOTER, HEADER, Frames
from trainmon.tails.record import Mark, MarkArray

_WALL, _STEP, _SUMMARY = 0x09, 0x10, 0x2A
_TEMPLATES = 200_000
_DOUBLE_AT, _FLOAT_AT = struct.Struct("<d").unpack_from, struct.Struct("<f").unpack_from


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


class EventScan:
    """Reads events; one whose bytes differ from an earlier one's only in time, step and value is not parsed again."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self._tag_ids: dict[str, int] = {}
        # What surrounds the value in an event's summary -> the tag; by the summary's size, where the value may be.
        self._templates: dict[tuple[bytes, bytes], int] = {}
        self._layouts: dict[int, list[tuple[int, int]]] = {}

    def rows(self, data: bytes, frames: Frames) -> Rows:
        """The rows of whole frames: scalars that follow one another at one step, each tag once."""
        out = Rows()
        templates, layouts = self._templates, self._layouts
        now: float | None = None
        expected = 0
        filled: set[int] = set()
        for start, size in zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True):
            if start - HEADER != expected:
                now = None  # damage ends a row
            expected = start + size + FOOTER
            step, at = _head(data, start, start + size)
            tag = -1
            wall = value = 0.0
            if at:
                rest = data[at : start + size]
                for cut, width in layouts.get(len(rest), ()):
                    tag = templates.get((rest[:cut], rest[cut + width :]), -1)
                    if tag >= 0:
                        value = (_FLOAT_AT if width == 4 else _DOUBLE_AT)(rest, cut)[0]
                        wall = _DOUBLE_AT(data, start + 1)[0]
                        break
            if tag >= 0:
                cells = [(tag, value)]
            else:
                parsed = self._parse(data, start, size, at, step)
                if parsed is None:
                    out.broken.append(start - HEADER)
                    continue
                wall, step, cells = parsed
            for tag, value in cells:
                if step != now or tag in filled:
                    now = step
                    filled = set()
                    out.steps.append(float(step))
                    out.walls.append(wall)
                    out.places.append(start - HEADER)
                filled.add(tag)
                out.cell_rows.append(len(out.steps) - 1)
                out.cell_tags.append(tag)
                out.cell_values.append(value)
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
                mark = _marks(places[chosen], values[chosen], stop - at)
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

    def _parse(
        self, data: bytes, start: int, size: int, at: int, step: int
    ) -> tuple[float, int, list[tuple[int, float]]] | None:
        try:
            event = parse_event(data[start : start + size])
        except (WireError, struct.error, RecursionError):
            return None
        cells = [(self._tag(scalar.tag), scalar.value) for scalar in event.scalars]
        if at and len(cells) == 1 and event.step == step and event.scalars[0].place >= 0:
            scalar = event.scalars[0]
            cut, rest = scalar.place - (at - start), data[at : start + size]
            if len(self._templates) < _TEMPLATES and cut >= 0:
                self._templates[(rest[:cut], rest[cut + scalar.size :])] = cells[0][0]
                layouts = self._layouts.setdefault(len(rest), [])
                if (cut, scalar.size) not in layouts and len(layouts) < 8:
                    layouts.append((cut, scalar.size))
        return event.wall, event.step, cells

    def _tag(self, name: str) -> int:
        number = self._tag_ids.get(name)
        if number is None:
            number = self._tag_ids[name] = len(self.tags)
            self.tags.append(name)
        return number


def _head(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The step of an event that begins as writers write it, and where its summary begins; 0 as place if it does not."""
    if end - at < 11 or data[at] != _WALL:
        return 0, 0
    tag = data[at + 9]
    if tag == _SUMMARY:
        return 0, at + 9
    if tag != _STEP:
        return 0, 0
    place = at + 10
    value = shift = 0
    while place < end and shift < 64:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value if shift < 63 else signed(value)), place if place < end and data[place] == _SUMMARY else 0
        shift += 7
    return 0, 0


def _marks(places: np.ndarray, values: np.ndarray, count: int) -> MarkArray | None:
    if np.isfinite(values).all():
        return None
    marks = np.full(count, Mark.ABSENT, np.uint8)
    marks[places] = np.where(
        np.isnan(values),
        Mark.NAN,
        np.where(values == math.inf, Mark.POS_INF, np.where(values == -math.inf, Mark.NEG_INF, Mark.NUMBER)),
    )
    return marks
