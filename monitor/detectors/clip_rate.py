"""Check grad.clip_rate: the share of steps that are clipped, D4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.clip_onset import Onset
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    Rl,
    finding,
    finite,
    in_order,
    number_fact,
    place,
    result,
    resumed,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.meant import SIZES, MeantChanges
from trainmon.monitor.detectors.newest import Newest
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.rolling_share import RollingShare
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, IntArray

RATE = SignalKey("grad.clip_rate")
GRAD = SignalKey("grad.norm")
LR = SignalKey("optim.lr")
CUT = 0.5  # of the value before: a learning rate that is cut explains also what jumps
LONG_EPOCHS = 3.0  # times the persistence
EXPLAINS = 0.95  # of the learning rate's peak: what grows below that is of the decay
LOOK = 10  # values between two looks at how a rise began
SCANNED = 1024  # values looked through at once for where a rise begins
SETTLE = 3  # windows before the rate's own level is taken: warm-up clips often


class ClipRate(Detector):
    """The clip rate over W steps; +0.3 over its own lowest level for 1000 steps is a WARN.

    Low and steady is normal, and so is high and steady: only a rise is told. Where neither log nor user gave the
    threshold, 1.0 is assumed and the warning is advice. Another batch size, sequence length or epoch begins a new
    level. Norms grow as the learning rate comes down: below 0.75 of its peak a rise is told if the norm jumped, and
    what only grew, or begins within W values of a learning rate cut by half, is the new level.
    """

    id: ClassVar[str] = "grad.clip_rate"
    name: ClassVar[str] = "Clip Rate"
    signals: ClassVar[tuple[str, ...]] = ("grad.norm", "grad.clip_rate")
    about: ClassVar[tuple[str, ...] | None] = ("grad.norm",)
    order: ClassVar[int] = 14
    triage: ClassVar[str] = "gradients"
    formula: ClassVar[str] = (
        "Clip_t = share of the last `window` steps with G_2 > c; rise over its lowest settled value"
    )
    source: ClassVar[str] = "METRICS.md D4; Deng, Reading a Pretraining Run (2026), clip rate"

    peak: float
    cut: int
    _lr: float

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.share = RollingShare(int(limits["window"]))
        self.rise = limits["clip_rate.rise"]
        self.steps = limits["clip_rate.steps"]
        self.has_norm = False
        self.rl = Rl()
        self.newest = math.nan
        self.count = 0
        self.settled = SETTLE * self.share.window  # values until the level is taken
        self.base = math.inf
        self.first: Place | None = None
        self.last: Place | None = None
        self.opened = False
        self.what = ""
        self._attempt: int | None = None
        self._last_step = math.nan
        self.meant = MeantChanges()
        self.lr = Newest(LR)
        self.onset = Onset(self.share.window)
        self.epoch_step = 0.0  # where the newest epoch began
        self.values = 0  # since the rise began
        self.is_of_cut = False  # whether the rise began just behind a cut of the learning rate
        self.is_explained = False  # whether the rise may be of the learning rate
        self._schedule_forgotten()

    @property
    def clip(self) -> float:
        """The threshold c."""
        own = number_fact(self.facts, "clip_threshold")
        if not self.limits.is_set("clip") and own is not None and own > 0:
            return own
        return self.limits["clip"]

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads the gradient norm; the logged rate where there is no norm."""
        self.meant.feed(frame)
        self.lr.feed(frame)
        own = finite(frame, GRAD)
        if len(own) and not self.has_norm:
            self.has_norm = True
            self._forget()
        elif not self.has_norm and self.rl.first_row(frame) == len(frame):
            own = finite(frame, RATE)
        if not len(own):
            return ()
        if frame.attempt != self._attempt:
            first = float(own.steps[0])
            if self._attempt is not None and not resumed(self._last_step, first):
                self._forget()
            elif self.first is not None and first <= self.first.step:
                self.first, self.opened = None, False
            self._attempt = frame.attempt
        found: Found = []
        rates = self.share.extend(own.values > self.clip) if self.has_norm else own.values
        self.onset.feed(own.values if self.has_norm else rates)
        self.seen = self.count
        self._schedule(self.lr.at_all(own.rows))
        self._last_step = float(own.steps[-1])
        at = 0
        for change, explains_all in [*sorted(self._changes(own.rows).items()), (len(rates), False)]:
            self._read(frame, own.rows, rates, at, change, found)
            # An epoch does not explain a rise that was under way.
            before = float(rates[change - 1]) if change else self.newest
            is_calm = self.first is None and not before > self.base + self.rise / 2
            if change < len(rates) and not self.opened and (explains_all or is_calm):
                self.base, self.first = math.inf, None
                self.settled = self.count + self.share.window
            at = change
        self.newest = float(rates[-1])
        return in_order(found)

    def _changes(self, rows: IntArray) -> dict[int, bool]:
        """Which of `rows` begin a new level, since the work of a step was changed: a larger batch has smaller norms.

        With whether that explains a rise which had begun: a new size does, an epoch does not.
        """
        starts: dict[int, bool] = {}
        for change in self.meant.known:
            if change.row >= 0 and (change.key in SIZES or self._is_long(change.step)):
                at = int(np.searchsorted(rows, change.row))
                starts[at] = starts.get(at, False) or change.key in SIZES
        return {start: explains_all for start, explains_all in starts.items() if start < len(rows)}

    def _schedule(self, rates: FloatArray) -> None:
        """Where in the frame the learning rate has come down from its peak, and how many values ago it was cut."""
        rates = np.nan_to_num(rates)
        before = np.concatenate([[self._lr], rates[:-1]])
        peaks = np.maximum.accumulate(np.concatenate([[self.peak], rates]))[1:]
        self.is_down = (rates > 0) & (rates <= EXPLAINS * peaks)
        at = self.count + np.arange(len(rates))
        cuts = np.where((rates > 0) & (rates <= CUT * before), at, self.cut)
        self.cuts = np.maximum.accumulate(cuts)
        self.peak, self._lr, self.cut = float(peaks[-1]), float(rates[-1]), int(self.cuts[-1])

    def _is_long(self, step: float) -> bool:
        """Whether the epoch that ends at `step` was long enough for a rise in it to be told: else it would never be."""
        is_long = step - self.epoch_step >= LONG_EPOCHS * self.steps
        self.epoch_step = step
        return is_long

    def _read(self, frame: Frame, rows: IntArray, rates: FloatArray, begin: int, end: int, found: Found) -> None:
        """The values begin..end of the frame, which are of one level."""
        i = begin + min(max(self.settled - 1 - self.count, 0), end - begin)
        self.count += end - begin
        while i < end:
            if self.first is None:
                part = rates[i : min(i + SCANNED, end)]
                lowest = np.minimum.accumulate(np.concatenate([[self.base], part]))[1:]
                risen = np.flatnonzero(part > lowest + self.rise)
                nearest = int(risen[0]) if len(risen) else len(part) - 1
                i += nearest
                self.base = float(lowest[nearest])
                if not len(risen):
                    i += 1
                    continue
            else:
                self.base = min(self.base, float(rates[i]))
            self._risen(frame, i, int(rows[i]), float(rates[i]), found)
            i += 1

    def _forget(self) -> None:
        self.share = RollingShare(self.share.window)
        self.count = 0
        self.settled = SETTLE * self.share.window
        self.base = math.inf
        self.onset = Onset(self.share.window)
        self._schedule_forgotten()
        self.first = None
        self.opened = False

    def _schedule_forgotten(self) -> None:
        self.seen = 0  # values before this frame
        self.peak = 0.0  # of the learning rate
        self.cut = -self.share.window  # the value at which it was cut last
        self._lr = 0.0
        self.is_down = np.zeros(0, np.bool_)  # of each value of the frame: below 0.75 of the peak
        self.cuts = np.zeros(0, np.int64)  # of each value of the frame: the value at which the last cut was

    def _risen(self, frame: Frame, i: int, row: int, rate: float, found: Found) -> None:
        at = place(frame, row, rate)
        if self.first is None:
            self.first = self.last = at
            self.values = 0
            self.is_of_cut = int(self.cuts[i]) + self.share.window >= self.seen + i
            self.is_explained = self.is_of_cut or bool(self.is_down[i])
            return
        if rate <= self.base + self.rise:
            if self.opened:
                found.append((row, self._said("grow", self.last or at)))
                found.append((row, self._said("recover", at)))
            self.first, self.opened = None, False
            return
        self.last = at
        self.values += 1
        if self.is_explained and not self._is_abrupt(i):
            if self.values >= self.share.window:
                # It grew while the learning rate came down: that is what norms do then.
                self.base, self.first = rate, None
            return
        if not self.opened and at.step - self.first.step >= self.steps:
            self.opened = True
            self.what = f"clip rate rose from {self.base:.0%} to {rate:.0%} since step {self.first.step:.15g}"
            found.append((row, self._said("open", at)))

    def _is_abrupt(self, i: int) -> bool:
        """Whether the rise turns out to be none of the learning rate's; looked at with every tenth value."""
        if (
            not self.is_of_cut
            and self.values % LOOK == 0
            and self.onset.is_abrupt(i, self.clip if self.has_norm else None, self.rise)
        ):
            self.is_explained = False
        return not self.is_explained

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, "clip_rate", RATE, Severity.WARN, at, self.what, first=self.first)

    def finish(self) -> Iterable[Finding]:
        """An open rise reaches to its last value."""
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("clip", "clip_rate.rise", "clip_rate.steps", "window")
        if view.rl and not self.has_norm:
            return result(
                self, Verdict.NOT_APPLICABLE, "no gradient norm; clip fractions of a policy are its own matter"
            )
        if not self.count:
            return result(self, Verdict.NO_DATA, "no gradient norm in the log; log it before clipping")
        known = self.limits.is_set("clip") or number_fact(self.facts, "clip_threshold") is not None
        source = "" if known else " (assumed: the log does not say)"
        why = f"threshold {self.clip:.15g}{source}"
        if verdict_of(view.episodes) is not Verdict.PASS:
            return result(
                self,
                Verdict.WARN,
                tell(view.episodes),
                why,
                "the threshold no longer fits the run: see whether the norm or the learning rate grew",
                used,
                advisory=self.has_norm and not known,
            )
        if self.count < SETTLE * self.share.window:
            return result(self, Verdict.NO_DATA, f"{self.count:,} values are too few to know the rate's level")
        return result(
            self,
            Verdict.PASS,
            f"{self.share.value:.0%} of the last {self.share.window} values above {self.clip:.15g}, no rise"
            if self.has_norm
            else f"{self.newest:.0%} as logged, no rise",
            why,
            used=used,
        )
