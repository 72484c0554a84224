"""Values of a second file of a run where the file that a signal is judged by has ended before it.

An event file is flushed every two minutes and a state is saved every so many steps: when a job dies, its last steps
stand in its text alone, and the loss that ran away among them. Of files whose losses agreed as far as both went, the
second's values are taken at once, and what the first tells later of these steps is left out; those of a file that tells
them far more seldom are kept here until nothing more comes, since the first may still tell of the steps between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Final

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import Rows
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, IntArray, Mark

_MOST: Final = 200_000  # rows; of an owner that is farther behind the newest of another file stand in
_LANES: Final = 64  # files whose values of several signals come by turns
Position = tuple[int, float]  # attempt, step
Owned = tuple[int, SignalKey]  # a group of sources, and what they share


@dataclass(slots=True)
class _Kept:
    """Rows of one source with those of its values that may stand in; `where`: key -> indices of the rows."""

    attempt: int
    group: int
    path: str
    rows: Rows
    places: FloatArray
    where: dict[SignalKey, IntArray] = field(default_factory=dict)


class StandIns:
    """Keeps such values until it is known whether they are needed."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []
        self._given: dict[Owned, Position] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def keep(self, attempt: int, group: int, path: str, rows: Rows, places: FloatArray, key: SignalKey,
             where: IntArray) -> None:  # fmt: skip
        """Takes the values of `key` on the rows `where` of `path`, none of which its owner has come to."""
        last = next((one for one in self._kept[-_LANES:] if one.path == path and one.places is places), None)
        if last is None:
            held = Rows(rows.steps, rows.times, rows.lines, {}, {}, rows.time_kind, rows.primary)
            last = _Kept(attempt, group, path, held, places)
            self._kept.append(last)
            while sum(len(one.places) for one in self._kept) > _MOST and len(self._kept) > 1:
                self._kept.pop(0)
        last.rows.columns[key] = rows.columns[key]
        if key in rows.marks:
            last.rows.marks[key] = rows.marks[key]
        last.where[key] = where

    def given(self, group: int, key: SignalKey, attempt: int) -> float:
        """The step up to which values of others stood in: what the owner tells of those steps comes too late."""
        at = self._given.get((group, key))
        if at is None or at[0] < attempt:
            return -np.inf
        return at[1] if at[0] == attempt else np.inf

    def give(self, group: int, key: SignalKey, last: Position) -> None:
        """Values of another file than the owner's were given up to `last`."""
        self._given[group, key] = max(self._given.get((group, key), last), last)

    def forget(self, front: Callable[[int, SignalKey], Position]) -> None:
        """Drops what the owners (`front`: how far each is) have come to by themselves."""
        self._kept = [kept for kept in self._kept if any(len(at) for _, at in _still(kept, front))]

    def take(
        self, front: Callable[[int, SignalKey], Position], may: Callable[[int, SignalKey, str], bool]
    ) -> Iterator[tuple[int, str, Rows]]:
        """Gives (attempt, path, rows) of what is needed. `may`: whether a file's values stand for the owner's."""
        kept, self._kept = self._kept, []
        for one in sorted(kept, key=lambda each: (each.attempt, float(each.places[0]))):
            columns: dict[SignalKey, IntArray] = {}
            for key, at in _still(one, front):
                fresh = at[one.places[at] > self.given(one.group, key, one.attempt)]
                if len(fresh) and may(one.group, key, one.path):
                    columns[key] = fresh
            if columns:
                for key, at in columns.items():
                    self.give(one.group, key, (one.attempt, float(one.places[at[-1]])))
                yield one.attempt, one.path, _only(one.rows, columns)


def _still(kept: _Kept, front: Callable[[int, SignalKey], Position]) -> Iterator[tuple[SignalKey, IntArray]]:
    """The values that the owner of their signal has not come to."""
    for key, at in kept.where.items():
        attempt, step = front(kept.group, key)
        if attempt < kept.attempt:
            yield key, at
        elif attempt == kept.attempt:
            yield key, at[kept.places[at] > step]


def _only(rows: Rows, where: dict[SignalKey, IntArray]) -> Rows:
    """The rows that hold any of the values, with nothing but these."""
    every = np.unique(np.concatenate(list(where.values())))
    out = rows.take(every)
    columns, marks = {}, {}
    for key, at in where.items():
        here = np.isin(every, at)
        columns[key] = np.where(here, out.columns[key], np.nan)
        if key in out.marks:
            marks[key] = np.where(here, out.marks[key], Mark.ABSENT).astype(np.uint8)
    return Rows(out.steps, out.times, out.lines, columns, marks, out.time_kind, out.primary)
