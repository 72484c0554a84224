"""All series of a run, in bounded memory.

The newest values stay raw. Older ones are merged into bins of equal numbers of values that keep mean, least,
greatest, last and count: of a series that has more points than it may have, however long it grows, and of all of them
when the budget is passed, P2 and unknown signals first, P0 last. Steps around episodes stay raw, the newest ones where
there are very many. No extreme is ever lost, at any zoom. Whether and where values are merged does not depend on how
rows came in: both limits are looked at every so many rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from trainmon.monitor.axis import Axis
from trainmon.monitor.column import Column
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.pins import Pins
from trainmon.monitor.room import BUDGET_BYTES, MOST_POINTS, Points
from trainmon.monitor.rows import BoolArray
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import SeriesView
from trainmon.tails.record import FloatArray, Mark, MarkArray

_CHECK_ROWS: Final = 4096
_FEWEST_CHECK_ROWS: Final = 256
MOST_SERIES: Final = 4096
# Raw values kept at the newest end, tried in this order; and the fewest bins that the older part is thinned to.
_RAW_TAILS: Final = (4096, 1024, 256)
_FEWEST_BINS: Final = 512
_FIRST_WIDTH: Final = 8
# Merging again and again costs more than the room it gains: go well below the budget once it is passed.
_TARGET_SHARE: Final = 0.7
_PRIORITY: Final = {"P0": 0, "P1": 1, "P2": 2}


def priority_of(key: SignalKey) -> int:
    """0 to 2 as METRICS.md's P0 to P2; 2 for keys that are no signal."""
    signal = BY_ID.get(key.signal)
    return 2 if signal is None else _PRIORITY[signal.priority]


