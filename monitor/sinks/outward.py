"""Alerts of ``watch --headless``: trouble and other people's acknowledgements become events of its output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trainmon.monitor.sinks.alerting import Alerting
from trainmon.monitor.sinks.base import Surroundings
from trainmon.monitor.sinks.settings import AlertSettings
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tails.clock import Clock
from trainmon.tails.here import here

if TYPE_CHECKING:
    from trainmon.monitor.session import Monitor

PATIENCE_S: Final = 15.0  # what waits when it ends (the alert that the run ended, most of all) is still sent

Emit = Callable[[dict[str, object]], None]


class Outward:
    """See `Alerting`; raises SinkError."""

    def __init__(self, wanted: AlertSettings, session: Monitor, emit: Emit, clock: Clock) -> None:
        self._emit = emit
        around = Surroundings(clock, self._say, terminal(), os.environ)
        if around.write is None and (wanted.bell or wanted.desktop):
            self._say("bell, desktop: there is no terminal to write to; other alerts go out")
            wanted = replace(wanted, bell=False, desktop="")
        self._alerting = Alerting(wanted, around, session, session.is_alive, here())

    def _say(self, trouble: str) -> None:
        self._emit({"event": "problem", "text": trouble})

    def take(self, fleet: FleetSnapshot) -> None:
        """The newest snapshot."""
        self._alerting.take(fleet)
        for mark in self._alerting.heard():
            self._emit(
                {
                    "event": "mark",
                    "run": mark.run,
                    "episode": mark.episode,
                    "what": mark.what,
                    "by": mark.by,
                    "time": mark.at,
                    "until": mark.until or None,
                }
            )

    def close(self) -> None:
        """Sends what waits."""
        self._alerting.close(PATIENCE_S)


def terminal() -> Callable[[str], None] | None:
    """Writes to the user's terminal: standard error, or the one that the program was started from; None for neither."""
    if sys.stderr is not None and sys.stderr.isatty():
        return _writer(os.dup(sys.stderr.fileno()))
    with suppress(OSError):
        return _writer(os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY))
    return None


def _writer(descriptor: int) -> Callable[[str], None]:
    def write(text: str) -> None:
        with suppress(OSError):  # the terminal was closed: nobody sits there
            os.write(descriptor, text.encode())

    return write
