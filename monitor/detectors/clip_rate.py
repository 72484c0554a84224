"""Check grad.clip_rate: the share of steps that are clipped, D4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
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
DECAYED = 0.5
LONG_EPOCHS = 3.0  # times the persistence
EXPLAINS = 0.75  # of the rate it came down from: what begins below that may come of the decay
SETTLE = 3  # windows before the rate's own level is taken: warm-up clips often


class ClipRate(Detector):
    """The clip rate over W steps; +0.3 over its own lowest level for 1000 steps is a WARN.

    Low and steady is normal, and so is high and steady: only a rise is told. Where neither log nor user gave the
    threshold, 1.0 is assumed and the warning is advice. Another batch size, sequence length or epoch, and a learning
    rate that has come down by half, begin a new level.
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
        self.first_lr = math.nan
        self.epoch_step = 0.0  # where the newest epoch began
        self.lr_of_base = 0.0  # the highest learning rate since the level was taken

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
        self._last_step = float(own.steps[-1])
        self.newest = float(rates[-1])
        at = 0
        for change, highest in [*sorted(self._changes(own.rows).items()), (len(rates), math.inf)]:
            self._read(frame, own.rows[at:change], rates[at:change], found)
            # A rise that began before the learning rate had come down is not explained by that.
            is_explained = self.first is None or highest == math.inf or self.first_lr <= EXPLAINS * highest
            if change < len(rates) and not self.opened and is_explained:
                self.base, self.first = math.inf, None
                self.settled = self.count + self.share.window
            at = change
        return in_order(found)

    def _changes(self, rows: IntArray) -> dict[int, float]:
        """Which of `rows` begin a new level: a change of the work of a step, a learning rate that came down by half.

        With the rate that it came down from; a new size explains any rise (inf), an epoch none that had begun (-inf).
        Norms grow as the learning rate decays, and shrink with a larger batch: neither is a fault.
        """
        starts: dict[int, float] = {}
        for change in self.meant.known:
            if change.row >= 0 and (change.key in SIZES or self._is_long(change.step)):
                at = int(np.searchsorted(rows, change.row))
                starts[at] = max(math.inf if change.key in SIZES else -math.inf, starts.get(at, -math.inf))
        rates = np.array(self.lr.at(rows.tolist()))
        if np.isfinite(rates[-1]):
            rates = np.nan_to_num(rates)
            i = 0
            while i < len(rates):
                highest = np.maximum.accumulate(np.concatenate([[self.lr_of_base], rates[i:]]))[1:]
                low = np.flatnonzero((rates[i:] <= DECAYED * highest) & (rates[i:] > 0))
                if not len(low):
                    self.lr_of_base = float(highest[-1])
                    break
                starts.setdefault(i + int(low[0]), float(highest[low[0]]))
                i += int(low[0])
                self.lr_of_base = float(rates[i])
        return {start: highest for start, highest in starts.items() if start < len(rows)}

    def _is_long(self, step: float) -> bool:
        """Whether the epoch that ends at `step` was long enough for a rise in it to be told: else it would never be."""
        is_long = step - self.epoch_step >= LONG_EPOCHS * self.steps
        self.epoch_step = step
        return is_long

    def _read(self, frame: Frame, rows: IntArray, rates: FloatArray, found: Found) -> None:
        skip = min(max(self.settled - 1 - self.count, 0), len(rates))
        self.count += len(rates)
        if skip == len(rates):
            return
        lowest = np.minimum.accumulate(np.concatenate([[self.base], rates[skip:]]))[1:]
        if self.first is not None or bool((rates[skip:] > lowest + self.rise).any()):
            for i in range(skip, len(rates)):
                self.base = float(lowest[i - skip])
                if self.first is not None or rates[i] > self.base + self.rise:
                    self._risen(frame, int(rows[i]), float(rates[i]), found)
        self.base = float(lowest[-1])

    def _forget(self) -> None:
        self.share = RollingShare(self.share.window)
        self.count = 0
        self.settled = SETTLE * self.share.window
        self.base = math.inf
        self.lr_of_base = 0.0
        self.first = None
        self.opened = False

    def _risen(self, frame: Frame, row: int, rate: float, found: Found) -> None:
        at = place(frame, row, rate)
        if self.first is None:
            self.first = self.last = at
            self.first_lr = self.lr.at([row])[0]
            return
        if rate <= self.base + self.rise:
            if self.opened:
                found.append((row, self._said("grow", self.last or at)))
                found.append((row, self._said("recover", at)))
            self.first, self.opened = None, False
            return
        self.last = at
        if not self.opened and at.step - self.first.step >= self.steps:
            self.opened = True
            self.what = f"clip rate rose from {self.base:.0%} to {rate:.0%} since step {self.first.step:.15g}"
            found.append((row, self._said("open", at)))

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
