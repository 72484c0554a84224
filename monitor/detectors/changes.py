"""Check run.changes: what was changed on purpose. Notes, never faults: levels that depend on it begin anew there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.amount import digits
from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import Found, finding, finite, in_order, place, result, resumed, seen
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, IntArray

SIZE, LENGTH, EPOCH, LR = (
    SignalKey("batch.size"),
    SignalKey("batch.seq_length"),
    SignalKey("progress.epoch"),
    SignalKey("optim.lr"),
)
WORDS = {SIZE: ("batch_ramp", "batch size"), LENGTH: ("longer_context", "sequence length")}
CHANGED = 0.05
STEADY = 5  # values at one size before a change of it means anything: packed batches differ from step to step
DECAYED = 0.5
TOLD = 20  # of each kind; the rest is counted


class Changes(Detector):
    """Batch ramps, longer context, epoch boundaries and steps down of the learning rate, as INFO.

    The checks of speed begin a new level where batch or context changes; a decayed learning rate ends the plateau rule.
    """

    id: ClassVar[str] = "run.changes"
    name: ClassVar[str] = "Expected Changes"
    signals: ClassVar[tuple[str, ...]] = ("batch.size", "batch.seq_length", "progress.epoch", "optim.lr")
    about: ClassVar[tuple[str, ...] | None] = ()  # nothing changed is an answer
    order: ClassVar[int] = 41
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = "|x_t - x_(t-1)| > 0.05 |x_(t-1)|"
    source: ClassVar[str] = "METRICS.md, smallest faults: batch ramps, longer sequences, new epochs re-baseline"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.last: dict[SignalKey, float] = {}
        self.steady: dict[SignalKey, int] = {}
        self.counts: dict[str, int] = {}
        self.last_step = math.nan
        self._attempt: int | None = None

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Looks for changes from one value to the next."""
        found: Found = []
        if len(frame) and frame.attempt != self._attempt:
            if self._attempt is not None and not resumed(self.last_step, float(frame.steps[0])):
                self.last.clear()
                self.steady.clear()
            self.last.pop(EPOCH, None)
            self.last.pop(LR, None)
            self._attempt = frame.attempt
        for key in (SIZE, LENGTH):
            if key in frame.columns:
                self._sizes(key, frame, found)
        if EPOCH in frame.columns:
            self._epochs(frame, found)
        if LR in frame.columns:
            self._decays(frame, found)
        if len(frame):
            self.last_step = float(frame.steps[-1])
        return in_order(found)

    def _steps(self, key: SignalKey, frame: Frame) -> tuple[IntArray, FloatArray, FloatArray]:
        """(rows, values, the value before each); the first value ever has NaN before it."""
        known = finite(frame, key)
        rows, x = known.rows, known.values
        before = np.concatenate([[self.last.get(key, math.nan)], x[:-1]]) if len(x) else x
        if len(x):
            self.last[key] = float(x[-1])
        return rows, x, before

    def _sizes(self, key: SignalKey, frame: Frame, found: Found) -> None:
        rows, x, before = self._steps(key, frame)
        changed = np.flatnonzero(np.abs(x - before) > CHANGED * np.abs(before))
        at = 0
        kind, words = WORDS[key]
        for i in changed.tolist():
            steady = self.steady.get(key, 0) + i - at
            self.steady[key], at = 0, i
            if steady >= STEADY:
                self._tell(kind, key, frame, int(rows[i]), float(x[i]), f"{words} went from {digits(before[i])}", found)
        self.steady[key] = self.steady.get(key, 0) + len(x) - at

    def _epochs(self, frame: Frame, found: Found) -> None:
        rows, x, before = self._steps(EPOCH, frame)
        crossed = np.floor(x + 1e-9) > np.floor(before + 1e-9)
        for i in np.flatnonzero(crossed & (before >= 0)).tolist():
            what = "epoch boundary: from epoch " + digits(float(np.floor(before[i] + 1e-9)))
            self._tell("epoch", EPOCH, frame, int(rows[i]), float(np.floor(x[i] + 1e-9)), what, found)

    def _decays(self, frame: Frame, found: Found) -> None:
        rows, x, before = self._steps(LR, frame)
        for i in np.flatnonzero((before > 0) & (x <= DECAYED * before) & (x > 0)).tolist():
            self._tell(
                "lr_step", LR, frame, int(rows[i]), float(x[i]), f"learning rate went from {before[i]:.3g}", found
            )

    def _tell(self, kind: str, key: SignalKey, frame: Frame, row: int, x: float, what: str, found: Found) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.counts[kind] > TOLD:
            return
        at = place(frame, row, x)
        to = f"{x:.3g}" if kind == "lr_step" else digits(x)
        words = f"{what} to {to} at step {at.step:.15g}"
        found.append((row, finding("open", kind, key, Severity.INFO, at, words)))
        found.append((row, finding("recover", kind, key, Severity.INFO, at, words)))

    def result(self, view: CheckView) -> CheckResult:
        """Never worse than PASS."""
        if not seen(view, *self.signals):
            what = "neither batch, epoch nor learning rate is logged: an expected change looks like any other"
            return result(self, Verdict.NO_DATA, what)
        if not self.counts:
            return result(self, Verdict.PASS, "no change of batch, context, epoch or schedule")
        names = {"batch_ramp": "batch size", "longer_context": "context", "epoch": "epoch", "lr_step": "learning rate"}
        told = ", ".join(f"{names[kind]} {count}" for kind, count in sorted(self.counts.items()))
        return result(self, Verdict.PASS, f"changes noted: {told}")
