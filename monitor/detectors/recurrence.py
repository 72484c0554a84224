"""A loss that keeps jumping back to where the run began."""

from __future__ import annotations

import math
from collections.abc import Iterable

from trainmon.monitor.detectors.common import Found, Place, finding, numbers, place
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey

UNTRAINED = 3.0  # nats: a run that begins lower was trained before, and its noise says nothing of instability
LEARNED = 0.35  # the run has learned once its level is below this share of where it began
BACK = 0.6  # a value at this share of the start has lost most of that
ABOVE = math.log(2.5)  # and it stands so far above the level
FADE = 0.02  # of the level: the exponentially weighted mean of log loss over some 50 values
TIMES = 5
WITHIN = 1000  # values


class Recurrence:
    """Counts values that are back at 60% or more of the untrained loss, once the run had learned.

    Noise so large that single values are no spikes by D6 still is trouble when it throws the run back to its
    beginning again and again: five times within 1000 values are a WARN, 1000 values without one its end.
    """

    def __init__(self, key: SignalKey) -> None:
        self.key = key
        self.begin = math.nan
        self.level = math.nan
        self.count = 0
        self.hits: list[tuple[int, Place]] = []
        self.total = 0
        self.first: Place | None = None
        self.worst: Place | None = None
        self.opened = False
        self._attempt: int | None = None

    def feed(self, frame: Frame, found: Found, until: int) -> None:
        """Reads the rows of `frame` before row `until`."""
        rows, _, values = numbers(frame, self.key)
        if frame.attempt != self._attempt and values:
            self._attempt = frame.attempt
            self.begin = values[0]
            self.level = math.log(values[0]) if values[0] > 0 else 0.0
            self.count, self.hits, self.opened, self.first, self.worst = 0, [], False, None, None
        if not self.begin >= UNTRAINED:
            return
        level, keep = self.level, 1 - FADE
        bar, low, log = BACK * self.begin, math.log(LEARNED * self.begin), math.log
        for x, row in zip(values, rows, strict=True):
            if row >= until:
                break
            self.count += 1
            if x <= 0:
                continue
            u = log(x)
            if x >= bar and level < low and u > level + ABOVE:
                self._hit(place(frame, row, x), row, found)
            elif self.opened and self.count - self.hits[-1][0] >= WITHIN:
                found.append((row, self._said("recover", place(frame, row, x))))
                self.opened = False
            level = keep * level + FADE * u
        self.level = level

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
