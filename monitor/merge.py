"""Rows of several files of one run in the order of their steps, whatever order they arrived in.

Rows wait until every source has passed their step, or until too many wait, or until `release_all`. Rows of several
sources at one step become one row. Each signal belongs to one source of those that run beside each other: the first
that logs it, or one that turns out to log it much more often; the others' copies are neither judged nor counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import Rows
from trainmon.tails.record import Fact, FloatArray, Note

MOST_WAITING_ROWS: Final = 100_000
_OFTENER: Final = 2
_OFTENER_BY: Final = 8

Position = tuple[int, float]  # attempt, step
_START: Final[Position] = (-1, -np.inf)


@dataclass(slots=True)
class Merged:
    """What comes out: rows of one attempt and one path, or something that was said."""

    attempt: int
    path: str
    item: Rows | Note | Fact


@dataclass(slots=True)
class _Waiting:
    attempt: int
    item: Rows | Note | Fact
    place: FloatArray  # (n,) the highest step so far for each row; (1,) for notes and facts


@dataclass(slots=True)
class _Lane:
    """One source. `group`: sources of one group run beside each other and share signals."""

    path: str
    index: int
    group: int = 0
    front: Position = _START
    queue: list[_Waiting] = field(default_factory=list)
    rows: int = 0


class Merge:
    """Feeds of several sources in, rows in order of (attempt, step) out."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._owner: dict[tuple[int, SignalKey], str] = {}
        self._counts: dict[tuple[str, SignalKey], int] = {}

    @property
    def waiting(self) -> bool:
        """Whether anything is held back."""
        return any(lane.queue for lane in self._lanes.values())

    def join(self, path: str, group: int) -> None:
        """Makes a source known, or moves one that has given no rows yet to another group."""
        lane = self._lanes.setdefault(path, _Lane(path, len(self._lanes)))
        lane.group = group

    def owns(self, path: str, key: SignalKey) -> bool:
        """Whether another source than `path` may not give `key`."""
        return self._owner.get((self._lanes[path].group, key)) == path

    def is_owned(self, path: str, key: SignalKey) -> bool:
        """Whether a source beside `path` (or itself) already gives `key`."""
        return (self._lanes[path].group, key) in self._owner

    def add(self, path: str, attempt: int, item: Rows | Note | Fact) -> None:
        """Puts rows, a note or a fact behind what `path` gave before."""
        lane = self._lanes[path]
        start = lane.front[1] if lane.front[0] == attempt else -np.inf
        if isinstance(item, Rows):
            if not len(item):
                return
            place = np.maximum.accumulate(np.concatenate(([start], item.steps)))[1:]
            lane.rows += len(item)
        else:
            place = np.array([start])
        lane.queue.append(_Waiting(attempt, item, place))
        lane.front = max(lane.front, (attempt, float(place[-1])))

    def release(self) -> Iterator[Merged]:
        """What every source has passed; all but the newest when too much waits."""
        if sum(lane.rows for lane in self._lanes.values()) > MOST_WAITING_ROWS:
            fronts = sorted(lane.front for lane in self._lanes.values() if lane.rows)
            yield from self._until(fronts[-1])
        else:
            attempt, step = min(lane.front for lane in self._lanes.values())
            # Another row of the slowest source may still come at its newest step.
            yield from self._until((attempt, float(np.nextafter(step, -np.inf))))

    def release_all(self) -> Iterator[Merged]:
        """Everything that waits."""
        yield from self._until((1 << 60, np.inf))

    def _until(self, end: Position) -> Iterator[Merged]:
        taken: dict[int, list[tuple[_Lane, Rows]]] = {}
        said: dict[int, list[tuple[float, int, _Lane, Note | Fact]]] = {}
        for lane in self._lanes.values():
            for waiting in self._take(lane, end):
                if isinstance(waiting.item, Rows):
                    taken.setdefault(waiting.attempt, []).append((lane, waiting.item))
                else:
                    entry = (float(waiting.place[0]), lane.index, lane, waiting.item)
                    said.setdefault(waiting.attempt, []).append(entry)
        for attempt in sorted({*taken, *said}):
            yield from self._attempt(attempt, taken.get(attempt, []), said.get(attempt, []))

    @staticmethod
    def _take(lane: _Lane, end: Position) -> list[_Waiting]:
        taken: list[_Waiting] = []
        while lane.queue:
            waiting = lane.queue[0]
            if waiting.attempt > end[0]:
                break
            count = len(waiting.place)
            if waiting.attempt == end[0]:
                count = int(np.searchsorted(waiting.place, end[1], "right"))
            if not count:
                break
            rows = waiting.item
            if isinstance(rows, Rows):
                lane.rows -= count
                if count < len(rows):
                    taken.append(_Waiting(waiting.attempt, rows.take(slice(0, count)), waiting.place[:count]))
                    lane.queue[0] = _Waiting(waiting.attempt, rows.take(slice(count, None)), waiting.place[count:])
                    break
            taken.append(lane.queue.pop(0))
        return taken

    def _attempt(
        self,
        attempt: int,
        parts: list[tuple[_Lane, Rows]],
        said: list[tuple[float, int, _Lane, Note | Fact]],
    ) -> Iterator[Merged]:
        said.sort(key=lambda entry: entry[:2])
        owned = [(lane, self._owned(lane, rows)) for lane, rows in parts]
        pieces = list(_interleave(owned))
        for path, rows in pieces:
            begin = 0
            while said and said[0][0] < rows.steps[-1]:
                place, _, lane, item = said.pop(0)
                end = max(begin, int(np.searchsorted(rows.steps, place, "right")))
                if end > begin:
                    yield Merged(attempt, path, rows.take(slice(begin, end)))
                    begin = end
                yield Merged(attempt, lane.path, item)
            if begin < len(rows):
                yield Merged(attempt, path, rows.take(slice(begin, None)) if begin else rows)
        for _, _, lane, item in said:
            yield Merged(attempt, lane.path, item)

    def _owned(self, lane: _Lane, rows: Rows) -> Rows:
        kept = {}
        for key, column in rows.columns.items():
            many = self._counts[lane.path, key] = self._counts.get((lane.path, key), 0) + int(rows.logged(key).sum())
            owner = self._owner.setdefault((lane.group, key), lane.path)
            if owner != lane.path and many > _OFTENER * self._counts.get((owner, key), 0) + _OFTENER_BY:
                owner = self._owner[lane.group, key] = lane.path
            if owner == lane.path:
                kept[key] = column
        marks = {key: marks for key, marks in rows.marks.items() if key in kept}
        return Rows(rows.steps, rows.times, rows.lines, kept, marks, rows.time_kind, rows.primary)


