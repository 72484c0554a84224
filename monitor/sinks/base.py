"""What a sink is, and what it is given when it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from trainmon.monitor.sinks.event import AlertEvent
from trainmon.monitor.sinks.worker import Say
from trainmon.tails.clock import Clock
from trainmon.tails.quick_dataclass import dataclass


class SinkError(ValueError):
    """A sink that cannot be set up as asked; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`write` sends control sequences to the user's terminal (None: there is none); `say` tells the user of trouble,
    from any thread."""

    clock: Clock
    say: Say
    write: Callable[[str], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class Sink(Protocol):
    """Takes events. Nothing of it may block: what waits, waits in a thread of its own."""

    def send(self, events: Sequence[AlertEvent]) -> None:
        """What came at one moment, at least one event; each loud enough for this sink."""
        ...

    def close(self, patience_s: float) -> None:
        """No more will come; what waits still is to be done with within `patience_s`."""
        ...
