"""Check sys.throughput: tokens a second, compute rate and MFU against their own level, D8 and D9."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Found, SeriesDetector, Track
from trainmon.monitor.detectors.level_track import LevelRule, LevelTrack
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.step_time import level_result, slow_used
from trainmon.monitor.finding import CheckResult
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

NOUNS = {
    "sys.tokens_per_second": "throughput",
    "sys.compute_rate": "compute rate",
    "sys.mfu": "MFU",
    "sys.samples_per_second": "samples per second",
}


class Throughput(SeriesDetector):
    """-20% for 50 steps is a WARN, -60% a FAIL. A new batch size or sequence length begins a new level."""

    id: ClassVar[str] = "sys.throughput"
    name: ClassVar[str] = "Throughput"
    signals: ClassVar[tuple[str, ...]] = tuple(NOUNS)
    watched: ClassVar[tuple[str, ...]] = tuple(NOUNS)
    order: ClassVar[int] = 21
    triage: ClassVar[str] = "step_time"
    formula: ClassVar[str] = (
        "1 - median over throughput.steps / the level before, of tokens/s, samples/s, FLOP/s or MFU"
    )
    source: ClassVar[str] = "METRICS.md D8, D9 and METRICS.md, smallest faults: throughput, MFU"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.meant = MeantChanges()

    def before(self, frame: Frame, found: Found) -> None:  # noqa: ARG002 - the hook
        """Another batch size, sequence length or epoch begins a new level."""
        self.meant.rebase(frame, [t for t in self.tracks.values() if isinstance(t, LevelTrack)])

    def make_track(self, key: SignalKey) -> Track:
        """A level that falls."""
        limits = self.limits
        return LevelTrack(
            key,
            LevelRule(
                kind="slow",
                noun=NOUNS[key.signal],
                warn=1 - limits["throughput.warn"],
                fail=1 - limits["throughput.fail"],
                steps=limits["throughput.steps"],
                window=int(limits["window"]),
                direction="down",
            ),
        )

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        return level_result(
            self, view, "throughput", "no throughput in the log; log tokens per second", slow_used("throughput")
        )
