"""Successive snapshots of a fleet in, alert events out: each incident is told once, and again only when that helps.

Opened: an incident is as loud as somebody wants to hear. Louder: it got worse than what was told. Again: it was told
an hour ago and is still open, or its snooze is over. Recovered, withdrawn: what was told is over. What was
acknowledged or is snoozed says nothing; what a run's log holds when it is first read to its end is history and says
nothing. A fault that comes back within the cool-down is told when the cool-down is over, if it is still there then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from trainmon.monitor.finding import Episode, Incident
from trainmon.monitor.sinks.event import AlertEvent, Kind, Rank, rank_of
from trainmon.monitor.sinks.told import Name, Told
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot, State
from trainmon.tails.quick_dataclass import dataclass

AGAIN_S: Final = 3600.0
COOLDOWN_S: Final = 600.0
_LOOK_S: Final = 1.0  # how often time alone is asked whether something is due
_FRESH_S: Final = 300.0  # a run that appears later and was written to just now has no history yet
# Somebody, or the scheduler, ended the run: nobody has to be told of it every hour.
_AT_REST: Final = frozenset(
    (State.FINISHED, State.CANCELLED, State.TIME_LIMIT, State.PREEMPTED, State.REQUEUED, State.QUEUED)
)
_GOES_ON: Final = frozenset(
    (State.RUNNING, State.CHECKPOINTING, State.EVALUATING, State.BUFFERED, State.SLOW, State.FINISHED)
)

About = tuple[str, str, str, str]  # run, check, kind and signal: what makes two faults the same


@dataclass(slots=True, eq=False)
class _Story:
    """One incident through time, whatever it is called: incidents may grow together.

    `told`: the rank last told, None when nothing is to be recovered from; `quiet`: the rank that is history.
    """

    told: Rank | None = None
    peak: Rank = Rank.INFO
    told_at: float = 0.0
    quiet: Rank = Rank.INFO
    was_snoozed: bool = False
    last: AlertEvent | None = None


@dataclass(slots=True)
class _Book:
    """What is known of one run."""

    is_read: bool = False
    run: RunSnapshot | None = None
    looked_at: float = float("-inf")
    stories: dict[str, _Story] = field(default_factory=dict)  # by episode


class AlertBus:
    """Not for several threads at once. Times are wall seconds; a clock that is set back delays nothing.

    `level`: what is not as loud is never told. `include_standing`: what is open when a run is first read is told too.
    `told_before`: what an earlier program told; such a story goes on where it was left.
    """

    def __init__(
        self,
        *,
        level: Rank = Rank.PAGE,
        cooldown_s: float = COOLDOWN_S,
        again_s: float = AGAIN_S,
        include_standing: bool = False,
        told_before: Mapping[Name, Told] | None = None,
    ) -> None:
        self.level = level
        self.cooldown_s = cooldown_s
        self.again_s = again_s
        self.include_standing = include_standing
        self._told_before = dict(told_before or {})
        self._books: dict[tuple[str, str], _Book] = {}
        self._told: dict[About, tuple[float, Rank]] = {}
        self._is_settled = False

    def take(self, fleet: FleetSnapshot, now: float) -> list[AlertEvent]:
        """What is to be told at the wall time `now`; counted as told."""
        events: list[AlertEvent] = []
        for run in fleet.runs:
            book = self._books.get((run.name, run.target))
            if book is None:
                is_new = self._is_settled and run.age_s is not None and run.age_s < _FRESH_S
                book = self._books[run.name, run.target] = _Book(is_read=is_new)
            if book.run is run and 0 <= now - book.looked_at < _LOOK_S:
                continue
            book.run, book.looked_at = run, now
            events += self._of_run(book, run, now)
        for about in [about for about, (at, _) in self._told.items() if not 0 <= now - at < self.cooldown_s]:
            del self._told[about]
        self._is_settled = self._is_settled or not fleet.reading
        return events

    def _of_run(self, book: _Book, run: RunSnapshot, now: float) -> list[AlertEvent]:
        if not book.is_read and run.progress < 1.0:
            return []  # what a log seems to say in its middle is not what it says
        is_first = not book.is_read
        book.is_read = True
        events: list[AlertEvent] = []
        by_id = {episode.id: episode for episode in run.episodes}
        for story, incidents in _stories(book, run.incidents):
            members = [by_id[name] for one in incidents for name in one.episodes if name in by_id]
            if not members:
                continue
            if is_first:
                self._take_up(story, run, members)
            if is_first and story.told is None and not self.include_standing:
                story.quiet = max((rank_of(one, rl=run.rl) for one in members if not one.recovered), default=Rank.INFO)
                continue
            kind, rank = self._due(story, run, members, now)
            if kind is not None:
                events.append(self._tell(story, kind, rank, run, incidents, members, now))
        if run.progress >= 1.0:
            events += _withdrawn(book, run, by_id, now)
        return events

    def _take_up(self, story: _Story, run: RunSnapshot, members: Sequence[Episode]) -> None:
        """Goes on with what was told before this program began."""
        known = [self._told_before.pop((run.name, run.target, one.id), None) for one in members]
        told = max((one for one in known if one is not None), key=lambda one: one.at, default=None)
        if told is not None:
            story.told, story.peak, story.told_at = Rank(told.rank), Rank(told.peak), told.at

    def _due(self, story: _Story, run: RunSnapshot, members: Sequence[Episode], now: float) -> tuple[Kind | None, Rank]:
        still = [one for one in members if not one.recovered]
        if not still:
            story.quiet, story.was_snoozed = Rank.INFO, False
            return ("recovered" if story.told is not None else None), Rank.INFO
        heard = [one for one in still if not one.acknowledged and not _is_snoozed(one, now)]
        was_snoozed, story.was_snoozed = story.was_snoozed, any(_is_snoozed(one, now) for one in still)
        rank = max((rank_of(one, rl=run.rl) for one in heard), default=Rank.INFO)
        if rank < self.level:
            return None, rank
        if story.told is None:
            about = _about(run, _lead(heard, rl=run.rl))
            at, before = self._told.get(about, (now, Rank.INFO))
            is_held = about in self._told and rank <= before and 0 <= now - at < self.cooldown_s
            return (None if rank <= story.quiet or is_held else "opened"), rank
        if rank > story.told:
            return "louder", rank
        if run.state in _AT_REST:
            return None, rank
        is_due = was_snoozed and not story.was_snoozed
        return ("again" if is_due or not 0 <= now - story.told_at < self.again_s else None), rank

    def _tell(
        self,
        story: _Story,
        kind: Kind,
        rank: Rank,
        run: RunSnapshot,
        incidents: Sequence[Incident],
        members: Sequence[Episode],
        now: float,
    ) -> AlertEvent:
        still = [one for one in members if not one.recovered and not one.acknowledged]
        lead = _lead(still or members, rl=run.rl)
        of_lead = next((one for one in incidents if lead.id in one.episodes), incidents[0])
        story.peak = max(story.peak, rank)
        event = AlertEvent(
            kind, now, run.name, run.target, run.state.value, of_lead, rank, story.peak, lead, tuple(members)
        )
        if event.is_over:
            story.told, story.last, story.peak = None, None, Rank.INFO
        else:
            story.told, story.told_at, story.last = rank, now, event
            self._told[_about(run, lead)] = (now, rank)
        return event


def _stories(book: _Book, incidents: Iterable[Incident]) -> list[tuple[_Story, list[Incident]]]:
    """Each story with its incidents; those that were told are found again by any of their episodes."""
    groups: dict[_Story, list[Incident]] = {}
    for incident in incidents:
        known = [book.stories[name] for name in incident.episodes if name in book.stories]
        story = next((one for one in known if one.told is not None), known[0] if known else _Story())
        for name in incident.episodes:
            before = book.stories.get(name)
            if before is None or before.told is None:
                book.stories[name] = story
        groups.setdefault(story, []).append(incident)
    return list(groups.items())


def _withdrawn(book: _Book, run: RunSnapshot, standing: dict[str, Episode], now: float) -> list[AlertEvent]:
    """The end of stories that were told and of which no episode is left.

    A job that hung and goes on did hang: that is no mistake that is taken back.
    """
    gone = [name for name in book.stories if name not in standing]
    lost = {book.stories.pop(name): None for name in gone}
    left = set(book.stories.values())
    events = []
    for story in lost:
        if story.told is not None and story.last is not None and story not in left:
            last = story.last
            goes_on = last.lead.check == "job.state" and run.state in _GOES_ON
            events.append(
                AlertEvent(
                    "recovered" if goes_on else "withdrawn",
                    now,
                    last.run,
                    last.target,
                    run.state.value,
                    last.incident,
                    Rank.INFO,
                    story.peak,
                    last.lead,
                    last.episodes,
                )
            )
    return events


def _is_snoozed(episode: Episode, now: float) -> bool:
    return episode.snoozed_until is not None and episode.snoozed_until > now


def _lead(episodes: Sequence[Episode], *, rl: bool) -> Episode:
    return max(episodes, key=lambda one: (rank_of(one, rl=rl), one.severity, -one.first_step, one.id))


def _about(run: RunSnapshot, lead: Episode) -> About:
    return (f"{run.name}\0{run.target}", lead.check, lead.kind, str(lead.signal))
