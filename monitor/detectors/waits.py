"""Check sys.waits: time that steps wait for collectives or for data (row 15)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Found, Track, numbers, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.newest import Newest
from trainmon.monitor.detectors.share_track import ShareRule, ShareTrack
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

WAITS = {"sys.comm_wait": "waiting for collectives", "sys.data_wait": "waiting for data"}
STEP_TIME = SignalKey("sys.step_time")
LEAST = 0.05


class WaitTrack(ShareTrack):
    """The wait as a share of the step's time; ranks' own waits are left to the straggler check."""

    def __init__(self, key: SignalKey, rule: ShareRule, step_time: Newest, meant: MeantChanges) -> None:
        super().__init__(key, rule)
        self.step_time = step_time
        self.meant = meant

    def feed(self, frame: Frame, found: Found) -> None:
        """Divides each wait by the newest step time."""
        rows, steps, values = numbers(frame, self.key)
        kept: tuple[list[int], list[float], list[float]] = ([], [], [])
        for row, step, x, time in zip(rows, steps, values, self.step_time.at(rows), strict=True):
            if time > 0 and 0 <= x <= time:
                kept[0].append(row)
                kept[1].append(step)
                kept[2].append(x / time)
        at = 0
        for change in [*self.meant.rows, len(frame)]:
            end = bisect_left(kept[0], change)
            self.feed_values(frame, kept[0][at:end], kept[1][at:end], kept[2][at:end], found)
            if change < len(frame):
                self.rebase()
            at = end

    def _words(self, level: float, now: float, since: float) -> str:
        what = WAITS[self.key.signal]
        return f"steps spend {now:.0%} of their time {what}, up from {level:.0%}, since step {since:.15g}"


class Waits(WatchingDetector):
    """0.15 of the step's time more than usual, for 50 steps: WARN."""

    id: ClassVar[str] = "sys.waits"
    name: ClassVar[str] = "Communication and Data Waits"
    signals: ClassVar[tuple[str, ...]] = (*WAITS, "sys.step_time")
    watched: ClassVar[tuple[str, ...]] = tuple(WAITS)
    order: ClassVar[int] = 26
    triage: ClassVar[str] = "step_time"
    formula: ClassVar[str] = "wait / tau against the median of its last 100"
    source: ClassVar[str] = "METRICS.md row 15"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.step_time = Newest(STEP_TIME)
        self.meant = MeantChanges()

    def before(self, frame: Frame, found: Found) -> None:  # noqa: ARG002 - the hook
        """Reads the step time; another batch size, sequence length or epoch begins a new level."""
        self.step_time.feed(frame)
        self.meant.feed(frame)

    def make_track(self, key: SignalKey) -> Track:
        """One kind of wait."""
        limits = self.limits
        rule = ShareRule("wait", limits["wait.rise"], limits["wait.steps"], values=5, floor=LEAST, min_history=30)
        return WaitTrack(key, rule, self.step_time, self.meant)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("wait.rise", "wait.steps")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            data = any(episode.signal.signal == "sys.data_wait" for episode in view.episodes)
            advice = (
                "more loader workers or prefetching, a cache nearer to the cards, fewer small files"
                if data
                else "look for a slow rank or link (NCCL tests), then at bucket sizes and overlap of communication"
            )
            return result(self, verdict, tell(view.episodes), "as a share of the step's time", advice, used)
        if not seen(view, *WAITS):
            return result(self, Verdict.NO_DATA, "no waits in the log; log seconds spent in exposed collectives")
        tracks = [track for track in self.tracks.values() if isinstance(track, WaitTrack)]
        if not sum(track.judged for track in tracks):
            return result(self, Verdict.NO_DATA, "too few waits beside a step time to know their level")
        shares = ", ".join(
            f"{track.robust.median:.0%} {WAITS[track.key.signal]}"
            for track in tracks
            if track.judged and not track.key.labels
        )
        return result(self, Verdict.PASS, shares or "steady", used=used)
