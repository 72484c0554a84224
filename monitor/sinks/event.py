"""What is told of an incident: that it opened, got louder, is still open, recovered, or was taken back."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Literal

from trainmon.monitor.alerts import wakes_a_person
from trainmon.monitor.document import episode_entry
from trainmon.monitor.finding import Episode, Incident, Severity
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

Kind = Literal["opened", "louder", "again", "recovered", "withdrawn"]
SCHEMA: Final = "trainmon.alert/1"
_MOST_EPISODES: Final = 50  # of one incident, in one message
_LONGEST: Final = 300  # characters of one name or title


class Rank(IntEnum):
    """How loud: a level lets through what is at least as loud. `PAGE` is METRICS.md's word, what wakes a person."""

    INFO = 0
    WARN = 1
    FAIL = 2
    PAGE = 3


LEVELS: Final = {"page": Rank.PAGE, "fail": Rank.FAIL, "warn": Rank.WARN}


def rank_of(episode: Episode, *, rl: bool = False) -> Rank:
    """How loud one episode is."""
    return Rank.PAGE if wakes_a_person(episode, rl=rl) else Rank(int(episode.severity))


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """One message. `at`: wall seconds; `rank` now, `peak` the loudest that was told of this incident.

    `lead` is the episode that the incident is about, `episodes` are all of it, `state` is the job's.
    """

    kind: Kind
    at: float
    run: str
    target: str
    state: str
    incident: Incident
    rank: Rank
    peak: Rank
    lead: Episode
    episodes: tuple[Episode, ...]

    @property
    def is_over(self) -> bool:
        """Whether it tells of the end of an incident."""
        return self.kind in ("recovered", "withdrawn")

    def passes(self, level: Rank) -> bool:
        """Whether a sink of `level` is told: its end too, once its beginning was loud enough."""
        return (self.peak if self.is_over else self.rank) >= level

    @property
    def headline(self) -> str:
        """One line that any terminal or service can show.

        The words of a log in it are printable; they are data all the same.
        """
        word = {"recovered": "recovered", "withdrawn": "taken back"}.get(self.kind) or self.lead.severity.name
        still = {"again": " (still open)", "louder": " (worse now)"}.get(self.kind, "")
        return f"{word} {_shown(self.run)}: {_shown(self.incident.title)}{still}"

    @property
    def body(self) -> str:
        """Some lines: what each episode says, the likely cause, where to look."""
        lines = [_shown(episode.what or episode.kind) for episode in self.episodes[:5]]
        if len(self.episodes) > 5:
            lines.append(f"and {len(self.episodes) - 5} more")
        if self.incident.cause:
            lines.append(f"likely cause: {_shown(self.incident.cause)}")
        lines.append(f"state of the job: {self.state}")
        where = f", line {self.lead.line}" if self.lead.line > 0 else ""
        lines.append(f"log: {_shown(self.lead.path)}{where}")
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        """The same for programs: ``trainmon.alert/1``. `episode` is the leading one."""
        incident = self.incident
        return {
            "schema": SCHEMA,
            "event": self.kind,
            "time": self.at,
            "run": self.run,
            "target": self.target,
            "state": self.state,
            "level": self.rank.name.lower(),
            "peak": self.peak.name.lower(),
            "incident": {
                "id": incident.id,
                "title": incident.title,
                "severity": Severity(incident.severity).name,
                "first_step": incident.first_step,
                "last_step": incident.last_step,
                "recovered": incident.recovered,
                "cause": incident.cause or None,
            },
            "episode": episode_entry(self.lead),
            "episodes": [episode_entry(episode) for episode in self.episodes[:_MOST_EPISODES]],
        }


def _shown(text: str) -> str:
    return printable(text, _LONGEST)
