"""A loss that keeps jumping back to where the run began."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from trainmon.monitor.detectors.common import Finite, Found, Place, finding, finite, place
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.decaying import DecayingSum

UNTRAINED = 3.0  # nats: a run that begins lower was trained before, and its noise says nothing of instability
LEARNED = 0.35  # the run has learned once its level is below this share of where it began
BACK = 0.6  # a value at this share of the start has lost most of that
ABOVE = math.log(2.5)  # and it stands so far above the level
FADE = 0.02  # of the level: the exponentially weighted mean of log loss over some 50 values
TIMES = 5
WITHIN = 1000  # values
_ROUNDED = 1e-9  # a mean, added up with rounding, lies no further below the least of its values
_FEW = 16  # values that are back are looked at alone unless one in so many is


class Recurrence:
    """Counts values that are back at 60% or more of the untrained loss, once the run had learned.

    Noise so large that single values are no spikes by D6 still is trouble when it throws the run back to its
    beginning again and again: five times within 1000 values are a WARN, 1000 values without one its end.
    """

    def __init__(self, key: SignalKey) -> None:
        self.key = key
        self.begin = math.nan
        self.level = DecayingSum(1 - FADE)
        self.count = 0
        self.hits: list[tuple[int, Place]] = []
        self.total = 0
        self.first: Place | None = None
        self.worst: Place | None = None
        self.opened = False
        self._attempt: int | None = None

    def feed(self, frame: Frame, found: Found, until: int) -> None:
        """Reads the rows of `frame` before row `until`."""
        own = finite(frame, self.key)
        if frame.attempt != self._attempt and len(own):
            self._attempt = frame.attempt
            first = float(own.values[0])
            self.begin = first
            self.level = DecayingSum(1 - FADE, math.log(first) if first > 0 else 0.0)
            self.count, self.hits, self.opened, self.first, self.worst = 0, [], False, None, None
        if not self.begin >= UNTRAINED:
            return
        count = int(np.searchsorted(own.rows, until))
        back = np.flatnonzero(own.values[:count] >= BACK * self.begin)
        if self.opened or len(back) * _FEW > count:
            learned = 0 if self.opened else self._before_learning(own, count)
            self._pass_over(own, 0, learned)
            self._one_by_one(frame, own, learned, count, found)
            return
        at = 0
        for one in back.tolist():
            self._pass_over(own, at, one)
            at = one + 1
            self._one_by_one(frame, own, one, at, found)
            if self.opened:
                self._one_by_one(frame, own, at, count, found)
                return
        self._pass_over(own, at, count)

    def _before_learning(self, own: Finite, count: int) -> int:
        """The first of `count` values at which the level may be that of a run that has learned: none lies as low."""
        low = math.log(LEARNED * self.begin) + _ROUNDED
        if self.level.value <= low:
            return 0
        is_low = own.logs[:count] <= low
        return int(np.argmax(is_low)) if is_low.any() else count

    def _pass_over(self, own: Finite, start: int, end: int) -> None:
        """Takes in values that are not back, while nothing is open."""
        logs = own.logs[start:end]
        self.count += end - start
        self.level.extend(FADE * (logs if not np.isnan(logs).any() else logs[~np.isnan(logs)]))

    def _one_by_one(self, frame: Frame, own: Finite, start: int, end: int, found: Found) -> None:
        bar, low = BACK * self.begin, math.log(LEARNED * self.begin)
        where = slice(start, end)
        ones = (own.rows[where].tolist(), own.values[where].tolist(), own.logs[where].tolist())
        for row, x, u in zip(*ones, strict=True):
            self.count += 1
            if x <= 0:
                continue
            if x >= bar and self.level.value < low and u > self.level.value + ABOVE:
                self._hit(place(frame, row, x), row, found)
            elif self.opened and self.count - self.hits[-1][0] >= WITHIN:
                found.append((row, self._said("recover", place(frame, row, x))))
                self.opened = False
            self.level.update(FADE * u)

    def _hit(self, at: Place, row: int, found: Found) -> None:
        self.hits = [hit for hit in self.hits if hit[0] > self.count - WITHIN]
        if not self.hits:
            self.first = self.worst = at
            self.total = 0
        self.hits.append((self.count, at))
        self.total += 1
        if self.worst is None or at.value > self.worst.value:
            self.worst = at
        if len(self.hits) >= TIMES:
            found.append((row, self._said("grow" if self.opened else "open", at)))
            self.opened = True

    def _said(self, action: Action, at: Place) -> Finding:
        first, worst = self.first or at, self.worst or at
        what = (
            f"loss jumped back towards its start {self.total} times since step {first.step:.15g}, "
            f"to {worst.value:.4g} at step {worst.step:.15g}"
        )
        return finding(action, "recurrent_spikes", self.key, Severity.WARN, at, what, first=first)

    def finish(self) -> Iterable[Finding]:
        """Nothing more than was said."""
        return ()
