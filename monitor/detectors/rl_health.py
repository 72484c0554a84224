"""Check rl.health: reward, KL, entropy and response length of a policy-optimisation run."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    Track,
    finding,
    number_fact,
    numbers,
    place,
    result,
    resumed,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.share_track import ShareRule, ShareTrack
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.thresholds import Thresholds

SERIES = ("reward.mean", "policy.kl", "policy.entropy", "policy.length")
# Shares that rise by 0.3, or pass the bar where they were clear of it: (kind, bar).
SHARES = {"policy.zero_variance": ("zero_variance", 0.9), "policy.truncated": ("truncated", 0.9)}
WATCHED = (*SERIES, *SHARES)
RUNAWAY = 5.0  # times its own level: METRICS.md's factor for entropy
HISTORY = 20
LASTING_STEPS = 20.0
LASTING_VALUES = 10
RECENT = 10
LEAST_ENTROPY = 0.05  # nats
LEAST_KL = 0.02  # nats: 10x of next to nothing is next to nothing


class PolicyTrack:
    """One series: its recent median against what it was, for 20 steps and 10 values."""

    def __init__(self, key: SignalKey, facts: Mapping[str, float | str]) -> None:
        self.key = key
        self.facts = facts
        self.recent = RollingRobust(RECENT)
        self.past = RollingRobust(200)
        self.jumps = RollingRobust(100)
        self._before = math.nan
        self.highest = -math.inf
        self.lowest = math.inf
        self.since: deque[Place] = deque(maxlen=2)
        self.values_out = 0
        self.last: Place | None = None
        self.opened = False
        self.severity = Severity.WARN
        self.what = ""
        self.judged = 0
        self._attempt: int | None = None
        self._last_step = math.nan

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        rows, steps, values = numbers(frame, self.key)
        if not rows:
            return
        if frame.attempt != self._attempt:
            if self._attempt is not None and not resumed(self._last_step, steps[0]):
                self.recent.clear()
                self.past.clear()
                self.jumps.clear()
                self.highest, self.lowest = -math.inf, math.inf
                self._close()
            elif self.since and steps[0] <= self.since[0].step:
                self._close()
            self._attempt = frame.attempt
        for row, step, x in zip(rows, steps, values, strict=True):
            if step == self._last_step:
                continue
            self._last_step = step
            self._take(frame, row, x, found)

    def _close(self) -> None:
        self.since.clear()
        self.values_out = 0
        self.opened = False
        self.severity = Severity.WARN

    def _take(self, frame: Frame, row: int, x: float, found: Found) -> None:
        if len(self.recent):
            self.jumps.update(abs(x - self._before))
        self._before = x
        self.recent.update(x)
        now = self.recent.median
        if len(self.past) < HISTORY:
            self.past.update(x)
            self._extend(now)
            return
        self.judged += 1
        degree, words = self._degree(now)
        if degree < 1.0:
            if self.opened:
                found.append((row, self._said("grow", self.last or place(frame, row, x))))
                found.append((row, self._said("recover", place(frame, row, x))))
            self._close()
            self.past.update(x)
            self._extend(now)
            return
        at = place(frame, row, x)
        if not self.since:
            self.since.append(at)
        self.values_out += 1
        self.last = at
        if self.values_out < LASTING_VALUES or at.step - self.since[0].step < LASTING_STEPS:
            return
        severity = Severity.FAIL if degree >= 2.0 else Severity.WARN
        if not self.opened or severity > self.severity:
            self.severity = max(severity, self.severity)
            self.what = f"{words} since step {self.since[0].step:.15g}"
            found.append((row, self._said("grow" if self.opened else "open", at)))
            self.opened = True

    def _extend(self, now: float) -> None:
        if len(self.recent) >= RECENT:
            self.highest = max(self.highest, now)
            self.lowest = min(self.lowest, now)

    def _degree(self, now: float) -> tuple[float, str]:
        """How far beyond its limit the series is (1 = at the WARN limit, 2 = at the FAIL limit), and words."""
        level = self.past.median
        name = self.key.signal
        if name == "reward.mean":
            span = self.highest - self.lowest
            noise = 1.4826 * self.jumps.median / math.sqrt(2)
            # Half of its range down; the range must stand out of the noise of single steps.
            if span < max(4 * noise, 1e-6):
                return 0.0, ""
            drop = (self.highest - now) / (0.5 * span)
            # Beyond the range itself: below where it began counts on.
            return drop, f"reward fell from {self.highest:.4g} to {now:.4g}"
        if name == "policy.kl":
            bar = 10 * max(abs(level), LEAST_KL)
            return abs(now) / bar, f"KL rose from {level:.4g} to {now:.4g}"
        if name == "policy.entropy":
            if max(level, now) < LEAST_ENTROPY:
                return 0.0, ""
            # Of an entropy that is next to 0 anyway, a fraction says nothing.
            level_, now_ = max(level, LEAST_ENTROPY / 5), max(now, LEAST_ENTROPY / 25)
            ratio = max(now_ / level_, level_ / now_)
            return ratio / RUNAWAY, f"entropy went from {level:.4g} to {now:.4g}"
        return self._length(now, level)

    def _length(self, now: float, level: float) -> tuple[float, str]:
        limit = number_fact(self.facts, "max_response_length")
        if level > 4 and now < 0.05 * level:
            return 2.0, f"responses shrank from {level:.4g} to {now:.4g} tokens"
        if level > 4 and now > RUNAWAY * level:
            return 1.0, f"responses ran away from {level:.4g} to {now:.4g} tokens"
        if limit is not None and now >= 0.98 * limit and level < 0.9 * limit:
            return 1.0, f"responses grew from {level:.4g} to the limit of {limit:.15g} tokens"
        return 0.0, ""

    def _said(self, action: Action, at: Place) -> Finding:
        first = self.since[0] if self.since else at
        return finding(action, "policy", self.key, self.severity, at, self.what, first=first)

    def finish(self) -> Iterable[Finding]:
        """An open fault reaches to its last value."""
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []


ADVICE = {
    "zero_variance": "groups whose rewards are all alike teach nothing: mix in prompts of another difficulty, sample "
    "more responses a prompt or at a higher temperature, or drop such groups",
    "truncated": "responses are cut at the length limit and get no reward: raise the limit, or penalise length softly",
}


class RlHealth(WatchingDetector):
    """Reward down by half its range, KL 10x, entropy 5x either way, length to 0, the limit or 5x, for 20 steps.

    Groups without variance, and responses cut at the limit: 0.3 more of them than usual, or past 0.9, for 20 steps.
    """

    id: ClassVar[str] = "rl.health"
    name: ClassVar[str] = "Policy Health"
    signals: ClassVar[tuple[str, ...]] = WATCHED
    watched: ClassVar[tuple[str, ...]] = WATCHED
    order: ClassVar[int] = 16
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = (
        "reward against its range so far; KL, entropy and length against their own level, over 20 steps"
    )
    source: ClassVar[str] = "METRICS.md, smallest faults: RL"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)

    def make_track(self, key: SignalKey) -> Track:
        """One series of the policy."""
        if key.signal in SHARES:
            kind, bar = SHARES[key.signal]
            rise = self.limits["share.rise"]
            return ShareTrack(key, ShareRule(kind, rise, LASTING_STEPS, LASTING_VALUES, bar=bar, min_history=HISTORY))
        return PolicyTrack(key, self.facts)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "raise the KL coefficient or lower the learning rate; read samples: a reward can be gamed"
            worst = max(view.episodes, key=lambda episode: episode.severity)
            advice = ADVICE.get(worst.kind, advice)
            return result(self, verdict, tell(view.episodes), "", advice)
        if not view.rl:
            return result(self, Verdict.NOT_APPLICABLE, "no policy is optimised in this run")
        if not seen(view, *WATCHED):
            return result(self, Verdict.NO_DATA, "log the mean reward, KL, entropy and response length")
        tracks = [track for track in self.tracks.values() if isinstance(track, PolicyTrack)]
        parts = [
            f"{track.key.signal.partition('.')[2]} {track.recent.median:.4g}" for track in tracks if len(track.recent)
        ]
        return result(self, Verdict.PASS, "steady: " + ", ".join(parts[:6]))
