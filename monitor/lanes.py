"""The sources of one run while they are merged: how far each is, what of it waits, and rows of several put in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import Rows, stack
from trainmon.monitor.stand_in import Position
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Fact, FloatArray, IntArray, Mark, MarkArray, Note

START: Final[Position] = (-1, -np.inf)


@dataclass(slots=True)
class Waiting:
    """What a source gave and waits for the others."""

    attempt: int
    item: Rows | Note | Fact
    place: FloatArray  # (n,) the highest step so far for each row; (1,) for notes and facts


@dataclass(slots=True)
class Lane:
    """One source. `group`: sources of one group run beside each other and share signals.

    `is_numbered`: its records have no step, their numbers stand in for it; `has_loss`: it logs the training loss.
    """

    path: str
    index: int
    group: int = 0
    is_numbered: bool = False
    has_loss: bool = False
    front: Position = START
    queue: list[Waiting] = field(default_factory=list)
    rows: int = 0


@dataclass(slots=True)
class Part:
    """The rows of one source that are let through; `places`: (n,) the highest step so far for each."""

    lane: Lane
    rows: Rows
    places: FloatArray

    def drop(self, key: SignalKey, where: IntArray, *, everything: bool) -> None:
        """Takes back the values of `key` on the rows `where`."""
        columns, marks = dict(self.rows.columns), dict(self.rows.marks)
        if everything:
            del columns[key]
            marks.pop(key, None)
        elif len(where):
            columns[key] = columns[key].copy()
            columns[key][where] = np.nan
            if key in marks:
                marks[key] = marks[key].copy()
                marks[key][where] = Mark.ABSENT
        rows = self.rows
        self.rows = Rows(rows.steps, rows.times, rows.lines, columns, marks, rows.time_kind, rows.primary)


def by_lane(taken: list[tuple[Lane, Rows, FloatArray]]) -> list[Part]:
    """One part for each source, in the order in which the sources were announced."""
    lanes = {lane.index: lane for lane, _, _ in taken}
    parts = []
    for index, lane in sorted(lanes.items()):
        own = [(rows, places) for other, rows, places in taken if other.index == index]
        parts.append(Part(lane, stack([rows for rows, _ in own]), np.concatenate([places for _, places in own])))
    return parts


def interleave(parts: list[Part]) -> Iterator[tuple[str, Rows, FloatArray]]:
    """Rows of several sources by step, rows at one step as one; cut where the file that stands for a row changes."""
    if len(parts) < 2:
        for part in parts:
            yield part.lane.path, part.rows, part.places
        return
    steps = np.concatenate([part.rows.steps for part in parts])
    places = np.concatenate([part.places for part in parts])
    lanes = np.repeat([part.lane.index for part in parts], [len(part.rows) for part in parts])
    nth = np.concatenate([_nth_at_place(part.places) for part in parts])
    order = np.lexsort((lanes, steps, nth, places))
    steps, places, lanes, nth = steps[order], places[order], lanes[order], nth[order]
    first = np.ones(len(steps), np.bool_)
    first[1:] = (places[1:] != places[:-1]) | (nth[1:] != nth[:-1]) | (steps[1:] != steps[:-1])
    target = np.empty(len(steps), np.int64)
    target[order] = np.cumsum(first) - 1
    joined = _fill([(part.lane, part.rows) for part in parts], target, int(first.sum()))
    leads, joined_places = lanes[first], places[first]
    cuts = np.flatnonzero(leads[1:] != leads[:-1]) + 1
    paths = {part.lane.index: part.lane.path for part in parts}
    begin = 0
    for end in (*cuts.tolist(), len(leads)):
        yield paths[int(leads[begin])], joined.take(slice(begin, end)), joined_places[begin:end]
        begin = end


def _nth_at_place(places: FloatArray) -> IntArray:
    """For each row how many rows right before it stand at the same place."""
    same = np.concatenate(([False], places[1:] == places[:-1]))
    index = np.arange(len(places))
    return index - np.maximum.accumulate(np.where(same, 0, index))


def _fill(parts: list[tuple[Lane, Rows]], target: IntArray, n: int) -> Rows:
    steps, times = np.full(n, np.nan), np.full(n, np.nan)
    lines, primary = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    columns: dict[SignalKey, FloatArray] = {}
    marks: dict[SignalKey, MarkArray] = {}
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
            logged = rows.logged(key)  # a slice of a column that is logged elsewhere overwrites nothing
            columns.setdefault(key, np.full(n, np.nan))[at[logged]] = column[logged]
            if key in rows.marks:
                marks.setdefault(key, np.zeros(n, np.uint8))
    for key, kept in marks.items():
        kept[:] = ~np.isnan(columns[key])
        for (_, rows), at in zip(parts, places, strict=True):
            if key in rows.marks:
                logged = rows.logged(key)
                kept[at[logged]] = rows.marks[key][logged]
    return Rows(steps, times, lines, columns, marks, parts[0][1].time_kind, primary)
