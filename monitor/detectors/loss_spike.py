"""Check loss.spike: Loss Spike Detection, the first of the five of the stability report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import Found, Rl, in_order, result, seen, tell, verdict_of
from trainmon.monitor.detectors.heldout_trend import HELD_OUT
from trainmon.monitor.detectors.recurrence import Recurrence
from trainmon.monitor.detectors.spike_rule import SpikeRule
from trainmon.monitor.detectors.spike_track import SpikeTrack
from trainmon.monitor.finding import CheckResult, Finding, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

LOSS = SignalKey("loss.train")
USED = (
    "spike.z",
    "spike.relative",
    "spike.lone_z",
    "spike.lone_ratio",
    "window",
    "spike.recovery_steps",
    "spike.recovery_values",
)


def loss_rule(limits: Thresholds) -> SpikeRule:
    """METRICS.md: z > 6 over 100 values and +10% over the window's median; recovery within max(200 steps, 20)."""
    return SpikeRule(
        window=int(limits["window"]),
        z=limits["spike.z"],
        relative=limits["spike.relative"],
        min_history=min(int(limits["spike.min_history"]), int(limits["window"])),
        recovery_steps=limits["spike.recovery_steps"],
        recovery_values=limits["spike.recovery_values"],
        lone_z=limits["spike.lone_z"],
        lone_ratio=limits["spike.lone_ratio"],
        fail_rise=limits["shift.fail"],
        noun="loss",
        minds_changes=True,
        follows_falls=True,
    )


class LossSpike(Detector):
    """Spikes of the training loss, their recovery, and a loss that keeps jumping back to where the run began."""

    id: ClassVar[str] = "loss.spike"
    name: ClassVar[str] = "Loss Spike Detection"
    signals: ClassVar[tuple[str, ...]] = ("loss.train", *HELD_OUT)
    about: ClassVar[tuple[str, ...] | None] = ("loss.train",)
    order: ClassVar[int] = 1
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = (
        "z_t = 0.6745 (u_t - median W_t) / (MAD W_t + eps), u = log(x + eps), W_t: the `window` unflagged values "
        "before t; a spike: z_t > spike.z and x_t > (1 + spike.relative) exp(median); alone a WARN from "
        "spike.lone_z or spike.lone_ratio times the median; where the window falls steeply, u_t is also held against "
        "its trend: z_t of u_t - median(u_t-10 .. u_t-1) among the last 50 of these"
    )
    source: ClassVar[str] = (
        "METRICS.md D6 and METRICS.md, smallest faults; Deng, Reading a Pretraining Run (2026), robust spike "
        "score; training-stability-monitor, Loss Spike Detection"
    )

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.track = SpikeTrack(LOSS, loss_rule(limits))
        self.recurrence = Recurrence(LOSS)
        self.rl = Rl()

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads the loss up to the first row that tells of a policy run."""
        self.track.flags = []
        until = self.rl.first_row(frame)
        found: Found = []
        if until:
            self.track.feed(frame, found, until if until < len(frame) else None)
            if LOSS in frame.columns:
                self.recurrence.feed(frame, found, until)
        return in_order(found)

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - the hook
        """An open spike reaches to the last value of its attempt."""
        return self.track.finish()

    def finish(self) -> Iterable[Finding]:
        """An open spike reaches to its last value."""
        return [*self.track.finish(), *self.recurrence.finish()]

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        verdict = verdict_of(view.episodes)
        track = self.track
        ratio = self.limits["spike.ratio"]
        plain = f"; {track.ratio_steps} of them above {ratio:.15g}x by the plain ratio" if track.ratio_steps else ""
        if verdict is not Verdict.PASS:
            advice = "spikes are normal and mostly recover: check clipping and warm-up before stopping the run"
            if verdict is Verdict.FAIL:
                advice = "go back to a checkpoint before the spike, skip the data of those steps, and lower the "
                advice += "learning rate or tighten clipping if it comes again"
            count = sum(1 for episode in view.episodes if episode.kind == "spike" and episode.severity > 0)
            why = f"{count} spike{'s' if count != 1 else ''} in {track.judged:,} values{plain}"
            return result(self, verdict, tell(view.episodes), why, advice, USED)
        count = seen(view, "loss.train")
        if not count:
            return result(self, Verdict.NO_DATA, "no training loss in the log; log it every step")
        if not track.judged:
            if view.rl:
                return result(self, Verdict.NOT_APPLICABLE, "a policy's loss lies near 0 with both signs")
            need = self.limits["spike.min_history"]
            return result(self, Verdict.NO_DATA, f"fewer than {need:.15g} good losses before any to judge")
        lone = sum(1 for episode in view.episodes if episode.kind == "spike")
        what = f"{track.judged:,} values judged, none out of the run's own noise"
        if lone:
            what = f"{track.judged:,} values judged; {lone} lone small jump{'s' if lone != 1 else ''}, back at once"
        why = ""
        if not math.isnan(track.highest_step):
            rise = f"{100 * math.expm1(track.highest_rise):+.1f}%" if track.score.log else f"{track.highest_rise:+.4g}"
            why = f"largest rise over the median {rise} at step {track.highest_step:.15g}, z {track.highest:.1f} "
            why += f"(cut-off {self.limits['spike.z']:.15g})"
        return result(self, Verdict.PASS, what, why, used=USED)
