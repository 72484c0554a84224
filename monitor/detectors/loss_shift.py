"""Check loss.shift: the loss settles at a higher level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Found, Rl, SeriesDetector, Track, result, seen, tell, verdict_of
from trainmon.monitor.detectors.heldout_trend import HELD_OUT, HeldOutTrend
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.shift_rule import ShiftTrack
from trainmon.monitor.finding import CheckResult, Finding, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

LOSS = SignalKey("loss.train")


class LossShift(SeriesDetector):
    """+5% for 100 steps and 20 values is a WARN, +25% a FAIL (METRICS.md, "level shift of the loss").

    Below +25% it is a note where batch size or sequence length changed or a long epoch began: a new level begins.
    """

    id: ClassVar[str] = "loss.shift"
    name: ClassVar[str] = "Loss Level"
    signals: ClassVar[tuple[str, ...]] = ("loss.train", *HELD_OUT)
    about: ClassVar[tuple[str, ...] | None] = ("loss.train",)
    watched: ClassVar[tuple[str, ...]] = ("loss.train",)
    order: ClassVar[int] = 11
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = (
        "log level after / log level before, each a median; up by shift.warn for max(shift.steps steps, "
        "shift.values values)"
    )
    source: ClassVar[str] = "METRICS.md, smallest faults: level shift of the loss"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.held_out = HeldOutTrend()
        self.meant = MeantChanges()

    def before(self, frame: Frame, found: Found) -> None:  # noqa: ARG002 - the hook
        """Evaluations, and changes of batch and context, are consulted about a shift."""
        self.held_out.feed(frame)
        self.meant.feed(frame)

    def make_track(self, key: SignalKey) -> Track:
        """A shift track; the loss of a policy is not judged."""
        return _NotPolicy(ShiftTrack(key, self.limits, held_out=self.held_out, meant=self.meant))

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("shift.warn", "shift.fail", "shift.steps", "shift.values")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            return result(
                self,
                verdict,
                tell(view.episodes),
                "the level stayed up for at least "
                f"{self.limits['shift.steps']:.15g} steps, beyond what the noise of this run explains",
                "see what changed at that step: data mixture, learning rate, batch size, a bad rank; "
                "look at held-out loss before rolling back",
                used,
            )
        if not seen(view, "loss.train"):
            return result(self, Verdict.NO_DATA, "no training loss in the log; log it every step")
        track = next((t.track for t in self.tracks.values() if isinstance(t, _NotPolicy) and t.track.judged), None)
        if track is None:
            if view.rl or not all(t.track.series.usable for t in self.tracks.values() if isinstance(t, _NotPolicy)):
                return result(self, Verdict.NOT_APPLICABLE, "a policy's loss has no level to keep")
            count = seen(view, "loss.train")
            return result(self, Verdict.NO_DATA, f"{count:,} loss values are too few to know the level and its noise")
        change = 100 * float(np.expm1(track.highest))
        return result(
            self,
            Verdict.PASS,
            f"no lasting rise (largest {change:+.1f}% over {self.limits['shift.steps']:.15g} steps or more)",
            used=used,
        )


class _NotPolicy:
    """Stops feeding its track once rewards or policy statistics are logged."""

    def __init__(self, track: ShiftTrack) -> None:
        self.track = track
        self.rl = Rl()

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows before the first reward."""
        until = self.rl.first_row(frame)
        if until:
            self.track.feed(frame, found, until if until < len(frame) else None)

    def finish(self) -> Iterable[Finding]:
        """As the track."""
        return self.track.finish()
