"""What was acknowledged or silenced, kept over a restart: the next program does not send what was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trainmon.monitor.finding import Episode
from trainmon.monitor.sinks.shared import Marks
from trainmon.monitor.sinks.told import Marked, Name, ToldBook
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.clock import Clock

_SKEW_S: Final = 60.0  # clocks of a log's host and of this one may differ by so much


class Remembered:
    """`marks` is told, once for each episode, of what an earlier program was told; what is new is kept in `book`.

    A fault that began after somebody acknowledged one of its name is another run's in the same file, and not marked.
    """

    def __init__(self, book: ToldBook, marks: Marks, clock: Clock) -> None:
        self._book, self._marks, self._clock = book, marks, clock
        self._before: dict[Name, Marked] = book.marked()
        self._kept: dict[Name, Marked] = dict(self._before)
        self._seen: dict[tuple[str, str], tuple[RunSnapshot, RunSnapshot]] = {}

    def of(self, fleet: FleetSnapshot) -> FleetSnapshot:
        """`fleet` with its episodes marked as they were: at once, for the alerts; the session follows."""
        runs = tuple(self._of_run(run) for run in fleet.runs)
        is_same = all(one is other for one, other in zip(runs, fleet.runs, strict=True))
        return fleet if is_same else replace(fleet, runs=runs)

    def _of_run(self, run: RunSnapshot) -> RunSnapshot:
        seen = self._seen.get((run.name, run.target))
        if seen is not None and seen[0] is run:
            return seen[1]
        new: list[Marked] = []
        episodes = tuple(self._of_episode(run, episode, new) for episode in run.episodes)
        if new:
            self._book.mark(new)
        is_same = all(one is other for one, other in zip(episodes, run.episodes, strict=True))
        marked = run if is_same else replace(run, episodes=episodes)
        self._seen[run.name, run.target] = (run, marked)
        return marked

    def _of_episode(self, run: RunSnapshot, episode: Episode, new: list[Marked]) -> Episode:
        name = (run.name, run.target, episode.id)
        if episode.acknowledged or episode.snoozed_until is not None:
            kept = self._kept.get(name)
            told = (episode.acknowledged, episode.snoozed_until or 0.0)
            if kept is None or told != (kept.acknowledged, kept.snoozed_until):
                self._kept[name] = Marked(*name, self._clock.wall(), *told)
                new.append(self._kept[name])
            self._before.pop(name, None)
            return episode
        before = self._before.get(name)
        if before is None:
            return episode
        left_s = before.snoozed_until - self._clock.wall()
        is_another = episode.first_time is not None and episode.first_time > before.at + _SKEW_S
        if is_another or episode.recovered or not (before.acknowledged or left_s > 0):
            if run.progress >= 1.0:  # what a log seems to say in its middle is not what it says
                del self._before[name]
                self._kept.pop(name, None)
            return episode
        if before.acknowledged:
            self._marks.acknowledge(run.name, episode.id)
        if left_s > 0:
            self._marks.snooze(run.name, episode.id, left_s)
        until = before.snoozed_until if left_s > 0 else None
        return replace(episode, acknowledged=before.acknowledged, snoozed_until=until)
