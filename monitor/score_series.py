"""`spike.score` for drawing: the robust score D6 of the newest values, with its sign taken off.

Detectors only ask whether a value is above a cut-off, which is cheaper than the score itself. The score is worked
out here when a screen asks. It is a function of the values alone: they are taken in blocks of fixed size, each
warmed up on the values before it, so that it does not matter when or how often somebody looked.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.growable import Growable
from trainmon.monitor.snapshot import SeriesView
from trainmon.monitor.stats.robust_score import RobustScore
from trainmon.tails.record import FloatArray, IntArray

_BLOCK: Final = 512
_KEPT_BLOCKS: Final = 8
_FEWEST_VALUES: Final = 30


class ScoreSeries:
    """Scores of one signal. `z` and `ratio`: above both a value is not learned (METRICS.md D6)."""

    def __init__(self, signal: str, of: str, window: int, z: float, ratio: float) -> None:
        self.key = SignalKey("spike.score", (("of", of),))
        self._source = SignalKey(signal)
        self._window = window
        self._z = z
        self._ratio = ratio
        self._count = 0
        self._first = 0  # index of the first value that is kept
        self._parts: list[tuple[FloatArray, FloatArray, FloatArray, IntArray]] = []
        self._done: dict[int, FloatArray] = {}
        self._running: tuple[int, _Running] | None = None  # the newest block, while it is not full

    def add(self, frame: Frame) -> None:
        """Remembers the finite values of the signal."""
        column = frame.columns.get(self._source)
        if column is None:
            return
        rows = np.flatnonzero(np.isfinite(column))
        if len(rows):
            attempts = np.full(len(rows), frame.attempt)
            self._parts.append((frame.steps[rows], frame.times[rows], column[rows], attempts))
            self._count += len(rows)
            if self._count - self._first > 4 * _KEPT_BLOCKS * _BLOCK or len(self._parts) > 256:
                self._gather()

    def view(self) -> SeriesView | None:
        """The scores of the newest 3 to 4 thousand values; None before there are enough values."""
        if self._count < _FEWEST_VALUES:
            return None
        steps, times, values, attempts = self._gather()
        first_block = max(self._count // _BLOCK - _KEPT_BLOCKS + 1, 0)
        begin = first_block * _BLOCK
        scores = [self._block(block, values) for block in range(first_block, self._count // _BLOCK + 1)]
        score = np.concatenate(scores)
        where = slice(begin - self._first, None)
        known = ~np.isnan(score)
        if not known.any():
            return None
        score = score[known]
        return SeriesView(
            self.key,
            "z",
            steps[where][known],
            score,
            score,
            score,
            attempts[where][known],
            np.empty(0),
            len(score),
            float(score[-1]),
            derived=f"robust score of {self._source.signal} over {self._window} values (D6), newest values",
            times=times[where][known],
        )

    def _gather(self) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        steps, times, values, attempts = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        keep_from = max((self._count // _BLOCK - _KEPT_BLOCKS) * _BLOCK - 2 * self._window, 0)
        drop = max(keep_from - self._first, 0)
        kept = (steps[drop:], times[drop:], values[drop:], attempts[drop:])
        self._first += drop
        self._parts = [kept]
        return kept

    def _block(self, block: int, values: FloatArray) -> FloatArray:
        done = self._done.get(block)
        if done is not None:
            return done
        begin = block * _BLOCK
        end = min(begin + _BLOCK, self._count)
        warm = max(begin - 2 * self._window, 0)
        part = values[warm - self._first : end - self._first]
        running = self._running[1] if self._running is not None and self._running[0] == block else None
        if running is None or not running.goes_on(part):
            running = _Running(self._window, self._z, self._ratio, part)
        scores = running.up_to(part)[begin - warm :]
        if end < begin + _BLOCK:
            self._running = (block, running)
            return scores
        self._done = {number: kept for number, kept in self._done.items() if number > block - _KEPT_BLOCKS - 1}
        self._done[block] = scores
        return scores


class _Running:
    """The scores of one block's values and of those before it that warm it up, value by value as they come."""

    def __init__(self, window: int, z: float, ratio: float, values: FloatArray) -> None:
        self._stat = RobustScore(window, log=bool((values > 0).all()))
        self._z = z
        self._ratio = ratio
        self._scores = Growable(np.empty(0))

    def goes_on(self, values: FloatArray) -> bool:
        """Whether `values`, which begin with those that were taken, are still judged on the same scale."""
        return not self._stat.log or bool((values[len(self._scores) :] > 0).all())

    def up_to(self, values: FloatArray) -> FloatArray:
        """(n,) the scores of `values`; only those that are new are worked out."""
        fresh = values[len(self._scores) :].tolist()
        if fresh:
            self._scores.append(np.array([self._next(value) for value in fresh]))
        return self._scores.view()

    def _next(self, value: float) -> float:
        stat = self._stat
        if len(stat) < _FEWEST_VALUES:
            stat.update(value)
            return math.nan
        score = stat.score(value)
        rise = stat.scale(value) - stat.robust.median
        size = math.log(self._ratio) if stat.log else (self._ratio - 1.0) * abs(stat.robust.median)
        if not (score > self._z and rise > size):
            stat.update(value)
        return abs(score)
