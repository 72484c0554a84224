"""What a terminal can do to fetch a person: its bell, and a desktop notification (OSC 9). Off unless asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tails.text import printable

BELL = "\a"
_MOST_WORDS = 200


def desktop(text: str, environment: Mapping[str, str]) -> str:
    """The control sequence that shows `text` as a notification; inside tmux it is passed on to the terminal outside.

    >>> desktop("loss: NaN", {})
    '\\x1b]9;loss: NaN\\x1b\\\\'
    >>> desktop("x", {"TMUX": "/tmp/tmux"})
    '\\x1bPtmux;\\x1b\\x1b]9;x\\x1b\\x1b\\\\\\x1b\\\\'
    """
    sequence = f"\x1b]9;{printable(text, _MOST_WORDS)}\x1b\\"
    if environment.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    return sequence


@dataclass
class Sinks:
    """Which of the two are on, and which incidents were told already: each pages once.

    What a run's log holds when it is first read to its end is history and pages nobody.
    """

    bell: bool = False
    desktop: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)
    _known: set[str] = field(default_factory=set)

    def news(self, fleet: FleetSnapshot) -> str:
        """What to write to the terminal for the incidents that are new in `fleet`; "" for none."""
        if not (self.bell or self.desktop):
            return ""
        titles = list(self._new_pages(fleet))
        if not titles:
            return ""
        words = titles[0] if len(titles) == 1 else f"{len(titles)} incidents; {titles[0]}"
        return (BELL if self.bell else "") + (desktop(f"trainmon: {words}", self.environment) if self.desktop else "")

    def _new_pages(self, fleet: FleetSnapshot) -> Iterable[str]:
        for run in fleet.runs:
            paging = [one for one in run.incidents if one.pages and not one.recovered]
            fresh = [one for one in paging if (run.name, one.id) not in self._told]
            self._told.update((run.name, one.id) for one in paging)
            if run.name not in self._known:
                if run.progress >= 1:
                    self._known.add(run.name)
                continue
            seen = {one.id for one in run.episodes if one.acknowledged}
            for one in fresh:
                if not seen.issuperset(one.episodes):
                    yield f"{run.name}: {one.title}"
