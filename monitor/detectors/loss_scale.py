"""Check numerics.loss_scale: steps lost to overflow under fp16, D7."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    finding,
    in_order,
    numbers,
    place,
    result,
    resumed,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

SCALE = SignalKey("optim.loss_scale")
SKIPS = SignalKey("count.skipped_steps")
START = 200.0  # steps: the scale is being found
WINDOW = 100.0  # steps
OFTEN = 10  # skips within them
COLLAPSED = 1.0  # a dynamic scale this small leaves nothing of small gradients


class LossScale(Detector):
    """More than one step in ten skipped after the first 200: WARN. A dynamic scale that fell to 1: FAIL.

    A skip now and then is how dynamic loss scaling works, and is counted, not warned of.
    """

    id: ClassVar[str] = "numerics.loss_scale"
    name: ClassVar[str] = "Loss Scale and Skipped Steps"
    signals: ClassVar[tuple[str, ...]] = ("optim.loss_scale", "count.skipped_steps")
    order: ClassVar[int] = 31
    triage: ClassVar[str] = "gradients"
    formula: ClassVar[str] = "skipped steps / steps; the dynamic loss scale against 1"
    source: ClassVar[str] = "METRICS.md D7 and METRICS.md, smallest faults: non-finite gradient norm"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.skips: deque[float] = deque(maxlen=1000)
        self.total = 0
        self.counter = math.nan
        self.highest = 0.0
        self.lowest = math.inf
        self.first_step: float | None = None
        self.first: Place | None = None
        self.opened = False
        self.collapsed = False
        self.last: Place | None = None
        self._attempt: int | None = None
        self._last_step = math.nan

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads the scale and the counter of skipped steps."""
        found: Found = []
        if not len(frame):
            return ()
        if frame.attempt != self._attempt:
            if self._attempt is not None and not resumed(self._last_step, float(frame.steps[0])):
                self.first_step = None
            if self.first is not None and float(frame.steps[0]) <= self.first.step:
                self.first, self.opened = None, False
            if self.collapsed and self.last is not None and float(frame.steps[0]) <= self.last.step:
                self.collapsed = False
            self.skips.clear()
            self.counter = math.nan
            self._attempt = frame.attempt
        if self.first_step is None:
            self.first_step = float(frame.steps[0])
        self._last_step = float(frame.steps[-1])
        rows, steps, values = numbers(frame, SKIPS)
        for row, step, x in zip(rows, steps, values, strict=True):
            self._skip(frame, row, step, x, found)
        rows, steps, values = numbers(frame, SCALE)
        for row, x in zip(rows, values, strict=True):
            self._scale(frame, row, x, found)
        return in_order(found)

    def _skip(self, frame: Frame, row: int, step: float, x: float, found: Found) -> None:
        """The counter may count since the last record (Megatron) or since the start."""
        new = x - self.counter if x >= self.counter > 0 else x
        self.counter = x
        self.total += max(int(new), 0)
        if new > 0 and self.first_step is not None and step - self.first_step > START:
            self.skips.extend([step] * min(int(new), 1000))
        while self.skips and step - self.skips[0] > WINDOW:
            self.skips.popleft()
        at = place(frame, row, x)
        if len(self.skips) > OFTEN:
            if not self.opened:
                self.first, self.opened = at, True
                what = f"{len(self.skips)} of the last {WINDOW:.15g} steps were skipped by step {step:.15g}"
                found.append((row, finding("open", "skips", SKIPS, Severity.WARN, at, what)))
        elif self.opened and not self.skips:
            self.opened = False
            what = "no step skipped any more"
            found.append((row, finding("recover", "skips", SKIPS, Severity.WARN, at, what, first=self.first)))

    def _scale(self, frame: Frame, row: int, x: float, found: Found) -> None:
        self.highest = max(self.highest, x)
        self.lowest = min(self.lowest, x)
        if self.highest <= COLLAPSED or x > COLLAPSED:
            if self.collapsed:
                at = place(frame, row, x)
                found.append((row, self._said("recover", at)))
                self.collapsed = False
            return
        at = place(frame, row, x)
        self.last = at
        if not self.collapsed:
            self.collapsed = True
            found.append((row, self._said("open", at)))

    def _said(self, action: Action, at: Place) -> Finding:
        what = f"the loss scale fell from {self.highest:.15g} to {self.lowest:.15g} by step {at.step:.15g}"
        return finding(action, "loss_scale", SCALE, Severity.FAIL, at, what)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "use bf16; else lower the learning rate: under fp16 overflow is silent until steps are skipped"
            return result(self, verdict, tell(view.episodes), f"{self.total} skipped steps seen", advice)
        if not seen(view, "optim.loss_scale", "count.skipped_steps"):
            return result(self, Verdict.NOT_APPLICABLE, "no loss scaling in the log")
        skipped = self.total
        scale = f", scale {self.lowest:.15g} to {self.highest:.15g}" if self.highest else ""
        return result(self, Verdict.PASS, f"{skipped} step{'s' if skipped != 1 else ''} skipped{scale}")
