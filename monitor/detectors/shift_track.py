"""Lasting rises of a noisy, falling series: level shifts and slow drift, judged on the middles of small blocks."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple, Protocol

import numpy as np

from trainmon.monitor.detectors.common import Finite, Found, Place, finite, log_of, place, resumed, same_value
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.middle import median
from trainmon.tails.record import FloatArray

_WORTH = 64  # fewer values are read one by one
_BLOCK_STRETCH = 8
_LOOK = 64  # blocks
BLOCKS = 4  # a segment, the shortest stretch that is a level, is four blocks


class Block(NamedTuple):
    """A closed block: its middle of u, the number of values, where it began and ended."""

    u: float
    size: int
    first: Place
    last: Place
    values: tuple[float, ...]
    steps: tuple[float, ...]
    lines: tuple[int, ...]


class Blocks:
    """(m,) blocks of `size` values each, closed one after the other; `us` their middles, `rows` where each closed."""

    def __init__(self, frame: Frame, own: Finite, start: int, count: int, size: int) -> None:
        self.size = size
        values = np.sort(own.values[start : start + count * size].reshape(count, size), axis=1)
        self.us = middles(values)
        self._frame = frame
        self._own = own
        self._start = start

    def __len__(self) -> int:
        return len(self.us)

    def row(self, index: int) -> int:
        """The row of the frame that closed a block."""
        return int(self._own.rows[self._start + (index + 1) * self.size - 1])

    def last_step(self, index: int) -> float:
        """The step at which a block ended."""
        return float(self._own.steps[self._start + (index + 1) * self.size - 1])

    def block(self, index: int) -> Block:
        """One block with all its values."""
        begin = self._start + index * self.size
        where = slice(begin, begin + self.size)
        rows = self._own.rows[where]
        values = self._own.values[where].tolist()
        return Block(
            float(self.us[index]),
            self.size,
            place(self._frame, int(rows[0]), values[0]),
            place(self._frame, int(rows[-1]), values[-1]),
            tuple(values),
            tuple(self._own.steps[where].tolist()),
            tuple(self._frame.lines[rows].tolist()),
        )

    def tail(self, start: int, end: int, most: int) -> list[Block]:
        """The last `most` of the blocks from `start` to `end`."""
        return [self.block(index) for index in range(max(start, end - most), end)]


class OnBlocks(Protocol):
    """What follows the blocks of a series."""

    def on_block(self, block: Block, row: int, found: Found) -> None:
        """Takes in one block, which row `row` closed."""
        ...

    def pass_over(self, blocks: Blocks, start: int) -> int:
        """Takes in the blocks from `start` on among which nothing is to be told; the first that may be."""
        ...

    def on_restart(self, carries_on: bool, step: float) -> None:
        """An attempt begins at `step`; whether it carries the one before on."""
        ...


class BlockSeries:
    """Cuts a series into blocks of at least `values` values and `steps` steps, from the start of each attempt.

    Where a block ends depends on the rows alone. Each closed block goes to `listener`, with the row that closed it.
    u is the logarithm of the value; series with values below 0 are left alone (`usable` turns false).
    """

    def __init__(self, key: SignalKey, steps: float, values: int, listener: OnBlocks) -> None:
        self.key = key
        self.min_steps = steps
        self.min_values = values
        self.usable = True
        self._listener = listener
        self._buffer: list[float] = []
        self._steps: list[float] = []
        self._lines: list[int] = []
        self._begin: Place | None = None
        self._attempt: int | None = None
        self._last_step = math.nan
        self._last_value = math.nan
        self._look = _LOOK  # blocks that are looked at at once: more where those before were even

    def feed(self, frame: Frame, found: Found, until: int | None = None) -> None:
        """Reads the rows of `frame` (those before row `until`)."""
        if not self.usable:
            return
        own = finite(frame, self.key)
        if not len(own):
            return
        if frame.attempt != self._attempt:
            if self._attempt is not None:
                first = float(own.steps[0])
                self._listener.on_restart(resumed(self._last_step, first), first)
            self._buffer, self._steps, self._lines = [], [], []
            self._attempt = frame.attempt
            self._last_step = math.nan
        end = len(own) if until is None else int(np.searchsorted(own.rows, until))
        if end < _WORTH or not self._is_plain(own, end):
            self._one_by_one(frame, own, 0, end, found)
            return
        at = self._fill(frame, own, 0, end, found) if self._buffer else 0
        while at < end:
            size, count = self._even(own.steps[at:end], self._look)
            if count * size < _WORTH:
                at = self._fill(frame, own, at, end, found)
            else:
                self._close_many(Blocks(frame, own, at, count, size), found)
                at += count * size
                self._last_step, self._last_value = float(own.steps[at - 1]), float(own.values[at - 1])
            if count == self._look:
                self._look *= 4
            elif at < end - size:
                self._look = _LOOK

    def _is_plain(self, own: Finite, end: int) -> bool:
        """Whether steps only rise and all values are above 0."""
        before = -math.inf if math.isnan(self._last_step) else self._last_step
        rises = np.diff(own.steps[:end], prepend=before) > 0
        return bool(rises.all()) and float(own.values[:end].min()) > 0

    def _last_of(self, steps: FloatArray, first: float) -> int:
        """The first of `steps`, which rise, that is far enough from `first` to end a block."""
        span = self.min_steps - 1
        at = int(np.searchsorted(steps, first + span))
        while at and steps[at - 1] - first >= span:  # the sum above was rounded
            at -= 1
        while at < len(steps) and steps[at] - first < span:
            at += 1
        return at

    def _even(self, steps: FloatArray, most: int) -> tuple[int, int]:
        """How many values the next block has, and how many blocks in a row, up to `most`, have as many."""
        span = self.min_steps - 1
        size = max(self._last_of(steps, float(steps[0])) + 1, self.min_values)
        whole = min(len(steps) // size, most)
        if not whole:
            return size, 0
        blocks = steps[: whole * size].reshape(whole, size)
        even = blocks[:, -1] - blocks[:, 0] >= span
        if size > self.min_values:
            even &= blocks[:, -2] - blocks[:, 0] < span
        return size, whole if even.all() else int(np.argmin(even))

    def _close_many(self, blocks: Blocks, found: Found) -> None:
        at, stretch = 0, _BLOCK_STRETCH
        while at < len(blocks):
            passed = self._listener.pass_over(blocks, at)
            stretch = _BLOCK_STRETCH if passed > at else 2 * stretch
            at = min(passed + stretch, len(blocks))
            for index in range(passed, at):
                self._listener.on_block(blocks.block(index), blocks.row(index), found)

    def _fill(self, frame: Frame, own: Finite, start: int, end: int, found: Found) -> int:
        """Reads the values of one block; where the next one begins."""
        steps = own.steps[start:end]
        first = self._steps[0] if self._steps else float(steps[0])
        need = max(self._last_of(steps, first) + 1, self.min_values - len(self._buffer), 1)
        stop = min(start + need, end)
        self._one_by_one(frame, own, start, stop, found)
        return stop

    def _one_by_one(self, frame: Frame, own: Finite, start: int, end: int, found: Found) -> None:
        where = slice(start, end)
        rows, steps, values = own.rows[where].tolist(), own.steps[where].tolist(), own.values[where].tolist()
        lines = frame.lines[own.rows[where]].tolist()
        last_step, last_value = self._last_step, self._last_value
        need, span = self.min_values, self.min_steps - 1
        for i, x in enumerate(values):
            row, step = rows[i], steps[i]
            if step == last_step and same_value(x, last_value):
                continue
            last_step, last_value = step, x
            if x <= 0:
                if x < 0:
                    self.usable = False
                    return
                continue
            if not self._buffer:
                self._begin = place(frame, row, x)
            self._buffer.append(x)
            self._steps.append(step)
            self._lines.append(lines[i])
            if len(self._buffer) >= need and step - self._steps[0] >= span:
                self._close(frame, row, x, found)
        self._last_step, self._last_value = last_step, last_value

    def _close(self, frame: Frame, row: int, x: float, found: Found) -> None:
        begin = self._begin
        assert begin is not None
        block = Block(
            float(middles(np.sort(np.array([self._buffer]), axis=1))[0]),
            len(self._buffer),
            begin,
            place(frame, row, x),
            tuple(self._buffer),
            tuple(self._steps),
            tuple(self._lines),
        )
        self._buffer, self._steps, self._lines = [], [], []
        self._listener.on_block(block, row, found)


def middles(ranked: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> FloatArray:
    """(m,) the mean of the logarithms of the middle half of each row of (m, n) values above 0, sorted.

    As deaf to a quarter of outliers on either side as a median, with a third less noise. Added up from the smallest on,
    so that the sum is the same for one row and for many.
    """
    count = ranked.shape[1]
    cut = count // 4
    half = np.ascontiguousarray(ranked[:, cut : count - cut])
    logs = log_of(half.ravel(), eps=0.0).reshape(half.shape)
    total: FloatArray = logs[:, 0].copy()
    for at in range(1, count - 2 * cut):
        total += logs[:, at]
    return np.asarray(total / (count - 2 * cut))


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


def onset(blocks: list[Block]) -> Place:
    """Where a rise began that may have come slowly: the bend of the best two joined lines, or the best single jump.

    Least squares over the blocks' middles: a bend leaves a smaller sum where the rise is slow, a jump where it is not.
    """
    u = np.array([block.u for block in blocks])
    x = np.arange(len(u), dtype=np.float64)
    places = range(2, len(u) - 2)
    bends = [_misfit(u, x, np.maximum(x - k + 1, 0.0)) for k in places]
    jumps = [_misfit(u, x, (x >= k).astype(np.float64)) for k in places]
    if not bends or min(jumps) < min(bends):
        return change_point(blocks)
    return blocks[places[bends.index(min(bends))]].first


def _misfit(u: FloatArray, x: FloatArray, change: FloatArray) -> float:
    """The sum of squares that a line and `change`, in their best mixture, leave of u; infinite where it falls."""
    terms = np.column_stack([np.ones_like(x), x, change])
    weights = np.linalg.lstsq(terms, u, rcond=None)[0]
    return float(((u - terms @ weights) ** 2).sum()) if weights[2] > 0 else math.inf


def robust_sigma(values: deque[float] | list[float]) -> float:
    """1.4826 times the median absolute deviation; 0 for fewer than 2 values."""
    if len(values) < 2:
        return 0.0
    x = np.array(values)
    return 1.4826 * median(np.abs(x - median(x)))


def mean_of(us: list[float]) -> float:
    """The mean, added up from the first to the last: `sum` rounds in another way from Python 3.12 on."""
    total = 0.0
    for u in us:
        total += u
    return total / len(us)


def means_of(us: FloatArray, size: int) -> FloatArray:
    """(n - size + 1,) `mean_of` of each `size` values in a row."""
    count = len(us) - size + 1
    total = us[:count].copy()
    for at in range(1, size):
        total += us[at : at + count]
    return total / size
