"""Faults whose level was accepted as the new one: each stays open until the values are back where they were."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import field, replace

import numpy as np

from trainmon.monitor.detectors.common import Found, Place
from trainmon.monitor.finding import Action, Finding
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

BACK = 20  # values in a row: after so long a fault, a short calm is no recovery
_MOST = 8  # levels on top of each other; of more the oldest stay open


@dataclass(slots=True)
class _Level:
    """One accepted level. `said`: what told of it last; values below `low` or above `high` are still out."""

    said: Finding
    low: float
    high: float
    need: int
    last: Place | None = None
    back: deque[float] = field(default_factory=deque)  # the values in a row that are back

    def is_out(self, x: float) -> bool:
        return not self.low <= x <= self.high

    def at(self, action: Action, place: Place) -> Finding:
        return replace(
            self.said,
            action=action,
            step=place.step,
            value=self.said.value if math.isnan(place.value) else place.value,
            line=place.line,
            path=place.path,
            attempt=place.attempt,
            time=place.time,
        )


class Settled:
    """The accepted levels of one series, oldest first.

    >>> from trainmon.monitor.detectors.common import finding
    >>> from trainmon.monitor.finding import Severity
    >>> from trainmon.monitor.frame import SignalKey
    >>> def at(step, x):
    ...     return Place(step, x, 0, "log", 0, math.nan)
    >>> key, settled, found = SignalKey("sys.step_time"), Settled(), []
    >>> said = finding("settle", "slow", key, Severity.WARN, at(60.0, 3.0), "slow", at(1.0, 3.0))
    >>> settled.add(said, high=1.5, need=2)
    >>> [settled.take(x, at(step, x), 0, found) for step, x in [(61.0, 3.1), (62.0, 1.0), (63.0, 0.9)]]
    [[], [], [1.0, 0.9]]
    >>> [(one.action, one.step, one.first_step) for _, one in found], bool(settled)
    ([('grow', 61.0, 1.0), ('recover', 63.0, 1.0)], False)
    """

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    def __bool__(self) -> bool:
        return bool(self._levels)

    def add(self, said: Finding, *, low: float = -math.inf, high: float = math.inf, need: int = BACK) -> None:
        """A fault whose level is the level now: `said` settles it, `need` values in a row in `low`..`high` end it."""
        self._levels = [*self._levels[1 - _MOST :], _Level(said, low, high, need)]

    def take(self, x: float, at: Place, row: int, found: Found) -> list[float]:
        """One more value, `x` on the scale of the limits. Where it ends a fault: the values that are the level now."""
        ended: list[float] = []
        for level in self._levels:
            if level.is_out(x):
                level.last = at
                level.back.clear()
                continue
            level.back.append(x)
            if len(level.back) >= level.need:
                if level.last is not None:
                    found.append((row, level.at("grow", level.last)))
                found.append((row, level.at("recover", at)))
                ended = list(level.back)
        if ended:
            self._levels = [level for level in self._levels if len(level.back) < level.need]
        return ended

    def goes_back(self, x: float) -> bool:
        """Whether `x` is back from one of them."""
        return not all(level.is_out(x) for level in self._levels)

    def all_out(self, xs: FloatArray) -> int:
        """How many of the (n,) values from the first on are out of every level."""
        inside = np.zeros(len(xs), np.bool_)
        for level in self._levels:
            inside |= (xs >= level.low) & (xs <= level.high)
        return int(np.argmax(inside)) if inside.any() else len(xs)

    def pass_over(self, at: Place) -> None:
        """Takes in many values that are out of every level, of which the last one lies at `at`."""
        for level in self._levels:
            level.last = at
            level.back.clear()

    def restart(self, *, carries_on: bool, step: float) -> None:
        """A new attempt from `step` on: what a roll-back leaves behind is forgotten."""
        self._levels = [
            level
            for level in self._levels
            if carries_on and level.said.first_step is not None and level.said.first_step < step
        ]

    def clear(self) -> None:
        """The levels before say nothing any more."""
        self._levels = []

    def finish(self) -> list[Finding]:
        """Open ones reach to their last value."""
        return [level.at("grow", level.last) for level in self._levels if level.last is not None]
