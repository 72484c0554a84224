"""Lasting rises of a noisy, falling series: level shifts and slow drift, judged on medians of small blocks."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trainmon.monitor.detectors.common import Found, Numbers, Place, numbers, place, resumed, same_value
from trainmon.monitor.frame import Frame, SignalKey

_WORTH = 64  # fewer values are read one by one
BLOCKS = 4  # a segment, the shortest stretch that is a level, is four blocks


class Block(NamedTuple):
    """A closed block: its median of u, the number of values, their spread, where it began and ended."""

    u: float
    size: int
    spread: float
    first: Place
    last: Place
    values: tuple[float, ...]
    steps: tuple[float, ...]
    lines: tuple[int, ...]


class BlockSeries:
    """Cuts a series into blocks of at least `values` values and `steps` steps, from the start of each attempt.

    Where a block ends depends on the rows alone. Each closed block goes to `on_block`, with the row that closed it.
    u is the logarithm of the value; series with values below 0 are left alone (`usable` turns false).
    """

    def __init__(
        self, key: SignalKey, steps: float, values: int, on_block: Callable[[Block, int, Found], None]
    ) -> None:
        self.key = key
        self.min_steps = steps
        self.min_values = values
        self.on_block = on_block
        self.usable = True
        self.on_restart: Callable[[bool, float], None] = lambda _carries_on, _step: None
        self._buffer: list[float] = []
        self._steps: list[float] = []
        self._lines: list[int] = []
        self._begin: Place | None = None
        self._attempt: int | None = None
        self._last_step = math.nan
        self._last_value = math.nan

    def feed(self, frame: Frame, found: Found, until: int | None = None) -> None:
        """Reads the rows of `frame` (those before row `until`)."""
        if not self.usable:
            return
        rows, steps, values = numbers(frame, self.key)
        if not rows:
            return
        if frame.attempt != self._attempt:
            if self._attempt is not None:
                self.on_restart(resumed(self._last_step, steps[0]), steps[0])
            self._buffer, self._steps, self._lines = [], [], []
            self._attempt = frame.attempt
            self._last_step = math.nan
        lines = (frame.lines if len(rows) == len(frame) else frame.lines[rows]).tolist()
        limit = len(rows) if until is None else bisect_left(rows, until)
        if limit >= _WORTH and _is_plain(steps, values, limit, self._last_step):
            self._feed_plain(frame, Numbers(rows[:limit], steps[:limit], values[:limit]), lines, found)
            return
        last_step, last_value = self._last_step, self._last_value
        buffer, buffer_steps, buffer_lines = self._buffer, self._steps, self._lines
        need, span = self.min_values, self.min_steps - 1
        for i, x in enumerate(values):
            row = rows[i]
            if until is not None and row >= until:
                break
            step = steps[i]
            if step == last_step and same_value(x, last_value):
                continue
            last_step, last_value = step, x
            if x <= 0:
                if x < 0:
                    self.usable = False
                    return
                continue
            if not buffer:
                self._begin = place(frame, row, x)
            buffer.append(x)
            buffer_steps.append(step)
            buffer_lines.append(lines[i])
            if len(buffer) >= need and step - buffer_steps[0] >= span:
                self._close(frame, row, x, found)
                buffer, buffer_steps, buffer_lines = self._buffer, self._steps, self._lines
        self._last_step, self._last_value = last_step, last_value

    def _feed_plain(self, frame: Frame, numbers: Numbers, lines: list[int], found: Found) -> None:
        """As `feed`, block by block, where steps only rise and all values are above 0."""
        rows, steps, values = numbers
        need, span = self.min_values, self.min_steps - 1
        at = 0
        while at < len(values):
            begun = len(self._buffer)
            if not begun:
                self._begin = place(frame, rows[at], values[at])
            first = self._steps[0] if begun else steps[at]
            last = max(at + need - begun - 1, bisect_left(steps, first + span, at), at)
            while last < len(steps) and steps[last] - first < span:  # rounding of steps that are no integers
                last += 1
            self._buffer += values[at : last + 1]
            self._steps += steps[at : last + 1]
            self._lines += lines[at : last + 1]
            at = last + 1
            if last < len(values):
                self._close(frame, rows[last], values[last], found)
        self._last_step, self._last_value = steps[-1], values[-1]

    def _close(self, frame: Frame, row: int, x: float, found: Found) -> None:
        ranked = sorted(self._buffer)
        n = len(ranked)
        middle = (ranked[(n - 1) // 2] + ranked[n // 2]) / 2
        low, high = ranked[n // 4], ranked[(3 * n) // 4]
        spread = math.log(high / low) / 1.349 if low > 0 else 0.0
        begin = self._begin
        assert begin is not None
        block = Block(
            math.log(middle),
            n,
            spread,
            begin,
            place(frame, row, x),
            tuple(self._buffer),
            tuple(self._steps),
            tuple(self._lines),
        )
        self._buffer, self._steps, self._lines = [], [], []
        self.on_block(block, row, found)


def _is_plain(steps: list[float], values: list[float], limit: int, last_step: float) -> bool:
    rises = np.diff(np.array(steps[:limit]), prepend=-math.inf if math.isnan(last_step) else last_step) > 0
    return min(values[:limit]) > 0 and bool(rises.all())


def change_point(blocks: list[Block]) -> Place:
    """Where the mean of u changed most: the first value after the best single split of the blocks' values."""
    u = np.log(np.array([x for block in blocks for x in block.values]))
    n = len(u)
    if n < 4:
        return blocks[-1].first
    total = np.cumsum(u)
    before = np.arange(1, n)
    gap = (total[-1] - total[:-1]) / (n - before) - total[:-1] / before
    strength = gap * np.sqrt(before * (n - before) / n)
    at = int(np.argmax(strength)) + 1
    for block in blocks:
        if at < len(block.values):
            return block.first._replace(step=block.steps[at], value=block.values[at], line=block.lines[at])
        at -= len(block.values)
    return blocks[-1].last


def robust_sigma(values: deque[float] | list[float]) -> float:
    """1.4826 times the median absolute deviation; 0 for fewer than 2 values."""
    if len(values) < 2:
        return 0.0
    x = np.array(values)
    return 1.4826 * float(np.median(np.abs(x - np.median(x))))
