"""How much room the series of a run have: alone or one of several, read once or watched for weeks.

What is judged does not depend on it: detectors see every row. It only says how many of the older values are drawn one
by one; those that were merged keep their extremes, and a stretch that is looked at closely is read from the file again.
"""

from __future__ import annotations

from typing import Final

from trainmon.tails.quick_dataclass import dataclass

BUDGET_BYTES: Final = 256 << 20
_SHARED_BYTES: Final = 160 << 20  # of several runs
_LEAST_BUDGET_BYTES: Final = 4 << 20
# P0 points of all runs that are watched, and of one of them: four values on each dot of a wide screen.
_SHARED_POINTS: Final = 40 << 10
_LEAST_POINTS: Final = 2 << 10


@dataclass(frozen=True, slots=True)
class Points:
    """How many points one series may have, by priority P0 to P2, and the share of them that stays the newest, raw.

    >>> MOST_POINTS.most, MOST_POINTS.raw(0)
    ((131072, 65536, 65536), 65536)
    """

    most: tuple[int, int, int]
    raw_share: float

    def raw(self, priority: int) -> int:
        """How many of the newest values stay raw."""
        return int(self.most[priority] * self.raw_share)

    def pinned(self, priority: int) -> int:
        """How many older ones stay raw besides: those around episodes."""
        return self.most[priority] // 8


MOST_POINTS: Final = Points((1 << 17, 1 << 16, 1 << 16), 0.5)


def budget_of(runs: int) -> int:
    """The room of each of so many runs, in bytes. Several together get less than one: each has spare room besides."""
    return BUDGET_BYTES if runs < 2 else max(_SHARED_BYTES // runs, _LEAST_BUDGET_BYTES)


def watched_points(runs: int) -> Points:
    """The points of each series of so many runs that are watched: soon reached, so that a week takes what a day does.

    >>> [watched_points(runs).most[0] for runs in (1, 2, 20, 400)]
    [131072, 20480, 2048, 2048]
    """
    if runs < 2:
        return MOST_POINTS
    vital = max(_SHARED_POINTS // runs, _LEAST_POINTS)
    return Points((vital, vital // 2, vital // 2), 0.25)
