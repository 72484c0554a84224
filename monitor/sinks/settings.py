"""What the user wants to be told, how and where: the table [alerts] of the configuration, under the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, Final

from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.bus import AGAIN_S, COOLDOWN_S
from trainmon.monitor.sinks.command import TIME_LIMIT_S
from trainmon.monitor.sinks.event import LEVELS, Rank
from trainmon.monitor.sinks.ping import INTERVAL_S
from trainmon.monitor.sinks.terminal import WAYS
from trainmon.monitor.time_span import seconds
from trainmon.tails.formats.cells import as_float
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """Names as in the configuration file. `levels`: sink -> its own level. Times in seconds.

    `desktop`: "", "auto", "osc9" or "osc777"; `standing`: what is open when a run is first read is told too.
    """

    level: Rank = Rank.PAGE
    levels: Mapping[str, Rank] = field(default_factory=dict)
    cooldown: float = COOLDOWN_S
    again: float = AGAIN_S
    standing: bool = False
    bell: bool = False
    desktop: str = ""
    log: Path | None = None
    on_alert: str = ""
    on_alert_timeout: float = TIME_LIMIT_S
    notify: tuple[str, ...] = ()
    ping: tuple[str, ...] = ()
    ping_every: float = INTERVAL_S
    shared_state: Path | None = None

    @property
    def is_anything(self) -> bool:
        """Whether anybody is to be told of anything."""
        return bool(
            self.bell or self.desktop or self.log or self.on_alert or self.notify or self.ping or self.shared_state
        )

    def level_of(self, sink: str) -> Rank:
        """The level of one sink."""
        return self.levels.get(sink, self.level)

    def with_flags(self, flags: Mapping[str, object]) -> AlertSettings:
        """Those that were given (not None, False or ()) in place of the configuration's. Raises SinkError."""
        given = {name: value for name, value in flags.items() if value not in (None, False, ())}
        return replace(self, **{name: _read("--", name, value) for name, value in given.items()})


def from_config(table: Mapping[str, object]) -> AlertSettings:
    """The table [alerts]. Raises SinkError with one line for a setting that is unknown or cannot be."""
    return replace(AlertSettings(), **{name: _read("alerts.", name, value) for name, value in table.items()})


def _read(prefix: str, name: str, value: object) -> Any:
    reader = _READERS.get(name)
    if reader is None:
        raise SinkError(f"{prefix}{printable(name, 40)}: trainmon has no such setting; it has {', '.join(_READERS)}")
    try:
        return reader(value)
    except ValueError as error:
        shown = name.replace("_", "-") if prefix == "--" else name
        raise SinkError(f"{prefix}{shown}: {printable(str(error), 200)}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text in quotes")
    if "\0" in value:
        raise ValueError("holds a NUL")
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _level(value: object) -> Rank:
    if isinstance(value, Rank):
        return value
    if not isinstance(value, str) or value not in LEVELS:
        raise ValueError(f"must be one of {', '.join(LEVELS)}")
    return LEVELS[value]


def _levels(value: object) -> dict[str, Rank]:
    if not isinstance(value, Mapping):
        raise ValueError("must be a table: [alerts.levels]")
    if unknown := [str(name) for name in value if name not in LEVELLED]:
        raise ValueError(f"there is no sink {unknown[0]}; there are {', '.join(LEVELLED)}")
    return {str(name): _level(level) for name, level in value.items()}


def _length(least: float) -> Callable[[object], float]:
    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError('must be a length of time such as "10m"')
        length = seconds(value) if isinstance(value, str) else as_float(value)
        if not least <= length < 1e9:
            raise ValueError(f"must be {least:g} s or more")
        return length

    return read


def _path(value: object) -> Path:
    return value if isinstance(value, Path) else Path(_text(value)).expanduser()


def _texts(value: object) -> tuple[str, ...]:
    some = (value,) if isinstance(value, str) else value
    if not isinstance(some, list | tuple):
        raise ValueError("must be a text or a list of texts")
    return tuple(_text(one) for one in some)


def _targets(value: object) -> tuple[str, ...]:
    return tuple(one if "://" in one else str(Path(one).expanduser()) for one in _texts(value))


def _desktop(value: object) -> str:
    if isinstance(value, bool):
        return "auto" if value else ""
    if value not in WAYS:
        raise ValueError(f"must be true, false or one of {', '.join(WAYS)}")
    return str(value)


LEVELLED: Final = ("bell", "desktop", "log", "on_alert", "notify")
_READERS: Final[Mapping[str, Callable[[object], object]]] = {
    "level": _level,
    "levels": _levels,
    "cooldown": _length(0.0),
    "again": _length(60.0),
    "standing": _switch,
    "bell": _switch,
    "desktop": _desktop,
    "log": _path,
    "on_alert": _text,
    "on_alert_timeout": _length(0.1),
    "notify": _texts,
    "ping": _targets,
    "ping_every": _length(0.1),
    "shared_state": _path,
}
assert set(_READERS) == {one.name for one in fields(AlertSettings)}