def _interleave(parts: list[tuple[_Lane, Rows]]) -> Iterator[tuple[str, Rows]]:
    """Rows of several sources by step, rows at one step as one; cut where the file that stands for a row changes."""
    if len({lane.path for lane, _ in parts}) < 2:
        for lane, rows in parts:
            yield lane.path, rows
        return
    steps = np.concatenate([rows.steps for _, rows in parts])
    lanes = np.concatenate([np.full(len(rows), lane.index) for lane, rows in parts])
    nth = np.concatenate([_nth_at_step(rows.steps) for _, rows in parts])
    order = np.lexsort((lanes, nth, steps))
    steps, lanes, nth = steps[order], lanes[order], nth[order]
    first = np.ones(len(steps), np.bool_)
    first[1:] = (steps[1:] != steps[:-1]) | (nth[1:] != nth[:-1])
    target = np.empty(len(steps), np.int64)
    target[order] = np.cumsum(first) - 1
    joined = _fill(parts, target, int(first.sum()))
    leads = lanes[first]
    cuts = np.flatnonzero(leads[1:] != leads[:-1]) + 1
    paths = {lane.index: lane.path for lane, _ in parts}
    begin = 0
    for end in (*cuts.tolist(), len(leads)):
        yield paths[int(leads[begin])], joined.take(slice(begin, end))
        begin = end


def _nth_at_step(steps: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each row how many rows before it stand at the same step in a row."""
    same = np.concatenate(([False], steps[1:] == steps[:-1]))
    index = np.arange(len(steps))
    begin = np.maximum.accumulate(np.where(same, 0, index))
    return index - begin


def _fill(parts: list[tuple[_Lane, Rows]], target: np.ndarray[tuple[int], np.dtype[np.int64]], n: int) -> Rows:
    steps, times = np.full(n, np.nan), np.full(n, np.nan)
    lines, primary = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    columns: dict[SignalKey, FloatArray] = {}
    marks: dict[SignalKey, np.ndarray[tuple[int], np.dtype[np.uint8]]] = {}
    begin = 0
    places = []
    for _, rows in parts:
        places.append(target[begin : begin + len(rows)])
        begin += len(rows)
    for (_, rows), at in reversed(list(zip(parts, places, strict=True))):  # the first source's lines win
        steps[at], lines[at] = rows.steps, rows.lines
        times[at] = np.where(np.isnan(rows.times), times[at], rows.times)
        primary[at] |= rows.primary
        for key, column in rows.columns.items():
            columns.setdefault(key, np.full(n, np.nan))[at] = column
            if key in rows.marks:
                marks.setdefault(key, np.zeros(n, np.uint8))
    for key, kept in marks.items():
        kept[:] = ~np.isnan(columns[key])
        for (_, rows), at in zip(parts, places, strict=True):
            if key in rows.marks:
                kept[at] = rows.marks[key]
    return Rows(steps, times, lines, columns, marks, parts[0][1].time_kind, primary)
