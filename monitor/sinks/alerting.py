"""All of it together, for the screens and for ``--headless``: given each snapshot, it tells whoever is to be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from trainmon.monitor.finding import Episode
from trainmon.monitor.sinks.base import Surroundings
from trainmon.monitor.sinks.bus import AlertBus
from trainmon.monitor.sinks.ping import Ping
from trainmon.monitor.sinks.registry import sinks_of
from trainmon.monitor.sinks.remembered import Remembered
from trainmon.monitor.sinks.settings import AlertSettings
from trainmon.monitor.sinks.shared import Mark, Marks, SharedState
from trainmon.monitor.sinks.told import ToldBook, told_file
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot


class Alerting:
    """`marks` takes the acknowledgements of others; `is_alive` says whether the logs are looked at right now;
    `directory`: where one watches, so that what was told there is known after a restart (None: it is not kept).

    Raises SinkError for what cannot be set up. All methods but `close` return at once.
    """

    def __init__(
        self,
        wanted: AlertSettings,
        around: Surroundings,
        marks: Marks,
        is_alive: Callable[[], bool] = lambda: True,
        directory: Path | None = None,
    ) -> None:
        self._clock = around.clock
        self._is_alive = is_alive
        self._sinks = sinks_of(wanted, around)
        self._told = (
            ToldBook(told_file(directory, wanted), around.say, around.clock)
            if directory is not None and self._sinks
            else None
        )
        levels = [level for level, _ in self._sinks]
        self._bus = AlertBus(
            level=min(levels, default=wanted.level),
            cooldown_s=wanted.cooldown,
            again_s=wanted.again,
            include_standing=wanted.standing,
            told_before=self._told.before() if self._told is not None else None,
        )
        self._remembered = Remembered(self._told, marks, around.clock) if self._told is not None else None
        self._pings = [Ping(target, around.say, around.clock, wanted.ping_every) for target in wanted.ping]
        self._heard: SimpleQueue[Mark] = SimpleQueue()
        self._shared = (
            None
            if wanted.shared_state is None
            else SharedState(wanted.shared_state, marks, around.say, around.clock, heard=self._heard.put)
        )

    def take(self, fleet: FleetSnapshot) -> None:
        """The newest snapshot; to be called at least once a second, also when it is the same."""
        if self._sinks:
            marked = fleet if self._remembered is None else self._remembered.of(fleet)
            events = self._bus.take(marked, self._clock.wall())
            if events and self._told is not None:
                self._told.note(events)
            for level, sink in self._sinks if events else ():
                if loud := [event for event in events if event.passes(level)]:
                    sink.send(loud)
        is_alive = self._is_alive()
        for ping in self._pings:
            ping.look(fleet, is_alive=is_alive)
        if self._shared is not None:
            self._shared.look(fleet)

    def acknowledged(self, run: RunSnapshot, episode: Episode) -> None:
        """The user has seen it."""
        if self._shared is not None:
            self._shared.acknowledged(run, episode)

    def snoozed(self, run: RunSnapshot, episode: Episode, until: float) -> None:
        """The user has silenced it; `until` in wall seconds."""
        if self._shared is not None:
            self._shared.snoozed(run, episode, until)

    def heard(self) -> list[Mark]:
        """What others have acknowledged or silenced since the last call."""
        found = []
        while True:
            try:
                found.append(self._heard.get_nowait())
            except Empty:
                return found

    def close(self, patience_s: float) -> None:
        """The end: what waits goes out, for `patience_s` at most with each sink."""
        if self._shared is not None:
            self._shared.close(patience_s)
        for _, sink in self._sinks:
            sink.close(patience_s)
        if self._told is not None:
            self._told.close(patience_s)
