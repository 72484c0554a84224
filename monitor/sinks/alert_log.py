"""The alert log: one JSON object a line, added to the end of a file that others may write to as well."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from trainmon.monitor.document import dumps
from trainmon.monitor.sinks.event import AlertEvent
from trainmon.monitor.sinks.worker import Say, Worker
from trainmon.tails.clock import Clock

_RETRY_S = 30.0
_STANDS_S = 0.02  # a last line that was not ended this long after it last grew is torn; else somebody is writing it
_MOST_LOOKS = 10


class AlertLog:
    """`path` is opened anew for each write, so that a log that is rotated goes on."""

    def __init__(self, path: Path, say: Say, clock: Clock) -> None:
        self._path = path
        self._say = say
        self._problem = ""
        self._clock = clock
        self._worker = Worker("alert-log", self._append, say, clock=clock)

    def send(self, events: Sequence[AlertEvent]) -> None:
        """Each is one line."""
        for event in events:
            self._worker.put(event)

    def close(self, patience_s: float) -> None:
        """Writes what waits."""
        if not self._worker.close(patience_s):
            self._say(f"{self._path}: not all alerts could be written in time")

    def _append(self, events: list[AlertEvent]) -> float | None:
        lines = "".join(dumps(event.document()) + "\n" for event in events).encode()
        try:
            append(self._path, lines, self._clock)
        except OSError as error:
            problem = f"{self._path}: {error.strerror or error}; alerts wait to be written"
            if problem != self._problem:
                self._problem = problem
                self._say(problem)
            return _RETRY_S
        self._problem = ""
        return None


def append(path: Path, lines: bytes, clock: Clock, mode: int = 0o666) -> None:
    """Adds whole lines to a plain file in one write; a torn line at its end is ended first. Raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, mode)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a plain file")
        if _is_torn(descriptor, clock):
            lines = b"\n" + lines
        while lines:
            lines = lines[os.write(descriptor, lines) :]
    finally:
        os.close(descriptor)


def _is_torn(descriptor: int, clock: Clock) -> bool:
    """Whether the last line has no end, and nobody is about to end it: a write of another is seen in parts."""
    size = -1
    for _ in range(_MOST_LOOKS):
        before, size = size, os.fstat(descriptor).st_size
        if not size or os.pread(descriptor, 1, size - 1) == b"\n":
            return False
        if size == before:
            return True
        clock.sleep(_STANDS_S)
    return True
