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
from trainmon.tails.quick_dataclass import dataclass

SCALE = SignalKey("optim.loss_scale")
SKIPS = SignalKey("count.skipped_steps")
START = 200.0  # steps: the scale is being found
WINDOW = 100.0  # steps
OFTEN = 10  # skips within them
COLLAPSED = 1.0  # a dynamic scale this small leaves nothing of small gradients


@dataclass(slots=True)
class _Spell:
    """A fault that goes on, from its first value to the last one so far."""

    kind: str
    signal: SignalKey
    severity: Severity
    first: Place
    last: Place
    what: str

    def said(self, action: Action, at: Place) -> Finding:
        """A finding about it at `at`."""
        return finding(action, self.kind, self.signal, self.severity, at, self.what, first=self.first)


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
        self.skips: deque[Place] = deque(maxlen=1000)
        self.total = 0
        self.counter = math.nan
        self.highest = 0.0
        self.lowest = math.inf
        self.first_step: float | None = None
        self.often: _Spell | None = None
        self.collapsed: _Spell | None = None
        self._scale_before = math.nan
        self._fell: Place | None = None  # where the scale began to fall, with no rise since
        self._attempt: int | None = None
        self._last_step = math.nan

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads the scale and the counter of skipped steps."""
        found: Found = []
        if not len(frame):
            return ()
        if frame.attempt != self._attempt:
            self._begin_attempt(frame.attempt, float(frame.steps[0]))
        if self.first_step is None:
            self.first_step = float(frame.steps[0])
        self._last_step = float(frame.steps[-1])
        rows, steps, values = numbers(frame, SKIPS)
        for row, step, x in zip(rows, steps, values, strict=True):
            self._skip(frame, row, step, x, found)
        rows, _, values = numbers(frame, SCALE)
        for row, x in zip(rows, values, strict=True):
            self._scale(frame, row, x, found)
        return in_order(found)

    def _begin_attempt(self, attempt: int, step: float) -> None:
        if self._attempt is not None and not resumed(self._last_step, step):
            self.first_step = None
        if self.often is not None and step <= self.often.first.step:
            self.often = None
        if self.collapsed is not None and step <= self.collapsed.first.step:
            self.collapsed = None
        self.skips.clear()
        self.counter = self._scale_before = math.nan
        self._fell = None
        self._attempt = attempt

    def _skip(self, frame: Frame, row: int, step: float, x: float, found: Found) -> None:
        """The counter may count since the last record (Megatron) or since the start."""
        new = x - self.counter if x >= self.counter > 0 else x
        self.counter = x
        self.total += max(int(new), 0)
        at = place(frame, row, x)
        if new > 0 and self.first_step is not None and step - self.first_step > START:
            self.skips.extend([at] * min(int(new), 1000))
        while self.skips and step - self.skips[0].step > WINDOW:
            self.skips.popleft()
        if self.often is None:
            if len(self.skips) > OFTEN:
                what = f"{len(self.skips)} of the last {WINDOW:.15g} steps were skipped by step {step:.15g}"
                self.often = _Spell("skips", SKIPS, Severity.WARN, self.skips[0], at, what)
                found.append((row, self.often.said("open", at)))
        elif self.skips:
            self.often.last = self.skips[-1]
        else:
            found += [(row, self.often.said("grow", self.often.last)), (row, self.often.said("recover", at))]
            self.often = None

    def _scale(self, frame: Frame, row: int, x: float, found: Found) -> None:
        self.highest = max(self.highest, x)
        self.lowest = min(self.lowest, x)
        at = place(frame, row, x)
        if x > self._scale_before:
            self._fell = None
        elif x < self._scale_before and self._fell is None:
            self._fell = at
        self._scale_before = x
        if self.highest <= COLLAPSED or x > COLLAPSED:
            if self.collapsed is not None:
                spell = self.collapsed
                found += [(row, spell.said("grow", spell.last)), (row, spell.said("recover", at))]
                self.collapsed = None
        elif self.collapsed is None:
            what = f"the loss scale fell from {self.highest:.15g} to {x:.15g} by step {at.step:.15g}"
            self.collapsed = _Spell("loss_scale", SCALE, Severity.FAIL, self._fell or at, at, what)
            found.append((row, self.collapsed.said("open", at)))
        else:
            self.collapsed.last = at

    def finish(self) -> Iterable[Finding]:
        """What has not ended reaches to its last value."""
        return [spell.said("grow", spell.last) for spell in (self.often, self.collapsed) if spell is not None]

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
