"""Check run.rewarm: a restart after which the loss stands higher than before it, with or without a new warm-up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.amount import digits
from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    Rl,
    finding,
    finite,
    in_order,
    number_fact,
    numbers,
    place,
    result,
    resumed,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.newest import Newest
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.stats.tail import Tail
from trainmon.monitor.thresholds import Thresholds

LOSS = SignalKey("loss.train")
LR = SignalKey("optim.lr")
REMEMBERED = 4096
BEFORE = 20  # values before the restart's step that make the level before
AFTER = 10  # values after it
SIGMAS = 6.0
REWARMED = 0.5  # of the rate before: less than this is a warm-up


class Rewarm(Detector):
    """The first 10 losses of a resume 10% (and 6 sigma) above the level before its step: the state was not restored.

    With the learning rate at its old height from the first step: "without warm-up". With a rate that climbs again it
    is INFO: that is what a warm-up is for.
    """

    id: ClassVar[str] = "run.rewarm"
    name: ClassVar[str] = "Restart Warm-up"
    signals: ClassVar[tuple[str, ...]] = ("loss.train", "optim.lr")
    about: ClassVar[tuple[str, ...] | None] = ("optim.lr",)
    order: ClassVar[int] = 42
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = "median of log loss, 10 values after the restart, minus 20 before its step"
    source: ClassVar[str] = "METRICS.md, LR Schedule"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.rise = math.log1p(limits["resume.rise"])
        self.losses = Tail(REMEMBERED)
        self.rate = Newest(LR)
        self.rate_before = math.nan
        self.level: RollingRobust | None = None
        self.first: Place | None = None
        self.first_rate = math.nan
        self.after: list[float] = []
        self.last_step = math.nan
        self.compared = 0
        self.rl = Rl()
        self._attempt: int | None = None

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Remembers losses; compares the first ones of a resume."""
        until = self.rl.first_row(frame)
        if not until:
            return ()
        if frame.attempt != self._attempt:
            if self._attempt is not None:
                self._begin(float(frame.steps[0]))
            self._attempt = frame.attempt
        self.rate.feed(frame)
        found: Found = []
        if self.level is not None:
            rows, _, values = numbers(frame, LOSS)
            for row, x in zip(rows, values, strict=True):
                if self.level is None or row >= until:
                    break
                if x > 0:
                    self._compare(frame, row, x, found)
        losses = finite(frame, LOSS)
        self.losses.extend(losses.steps, losses.values)
        self.last_step = float(frame.steps[-1])
        return in_order(found)

    def _begin(self, step: float) -> None:
        self.level, self.after, self.first = None, [], None
        self.rate_before = self.rate.now
        if not resumed(self.last_step, step):
            self.losses.clear()
            return
        self.losses.before(step)
        known = [math.log(x) for x in self.losses.values[-BEFORE:].tolist() if x > 0]
        if len(known) == BEFORE:
            self.level = RollingRobust(BEFORE)
            self.level.load(known)

    def _compare(self, frame: Frame, row: int, x: float, found: Found) -> None:
        level = self.level
        assert level is not None
        if not self.after:
            self.first = place(frame, row, x)
            self.first_rate = self.rate.at([row])[0]
        self.after.append(math.log(x))
        if len(self.after) < AFTER:
            return
        self.compared += 1
        middle = sorted(self.after)[AFTER // 2]
        rise = middle - level.median
        if rise > max(self.rise, SIGMAS * 1.4826 * level.mad):
            self._tell(place(frame, row, math.exp(middle)), level.median, row, found)
        self.level = None

    def _tell(self, at: Place, before: float, row: int, found: Found) -> None:
        first = self.first or at
        climbs = self.first_rate < REWARMED * self.rate_before
        severity = Severity.INFO if climbs else Severity.WARN
        how = "with a new warm-up" if climbs else "without warm-up"
        if math.isnan(self.first_rate):
            how = "with a learning rate that is not logged"
        elif not climbs:
            how += f" (learning rate {self.first_rate:.3g} from the first step)"
        what = f"resumed at step {first.step:.15g} {how}: loss {digits(at.value)}, {digits(math.exp(before))} before"
        found.append((row, finding("open", "restart_loss", LOSS, severity, at, what, first=first)))
        found.append((row, finding("recover", "restart_loss", LOSS, severity, at, what, first=first)))

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("resume.rise",)
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            asked = number_fact(self.facts, "warmup_steps")
            steps = "a few hundred steps" if asked is None or asked < 2 else f"the {asked:,.0f} steps of its settings"
            advice = "see whether the optimiser's state was in the checkpoint; when it is lost, warm up again over "
            advice += f"{steps} from a tenth of the learning rate"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, "loss.train"):
            return result(self, Verdict.NO_DATA, "no training loss in the log; log it every step")
        if not self.compared:
            return result(self, Verdict.NOT_APPLICABLE, "no restart with losses on both sides")
        what = f"{self.compared} restart{'s' if self.compared != 1 else ''} went on where the run had been"
        return result(self, Verdict.PASS, what, used=used)
