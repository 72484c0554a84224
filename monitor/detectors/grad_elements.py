"""Check grad.elements: one gradient element that explodes while the mean stays flat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Found, Track, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import WatchingDetector, families
from trainmon.monitor.detectors.newest import Newest
from trainmon.monitor.detectors.relative_track import RelativeTrack
from trainmon.monitor.detectors.scale_track import HISTORY, ScaleRule, ScaleTrack
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

LARGEST = "grad.abs_max"


class ElementTrack(RelativeTrack):
    """max |g| over what is typical at the same time: mean |g|, or the global norm where no mean is logged.

    When all elements grow, numerator and denominator do, and nothing is said here: grad.norm tells of that.
    """

    def __init__(self, key: SignalKey, rule: ScaleRule, typical: Typical) -> None:
        super().__init__(key, rule)
        self.typical = typical

    def references(self, rows: list[int]) -> list[tuple[float, ...]]:
        """The global norm, and the mean of the same part."""
        means, norms = self.typical.at(self.key, rows)
        return list(zip(norms, means, strict=True))


class Typical:
    """The newest mean of |g| of each part, and the newest global norm."""

    def __init__(self) -> None:
        self.norm = Newest(SignalKey("grad.norm"))
        self.means: dict[SignalKey, Newest] = {}

    def feed(self, frame: Frame) -> None:
        """Takes the next frame."""
        self.norm.feed(frame)
        for key in families(frame).get("grad.abs_mean", ()):
            if key not in self.means:
                self.means[key] = Newest(key)
        for mean in self.means.values():
            mean.feed(frame)

    def at(self, key: SignalKey, rows: list[int]) -> tuple[list[float], list[float]]:
        """(means, norms) at `rows` of the newest frame."""
        mean = self.means.get(SignalKey("grad.abs_mean", key.labels))
        return mean.at(rows) if mean is not None else [math.nan] * len(rows), self.norm.at(rows)


class GradElements(WatchingDetector):
    """max |g| 10x what it was against the mean of |g| for 3 values: WARN. Not finite: FAIL."""

    id: ClassVar[str] = "grad.elements"
    name: ClassVar[str] = "Gradient Elements"
    signals: ClassVar[tuple[str, ...]] = (LARGEST, "grad.abs_mean", "grad.norm")
    watched: ClassVar[tuple[str, ...]] = (LARGEST,)
    order: ClassVar[int] = 17
    triage: ClassVar[str] = "gradients"
    formula: ClassVar[str] = "max |g| / mean |g|, against the median of its last 50"
    source: ClassVar[str] = "METRICS.md row 8 and METRICS.md, smallest faults: scale rows"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.typical = Typical()

    def before(self, frame: Frame, found: Found) -> None:  # noqa: ARG002 - the hook
        """Reads what is typical."""
        self.typical.feed(frame)

    def make_track(self, key: SignalKey) -> Track:
        """The largest element of one part of the model."""
        where = "".join(f" ({name} {value})" for name, value in key.labels)
        words = f"the largest gradient element{where}, with the mean flat,"
        limits = self.limits
        rule = ScaleRule(limits["scale.ratio"], int(limits["scale.samples"]), down=False, words=words, kind="element")
        return ElementTrack(key, rule, self.typical)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("scale.ratio", "scale.samples")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "find the parameter (embedding row, norm gain, router) that holds it and the batch that made it; "
            advice += "clip by value or skip the batch: a global norm hides one element"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, LARGEST):
            return result(self, Verdict.NO_DATA, "no largest gradient element in the log; log max |g| and mean |g|")
        judged = sum(track.judged for track in self.tracks.values() if isinstance(track, ScaleTrack))
        if not judged:
            what = f"fewer than {HISTORY} values of max |g| beside mean |g| or the gradient norm"
            return result(self, Verdict.NO_DATA, what)
        return result(self, Verdict.PASS, f"no element out of proportion ({judged:,} values)", used=used)
