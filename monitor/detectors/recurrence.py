"""A loss that keeps jumping back to where the run began."""

from __future__ import annotations

from collections.abc import Iterable

from trainmon.monitor.detectors.common import Found, Place, finding, numbers, place
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey

START_VALUES = 10
LEARNED = 0.5  # the run has learned once so many values ...
LEARNED_VALUES = 30  # ... were below half of where it began
BACK = 0.6  # a value at 60% of the start or more has lost most of that
TIMES = 5
SHARE = 0.005
FORGIVEN_AFTER = 1000  # values without one


class Recurrence:
    """Counts values at 60% or more of where the run began, once it had learned.

    Noise so large that single values are no spikes by D6 still is trouble when they fall back to the untrained
    loss again and again. Five of them, and one in 200 values, are a WARN.
    """

    def __init__(self, key: SignalKey) -> None:
        self.key = key
        self.start: list[float] = []
        self.since = 0
        self.learned = 0
        self.hits = 0
        self.quiet = 0
        self.first: Place | None = None
        self.worst: Place | None = None
        self.last: Place | None = None
        self.opened = False
        self._attempt: int | None = None

    def feed(self, frame: Frame, found: Found, until: int) -> None:
        """Reads the rows of `frame` before row `until`."""
        if frame.attempt != self._attempt:
            self._attempt = frame.attempt
            self.start, self.since, self.learned, self.hits, self.opened = [], 0, 0, 0, False
        rows, _, values = numbers(frame, self.key)
        i = 0
        while len(self.start) < START_VALUES and i < len(values) and rows[i] < until:
            self.start.append(values[i])
            i += 1
        if len(self.start) < START_VALUES:
            return
        begin = sorted(self.start)[START_VALUES // 2]
        bar = BACK * begin
        for x, row in zip(values[i:], rows[i:], strict=True):
            if row >= until:
                break
            self._take(frame, row, x, begin, bar, found)

    def _take(self, frame: Frame, row: int, x: float, begin: float, bar: float, found: Found) -> None:
        if self.learned < LEARNED_VALUES:
            self.learned += x < LEARNED * begin
            return
        self.since += 1
        if x < bar:
            self.quiet += 1
            if self.opened and self.quiet >= FORGIVEN_AFTER:
                found.append((row, self._said("recover", place(frame, row, x))))
                self.opened = False
                self.hits = 0
            return
        self._hit(place(frame, row, x), row, found)

    def _hit(self, at: Place, row: int, found: Found) -> None:
        self.quiet = 0
        self.hits += 1
        if self.hits == 1:
            self.first = self.worst = at
        if self.worst is None or at.value > self.worst.value:
            self.worst = at
        self.last = at
        if self.hits >= TIMES and self.hits >= SHARE * self.since and self.hits <= 0.2 * self.since:
            found.append((row, self._said("grow" if self.opened else "open", at)))
            self.opened = True

    def _said(self, action: Action, at: Place) -> Finding:
        first, worst = self.first or at, self.worst or at
        what = (
            f"loss jumped back towards its start {self.hits} times since step {first.step:g}, "
            f"to {worst.value:.4g} at step {worst.step:g}"
        )
        return finding(action, "recurrent_spikes", self.key, Severity.WARN, at, what, first=first)

    def finish(self) -> Iterable[Finding]:
        """Nothing more."""
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []
