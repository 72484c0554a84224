"""Many episodes of one kind that nothing is added to become one that counts them.

A run of weeks has no end of small spikes, a job that crashes at each start no end of faults that nobody saw end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from trainmon.monitor.finding import Episode
from trainmon.monitor.frame import SignalKey

KEPT: Final = 100  # recovered episodes of one check, kind, signal and attempt that are kept each by itself
KEPT_IN_ALL: Final = 200  # of all attempts: a job that is restarted all night has no end of these either
COUNT: Final = "count"  # in `Episode.detail`: so many it stands for
_LAST_ATTEMPT: Final = "last_attempt"

Address = tuple[str, str, SignalKey]


def stands_for(episode: Episode) -> int:
    """How many episodes it is."""
    count = episode.detail.get(COUNT, 1)
    return int(count) if isinstance(count, (int, float)) else 1


def folded(older: Episode, newer: Episode, is_worse: Callable[[Episode, Episode], bool]) -> Episode:
    """The two as one, under the id of the older: first and last step, worst value and severity of both, counted.

    `is_worse`: whether the second episode's worst value lies farther out than the first's.
    """
    worst = newer if is_worse(older, newer) else older
    count = stands_for(older) + stands_for(newer)
    told = worst.detail.get("worst", worst.what)
    last = max(older.last_step, newer.last_step)
    name = older.kind.replace("_", " ")
    attempt = int(newer.detail.get(_LAST_ATTEMPT, newer.attempt))
    starts = "" if attempt == older.attempt else f" in starts {older.attempt + 1} to {attempt + 1}"
    return replace(
        older,
        severity=max(older.severity, newer.severity),
        worst_step=worst.worst_step,
        worst_value=worst.worst_value,
        last_step=last,
        what=f"{count} times ({name}){starts} from step {older.first_step:.15g} to {last:.15g}, at worst: {told}",
        detail={**older.detail, COUNT: count, "worst": told} | ({_LAST_ATTEMPT: attempt} if starts else {}),
    )


class Foldable:
    """Episodes that nothing is added to, by address, oldest first: tells which two are to be folded when there are too
    many. Those that have recovered and those that have not are never folded into each other: each have their own."""

    def __init__(self) -> None:
        self._attempts: dict[Address, dict[str, int]] = {}  # id -> attempt, in the order in which they came

    def copy(self) -> Foldable:
        """One that goes on by itself."""
        other = Foldable()
        other._attempts = {address: dict(attempts) for address, attempts in self._attempts.items()}
        return other

    def add(self, episode: Episode) -> tuple[str, str] | None:
        """Takes in one; gives the ids of the two oldest, of its attempt or of all, when they are too many.

        The second of the two is then no longer known here.
        """
        attempts = self._attempts.setdefault((episode.check, episode.kind, episode.signal), {})
        attempts.setdefault(episode.id, episode.attempt)
        own = [name for name, attempt in attempts.items() if attempt == episode.attempt]
        if len(own) <= KEPT:
            own = list(attempts)
            if len(own) <= KEPT_IN_ALL:
                return None
        older, newer = own[:2]
        del attempts[newer]
        return older, newer

    def drop(self, episode: Episode) -> None:
        """It is another's from now on."""
        attempts = self._attempts.get((episode.check, episode.kind, episode.signal))
        if attempts is not None:
            attempts.pop(episode.id, None)
