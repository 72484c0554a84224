"""A device that is nearly full."""

from __future__ import annotations

from trainmon.monitor.detectors.common import Found, Place, finding
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.thresholds import Thresholds

LASTING = 10  # values in a row


class MemoryLevel:
    """One series against the capacity of its device.

    90% for 10 values in a row is a WARN, 97% a FAIL. A lone value of 97% is a WARN at once: the next one that is a
    little larger ends the run. Where every value so far is high, fewer than 10 say so as well (a log that gives the
    peak once). Over when 10 in a row are down.
    """

    def __init__(self, key: SignalKey, limits: Thresholds) -> None:
        self.key = key
        self.warn, self.fail = limits["memory.warn"], limits["memory.fail"]
        self.restart()

    def restart(self) -> None:
        """Memory begins anew with the process."""
        self.values = self.high_run = self.low_run = 0
        self.first: Place | None = None
        self.severity: Severity | None = None
        self.share = 0.0
        self.last: Place | None = None  # that was high

    def take(self, at: Place, share: float, row: int, found: Found) -> None:
        """One more value, as a share of the capacity."""
        self.values += 1
        if share < self.warn:
            self._low(at, row, found)
            return
        if not self.high_run and self.severity is None:
            self.first, self.share = at, share
        self.high_run += 1
        self.low_run = 0
        self.last = at
        self.share = max(self.share, share)
        severity = self._level(share)
        if severity is not None and (self.severity is None or severity > self.severity):
            action: Action = "open" if self.severity is None else "grow"
            self.severity = severity
            found.append(
                (row, finding(action, "memory_high", self.key, severity, at, self._words(at), first=self.first))
            )

    def _level(self, share: float) -> Severity | None:
        if self.high_run >= LASTING:
            return Severity.FAIL if share >= self.fail else Severity.WARN
        return Severity.WARN if share >= self.fail else None

    def _low(self, at: Place, row: int, found: Found) -> None:
        self.high_run = 0
        self.low_run += 1
        if self.severity is not None and self.low_run >= LASTING:
            if self.last is not None:
                found.append((row, finding("grow", "memory_high", self.key, self.severity, self.last, "")))
            found.append((row, finding("recover", "memory_high", self.key, self.severity, at, "")))
            self.severity = None

    def _words(self, at: Place) -> str:
        if self.high_run < LASTING and self.high_run < self.values:
            return f"memory reached {self.share:.0%} of the device at step {at.step:.15g}"
        return f"memory stands at {self.share:.0%} of the device since step {(self.first or at).step:.15g}"

    def finish(self, top: Place | None, last: Place | None) -> list[Finding]:
        """An open one reaches to the highest and to the newest value; few values that are all high are told."""
        if self.severity is not None:
            return [finding("grow", "memory_high", self.key, self.severity, at, "") for at in (top, last) if at]
        if top is None or not self.values or self.high_run < self.values:
            return []
        return [finding("open", "memory_high", self.key, Severity.WARN, top, self._words(top), first=self.first)]
