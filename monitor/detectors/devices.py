"""Check sys.devices: heat, throttling, errors and idleness of cards; memory of hosts (row 16)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

from trainmon.monitor.amount import named
from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    Track,
    finding,
    numbers,
    place,
    result,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.level_track import LevelRule, LevelTrack
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey

HEAT, ERRORS, HOST = "device.temperature", "device.errors", "host.memory_share"
LEVELS = {"device.clock": ("throttled", 0.8), "device.utilization": ("idle", 0.5)}  # kind, share of its own level
WATCHED = (HEAT, ERRORS, HOST, *LEVELS)
STEPS = 50.0
VALUES = 5


class AboveTrack:
    """A series at or above a fixed limit for 5 values and 50 steps; it ends with 5 values below."""

    def __init__(self, key: SignalKey, kind: str, limit: float, unit: str) -> None:
        self.key, self.kind, self.limit, self.unit = key, kind, limit, unit
        self.first: Place | None = None
        self.last: Place | None = None
        self.values = self.below = 0
        self.opened = False
        self.what = ""
        self._attempt: int | None = None

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        rows, steps, values = numbers(frame, self.key)
        if rows and frame.attempt != self._attempt:
            self._attempt = frame.attempt
            if self.first is not None and steps[0] <= self.first.step:
                self.first, self.opened, self.values = None, False, 0
        if self.first is None and (not values or max(values) < self.limit):
            return
        for row, x in zip(rows, values, strict=True):
            self._take(frame, row, x, found)

    def _take(self, frame: Frame, row: int, x: float, found: Found) -> None:
        at = place(frame, row, x)
        if x >= self.limit:
            self.first = self.first or at
            self.last, self.below = at, 0
            self.values += 1
            if not self.opened and self.values >= VALUES and at.step - self.first.step >= STEPS:
                self.opened = True
                shown = f"{x:.0%}" if self.unit == "%" else f"{x:.0f} {self.unit}"
                self.what = f"{named(self.key)} stands at {shown} since step {self.first.step:.15g}"
                found.append((row, self._said("open", at)))
            return
        if self.first is None:
            return
        self.below += 1
        if self.below >= VALUES or not self.opened:
            if self.opened and self.last is not None:
                found.append((row, self._said("grow", self.last)))
                found.append((row, self._said("recover", at)))
            self.first, self.opened, self.values = None, False, 0

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, self.kind, self.key, Severity.WARN, at, self.what, first=self.first)

    def finish(self) -> Iterable[Finding]:
        """An open one reaches to its last value."""
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []


class ErrorTrack:
    """A counter of errors that rises: one episode an attempt, from its first rise on."""

    def __init__(self, key: SignalKey) -> None:
        self.key = key
        self.before = math.nan
        self.base = math.nan
        self.first: Place | None = None
        self.last: Place | None = None
        self._attempt: int | None = None

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the counter."""
        rows, _, values = numbers(frame, self.key)
        if rows and frame.attempt != self._attempt:
            self._attempt, self.before, self.first = frame.attempt, math.nan, None
        for row, x in zip(rows, values, strict=True):
            if x > self.before:
                self.last = place(frame, row, x)
                if self.first is None:
                    self.first, self.base = self.last, self.before
                    found.append((row, self._said("open")))
                else:
                    found.append((row, self._said("grow")))
            self.before = x

    def _said(self, action: Action) -> Finding:
        at = self.last or self.first
        assert at is not None
        what = f"{named(self.key)}: {at.value - self.base:.15g} new by step {at.step:.15g}"
        return finding(action, "device_errors", self.key, Severity.WARN, at, what, first=self.first)

    def finish(self) -> Iterable[Finding]:
        """Nothing more."""
        return []


class Devices(WatchingDetector):
    """90 C, or 95% of the host's memory, for 50 steps; a clock down by 20%, utilisation halved; new errors: WARN."""

    id: ClassVar[str] = "sys.devices"
    name: ClassVar[str] = "Cards and Hosts"
    signals: ClassVar[tuple[str, ...]] = WATCHED
    watched: ClassVar[tuple[str, ...]] = WATCHED
    order: ClassVar[int] = 27
    triage: ClassVar[str] = "step_time"
    formula: ClassVar[str] = "temperature, clock, utilisation, errors; clock and utilisation against their own median"
    source: ClassVar[str] = "METRICS.md row 16"

    def make_track(self, key: SignalKey) -> Track:
        """One number of one card or host."""
        if key.signal == HEAT:
            return AboveTrack(key, "heat", self.limits["device.temperature"], "C")
        if key.signal == HOST:
            return AboveTrack(key, "host_memory", self.limits["host.memory"], "%")
        if key.signal == ERRORS:
            return ErrorTrack(key)
        kind, share = LEVELS[key.signal]
        return LevelTrack(
            key,
            LevelRule(
                kind, named(key), share, 0.0, STEPS, values=VALUES, direction="down", worst_severity=Severity.WARN
            ),
        )

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("device.temperature", "host.memory")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            devices = sorted({value for e in view.episodes for name, value in e.signal.labels if name == "device"})
            who = f"card {', '.join(devices[:8])}" if devices else "the card or host"
            advice = f"look at {who}: cooling, power limit, nvidia-smi -q; drain it when errors go on"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, *WATCHED):
            return result(self, Verdict.NO_DATA, "no card or host metrics; log temperature, clock and host memory")
        return result(self, Verdict.PASS, f"{len(self.tracks)} series within their limits", used=used)
