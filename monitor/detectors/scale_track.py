"""A scale (RMS, maximum, ratio) against its own level: jumps, falls to nothing, and slow drift."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from trainmon.monitor.amount import digits, named
from trainmon.monitor.detectors.common import Found, Place, finding, place, resumed
from trainmon.monitor.detectors.settled import Settled
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Mark

HISTORY = 10  # samples: these rows come every 100 steps
WINDOW = 50
ACCEPT_AFTER = 10  # a level that lasts so many times the persistence is the new level
SETTLED = 500.0  # steps: what a scale does while it settles is not its level
DRIFT_VALUES = 10
GONE_SIGMAS, NORMAL = 2.0, 1.4826


@dataclass(frozen=True, slots=True)
class ScaleRule:
    """Out is `ratio` times the median of the window, either way as `up` and `down` say, for `samples` values.

    `least`: smaller values count as so much (a kurtosis below a Gaussian's is none). `drifts`: a level `ratio` times
    the lowest the run has had since it settled is told as drift, however slowly it came. `ceiling`: a value above is
    a FAIL by itself. `words`: what is out, where that is not the series' own name. `kind`: of its episodes.
    """

    ratio: float
    samples: int
    up: bool = True
    down: bool = True
    least: float = 0.0
    drifts: bool = False
    ceiling: float = math.inf
    words: str = ""
    kind: str = "scale"


class ScaleTrack:
    """One series. Values out do not enter the window until ten times the persistence has made them the new level.

    Values that are not finite are a FAIL. A level that is 0 or below says nothing.
    """

    def __init__(self, key: SignalKey, rule: ScaleRule) -> None:
        self.key = key
        self.rule = rule
        self.robust = RollingRobust(WINDOW)
        self.tail = RollingRobust(HISTORY)
        self.out: deque[Place] = deque(maxlen=64)
        self.outs = 0
        self.back = 0
        self.opened = False
        self.settled = Settled()
        self.severity = Severity.WARN
        self.what = ""
        self.judged = 0
        self.unit = 1.0  # what values were divided by, for words
        self.drift = Drift(key, rule.ratio) if rule.drifts else None
        self._attempt: int | None = None
        self._last_step = math.nan

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        logged = frame.logged(self.key)
        if not len(logged):
            return
        if frame.attempt != self._attempt:
            self._begin_attempt(frame.attempt, float(frame.steps[logged[0]]))
        marks = frame.marks.get(self.key)
        values = frame.columns[self.key][logged].tolist()
        steps = frame.steps[logged].tolist()
        for row, step, x in zip(logged.tolist(), steps, values, strict=True):
            if step == self._last_step or (marks is not None and marks[row] == Mark.NULL):
                continue
            self._last_step = step
            if not math.isfinite(x) or x > self.rule.ceiling:
                self._bad(frame, row, x, found)
            else:
                self.take(frame, row, x, x, found)

    def _begin_attempt(self, attempt: int, step: float) -> None:
        carries_on = self._attempt is None or resumed(self._last_step, step)
        self._attempt = attempt
        self._last_step = math.nan
        self.settled.restart(carries_on=carries_on, step=step)
        if not carries_on:
            self.robust.clear()
        if self.out and (not carries_on or step <= self.out[0].step):
            self._close()  # a roll-back past the fault leaves it behind
        if self.drift is not None:
            self.drift.restart(carries_on, step)

    def _close(self) -> None:
        self.out.clear()
        self.outs = self.back = 0
        self.opened, self.severity = False, Severity.WARN

    def _bad(self, frame: Frame, row: int, x: float, found: Found) -> None:
        at = place(frame, row, x)
        said = "is not finite" if not math.isfinite(x) else f"is {digits(x)}, near the end of fp16's range,"
        self.what = f"{self._name} {said} at step {at.step:.15g}"
        self.severity = Severity.FAIL
        self.out.append(at)
        found.append((row, self._said("grow" if self.opened else "open", at)))
        self.opened = True
        self.back = 0

    @property
    def _name(self) -> str:
        return self.rule.words or named(self.key)

    def take(self, frame: Frame, row: int, x: float, shown: float, found: Found) -> None:
        """Judges `x`, which is `shown` as it was logged."""
        rule, robust = self.rule, self.robust
        x = max(x, rule.least)
        if self.settled:
            again = self.settled.take(x, place(frame, row, shown), row, found)
            if again and not self.opened:
                robust.load(again[:-1])
        if self.drift is not None and not self.opened:
            self.drift.take(frame, row, x, found)
        if len(robust) < HISTORY:
            if not self.opened:
                robust.update(x)
            return
        self.judged += 1
        level = robust.median
        is_out = (
            level > 0
            and not self.settled.goes_back(x)
            and ((rule.up and x > level * rule.ratio) or (rule.down and self._is_gone(x, level)))
        )
        if not is_out:
            robust.update(x)
            self._calm(frame, row, shown, found)
            return
        at = place(frame, row, shown)
        self.back = 0
        self.outs += 1
        self.out.append(at)
        self.tail.update(x)
        if not self.opened and self.outs >= rule.samples:
            first = self.out[0]
            self.severity = Severity.WARN
            to = "nothing" if shown == 0 else digits(shown)
            self.what = f"{self._name} went from {digits(level * self.unit)} to {to} since step {first.step:.15g}"
            self.opened = True
            found.append((row, self._said("open", at)))
        elif self.outs >= ACCEPT_AFTER * rule.samples:
            said = self._said("settle", at)
            found.append((row, said))
            self.settled.add(said, low=level / rule.ratio, high=level * rule.ratio, need=ACCEPT_AFTER)
            robust.load(self.tail.values())
            if self.drift is not None:
                self.drift.forget()
            self._close()

    def _is_gone(self, x: float, level: float) -> bool:
        """Far below the level, and no value of a series that scatters around nothing."""
        is_small = x < level / self.rule.ratio or x == 0.0
        return is_small and level - x > GONE_SIGMAS * NORMAL * self.robust.mad

    def _calm(self, frame: Frame, row: int, x: float, found: Found) -> None:
        if not self.opened:
            self.out.clear()
            self.outs = 0
            return
        self.back += 1
        if self.back >= self.rule.samples:
            found.append((row, self._said("grow", self.out[-1])))
            found.append((row, self._said("recover", place(frame, row, x))))
            self._close()

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, self.rule.kind, self.key, self.severity, at, self.what, first=self.out[0])

    def finish(self) -> Iterable[Finding]:
        """An open fault reaches to its last value."""
        said = self.settled.finish()
        said += self.drift.finish() if self.drift is not None else []
        return [*said, self._said("grow", self.out[-1])] if self.opened and self.out else said


class Drift:
    """The median of the last 10 values against the lowest such median since the run settled."""

    def __init__(self, key: SignalKey, ratio: float) -> None:
        self.key = key
        self.ratio = ratio
        self.recent = RollingRobust(DRIFT_VALUES)
        self.lowest = math.inf
        self.lowest_at = math.nan
        self.begin = math.nan
        self.first: Place | None = None
        self.last: Place | None = None
        self.what = ""

    def restart(self, carries_on: bool, step: float) -> None:
        """A new attempt: the branch that a roll-back abandons counts no more."""
        self.recent.clear()
        if not carries_on:
            self.begin, self.lowest = math.nan, math.inf
        elif step <= self.lowest_at:
            self.lowest = math.inf
        if self.first is not None and (not carries_on or step <= self.first.step):
            self.first = None

    def forget(self) -> None:
        """The level has jumped, and that was told: what drifts from here on is held against the new one."""
        self.recent.clear()
        self.lowest = math.inf

    def take(self, frame: Frame, row: int, x: float, found: Found) -> None:
        """Judges one value."""
        step = float(frame.steps[row])
        if math.isnan(self.begin):
            self.begin = step
        if step - self.begin < SETTLED:
            return
        self.recent.update(x)
        if len(self.recent) < DRIFT_VALUES:
            return
        level = self.recent.median
        if 0 < level < self.lowest:
            self.lowest, self.lowest_at = level, step
        at = place(frame, row, x)
        if level >= self.ratio * self.lowest:
            self.last = at
            if self.first is None:
                self.first = at
                self.what = f"{named(self.key)} has drifted from {digits(self.lowest)} (step {self.lowest_at:.15g}) to "
                self.what += f"{digits(level)} by step {step:.15g}"
                found.append((row, self._said("open", at)))
        elif self.first is not None and level < 0.5 * self.ratio * self.lowest:
            found.append((row, self._said("grow", self.last or at)))
            found.append((row, self._said("recover", at)))
            self.first = None

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, "scale_drift", self.key, Severity.WARN, at, self.what, first=self.first)

    def finish(self) -> Iterable[Finding]:
        """An open drift reaches to its last value."""
        return [self._said("grow", self.last)] if self.first is not None and self.last is not None else []
