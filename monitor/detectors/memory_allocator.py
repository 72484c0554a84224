"""What the allocator does with a card's memory: fragments that grow, and retries."""

from __future__ import annotations

import math
from collections.abc import Callable

from trainmon.monitor.detectors.common import Found, Place, finding, numbers, place
from trainmon.monitor.detectors.share_track import ShareRule, ShareTrack
from trainmon.monitor.finding import Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey

FRAGMENTS = SignalKey("sys.fragmentation")
FRAGMENTED = 0.1  # of the card
STEPS = 50.0
VALUES = 10


class Fragments:
    """Memory that the allocator holds and no tensor uses, in one series: a tenth of the card more than its own level.

    For 10 values and 50 steps; also where it got there little by little. What it holds from the start is its way of
    working; what grows will end in an out-of-memory error with memory to spare.
    """

    def __init__(self, capacity: Callable[[SignalKey], float | None]) -> None:
        self.capacity = capacity
        self.track: ShareTrack | None = None

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads reserved - allocated memory as a share of the card's."""
        rows, steps, values = numbers(frame, FRAGMENTS)
        capacity = self.capacity(FRAGMENTS)
        if not rows or capacity is None:
            return
        if self.track is None:
            self.track = _FragmentTrack(FRAGMENTS, ShareRule("fragmentation", FRAGMENTED, STEPS, VALUES, creeps=True))
        self.track.feed_values(frame, rows, steps, [x / capacity for x in values], found)

    def finish(self) -> list[Finding]:
        """An open one reaches to its last value."""
        return list(self.track.finish()) if self.track is not None else []


class _FragmentTrack(ShareTrack):
    def _words(self, level: float, now: float, since: float) -> str:
        what = f"{now:.0%} of the device is reserved and unused, {level:.0%} before step {since:.15g}"
        return f"{what}: fragmentation"


class Retries:
    """Allocator retries (a counter): more than 10 new ones over at least 3 values, still coming."""

    def __init__(self) -> None:
        self.first: Place | None = None
        self.base = math.nan
        self.before = math.nan
        self.rises = 0
        self.opened = False
        self._attempt: int | None = None

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the counter."""
        if frame.attempt != self._attempt:
            self._attempt, self.before, self.opened = frame.attempt, math.nan, False
        for key in frame.family("count.alloc_retries"):
            rows, _, values = numbers(frame, key)
            for row, x in zip(rows, values, strict=True):
                self._take(frame, row, key, x, found)

    def _take(self, frame: Frame, row: int, key: SignalKey, x: float, found: Found) -> None:
        if not x >= self.before:
            self.base, self.rises, self.first = x, 0, None
        elif x > self.before:
            self.rises += 1
            at = place(frame, row, x)
            self.first = self.first or at
            if self.rises >= 3 and x - self.base >= 10 and not self.opened:
                self.opened = True
                what = f"the allocator retried {x - self.base:.15g} times by step {at.step:.15g}: the device is full"
                found.append((row, finding("open", "alloc_retries", key, Severity.WARN, at, what, first=self.first)))
        self.before = x
