"""Who is to be told of which incident now: once when it begins to page, then at most once an hour while it is open.

One `Pager` serves any number of runs. It only decides; sending is the business of the caller, who asks `due` with each
snapshot and sends what it gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from trainmon.monitor.finding import Episode, Incident

AGAIN_AFTER_S: Final = 3600.0
_REMEMBERED: Final = 2000  # stories: beyond that the oldest are forgotten

Reason = Literal["new", "open", "again", "over"]


@dataclass(frozen=True, slots=True)
class Page:
    """`reason`: "new" the first time, "open" an hourly reminder, "again" the same fault anew, "over" it recovered."""

    run: str
    incident: Incident
    reason: Reason


@dataclass(slots=True)
class _Sent:
    at_s: float
    incident: str
    is_over: bool = False


class Pager:
    """Remembers what was sent. `now_s` is wall-clock time: what was sent outlives the program (`state`)."""

    def __init__(self, state: Mapping[str, Sequence[object]] | None = None) -> None:
        self._sent: dict[str, _Sent] = {}
        for story, entry in (state or {}).items():
            if len(entry) == 3 and isinstance(entry[0], (int, float)) and isinstance(entry[1], str):
                self._sent[story] = _Sent(float(entry[0]), entry[1], bool(entry[2]))

    def due(
        self, run: str, incidents: Iterable[Incident], episodes: Iterable[Episode], now_s: float
    ) -> tuple[Page, ...]:
        """What is to be sent of one run now; counted as sent.

        An incident pages as METRICS.md says (`Incident.pages`: neither acknowledged nor snoozed). A story is what its
        leading episode is about (check, kind, signal): a fault that comes back within the hour is not sent again
        before the hour is over. What was sent and has recovered is told once.
        """
        by_id = {episode.id: episode for episode in episodes}
        pages = []
        for incident in incidents:
            story = _story(run, incident, by_id)
            sent = self._sent.get(story)
            reason = self._reason(incident, sent, now_s)
            if reason is None:
                continue
            if reason == "over":
                assert sent is not None
                sent.is_over = True
            else:
                self._sent.pop(story, None)  # the newest at the end
                self._sent[story] = _Sent(now_s, incident.id)
            pages.append(Page(run, incident, reason))
        while len(self._sent) > _REMEMBERED:
            del self._sent[next(iter(self._sent))]
        return tuple(pages)

    @staticmethod
    def _reason(incident: Incident, sent: _Sent | None, now_s: float) -> Reason | None:
        if sent is not None and sent.incident == incident.id and incident.recovered:
            return None if sent.is_over else "over"
        if not incident.pages or incident.recovered:
            return None
        if sent is None:
            return "new"
        # A clock that was set back must not silence a page for longer than the hour.
        if 0 <= now_s - sent.at_s < AGAIN_AFTER_S:
            return None
        return "open" if sent.incident == incident.id else "again"

    def state(self) -> dict[str, list[object]]:
        """What was sent, for a file: `Pager(state)` goes on from there."""
        return {story: [sent.at_s, sent.incident, sent.is_over] for story, sent in self._sent.items()}


def _story(run: str, incident: Incident, episodes: Mapping[str, Episode]) -> str:
    """What the incident is about, the same when it comes again."""
    members = [episodes[name] for name in incident.episodes if name in episodes]
    if not members:
        return f"{run}\0{incident.id}"
    lead = max(members, key=lambda episode: (episode.severity, -episode.first_step, episode.check))
    return f"{run}\0{lead.check}\0{lead.kind}\0{lead.signal}"
