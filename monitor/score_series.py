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
from trainmon.monitor.stats.robust_score import RobustScore, robust_score
from trainmon.tails.record import FloatArray

_BLOCK: Final = 512
_MOST_BLOCKS: Final = 8
_FEWEST_BLOCKS: Final = 2
_FEWEST_VALUES: Final = 30


class ScoreSeries:
    """Scores of one signal. `z` and `ratio`: above both a value is not learned (METRICS.md D6)."""

    def __init__(self, signal: str, of: str, window: int, z: float, ratio: float) -> None:
        self.key = SignalKey("spike.score", (("of", of),))
        self._source = SignalKey(signal)
        self._window = window
        self._z = z
        self._ratio = ratio
        self._blocks = _MOST_BLOCKS  # the newest that are kept
        self._count = 0
        self._first = 0  # index of the first value that is kept
        self._steps, self._times, self._values = (Growable(np.empty(0)) for _ in range(3))
        self._attempts = Growable(np.empty(0, np.int64))
        self._view: SeriesView | None = None
        self._done: dict[int, FloatArray] = {}
        self._running: tuple[int, _Running] | None = None  # the newest block, while it is not full

    def keep(self, values: int) -> None:
        """From now on there are scores of no more than about so many of the newest values."""
        self._blocks = min(max(values // _BLOCK, _FEWEST_BLOCKS), self._blocks)
        self._view = None

    @property
    def _needed(self) -> int:
        """Of how many values the newest scores are made: those that warm the oldest of them up are among them."""
        return self._blocks * _BLOCK + 2 * self._window

    def add(self, frame: Frame) -> None:
        """Remembers the finite values of the signal."""
        column = frame.columns.get(self._source)
        if column is None:
            return
        rows = np.flatnonzero(np.isfinite(column))
        if len(rows):
            self._steps.append(frame.steps[rows])
            self._times.append(frame.times[rows])
            self._values.append(column[rows])
            self._attempts.append(np.full(len(rows), frame.attempt))
            self._count += len(rows)
            self._view = None
            if self._count - self._first > 2 * self._needed:
                self._drop_oldest()

    def view(self) -> SeriesView | None:
        """The scores of the newest values, 3 to 4 thousand unless `keep` says fewer; None before there are enough."""
        if self._view is None and self._count >= _FEWEST_VALUES:
            self._view = self._worked_out()
        return self._view

    def _worked_out(self) -> SeriesView | None:
        first_block = max(self._count // _BLOCK - self._blocks + 1, 0)
        begin, values = first_block * _BLOCK, self._values.view()
        score = np.concatenate([self._block(block, values) for block in range(first_block, self._count // _BLOCK + 1)])
        where = slice(begin - self._first, None)
        axes = [part.view()[where] for part in (self._steps, self._attempts, self._times)]
        known = ~np.isnan(score)
        if not known.any():
            return None
        if not known.all():
            score, *axes = (part[known] for part in (score, *axes))
        steps, attempts, times = axes
        return SeriesView(
            self.key,
            "z",
            steps,
            score,
            score,
            score,
            attempts,
            np.empty(0),
            len(score),
            float(score[-1]),
            derived=f"robust score of {self._source.signal} over {self._window} values (D6), newest values",
            times=times,
        )

    def _drop_oldest(self) -> None:
        """Lets go of what no block that is shown needs any more."""
        drop = max((self._count // _BLOCK - self._blocks) * _BLOCK - 2 * self._window, 0) - self._first
        if drop > 0:
            self._first += drop
            for name in ("_steps", "_times", "_values", "_attempts"):
                setattr(self, name, Growable(getattr(self, name).view()[drop:], 2 * self._needed + _BLOCK))

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
            running = _Running(self._window, self._z, self._ratio, part, begin - warm)
        scores = running.up_to(part)[begin - warm :]
        if end < begin + _BLOCK:
            self._running = (block, running)
            return scores
        self._done = {number: kept for number, kept in self._done.items() if number > block - self._blocks - 1}
        self._done[block] = scores
        return scores


class _Running:
    """The scores of one block's values, value by value as they come. The first `warm` only warm it up: of those it is
    asked no more than which are learned, which takes a quarter of the time."""

    def __init__(self, window: int, z: float, ratio: float, values: FloatArray, warm: int) -> None:
        self._stat = RobustScore(window, log=bool((values > 0).all()))
        self._z = z
        self._ratio = ratio
        self._log_ratio = math.log(ratio)
        self._warm = warm
        self._scores = Growable(np.empty(0))

    def goes_on(self, values: FloatArray) -> bool:
        """Whether `values`, which begin with those that were taken, are still judged on the same scale."""
        return not self._stat.log or bool((values[len(self._scores) :] > 0).all())

    def up_to(self, values: FloatArray) -> FloatArray:
        """(n,) the scores of `values`, NaN for those that warm up; only those that are new are worked out."""
        known = len(self._scores)
        fresh = values[known:].tolist()
        if fresh:
            warm = max(self._warm - known, 0)
            for value in fresh[:warm]:
                self._learn(value)
            scores = [math.nan] * len(fresh[:warm]) + [self._next(value) for value in fresh[warm:]]
            self._scores.append(np.array(scores))
        return self._scores.view()

    def _next(self, value: float) -> float:
        stat = self._stat
        robust, level = stat.robust, stat.scale(value)
        if len(robust) < _FEWEST_VALUES:
            robust.update(level)
            return math.nan
        middle = robust.median
        score = robust_score(level, middle, robust.mad, stat.floor)
        if not (score > self._z and level - middle > self._size(middle)):
            robust.update(level)
        return abs(score)

    def _learn(self, value: float) -> None:
        """As `_next`, of a value whose score nobody asks for."""
        stat = self._stat
        robust, level = stat.robust, stat.scale(value)
        if len(robust) >= _FEWEST_VALUES:
            middle = robust.median
            if level - middle > self._size(middle) and (robust_score(level, middle, robust.mad, stat.floor) > self._z):
                return
        robust.update(level)

    def _size(self, middle: float) -> float:
        """How far above the median a value must lie that is not learned."""
        return self._log_ratio if self._stat.log else (self._ratio - 1.0) * abs(middle)
