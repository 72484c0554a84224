"""Check tensor.dead: neurons that no token activates any more."""

from __future__ import annotations

from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Track, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.share_track import ShareRule, ShareTrack
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import SignalKey

WATCHED = ("tensor.dead_fraction", "tensor.zero_fraction")
STEPS = 100.0
HALF = 0.5  # of the neurons dead, where they were not: by whatever road


class DeadUnits(WatchingDetector):
    """0.3 more dead neurons, or zero activations, than the layer's own level for 100 steps: WARN.

    Also when half of the neurons (99% of the activations) are reached slowly. Layer by layer: an average hides one.
    """

    id: ClassVar[str] = "tensor.dead"
    name: ClassVar[str] = "Dead Neurons"
    signals: ClassVar[tuple[str, ...]] = WATCHED
    watched: ClassVar[tuple[str, ...]] = WATCHED
    order: ClassVar[int] = 34
    triage: ClassVar[str] = "layers"
    formula: ClassVar[str] = "share of x = 0, of neurons without activation, against the median of its last 100"
    source: ClassVar[str] = "METRICS.md row 19 (Z_x)"

    def make_track(self, key: SignalKey) -> Track:
        """A share of one layer."""
        bar = HALF if key.signal == "tensor.dead_fraction" else self.limits["share.bar"]
        return ShareTrack(key, ShareRule("dead_units", self.limits["share.rise"], STEPS, bar=bar))

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("share.rise", "share.bar")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "lower the learning rate, or use an activation that does not die (GELU, SwiGLU); dead neurons do "
            advice += "not come back by themselves: go back to a checkpoint before it"
            return result(self, verdict, tell(view.episodes), "each layer against its own level", advice, used)
        if not seen(view, *WATCHED):
            return result(self, Verdict.NO_DATA, "no share of dead neurons; log that of zero activations by layer")
        tracks = [track for track in self.tracks.values() if isinstance(track, ShareTrack)]
        if not sum(track.judged for track in tracks):
            return result(self, Verdict.NO_DATA, "too few samples to know each layer's level")
        worst = max(tracks, key=lambda track: track.last)
        return result(self, Verdict.PASS, f"{len(tracks)} series, at most {worst.last:.0%}", used=used)
