"""Values far below the level of a series, until it is known whether they are drops or a level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from trainmon.monitor.detectors.common import Place, finding
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.stats.middle import median
from trainmon.tails.quick_dataclass import dataclass

LEVEL = 5  # so many values in a row far below the level are a new level, not dropped batches
WITHIN = 10  # values from the first on, after which it is known
_HALF: Final = math.log(2.0)
_AT_ONCE: Final[tuple[Action, ...]] = ("open", "recover")
FEW = 3  # of them, when it did
APART = 2  # times that it may have come back in between: more, and two levels lie mixed


@dataclass(frozen=True, slots=True)
class Low:
    """One such value: its place, its u, and the level that it was far below, as it is logged and as a u."""

    at: Place
    u: float
    level: float
    usual: float


class Drops:
    """What is held back.

    >>> drops, at = Drops(), Place(1.0, 0.5, 1, "log", 0, math.nan)
    >>> drops.low(Low(at, -0.7, 1.0, 0.0)), [drops.high() for _ in range(9)][-2:], drops.are_drops
    (False, [False, True], True)
    >>> [low.u for low in drops.take()], bool(drops)
    ([-0.7], False)
    """

    def __init__(self) -> None:
        self._held: list[Low] = []
        self._in_a_row = self._runs = self._values = 0
        self._fell_to = math.inf

    def __bool__(self) -> bool:
        return bool(self._held)

    def low(self, value: Low) -> bool:
        """One more value far below; whether they are a new level now."""
        self._runs += not self._in_a_row
        self._in_a_row += 1
        self._values += 1
        self._held.append(value)
        return self._in_a_row >= LEVEL

    def is_down(self, u: float) -> bool:
        """Whether `u` lies with those held back rather than with the level that they fell from.

        As they enter the window its median comes down to them: that is no way back.
        """
        first = self._held[0]
        return u < (first.u + first.usual) / 2

    def high(self) -> bool:
        """A value that is back; whether it is known now what those before were."""
        self._in_a_row = 0
        self._values += 1
        return self._values >= WITHIN

    @property
    def are_drops(self) -> bool:
        """Whether they came and went: once or twice, and are gone."""
        is_rare = self._runs == 1 or (self._runs <= APART and len(self._held) <= FEW)
        return bool(self._held) and not self._in_a_row and is_rare

    def fallen(self, level: float) -> Low | None:
        """The first of those in a row, where they lie at half of `level`, a logarithm, or below; each fall once."""
        run = self._held[len(self._held) - self._in_a_row :]
        middle = median([low.u for low in run])
        if level - middle < _HALF or abs(middle - self._fell_to) < _HALF:
            return None
        self._fell_to = middle
        return run[0]

    def waiting(self) -> tuple[Low, ...]:
        """Those held back."""
        return tuple(self._held)

    def take(self) -> list[Low]:
        """Those held back, which are no longer."""
        held, self._held = self._held, []
        self._in_a_row = self._runs = self._values = 0
        return held


def dropped(key: SignalKey, noun: str, lows: Sequence[Low], then: str = "came back") -> list[Finding]:
    """A note of each of `lows`."""
    said = []
    for low in lows:
        at = low.at
        what = f"{noun} dropped from {low.level:.4g} to {at.value:.4g} at step {at.step:.15g} and {then}"
        said += [finding(action, "drop", key, Severity.INFO, at, what) for action in _AT_ONCE]
    return said
