"""Check update.ratio: how far each step moves the weights, layer by layer, D11."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Found, Track, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.newest import Newest
from trainmon.monitor.detectors.relative_track import RelativeTrack
from trainmon.monitor.detectors.scale_track import HISTORY, ScaleRule, ScaleTrack
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

LR = SignalKey("optim.lr")
RATIO = "update.ratio"


class UpdateTrack(RelativeTrack):
    """The ratio over the learning rate, where one is logged: a decaying rate makes small updates, and no fault."""

    def __init__(self, key: SignalKey, rule: ScaleRule, rate: Newest) -> None:
        super().__init__(key, rule)
        self.rate = rate

    def references(self, rows: list[int]) -> list[tuple[float, ...]]:
        """1, and the learning rate."""
        return [(1.0, rate) for rate in self.rate.at(rows)]


class UpdateRatio(WatchingDetector):
    """10x its level against the learning rate, or a tenth of it, or 0, for 3 samples: WARN. Layer by layer."""

    id: ClassVar[str] = "update.ratio"
    name: ClassVar[str] = "Update Ratio"
    signals: ClassVar[tuple[str, ...]] = (RATIO, "optim.lr")
    watched: ClassVar[tuple[str, ...]] = (RATIO,)
    order: ClassVar[int] = 35
    triage: ClassVar[str] = "layers"
    formula: ClassVar[str] = "rho = RMS(dw) / (RMS(w) + eps), over the learning rate"
    source: ClassVar[str] = "METRICS.md D11 and METRICS.md, smallest faults: update ratio"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.rate = Newest(LR)

    def before(self, frame: Frame, found: Found) -> None:  # noqa: ARG002 - the hook
        """Reads the learning rate."""
        self.rate.feed(frame)

    def make_track(self, key: SignalKey) -> Track:
        """One layer."""
        rule = ScaleRule(self.limits["scale.ratio"], int(self.limits["scale.samples"]), kind="update_ratio")
        return UpdateTrack(key, rule, self.rate)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("scale.ratio", "scale.samples")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "1e-3 is usual for Adam: for an update that vanished see whether the layer is frozen or its "
            advice += "optimiser state lost, for one that jumped lower that layer's learning rate"
            return result(self, verdict, tell(view.episodes), "judged against the learning rate", advice, used)
        if not seen(view, RATIO):
            return result(self, Verdict.NO_DATA, "no update ratio; log RMS(dw)/RMS(w) by layer every 100 steps")
        judged = sum(track.judged for track in self.tracks.values() if isinstance(track, ScaleTrack))
        if not judged:
            return result(self, Verdict.NO_DATA, f"fewer than {HISTORY} samples of each layer")
        return result(self, Verdict.PASS, f"{len(self.tracks)} series steady ({judged:,} samples)", used=used)
