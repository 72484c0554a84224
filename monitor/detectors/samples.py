"""Check output.samples: what the model writes becomes empty, repeats itself, or is gibberish."""

from __future__ import annotations

from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Track, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.scale_track import ScaleRule, ScaleTrack
from trainmon.monitor.detectors.share_track import ShareRule, ShareTrack
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import SignalKey

LENGTH = "sample.length"
SHARES = {
    "sample.empty": ("empty_output", "up", 0.9),
    "sample.repetition": ("repetition", "up", 0.8),
    "sample.distinct": ("repetition", "down", 0.05),
    "sample.gibberish": ("gibberish", "up", 0.9),
}  # kind, the bad direction, and the share that counts however slowly it was reached
WATCHED = (LENGTH, *SHARES)
SHRUNK = 20.0
VALUES = 3
HISTORY = 5  # samples are rare


class Samples(WatchingDetector):
    """The share of empty, repeated or garbled output 0.3 beyond its own level, or length to a twentieth: WARN.

    For 3 samples. The texts themselves are scored where they are read and never kept.
    """

    id: ClassVar[str] = "output.samples"
    name: ClassVar[str] = "Output Samples"
    signals: ClassVar[tuple[str, ...]] = WATCHED
    watched: ClassVar[tuple[str, ...]] = WATCHED
    order: ClassVar[int] = 38
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = "empty, repeated, distinct and garbled shares, length, against the median of those before"
    source: ClassVar[str] = "METRICS.md row 36"

    def make_track(self, key: SignalKey) -> Track:
        """One measure of the output."""
        if key.signal == LENGTH:
            return ScaleTrack(key, ScaleRule(SHRUNK, VALUES, up=False, kind="empty_output"))
        kind, way, bar = SHARES[key.signal]
        rise = self.limits["share.rise"]
        rule = ShareRule(
            kind, rise, 0.0, VALUES, direction="up" if way == "up" else "down", bar=bar, min_history=HISTORY
        )
        return ShareTrack(key, rule)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("share.rise",)
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "read the samples around that step; see whether decoding or tokenizer changed, else go back to a "
            advice += "checkpoint before it: a loss can stay flat while the output collapses"
            return result(self, verdict, tell(view.episodes), "against the run's own samples before", advice, used)
        if not seen(view, *WATCHED):
            return result(self, Verdict.NO_DATA, "no samples; log length and repetition of a few generations")
        judged = sum(t.judged for t in self.tracks.values() if isinstance(t, ScaleTrack | ShareTrack))
        if not judged:
            return result(self, Verdict.NO_DATA, "too few samples to know what is usual")
        return result(self, Verdict.PASS, f"{len(self.tracks)} measures steady ({judged:,} samples)", used=used)
