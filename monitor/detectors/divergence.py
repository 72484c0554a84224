"""A loss that runs away: told from very few values, and for losses of any sign."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import numpy as np

from trainmon.monitor.detectors.common import Finite, Found, Place, finding, finite, place, resumed, same_value
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey

LAST = 3  # so many values must agree
BEFORE = 10  # values in front of them that make the level
SMALL = 130  # with more values than this the spike and level rules know the noise
RATIO = 2.0
BLOWN = 10.0  # the newest value alone is enough at this multiple of the level ...
WORSE = 3.0  # ... when it is this many times worse than anything before it
RUNAWAY = 100.0  # any sign: beyond so many times the largest size before, and beyond 100
LEAST = 0.1  # nats: a smaller rise says nothing with so few values
_WORTH = 64  # fewer values are read one by one
_STRETCH = 256


class Divergence:
    """Coarse rules for a loss with little history, and for the losses of policies.

    - the last 3 values are all above 2x the median of the (up to) 10 before them and above each of those, and are
      not coming down: divergence, while there are fewer than 130 values;
    - the last 3 are beyond 100 in size and beyond 100 times the median size of the (up to) 10 before: run away;
    - at the end of the log, one value of 10x the level and 3x the worst before it (`finish`).

    A rise at the very start that comes down again is none: the level is that before the rise, and recovery is 3
    values in a row back under 1.5x.
    """

    def __init__(self, key: SignalKey) -> None:
        self.key = key
        self.values: deque[float] = deque(maxlen=BEFORE + LAST)
        self.recent: deque[Place] = deque(maxlen=LAST)
        self.newest: Place | None = None
        self.count = 0
        self.worst_before = -math.inf
        self.open: Place | None = None
        self.level = math.nan
        self.last_bad: Place | None = None
        self.back = 0
        self.what = ""
        self._attempt: int | None = None
        self._last_step = math.nan

    def feed(self, frame: Frame, found: Found, policy_from: int) -> None:
        """Reads the rows of `frame`; from row `policy_from` on the loss is a policy's."""
        own = finite(frame, self.key)
        if not len(own):
            return
        first = float(own.steps[0])
        if frame.attempt != self._attempt:
            if self._attempt is not None and not resumed(self._last_step, first):
                self._forget()
            elif self.open is not None and first <= self.open.step:
                self._forget()  # a roll-back past the fault leaves it behind
            self._attempt = frame.attempt
            self._last_step = math.nan
        at = 0
        while at < len(own):
            at += self._pass_over(own, at)
            until = min(at + _STRETCH, len(own))
            self._one_by_one(frame, own, at, until, policy_from, found)
            at = until
        self.newest = place(frame, int(own.rows[-1]), float(own.values[-1]))

    def _pass_over(self, own: Finite, start: int) -> int:
        """Takes in values among which nothing can be judged, many at once; how many."""
        if self.count <= SMALL or self.open is not None or len(own) - start < _WORTH:
            return 0
        steps, values = own.steps[start:], own.values[start:]
        stop = (np.abs(values) >= RUNAWAY) | (np.diff(steps, prepend=self._last_step) == 0)
        n = int(np.argmax(stop)) if stop.any() else len(values)
        if n < _WORTH:
            return 0
        self.worst_before = max(self.worst_before, self.values[-1], float(values[: n - 1].max()))
        self.values.extend(values[max(n - BEFORE - LAST, 0) : n].tolist())
        self.count += n
        self._last_step = float(steps[n - 1])
        return n

    def _one_by_one(self, frame: Frame, own: Finite, start: int, end: int, policy_from: int, found: Found) -> None:
        where = slice(start, end)
        rows, steps, values = own.rows[where].tolist(), own.steps[where].tolist(), own.values[where].tolist()
        last_value = self.values[-1] if self.values else math.nan
        held, worst = self.values, self.worst_before
        for i, x in enumerate(values):
            if steps[i] == self._last_step and same_value(x, last_value):
                continue
            self._last_step = steps[i]
            if self.count > SMALL and -RUNAWAY < x < RUNAWAY and self.open is None:
                # With so much history, and nothing of a runaway's size, there is nothing to judge.
                if last_value > worst:
                    worst = last_value
                held.append(x)
                self.count += 1
            else:
                self.worst_before = worst
                self._take(frame, rows[i], x, rows[i] >= policy_from, found)
                worst = self.worst_before
            last_value = x
        self.worst_before = worst

    def _forget(self) -> None:
        self.values.clear()
        self.recent.clear()
        self.newest = None
        self.count = 0
        self.worst_before = -math.inf
        self.open = None

    def _take(self, frame: Frame, row: int, x: float, policy: bool, found: Found) -> None:
        if self.values:
            self.worst_before = max(self.worst_before, self.values[-1])
        self.values.append(x)
        self.count += 1
        if self.open is not None:
            self._go_on(self.open, frame, row, x, found)
            return
        self.recent.append(place(frame, row, x))
        if self.count <= LAST:
            return
        held = list(self.values)
        before, last = held[:-LAST], held[-LAST:]
        level = sorted(before)[len(before) // 2]
        small = self.count <= SMALL and not policy and self._rises(before, last, level)
        if small or self._runs_away(before, last):
            self._begin(frame, row, level, last, found)

    @staticmethod
    def _rises(before: list[float], last: list[float], level: float) -> bool:
        low = min(last)
        return (
            len(before) >= 2
            and level > 0
            and low > max(RATIO * level, level + LEAST, max(before))
            and last[-1] >= last[0]
        )

    @staticmethod
    def _runs_away(before: list[float], last: list[float]) -> bool:
        size = sorted(abs(x) for x in before)[len(before) // 2]
        smallest = min(abs(x) for x in last)
        return smallest > RUNAWAY and smallest > RUNAWAY * size

    def _begin(self, frame: Frame, row: int, level: float, last: list[float], found: Found) -> None:
        at = place(frame, row, last[-1])
        self.level = level
        self.last_bad = at
        # With many values behind it only the last of the three may have been kept.
        self.open = self.recent[0] if len(self.recent) == LAST else at
        self.back = 0
        self.what = f"loss went from {level:.4g} to {last[-1]:.4g} by step {at.step:.15g}"
        found.append((row, self._said("open", at)))

    def _go_on(self, first: Place, frame: Frame, row: int, x: float, found: Found) -> None:
        calm = abs(x) < 1.5 * abs(self.level) if self.level else abs(x) < RUNAWAY
        self.back = self.back + 1 if calm else 0
        if self.back >= LAST:
            at = place(frame, row, x)
            if self.last_bad is not None and self.last_bad.step != first.step:
                found.append((row, self._said("grow", self.last_bad)))
            found.append((row, self._said("recover", at)))
            self.open = None
        elif not calm:
            at = place(frame, row, x)
            if self.last_bad is None or abs(x) > abs(self.last_bad.value):
                found.append((row, self._said("grow", at)))
            self.last_bad = at

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, "divergence", self.key, Severity.FAIL, at, self.what, first=self.open)

    def finish(self) -> Iterable[Finding]:
        """The newest value alone, when it is worse than anything before by far."""
        if self.open is not None:
            return [self._said("grow", self.last_bad)] if self.last_bad is not None else []
        at = self.newest
        before = list(self.values)[-BEFORE - 1 : -1]
        if at is None or len(before) < LAST:
            return []
        level = sorted(before)[len(before) // 2]
        if level <= 0 or at.value < BLOWN * level or at.value < WORSE * self.worst_before or at.value < level + LEAST:
            return []
        what = f"loss went from {level:.4g} to {at.value:.4g} at step {at.step:.15g}, far above anything before"
        return [finding("open", "divergence", self.key, Severity.FAIL, at, what)]