class SeriesStore:
    """One column a (signal, labels), fed frame by frame.

    >>> store = SeriesStore()
    >>> loss = SignalKey("loss.train")
    >>> steps = np.array([1.0, 2.0])
    >>> frame = Frame(0, "log", steps, steps, np.array([1, 2]), {loss: np.array([2.5, 2.25])})
    >>> store.append(frame)
    >>> store.views()[loss].values.tolist()
    [2.5, 2.25]
    """

    def __init__(self, budget_bytes: int = BUDGET_BYTES, most_series: int = MOST_SERIES) -> None:
        self._budget_bytes = budget_bytes
        self._points = MOST_POINTS
        self._most_series = most_series
        self._columns: dict[SignalKey, Column] = {}
        self._rows = 0
        self._admitted: set[SignalKey] = set()
        self._pins = Pins()
        self._widths: dict[int, int] = {}
        self._is_unordered = False
        self._new_axis = Axis(np.empty(0), np.empty(0), np.empty(0, np.int64))
        self.refused = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all values and axes."""
        axes = {id(column.axis): column.axis.nbytes for column in self._columns.values()}
        return sum(axes.values()) + sum(column.nbytes for column in self._columns.values())

    def limit(self, budget_bytes: int, points: Points = MOST_POINTS) -> None:
        """From now on so much room, and so many points a series: what there is too much is merged at once."""
        self._budget_bytes, self._points = budget_bytes, points
        self._keep_short()
        if self.nbytes > budget_bytes:
            self._shrink(int(budget_bytes * _TARGET_SHARE))

    @property
    def seen(self) -> dict[SignalKey, int]:
        """How many values each signal has had, in all attempts."""
        return {key: column.count for key, column in self._in_order().items()}

    @property
    def numbers(self) -> dict[SignalKey, int]:
        """How many of them were finite."""
        return {key: column.numbers for key, column in self._in_order().items()}

    def admit(self, key: SignalKey) -> bool:
        """Whether a series for `key` may be kept: always for a P0 row, else while there is room."""
        if key in self._admitted:
            return True
        vital = priority_of(key) == 0 and not key.labels
        if not vital and len(self._admitted) >= self._most_series:
            self.refused += 1
            return False
        self._admitted.add(key)
        return True

    def pin(self, attempt: int, first_step: float, last_step: float) -> None:
        """Keeps the steps from `first_step` to `last_step`, and 100 on either side, raw from now on."""
        self._pins.add(attempt, first_step, last_step)

    def append(self, frame: Frame) -> None:
        """Adds the rows of `frame`."""
        begin, every = 0, self._check_rows
        while begin < len(frame):
            end = min(len(frame), begin + every - self._rows % every)
            self._append(frame, begin, end)
            self._rows += end - begin
            begin = end
            if self._rows % every == 0:
                self._keep_short()
                if self.nbytes > self._budget_bytes:
                    self._shrink(int(self._budget_bytes * _TARGET_SHARE))

    def views(
        self,
        raw_keys: Mapping[SignalKey, str] | None = None,
        derived: Mapping[SignalKey, str] | None = None,
    ) -> dict[SignalKey, SeriesView]:
        """Every series for drawing, without copies."""
        raw_keys, derived = raw_keys or {}, derived or {}
        views = {}
        for key, column in self._in_order().items():
            signal = BY_ID.get(key.signal)
            unit = signal.unit if signal else ""
            views[key] = column.view(unit, raw_keys.get(key, ""), derived.get(key, ""))
        return views

    def _in_order(self) -> dict[SignalKey, Column]:
        """The columns by key: the order must not tell how rows came in."""
        if self._is_unordered:
            self._columns = dict(sorted(self._columns.items()))
            self._is_unordered = False
        return self._columns

    def _append(self, frame: Frame, begin: int, end: int) -> None:
        where = slice(begin, end)
        steps, times = frame.steps[where], frame.times[where]
        groups: dict[tuple[int, bytes], list[tuple[Column, FloatArray]]] = {}
        for key, values in frame.columns.items():
            if not self.admit(key):
                continue
            part = values[where]
            finite = np.isfinite(part)
            marks = frame.marks.get(key)
            if marks is None and finite.all():
                column = self._column(key)
                column.note(len(part), float(part[-1]), _NO_STEPS)
                groups.setdefault((id(column.axis), b""), []).append((column, part))
                continue
            bad = _bad(part, None if marks is None else marks[where])
            all_finite = bool(finite.all())
            count = int(finite.sum()) + int(bad.sum())
            if not count:
                continue
            column = self._column(key)
            logged = np.flatnonzero(finite | bad)
            column.note(count, float(part[logged[-1]]), steps[bad])
            if not all_finite:
                part = part[finite]
            if len(part):
                mask = b"" if all_finite else np.flatnonzero(finite).tobytes()
                groups.setdefault((id(column.axis), mask), []).append((column, part))
        for (_, mask), members in groups.items():
            rows = np.frombuffer(mask, np.int64) if mask else slice(None)
            self._extend(members, steps[rows], times[rows], frame.attempt)

    def _column(self, key: SignalKey) -> Column:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = Column(key, priority_of(key), self._empty_axis())
            column.axis.members += 1
            self._is_unordered = True
        return column

    def _empty_axis(self) -> Axis:
        # New series share one empty axis; those that then log the same rows go on sharing it.
        if len(self._new_axis):
            self._new_axis = Axis(np.empty(0), np.empty(0), np.empty(0, np.int64))
        return self._new_axis

    @staticmethod
    def _extend(members: list[tuple[Column, FloatArray]], steps: FloatArray, times: FloatArray, attempt: int) -> None:
        axis = members[0][0].axis
        if len(members) < axis.members:  # the others did not log these rows: from here on another axis
            axis.members -= len(members)
            axis = axis.copy()
            axis.members = len(members)
            for column, _ in members:
                column.axis = axis
        axis.append(steps, times, attempt)
        for column, values in members:
            column.append(values)

    @property
    def _check_rows(self) -> int:
        """After how many rows the limits are looked at."""
        return min(max(min(self._points.most) // 4, _FEWEST_CHECK_ROWS), _CHECK_ROWS)

    def _keep_short(self) -> None:
        """Merges the older values of each series that has become too long, to three quarters of what it may have."""
        groups: dict[tuple[int, int], list[Column]] = {}
        for column in self._columns.values():
            if len(column.axis) > self._points.most[column.priority]:
                groups.setdefault((id(column.axis), column.priority), []).append(column)
        for (_, priority), columns in groups.items():
            most, raw = self._points.most[priority], self._points.raw(priority)
            for pinned in (self._points.pinned(priority), 0):
                width, values = max(columns[0].axis.width, _FIRST_WIDTH), int(columns[0].axis.counts.sum())
                while len(columns[0].axis) > most * 3 // 4 and width < 2 * values:
                    # Buffers of one size take each other's places: memory stays as it is from one merging to the next.
                    self._merge(columns, width, raw, pinned, room=most + self._check_rows)
                    width *= 2

    def _shrink(self, target: int) -> None:
        """Merges older values until `target` bytes are reached or nothing more can be gained."""
        for honour_pins in (True, False):
            for priority in (2, 1, 0):
                pinned = self._points.pinned(priority) if honour_pins else 0
                for tail in _RAW_TAILS:
                    for width in self._widths_to_try(priority):
                        self._widths[priority] = width
                        if not self._thin(priority, width, tail, pinned):
                            break
                        if self.nbytes <= target:
                            return

    def _widths_to_try(self, priority: int) -> Iterator[int]:
        width = self._widths.get(priority, _FIRST_WIDTH)
        while True:
            yield width
            width *= 2

    def _thin(self, priority: int, width: int, tail: int, pinned: int) -> bool:
        """Merges the series of one priority; False when a larger width could not gain more."""
        groups: dict[int, list[Column]] = {}
        for column in self._columns.values():
            if column.priority == priority and len(column.axis) > tail + _FEWEST_BINS:
                groups.setdefault(id(column.axis), []).append(column)
        more = False
        for columns in groups.values():
            more |= width < int(columns[0].axis.counts.sum())
            self._merge(columns, width, tail, pinned)
        return more

    def _merge(self, columns: list[Column], width: int, tail: int, pinned: int, room: int = 0) -> None:
        """Merges `width` values at a time of series on one axis, but for the newest `tail` points and so many that are
        pinned."""
        axis = columns[0].axis
        keep = self._pins.on(axis, pinned)
        firsts = axis.bins(width, len(axis) - tail, keep)
        if len(firsts) == len(axis):
            return
        merged = axis.binned(firsts, width, room)
        merged.members = len(columns)
        axis.members -= len(columns)
        for column in columns:
            column.rebin(merged, firsts, room)
        if axis is self._new_axis:
            self._new_axis = Axis(np.empty(0), np.empty(0), np.empty(0, np.int64))


_NO_STEPS: FloatArray = np.empty(0)


def _bad(values: FloatArray, marks: MarkArray | None) -> BoolArray:
    if marks is None:
        return np.isinf(values)
    return np.asarray(marks > Mark.NUMBER)
