"""Check sys.jitter: slow steps that come in a rhythm, and step times that scatter more and more."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import (
    Found,
    Numbers,
    Place,
    finding,
    in_order,
    numbers,
    place,
    result,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.middle import median
from trainmon.monitor.stats.only_rises import ONLY_RISES, OnlyRises
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray

BoolArray = NDArray[np.bool_]

TIME = SignalKey("sys.step_time")
BLOCK = 50  # values
LASTING = 4  # blocks
HISTORY = 10  # blocks
SLOW = 1.3  # times the block's median
OFF = 0.01  # of a period
BEATS = 10  # a rhythm is new when so many of its beats, and 4 blocks, were missing before it
FEWEST, MOST = 3, 20  # slow values of a block that may be a rhythm


class Jitter(Detector):
    """Scatter (inter-quartile range over median) of 50 values 3x its own level and above 5%, 4 blocks long: WARN.

    A slow value (1.3x the median) every n steps, in 4 blocks in a row with the same n, and 20% of the time lost to it:
    WARN; less, or a rhythm that 4 blocks and 10 of its beats before it did not have (evaluations, saving), is INFO.
    """

    id: ClassVar[str] = "sys.jitter"
    name: ClassVar[str] = "Step Time Stability"
    signals: ClassVar[tuple[str, ...]] = ("sys.step_time",)
    order: ClassVar[int] = 25
    triage: ClassVar[str] = "step_time"
    formula: ClassVar[str] = "inter-quartile range / median of 50 values; gaps between values above 1.3x the median"
    source: ClassVar[str] = "METRICS.md D8, row 11"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.ratio = limits["jitter.ratio"]
        self.least = limits["jitter.least"]
        self.meant = MeantChanges()
        self.buffer: list[float] = []
        self.steps: list[float] = []
        self.places: list[Place] = []
        self.scatter = RollingRobust(40)
        self.newest = math.nan
        self.judged = 0
        self.faults = {"scatter": _Fault("scatter"), "rhythm": _Fault("rhythm")}
        self.period = 0.0
        self.calm_blocks = 0
        self.clock = OnlyRises()
        self._attempt: int | None = None

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads the step time in blocks of 50 values, from the start of each attempt."""
        self.meant.feed(frame)
        changes = self.meant.rows
        rows, steps, values = numbers(frame, TIME)
        if not rows:
            if changes:
                self._begin()
            return ()
        found: Found = []
        if frame.attempt != self._attempt:
            self._attempt = frame.attempt
            self.clock.new_attempt()
            self._begin()
        is_clock = dict(zip(rows, self.clock.update(np.array(values)).tolist(), strict=True))
        at = 0
        for change in changes:
            end = bisect_left(rows, change)
            self._read(frame, Numbers(rows[at:end], steps[at:end], values[at:end]), found)
            self._begin()
            at = end
        self._read(frame, Numbers(rows[at:], steps[at:], values[at:]), found)
        return in_order([(row, said) for row, said in found if not is_clock.get(row, False)])

    def _begin(self) -> None:
        """Other work a step, or another process: another level."""
        self.buffer, self.steps, self.places = [], [], []
        self.scatter.clear()
        self.period = 0.0
        for fault in self.faults.values():
            fault.blocks = 0

    def _read(self, frame: Frame, fresh: Numbers, found: Found) -> None:
        rows, steps, values = fresh
        if not rows:
            return
        if not self.buffer:
            self.places = [place(frame, rows[0], values[0])]
        begun = len(self.buffer)
        joined, at = np.array(self.buffer + values), np.array(self.steps + steps)
        blocks = len(joined) // BLOCK
        self.buffer, self.steps = joined[blocks * BLOCK :].tolist(), at[blocks * BLOCK :].tolist()
        if not blocks:
            return
        table, steps_of = (part[: blocks * BLOCK].reshape(blocks, BLOCK) for part in (joined, at))
        ranked = np.partition(table, (BLOCK // 4, BLOCK // 2, 3 * BLOCK // 4), axis=1)
        low, middle, high = ranked[:, BLOCK // 4], ranked[:, BLOCK // 2], ranked[:, 3 * BLOCK // 4]
        slow = table > SLOW * middle[:, None]
        counts = slow.sum(axis=1)
        first = self.places[0]
        for block in range(blocks):
            last_at = (block + 1) * BLOCK - begun - 1
            last = place(frame, rows[last_at], float(middle[block]))
            if middle[block] > 0:
                spread = float((high[block] - low[block]) / middle[block])
                self._scatter(spread, first, last, rows[last_at], found)
                beat = FEWEST <= counts[block] <= MOST
                told = (steps_of[block], table[block], slow[block], float(middle[block]))
                period, lost = _rhythm(*told) if beat else (0.0, 0.0)
                logged = float(steps_of[block][-1] - steps_of[block][0]) / (BLOCK - 1)
                self._rhythm(period, logged, lost, first, last, rows[last_at], found)
            if last_at + 1 < len(rows):
                first = place(frame, rows[last_at + 1], values[last_at + 1])
        self.places = [first]

    def _scatter(self, spread: float, first: Place, last: Place, row: int, found: Found) -> None:
        fault = self.faults["scatter"]
        self.newest = spread
        if len(self.scatter) < HISTORY:
            self.scatter.update(spread)
            return
        self.judged += 1
        level = self.scatter.median
        if spread > self.least and spread > self.ratio * level:
            what = f"step times scatter by {spread:.0%} of their median, {level:.1%} before"
            fault.out(first, last, row, what, Severity.WARN, found)
            if fault.blocks >= 10 * LASTING:
                fault.blocks = 0
                self.scatter.clear()
            return
        self.scatter.update(spread)
        fault.calm(last, row, found)

    def _rhythm(
        self, period: float, logged: float, lost: float, first: Place, last: Place, row: int, found: Found
    ) -> None:
        """One block's `period` (0: none), in a log of every `logged` steps."""
        fault = self.faults["rhythm"]
        if not period or (self.period and period != self.period):
            self.period = period
            fault.calm(last, row, found)
            if not period:
                self.calm_blocks += 1
                return
        self.period = period
        # A rhythm that was always there is how the run evaluates or saves.
        is_new = self.calm_blocks >= LASTING and self.calm_blocks * BLOCK * logged >= BEATS * period
        severity = Severity.WARN if is_new and lost >= self.limits["jitter.periodic"] else Severity.INFO
        what = f"a slow step every {period:.15g} steps: {lost:.0%} of the time is lost to it"
        fault.out(first, last, row, what, severity, found)

    def finish(self) -> Iterable[Finding]:
        """Open faults reach to their last block."""
        return [] if self.clock.holds else [said for fault in self.faults.values() for said in fault.finish()]

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - the hook
        """Open faults reach to the last block of their attempt."""
        said = list(self.finish())
        self.faults = {name: _Fault(name) for name in self.faults}
        return said

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("jitter.ratio", "jitter.least", "jitter.periodic")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "a rhythm comes from loader workers, garbage collection or logging: see what runs every n steps; "
            advice += "scatter from a shared network or storage, or other jobs on the host"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, "sys.step_time"):
            return result(self, Verdict.NO_DATA, "no step time in the log; log the time of each step, or time stamps")
        if self.clock.holds:
            return result(self, Verdict.NO_DATA, ONLY_RISES)
        if not self.judged:
            return result(self, Verdict.NO_DATA, f"{HISTORY * BLOCK} step times are needed to know their scatter")
        told = next((f"; {e.what}" for e in view.episodes if e.kind == "rhythm" and not e.recovered), "")
        return result(self, Verdict.PASS, f"scatter {self.newest:.1%} of the median{told}", used=used)


class _Fault:
    """Blocks in a row that are out; opened with the fourth, ended by two that are not."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.blocks = 0
        self.back = 0
        self.opened = False
        self.first: Place | None = None
        self.last: Place | None = None
        self.severity = Severity.INFO
        self.what = ""

    def out(self, first: Place, last: Place, row: int, what: str, severity: Severity, found: Found) -> None:
        if not self.blocks and not self.opened:
            self.first = first
        self.blocks += 1
        self.back = 0
        self.last = last
        if self.blocks < LASTING:
            return
        if not self.opened or severity > self.severity:
            action: Action = "grow" if self.opened else "open"
            self.severity = severity
            self.what = f"{what}, since step {(self.first or first).step:.15g}"
            self.opened = True
            found.append((row, self._said(action, last)))

    def calm(self, at: Place, row: int, found: Found) -> None:
        self.blocks = 0
        if not self.opened:
            return
        self.back += 1
        if self.back >= 2:
            found.append((row, self._said("grow", self.last or at)))
            found.append((row, self._said("recover", at)))
            self.opened, self.severity = False, Severity.INFO

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, self.kind, TIME, self.severity, at, self.what, first=self.first)

    def finish(self) -> list[Finding]:
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []


def _rhythm(steps: FloatArray, values: FloatArray, slow: BoolArray, middle: float) -> tuple[float, float]:
    """(period in steps, share of the time lost) when the slow values of a block come every so many; else (0, 0).

    >>> steps = np.arange(50.0)
    >>> values = np.where(steps % 10 == 0, 2.0, 1.0)
    >>> _rhythm(steps, values, values > 1.3, 1.0)
    (10.0, 0.09090909090909091)
    """
    gaps = np.diff(steps[slow])
    period = float(gaps.min())
    logged = median(np.diff(steps))
    off = np.abs(gaps / period - np.rint(gaps / period)) if period > 0 else gaps
    if period < 2 * logged or (off > OFF).any() or np.count_nonzero(gaps == period) * 2 < len(gaps):
        return 0.0, 0.0
    return period, float((values[slow] - middle).sum() / values.sum())
