"""Check spike.co: loss and gradient norm spike at the same step (D5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import Found, Place, Rl, finding, in_order, place, result, seen, tell, verdict_of
from trainmon.monitor.detectors.grad_norm import GRAD, GradNorm, grad_rule
from trainmon.monitor.detectors.loss_spike import LOSS, LossSpike, loss_rule
from trainmon.monitor.detectors.spike_track import SpikeTrack
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

CO = SignalKey("spike.co_count")
CALM_STEPS = 200.0  # co-spikes nearer than this are one episode


class CoSpike(Detector):
    """Both out at the same step, each by its own rule. One episode for a burst of them; WARN."""

    id: ClassVar[str] = "spike.co"
    name: ClassVar[str] = "Co-spikes"
    signals: ClassVar[tuple[str, ...]] = ("loss.train", "grad.norm")
    order: ClassVar[int] = 13
    triage: ClassVar[str] = "gradients"
    formula: ClassVar[str] = "C_t = 1 when loss and G_2 are both out at step t, each by its own z_t"
    source: ClassVar[str] = "METRICS.md D5; Deng, Reading a Pretraining Run (2026), co-spike"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.loss = SpikeTrack(LOSS, loss_rule(limits))
        self.grad = SpikeTrack(GRAD, grad_rule(limits))
        self.rl = Rl()
        self.shared = False
        self.count = 0
        self.matched: list[int] = []  # rows of the newest frame
        self.first: Place | None = None
        self.last: Place | None = None
        self._loss_flag: float | None = None
        self._grad_flag: float | None = None
        self._attempt: int | None = None

    def connect(self, others: Mapping[str, Detector]) -> None:
        """Uses the scores of loss.spike and grad.norm, which must be given each frame first."""
        loss, grad = others.get("loss.spike"), others.get("grad.norm")
        if isinstance(loss, LossSpike) and isinstance(grad, GradNorm):
            self.loss, self.grad, self.shared = loss.track, grad.spikes, True

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads both. They may stand in different rows of a step."""
        until = self.rl.first_row(frame)
        if not self.shared:
            self.loss.flags, self.grad.flags = [], []
            limit = until if until < len(frame) else None
            if until:
                self.loss.feed(frame, [], limit)
                self.grad.feed(frame, [], limit)
        found: Found = []
        self.matched = []
        if len(frame) and frame.attempt != self._attempt:
            self._attempt = frame.attempt
            self._loss_flag = self._grad_flag = None
            if self.first is not None:
                # A burst does not go on over a restart.
                found.append((0, self._said("recover", self.last or self.first)))
                self.first = None
        if self.first is not None or self.loss.flags or self.grad.flags:
            self.matched = self._matches(frame)
            self._bursts(frame, self.matched, found)
        return in_order(found)

    def _matches(self, frame: Frame) -> list[int]:
        """The rows at which a step turns out to be flagged in both."""
        flags = sorted({(row, "loss") for row in self.loss.flags} | {(row, "grad") for row in self.grad.flags})
        matches = []
        for row, which in flags:
            step = float(frame.steps[row])
            if which == "loss":
                self._loss_flag = step
            else:
                self._grad_flag = step
            if self._loss_flag is not None and self._loss_flag == self._grad_flag:
                self._loss_flag = self._grad_flag = None
                matches.append(row)
        return matches

    def _bursts(self, frame: Frame, matches: list[int], found: Found) -> None:
        """One episode for matches that follow within 200 steps of each other."""
        start = 0
        for row in [*matches, len(frame)]:
            if self.first is not None and self.last is not None:
                late = np.flatnonzero(frame.steps[start:row] - self.last.step > CALM_STEPS)
                if len(late):
                    at = start + int(late[0])
                    found.append((at, self._said("recover", place(frame, at, float("nan")))))
                    self.first = None
            if row < len(frame):
                self._hit(frame, row, found)
            start = row + 1

    def _hit(self, frame: Frame, row: int, found: Found) -> None:
        column = frame.columns.get(LOSS)
        at = place(frame, row, float(column[row]) if column is not None else float("nan"))
        self.count += 1
        action: Action = "open" if self.first is None else "grow"
        self.first = self.first or at
        self.last = at
        found.append((row, self._said(action, at)))

    def _said(self, action: Action, at: Place) -> Finding:
        first = self.first or at
        what = f"loss and gradient norm jumped together at step {first.step:.15g}"
        return finding(action, "co_spike", CO, Severity.WARN, at, what, first=first)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("spike.z", "grad.spike.z", "grad.spike.ratio")
        if not seen(view, "grad.norm") or not seen(view, "loss.train"):
            has_loss = seen(view, "loss.train")
            missing, how = ("gradient norm", "before clipping") if has_loss else ("training loss", "every step")
            return result(self, Verdict.NO_DATA, f"no {missing} in the log; log it {how}")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            return result(
                self,
                verdict,
                tell(view.episodes),
                f"{self.count} step{'s' if self.count != 1 else ''} at which both were out",
                "look at the data of those steps, and skip them after going back if the loss does not recover",
                used,
            )
        if not self.loss.judged or not self.grad.judged:
            return result(self, Verdict.NO_DATA, f"fewer than {self.limits['spike.min_history']:.15g} values of both")
        return result(self, Verdict.PASS, "no step at which both jumped", used=used)
