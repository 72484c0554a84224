"""Check numerics.abs_max: scales of activations, updates and residual branches."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    SeriesDetector,
    Track,
    finding,
    place,
    result,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Mark

SCALES = (
    "tensor.abs_max",
    "tensor.rms",
    "tensor.abs_mean",
    "update.ratio",
    "residual.branch_scale",
    "grad.abs_max",
    "grad.abs_mean",
)
HISTORY = 10  # samples: these rows come every 100 steps
HALF = ("fp16", "float16", "half", "16-mixed", "fp16-mixed")


class ScaleTrack:
    """One series: 10x its own level, or gone to 0, for 3 samples. Both ways."""

    def __init__(self, key: SignalKey, limits: Thresholds, half: bool) -> None:
        self.key = key
        self.ratio = limits["scale.ratio"]
        self.samples = int(limits["scale.samples"])
        self.ceiling = limits["abs_max.fp16"] if half and key.signal == "tensor.abs_max" else math.inf
        self.robust = RollingRobust(50)
        self.out: deque[Place] = deque(maxlen=64)
        self.back = 0
        self.opened = False
        self.severity = Severity.WARN
        self.what = ""
        self.judged = 0
        self._attempt: int | None = None

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        logged = frame.logged(self.key)
        if not len(logged):
            return
        if frame.attempt != self._attempt:
            self._attempt = frame.attempt
            if self.out and float(frame.steps[logged[0]]) <= self.out[0].step:
                # A roll-back past the fault leaves it behind.
                self.out.clear()
                self.opened, self.severity = False, Severity.WARN
        marks = frame.marks.get(self.key)
        values = frame.columns[self.key][logged].tolist()
        for row, x in zip(logged.tolist(), values, strict=True):
            if marks is not None and marks[row] == Mark.NULL:
                continue
            if not math.isfinite(x) or x > self.ceiling:
                self._bad(frame, row, x, found)
            else:
                self._take(frame, row, x, found)

    def _bad(self, frame: Frame, row: int, x: float, found: Found) -> None:
        at = place(frame, row, x)
        said = "is not finite" if not math.isfinite(x) else f"is {x:.4g}, near the end of fp16's range,"
        self.what = f"{self.key} {said} at step {at.step:.15g}"
        self.severity = Severity.FAIL
        self.out.append(at)
        found.append((row, self._said("grow" if self.opened else "open", at)))
        self.opened = True
        self.back = 0

    def _take(self, frame: Frame, row: int, x: float, found: Found) -> None:
        robust = self.robust
        if len(robust) < HISTORY:
            if not self.opened:
                robust.update(x)
            return
        self.judged += 1
        level = robust.median
        if level <= 0 or (level / self.ratio <= x <= level * self.ratio):
            robust.update(x)
            self._calm(frame, row, x, found)
            return
        at = place(frame, row, x)
        self.back = 0
        self.out.append(at)
        if not self.opened and len(self.out) >= self.samples:
            first = self.out[0]
            self.severity = Severity.WARN
            self.what = f"{self.key} went from {level:.4g} to {x:.4g} since step {first.step:.15g}"
            self.opened = True
            found.append((row, self._said("open", at)))

    def _calm(self, frame: Frame, row: int, x: float, found: Found) -> None:
        if not self.opened:
            self.out.clear()
            return
        self.back += 1
        if self.back >= self.samples:
            found.append((row, self._said("grow", self.out[-1])))
            found.append((row, self._said("recover", place(frame, row, x))))
            self.opened = False
            self.out.clear()

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, "scale", self.key, self.severity, at, self.what, first=self.out[0])

    def finish(self) -> Iterable[Finding]:
        """An open fault reaches to its last value."""
        return [self._said("grow", self.out[-1])] if self.opened and self.out else []


class AbsMax(SeriesDetector):
    """10x, or to zero, against the series' own level for 3 samples: WARN; non-finite, or over 1e4 in fp16: FAIL."""

    id: ClassVar[str] = "numerics.abs_max"
    name: ClassVar[str] = "Tensor Scales"
    signals: ClassVar[tuple[str, ...]] = SCALES
    watched: ClassVar[tuple[str, ...]] = SCALES
    order: ClassVar[int] = 30
    triage: ClassVar[str] = "layers"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)

    def make_track(self, key: SignalKey) -> Track:
        """A scale against itself."""
        precision = str(self.facts.get("precision", "")).lower()
        return ScaleTrack(key, self.limits, precision in HALF)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("scale.ratio", "scale.samples", "abs_max.fp16")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "open the layer's charts; use bf16 in place of fp16, lower the learning rate, or add QK norm"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, *SCALES):
            what = "no tensor scales; log max|x| of the output every 100 steps"
            return result(self, Verdict.NO_DATA, what)
        judged = sum(t.judged for t in self.tracks.values() if isinstance(t, ScaleTrack))
        if not judged:
            return result(self, Verdict.NO_DATA, f"fewer than {HISTORY} samples of each scale")
        return result(self, Verdict.PASS, f"{len(self.tracks)} series steady ({judged:,} samples)", used=used)
