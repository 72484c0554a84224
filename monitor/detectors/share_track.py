"""A share (0..1) that leaves its own level by so much, and stays there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from trainmon.monitor.amount import amount, named
from trainmon.monitor.detectors.common import Found, Place, finding, numbers, place, resumed
from trainmon.monitor.detectors.settled import Settled
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.tails.quick_dataclass import dataclass

WINDOW = 100
BACK = 3  # values in a row back at the level end a stretch
MOSTLY = 0.8  # of the values of a stretch must be out
ACCEPT_AFTER = 10  # a level that lasts so many times the persistence is the new level
CLEAR = 0.1  # a share must once have been so far from the bar for the bar to say anything


@dataclass(frozen=True, slots=True)
class ShareRule:
    """Out is: `change` beyond the median of the window and past `floor`; or past `bar`, when it once was clear of it.

    It must last `steps` with `values` logged values. `bar`: catches what comes too slowly for the window. `creeps`: so
    does `change` beyond the lowest level that a whole window had.
    """

    kind: str
    change: float
    steps: float
    values: int = 3
    direction: Literal["up", "down"] = "up"
    floor: float | None = None
    bar: float | None = None
    creeps: bool = False
    min_history: int = 10
    severity: Severity = Severity.WARN


class _Stretch:
    __slots__ = ("back", "first", "last", "level", "open", "outs", "values", "worst")

    def __init__(self, first: Place, level: float) -> None:
        self.first = self.last = self.worst = first
        self.level = level
        self.values = self.outs = self.back = 0
        self.open = False


class ShareTrack:
    """One series. Values out of the level do not enter the window until they are accepted as the new level.

    A stretch of them opens a fault once it lasted, ends when 3 values in a row are back, and becomes the level after
    ten times its persistence. Judged with the sign of the direction: both ways are one code.
    """

    def __init__(self, key: SignalKey, rule: ShareRule) -> None:
        self.key = key
        self.rule = rule
        self.robust = RollingRobust(WINDOW)
        self.tail = RollingRobust(max(rule.min_history, 3 * rule.values))
        self.clearest = self.lowest = math.inf
        self.stretch: _Stretch | None = None
        self.settled = Settled()
        self.judged = 0
        self.last = math.nan
        self._sign = 1.0 if rule.direction == "up" else -1.0
        self._attempt: int | None = None
        self._last_step = math.nan

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        self.feed_values(frame, *numbers(frame, self.key), found)

    def rebase(self) -> None:
        """The level is expected to change now: begins anew; a fault that was open stays so."""
        self.settled.clear()
        self.robust.clear()
        self.clearest = self.lowest = math.inf
        self.stretch = None

    def feed_values(self, frame: Frame, rows: list[int], steps: list[float], values: list[float], found: Found) -> None:
        """As `feed`, for values worked out from the frame's: of these rows, at these steps."""
        if not rows:
            return
        if frame.attempt != self._attempt:
            self._begin_attempt(frame.attempt, steps[0])
        for row, step, x in zip(rows, steps, values, strict=True):
            if step == self._last_step:
                continue
            self._last_step, self.last = step, x
            self._take(frame, row, self._sign * x, x, found)

    def _begin_attempt(self, attempt: int, step: float) -> None:
        carries_on = self._attempt is None or resumed(self._last_step, step)
        self.settled.restart(carries_on=carries_on, step=step)
        if not carries_on:
            self.robust.clear()
            self.clearest = self.lowest = math.inf
            self.stretch = None
        elif self.stretch is not None and step <= self.stretch.first.step:
            self.stretch = None  # a roll-back past the fault leaves it behind
        self._attempt = attempt
        self._last_step = math.nan

    def _take(self, frame: Frame, row: int, x: float, shown: float, found: Found) -> None:
        if self.settled:
            again = self.settled.take(x, place(frame, row, shown), row, found)
            if again and self.stretch is None:
                self.robust.load(again[:-1])
                self.clearest = self.lowest = math.inf
        if len(self.robust) < self.rule.min_history:
            self.robust.update(x)
            return
        self.judged += 1
        if self.stretch is None:
            level = self.robust.median
            self.clearest = min(self.clearest, level)
            if self.rule.creeps:
                level = self._level_of_creep(level)
            if not self._is_out(x, level):
                self.robust.update(x)
                return
            self.stretch = _Stretch(place(frame, row, shown), self._sign * level)
            self.tail.clear()
        self._go_on(self.stretch, frame, row, x, shown, found)

    def _level_of_creep(self, level: float) -> float:
        """The lowest level of a whole window, once the present one stands `change` above it; else the present one."""
        if len(self.robust) >= WINDOW:
            self.lowest = min(self.lowest, level)
        return self.lowest if level - self.lowest > self.rule.change else level

    def _is_out(self, x: float, level: float) -> bool:
        rule = self.rule
        if rule.floor is not None and x <= self._sign * rule.floor:
            return False
        if x - level > rule.change:
            return True
        bar = math.inf if rule.bar is None else self._sign * rule.bar
        return x >= bar and self.clearest < bar - CLEAR

    def _limit(self, level: float) -> float:
        """Above it values are out of `level`, which they were for long."""
        rule = self.rule
        limit = level + rule.change if rule.floor is None else max(level + rule.change, self._sign * rule.floor)
        return limit if rule.bar is None else min(limit, self._sign * rule.bar)

    def _go_on(self, stretch: _Stretch, frame: Frame, row: int, x: float, shown: float, found: Found) -> None:
        rule = self.rule
        stretch.values += 1
        if not self._is_out(x, self._sign * stretch.level):
            self.robust.update(x)
            stretch.back += 1
            if stretch.back >= BACK or (not stretch.open and stretch.outs < MOSTLY * stretch.values):
                if stretch.open:
                    found.append((row, self._said("grow", stretch, stretch.last)))
                    found.append((row, self._said("recover", stretch, place(frame, row, shown))))
                self.stretch = None
            return
        stretch.back = 0
        stretch.outs += 1
        self.tail.update(x)
        stretch.last = place(frame, row, shown)
        if self._sign * shown >= self._sign * stretch.worst.value:
            stretch.worst = stretch.last
        lasted = stretch.last.step - stretch.first.step
        if not stretch.open:
            if lasted >= rule.steps and stretch.outs >= max(rule.values, MOSTLY * stretch.values):
                stretch.open = True
                found.append((row, self._said("open", stretch, stretch.last)))
        elif stretch.worst is stretch.last:
            found.append((row, self._said("grow", stretch, stretch.last)))
        if lasted >= ACCEPT_AFTER * max(rule.steps, 1.0) and stretch.outs >= ACCEPT_AFTER * rule.values:
            said = self._said("settle", stretch, stretch.last)
            found.append((row, said))
            self.settled.add(said, high=self._limit(self._sign * stretch.level))
            self.robust.load(self.tail.values())
            self.clearest = self.lowest = math.inf
            self.stretch = None

    def _said(self, action: Action, stretch: _Stretch, at: Place) -> Finding:
        out = stretch.last if action == "recover" else at  # what came after it is no part of it
        what = self._words(stretch.level, out.value, stretch.first.step)
        detail: dict[str, float | str] = {"level": stretch.level}
        return finding(action, self.rule.kind, self.key, self.rule.severity, at, what, stretch.first, detail)

    def _words(self, level: float, now: float, since: float) -> str:
        name = self.key.signal
        change = "rose" if self._sign > 0 else "fell"
        return f"{named(self.key)} {change} from {amount(name, level)} to {amount(name, now)} since step {since:.15g}"

    def finish(self) -> Iterable[Finding]:
        """An open stretch reaches to its last value."""
        stretch, said = self.stretch, self.settled.finish()
        return [*said, self._said("grow", stretch, stretch.last)] if stretch is not None and stretch.open else said
