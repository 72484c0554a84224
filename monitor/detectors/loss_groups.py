"""Check loss.groups: the worst rank, a source or a modality against its own history, D2 and D3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

from trainmon.monitor.amount import named
from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Found, SeriesDetector, Track, in_order, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import keys_of
from trainmon.monitor.detectors.group_context import GroupContext
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.shift_rule import ShiftTrack
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

GROUPS = ("loss.worst_rank", "loss.rank", "loss.source", "loss.modality")


class LossGroups(SeriesDetector):
    """The loss-shift rule on each: +5% over its own level a WARN, +25% and lasting a FAIL.

    The maximum over ranks grows with their number, so that it is compared with itself, never with the mean. What the
    mean loss did meanwhile, and the group's share of the tokens, are told beside it.
    """

    id: ClassVar[str] = "loss.groups"
    name: ClassVar[str] = "Loss by Rank, Source and Modality"
    signals: ClassVar[tuple[str, ...]] = GROUPS
    watched: ClassVar[tuple[str, ...]] = GROUPS
    order: ClassVar[int] = 15
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = (
        "the loss-shift rule on each rank's, source's and modality's own level; worst rank = max over ranks that "
        "reported"
    )
    source: ClassVar[str] = (
        "METRICS.md D2, D3 and METRICS.md, smallest faults: worst rank, source, modality; Deng, Reading a "
        "Pretraining Run (2026)"
    )

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.context = GroupContext(limits["shift.warn"])
        self.meant = MeantChanges()

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Feeds every group; findings say what mean and share did."""
        self.context.feed(frame)
        self.meant.feed(frame)
        found: Found = []
        for key in keys_of(frame, GROUPS):
            if key not in self.tracks:
                self.tracks[key] = self.make_track(key)
            self.tracks[key].feed(frame, found)
        if found:
            found = [(row, self._with_context(said, row)) for row, said in found]
        self.context.close(frame)
        return in_order(found)

    def finish(self) -> Iterable[Finding]:
        """Open shifts reach to their last value."""
        return [replace(said, what=self.context.again(said.signal, said.what)) for said in super().finish()]

    def _with_context(self, said: Finding, row: int) -> Finding:
        if said.action == "open" or (said.action == "grow" and said.what):
            what = self.context.told(said, row)
            return replace(said, what=what, detail={**said.detail, **self.context.shares_of(said.signal)})
        return replace(said, what=self.context.again(said.signal, said.what))

    def make_track(self, key: SignalKey) -> Track:
        """A level shift of one group."""
        return ShiftTrack(key, self.limits, noun=named(key), kind="group_shift", meant=self.meant)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("shift.warn", "shift.fail", "shift.steps", "shift.values")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            return result(
                self,
                verdict,
                tell(view.episodes),
                *self._who_moved(view),
                used,
            )
        if not seen(view, *GROUPS):
            what = "log loss sums and token counts by rank, source or modality"
            return result(self, Verdict.NO_DATA, what)
        judged = sum(track.judged for track in self.tracks.values() if isinstance(track, ShiftTrack))
        if not judged:
            return result(self, Verdict.NO_DATA, "too few values of any group to know its level and noise")
        return result(self, Verdict.PASS, f"{len(self.tracks)} series, each at its own level", used=used)

    def _who_moved(self, view: CheckView) -> tuple[str, str]:
        """How many left their level, and what to look at: a group, or the loss where most of the groups moved."""
        moved = {episode.signal for episode in view.episodes if episode.severity is not Severity.INFO}
        if len(moved) > 2 and 2 * len(moved) > len(self.tracks):
            return f"{len(moved)} of {len(self.tracks)} series left their own level: no group by itself", ""
        told = "one group left its own level while the others keep theirs"
        if len(moved) > 1:
            told = f"{len(moved)} of {len(self.tracks)} series left their own level"
        return told, "for a rank: check its device and its shard of the data; for a source: its share and recent files"
