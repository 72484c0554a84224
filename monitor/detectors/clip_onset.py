"""Whether a rise of the clip rate began at once or grew: a learning rate that comes down explains only the latter."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from trainmon.monitor.stats.middle import median
from trainmon.tails.record import FloatArray

SPANS = 3  # windows that are compared: the newest, the one before it, and the one before that for the trend
FASTER = 2.0  # times as fast as in the window before
SIGMAS = 4.0
MOST_ALIKE = 0.98
BOUND = 100.0  # norms further from the threshold than so many times count as that far


class Onset:
    """Keeps the newest three windows of norms; `is_abrupt` of the rows of the frame that was fed last.

    >>> rng = np.random.default_rng(0)
    >>> quiet = 0.5 * np.exp(rng.normal(0, 0.1, 300))
    >>> onset = Onset(window=100)
    >>> onset.feed(np.concatenate([quiet, np.full(60, 1.5)]))
    >>> onset.is_abrupt(299, 1.0, 0.3), onset.is_abrupt(359, 1.0, 0.3)
    (False, True)
    """

    __slots__ = ("_before", "_joined", "_newest", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        self._before: deque[float] = deque(maxlen=SPANS * window)
        self._newest: FloatArray = np.empty(0)
        self._joined: FloatArray | None = None

    def feed(self, values: FloatArray) -> None:
        """Takes the (n,) norms of the next frame."""
        self._before.extend(self._newest[-SPANS * self.window :].tolist())
        self._newest, self._joined = values, None

    def is_abrupt(self, i: int, clip: float | None, rise: float) -> bool:
        """Whether, up to value `i` of the newest frame, share above `clip` and level both jumped within one window.

        The share by `rise` against one window earlier; the mean log norm by twice its growth over the window before,
        and four standard errors: a norm that grows steadily through the threshold moves the share as fast, but not
        its own level. Without `clip` the values are rates themselves.
        """
        if self._joined is None:
            self._joined = np.concatenate([np.array(self._before), self._newest])
        last = len(self._joined) - len(self._newest) + i + 1
        if last < SPANS * self.window:
            return False
        spans = self._joined[last - SPANS * self.window : last].reshape(SPANS, self.window)
        shares = (spans if clip is None else spans > clip).mean(axis=1)
        if shares[2] - shares[1] < rise:
            return False
        logs = spans if clip is None else np.log(np.clip(spans, clip / BOUND, clip * BOUND))
        levels = logs.mean(axis=1)
        bar = FASTER * max(levels[1] - levels[0], 0.0) + SIGMAS * _error_of_change(logs[:2])
        return bool(levels[2] - levels[1] > bar)


def _error_of_change(spans: FloatArray) -> float:
    """The standard error of the change of the mean from one of the (n, W) spans to the next, neighbours being alike.

    Of the robust spread about each mean; the variance of a mean of autocorrelated values is (1+r)/(1-r) times larger.
    """
    around = spans - spans.mean(axis=1, keepdims=True)
    sigma = 1.4826 * median(np.abs(around))
    power = float((around * around).sum())
    alike = float((around[:, 1:] * around[:, :-1]).sum()) / power if power > 0 else 0.0
    r = min(max(alike, 0.0), MOST_ALIKE)
    return sigma * math.sqrt(2 / spans.shape[1] * (1 + r) / (1 - r))
