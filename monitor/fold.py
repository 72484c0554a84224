"""Many recovered episodes of one kind become one that counts them: a run of weeks has no end of small spikes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from trainmon.monitor.finding import Episode
from trainmon.monitor.frame import SignalKey

KEPT: Final = 100  # recovered episodes of one check, kind, signal and attempt that are kept each by itself
COUNT: Final = "count"  # in `Episode.detail`: so many it stands for

Address = tuple[str, str, SignalKey, int]


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
    return replace(
        older,
        severity=max(older.severity, newer.severity),
        worst_step=worst.worst_step,
        worst_value=worst.worst_value,
        last_step=last,
        what=f"{count} times ({name}) from step {older.first_step:.15g} to {last:.15g}, at worst: {told}",
        detail={**older.detail, COUNT: count, "worst": told},
    )


class Recovered:
    """The recovered episodes by address, oldest first: tells which two are to be folded when there are too many."""

    def __init__(self) -> None:
        self._ids: dict[Address, list[str]] = {}

    def copy(self) -> Recovered:
        """One that goes on by itself."""
        other = Recovered()
        other._ids = {address: list(ids) for address, ids in self._ids.items()}
        return other

    def add(self, episode: Episode) -> tuple[str, str] | None:
        """Takes in one that has just recovered; gives the ids of the two oldest when they are too many.

        The second of the two is then no longer known here.
        """
        ids = self._ids.setdefault((episode.check, episode.kind, episode.signal, episode.attempt), [])
        if episode.id not in ids:
            ids.append(episode.id)
        if len(ids) <= KEPT:
            return None
        return ids[0], ids.pop(1)
