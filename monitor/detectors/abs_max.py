"""Check numerics.abs_max: scales of outputs, activations, weights, moments; jumps, falls to nothing, drift, tails."""

from __future__ import annotations

import math
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Track, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.scale_track import HISTORY, ScaleRule, ScaleTrack
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import SignalKey

SCALES = (
    *("tensor.abs_max", "tensor.rms", "tensor.abs_mean", "tensor.kurtosis", "param.norm", "grad.abs_mean"),
    "optim.state",
)
DRIFTING = ("tensor.abs_max", "tensor.rms", "tensor.abs_mean")
HALF = ("fp16", "float16", "half", "16-mixed", "fp16-mixed")
GAUSSIAN = 3.0  # kurtosis: below it no tail is heavy


class AbsMax(WatchingDetector):
    """10x, or to zero, against the series' own level for 3 samples: WARN; non-finite, or over 1e4 in fp16: FAIL.

    A scale that drifts to 10x the lowest level it has had since it settled is a WARN too, however slowly it came.
    Kurtosis is judged upwards only. The optimiser's moments that fall to nothing were lost at a restart.
    """

    id: ClassVar[str] = "numerics.abs_max"
    name: ClassVar[str] = "Tensor Scales"
    signals: ClassVar[tuple[str, ...]] = SCALES
    watched: ClassVar[tuple[str, ...]] = SCALES
    order: ClassVar[int] = 30
    triage: ClassVar[str] = "layers"
    formula: ClassVar[str] = "value / its own level for scale.samples samples; |x| > abs_max.fp16 in fp16"
    source: ClassVar[str] = (
        "METRICS.md, smallest faults: output AbsMax, update ratio, scale rows; Deng, Reading a Pretraining Run (2026)"
    )

    def make_track(self, key: SignalKey) -> Track:
        """A scale against itself."""
        half = str(self.facts.get("precision", "")).lower() in HALF
        kurtosis = key.signal == "tensor.kurtosis"
        rule = ScaleRule(
            ratio=self.limits["scale.ratio"],
            samples=int(self.limits["scale.samples"]),
            down=not kurtosis,
            least=GAUSSIAN if kurtosis else 0.0,
            drifts=key.signal in DRIFTING,
            ceiling=self.limits["abs_max.fp16"] if half and key.signal == "tensor.abs_max" else math.inf,
        )
        return ScaleTrack(key, rule)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("scale.ratio", "scale.samples", "abs_max.fp16")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "open the layer's charts; use bf16 in place of fp16, lower the learning rate, or add QK norm"
            if all(episode.signal.signal == "optim.state" for episode in view.episodes if episode.severity):
                advice = "see whether the optimiser's state was restored at the last restart, and which stage changed"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, *SCALES):
            what = "no tensor scales; log max|x| of the output every 100 steps"
            return result(self, Verdict.NO_DATA, what)
        judged = sum(t.judged for t in self.tracks.values() if isinstance(t, ScaleTrack))
        if not judged:
            return result(self, Verdict.NO_DATA, f"fewer than {HISTORY} samples of each scale")
        return result(self, Verdict.PASS, f"{len(self.tracks)} series steady ({judged:,} samples)", used=used)
