"""Check residual.stream: branches, layers that do nothing, updates lost to rounding, closed gates (rows 27-30)."""

from __future__ import annotations

from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Track, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.scale_track import ScaleRule, ScaleTrack
from trainmon.monitor.detectors.share_track import ShareRule, ShareTrack
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import SignalKey

BRANCH, IMPORTANCE, NOOP, GATES = (
    "residual.branch_scale",
    "residual.block_importance",
    "residual.bf16_noop",
    "residual.gate_saturation",
)
WATCHED = (BRANCH, IMPORTANCE, NOOP, GATES)
STEPS = 100.0
LOST = 0.9  # of the additions lost to rounding, of the gates closed, where it was clearly less


class ResidualStream(WatchingDetector):
    """Branch scale 10x its level or a tenth of it, block importance a tenth of it, for 3 samples: WARN.

    Share of no-op additions in bf16, or of saturated gates, 0.3 above its level or past 0.9, for 100 steps: WARN.
    The angle says the same as the importance (D14) and is not judged twice.
    """

    id: ClassVar[str] = "residual.stream"
    name: ClassVar[str] = "Residual Stream"
    signals: ClassVar[tuple[str, ...]] = WATCHED
    watched: ClassVar[tuple[str, ...]] = WATCHED
    order: ClassVar[int] = 36
    triage: ClassVar[str] = "layers"
    formula: ClassVar[str] = "R_b, B = 1 - cos(s, a), F_noop, F_gate, each against its own median"
    source: ClassVar[str] = "METRICS.md D14, rows 27-30"

    def make_track(self, key: SignalKey) -> Track:
        """One row of the table for one layer."""
        limits = self.limits
        ratio, samples = limits["scale.ratio"], int(limits["scale.samples"])
        if key.signal == BRANCH:
            return ScaleTrack(key, ScaleRule(ratio, samples, drifts=True, kind="branch"))
        if key.signal == IMPORTANCE:
            return ScaleTrack(key, ScaleRule(ratio, samples, up=False, kind="idle_layer"))
        kind = "lost_updates" if key.signal == NOOP else "closed_gates"
        return ShareTrack(key, ShareRule(kind, limits["share.rise"], STEPS, bar=LOST))

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("scale.ratio", "scale.samples", "share.rise")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "open that layer's charts: rescale the branch (initialisation, LayerScale), keep the stream in "
            advice += "fp32 where bf16 loses its updates, lower the learning rate of gates that close"
            return result(self, verdict, tell(view.episodes), "each layer against its own level", advice, used)
        if not seen(view, *WATCHED):
            return result(self, Verdict.NO_DATA, "no residual stream; log |branch|/|stream| by layer every 100 steps")
        judged = sum(t.judged for t in self.tracks.values() if isinstance(t, ScaleTrack | ShareTrack))
        if not judged:
            return result(self, Verdict.NO_DATA, "too few samples to know each layer's level")
        return result(self, Verdict.PASS, f"{len(self.tracks)} series steady ({judged:,} samples)", used=used)
