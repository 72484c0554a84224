"""The sinks: one row each. A new one is a small module and a row here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trainmon.monitor.sinks.alert_log import AlertLog
from trainmon.monitor.sinks.base import Sink, SinkError, Surroundings
from trainmon.monitor.sinks.command import Command
from trainmon.monitor.sinks.event import Rank
from trainmon.monitor.sinks.settings import LEVELLED, AlertSettings
from trainmon.monitor.sinks.terminal import Bell, Desktop

Make = Callable[[AlertSettings, Surroundings], Sink | None]


def _bell(wanted: AlertSettings, around: Surroundings) -> Sink | None:
    return Bell(_terminal(around, "bell")) if wanted.bell else None


def _desktop(wanted: AlertSettings, around: Surroundings) -> Sink | None:
    if not wanted.desktop:
        return None
    return Desktop(_terminal(around, "desktop"), around.environment, wanted.desktop)


def _terminal(around: Surroundings, name: str) -> Callable[[str], None]:
    if around.write is None:
        raise SinkError(f"{name}: there is no terminal to write to; use --alert-log, --on-alert or --notify")
    return around.write


def _log(wanted: AlertSettings, around: Surroundings) -> Sink | None:
    return None if wanted.log is None else AlertLog(wanted.log, around.say, around.clock)


def _on_alert(wanted: AlertSettings, around: Surroundings) -> Sink | None:
    if not wanted.on_alert:
        return None
    return Command(wanted.on_alert, around.say, around.clock, wanted.on_alert_timeout)


def _notify(wanted: AlertSettings, around: Surroundings) -> Sink | None:
    if not wanted.notify:
        return None
    from trainmon.monitor.sinks.notify import Notify

    return Notify(wanted.notify, around.say, around.clock)


# By the name of the setting.
SINKS: Final[dict[str, Make]] = {
    "bell": _bell,
    "desktop": _desktop,
    "log": _log,
    "on_alert": _on_alert,
    "notify": _notify,
}
assert tuple(SINKS) == LEVELLED


def sinks_of(wanted: AlertSettings, around: Surroundings) -> list[tuple[Rank, Sink]]:
    """Each sink that is wanted, with its level. Raises SinkError for one that cannot be set up."""
    made = [(wanted.level_of(name), make(wanted, around)) for name, make in SINKS.items()]
    return [(level, sink) for level, sink in made if sink is not None]
