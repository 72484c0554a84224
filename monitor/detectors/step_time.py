"""Check sys.step_time: the time of a step against its own level, D8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.amount import amount
from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Found, SeriesDetector, Track, finite, result, seen, tell, verdict_of
from trainmon.monitor.detectors.level_track import LevelRule, LevelTrack
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.stalls import Stalls
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.per_card import is_per_card
from trainmon.monitor.stats.only_rises import ONLY_RISES, OnlyRises
from trainmon.monitor.step_unit import counted
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Note


class StepTimeTrack(LevelTrack):
    """A level, but of the time since the start (`clock`), which has none."""

    def __init__(self, key: SignalKey, rule: LevelRule) -> None:
        super().__init__(key, rule)
        self.clock = OnlyRises()
        self._clock_attempt: int | None = None

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`; what a clock seems to say is dropped."""
        if frame.attempt != self._clock_attempt:
            self._clock_attempt = frame.attempt
            self.clock.new_attempt()
        read = finite(frame, self.key)
        is_clock = dict(zip(read.lists.rows, self.clock.update(read.values).tolist(), strict=True))
        mine: Found = []
        super().feed(frame, mine)
        found += [(row, said) for row, said in mine if not is_clock.get(row, False)]

    def finish(self) -> Iterable[Finding]:
        """Open faults reach to the last value."""
        return () if self.clock.holds else super().finish()


class StepTime(SeriesDetector):
    """1.3x its level for 50 steps is a WARN, 3x a FAIL; a lone slow step is INFO.

    A "step time" that never falls is the time since the start, and is not judged.

    Checkpoints and evaluations make single slow steps, which the median and the 8-of-10 rule pass over. A new batch
    size, sequence length or epoch begins a new level. A long silence between two lines is a WARN.
    """

    id: ClassVar[str] = "sys.step_time"
    name: ClassVar[str] = "Step Time"
    signals: ClassVar[tuple[str, ...]] = ("sys.step_time",)
    watched: ClassVar[tuple[str, ...]] = ("sys.step_time",)
    order: ClassVar[int] = 20
    triage: ClassVar[str] = "step_time"
    formula: ClassVar[str] = "tau = max over ranks; median over step_time.steps / the level before"
    source: ClassVar[str] = "METRICS.md D8 and METRICS.md, smallest faults: step time"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.meant = MeantChanges()
        self.stalls = Stalls(limits)

    def make_track(self, key: SignalKey) -> Track:
        """A level that rises."""
        limits = self.limits
        return StepTimeTrack(
            key,
            LevelRule(
                kind="slow",
                noun="step time",
                warn=limits["step_time.warn"],
                fail=limits["step_time.fail"],
                steps=limits["step_time.steps"],
                window=int(limits["window"]),
                single=limits["step_time.single"],
            ),
        )

    def note(self, note: Note) -> Iterable[Finding]:
        """What explains a stall, or ends one."""
        return self.stalls.note(note)

    def new_attempt(self, attempt: int) -> Iterable[Finding]:
        """Time is not differenced across attempts."""
        self.stalls.restart()
        return super().new_attempt(attempt)

    def before(self, frame: Frame, found: Found) -> None:
        """Another batch size, sequence length or epoch begins a new level."""
        self.stalls.feed(frame, found)
        self.meant.rebase(frame, [t for t in self.tracks.values() if isinstance(t, LevelTrack)])

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        tracks = [track for track in self.tracks.values() if isinstance(track, StepTimeTrack)]
        if tracks and all(track.clock.holds for track in tracks) and not view.episodes:
            return result(self, Verdict.NO_DATA, ONLY_RISES)
        return level_result(
            self,
            view,
            "step time",
            "no step time in the log; log the time of each step, or time stamps",
            slow_used("step_time"),
        )


def slow_used(group: str) -> tuple[str, ...]:
    """The thresholds of a speed check."""
    return (f"{group}.warn", f"{group}.fail", f"{group}.steps")


def _of_what(key: SignalKey, view: CheckView) -> str:
    """What a share is of, and whether a rate is one card's."""
    if key.signal == "sys.mfu":
        return " MFU"
    if key.signal == "sys.step_time" and key not in view.raw_keys and counted(view.facts) != "steps":
        return " a record"
    is_rate = key.signal in ("sys.tokens_per_second", "sys.samples_per_second")
    return " a card" if is_rate and is_per_card(view.raw_keys.get(key, ""), view.facts) else ""


def level_result(
    detector: SeriesDetector, view: CheckView, noun: str, to_get_it: str, used: tuple[str, ...]
) -> CheckResult:
    """The verdict of a check made of level tracks on speed."""
    verdict = verdict_of(view.episodes)
    if verdict is not Verdict.PASS:
        return result(
            detector,
            verdict,
            tell(view.episodes),
            "compared with the median of its own last 100 normal values",
            "see whether one rank is slow (straggler), data loading waits, or the network and storage are busy",
            used,
        )
    count = seen(view, *detector.watched)
    if not count:
        return result(detector, Verdict.NO_DATA, to_get_it)
    tracks = [t for t in detector.tracks.values() if isinstance(t, LevelTrack)]
    judged = sum(track.judged for track in tracks)
    if not judged:
        return result(detector, Verdict.NO_DATA, f"{count:,} values of {noun}; 30 are needed to know its level")
    levels = ", ".join(
        f"{amount(track.key.signal, track.robust.median)}{_of_what(track.key, view)}"
        for track in sorted(tracks, key=lambda track: detector.watched.index(track.key.signal))
        if track.judged and not track.key.labels
    )
    quiet = [each for each in view.episodes if each.severity is Severity.INFO]
    lone = sum(each.kind != "stall" for each in quiet)
    told = f"; {lone} lone slow step{'s' if lone != 1 else ''}" if lone else ""
    told += "".join(f"; {each.what}" for each in quiet if each.kind == "stall")
    return result(detector, Verdict.PASS, f"steady at {levels}{told}" if levels else f"steady{told}", used=used)
