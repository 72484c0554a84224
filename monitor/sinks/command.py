"""``--on-alert CMD``: a program of the user's own is run for each alert and given it as JSON on standard input.

The command line is split as a shell would and run without one; words of a log are in the JSON alone. Runs are bounded
in number and in time, and nothing waits for them.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final

from trainmon.monitor.document import dumps
from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.event import AlertEvent
from trainmon.monitor.sinks.worker import Say, Worker
from trainmon.tails.clock import Clock
from trainmon.tails.text import printable

TIME_LIMIT_S: Final = 30.0
AT_ONCE: Final = 2
_MERCY_S: Final = 2.0  # between SIGTERM and SIGKILL
_TURN_S: Final = 0.1
_KEPT_BYTES: Final = 2000


class Command:
    """Runs `command` for each event, `AT_ONCE` at a time, each for `time_limit_s` at most.

    Raises SinkError for a command line that cannot be split.
    """

    def __init__(self, command: str, say: Say, clock: Clock, time_limit_s: float = TIME_LIMIT_S) -> None:
        try:
            self._argv = shlex.split(command)
        except ValueError as error:
            raise SinkError(f"on-alert: {error}; write the command as in a shell") from error
        if not self._argv:
            raise SinkError("on-alert: no command")
        self._say = say
        self._clock = clock
        self._time_limit_s = time_limit_s
        self._next = 0
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._workers = [
            Worker(f"on-alert-{number + 1}", self._run_all, say, clock=clock, most_at_once=1)
            for number in range(AT_ONCE)
        ]

    def send(self, events: Sequence[AlertEvent]) -> None:
        """One run for each."""
        for event in events:
            self._workers[self._next].put(event)
            self._next = (self._next + 1) % AT_ONCE

    def close(self, patience_s: float) -> None:
        """Waits for what runs, then ends it."""
        until = self._clock.monotonic() + patience_s
        are_done = [worker.close(max(0.0, until - self._clock.monotonic())) for worker in self._workers]
        if all(are_done):
            return
        self._say(f"on-alert: {printable(self._argv[0], 80)} did not end in time; it was stopped")
        with self._lock:
            for group in self._running:
                _kill(group, signal.SIGKILL)

    def _run_all(self, events: list[AlertEvent]) -> None:
        for event in events:
            problem = self._run(event)
            if problem:
                self._say(f"on-alert: {printable(self._argv[0], 80)}: {problem}")

    def _run(self, event: AlertEvent) -> str:
        """ "" or what went wrong."""
        with tempfile.TemporaryFile() as document:
            document.write(dumps(event.document()).encode() + b"\n")
            document.seek(0)
            try:
                program = subprocess.Popen(
                    self._argv,
                    stdin=document,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                return error.strerror or str(error)
        with self._lock:
            self._running.add(program.pid)
        try:
            return self._watch(program)
        finally:
            with self._lock:
                self._running.discard(program.pid)

    def _watch(self, program: subprocess.Popen[bytes]) -> str:
        assert program.stderr is not None
        until = self._clock.monotonic() + self._time_limit_s
        words = b""
        with program.stderr:
            while program.poll() is None and self._clock.monotonic() < until:
                words = (words + _read(program.stderr, _TURN_S))[-_KEPT_BYTES:]
            if program.poll() is None:
                _end(program)
                return f"took over {self._time_limit_s:g} s and was stopped"
            words = (words + _read(program.stderr, 0.0))[-_KEPT_BYTES:]
        if program.returncode == 0:
            return ""
        lines = words.decode("utf-8", "replace").strip().splitlines()
        return f"ended with status {program.returncode}" + (f" ({printable(lines[-1], 120)})" if lines else "")


def _read(stream: IO[bytes], wait_s: float) -> bytes:
    """What the program has said on `stream`; waits for it at most `wait_s`."""
    ready, _, _ = select.select([stream], [], [], wait_s)
    if not ready:
        return b""
    data = os.read(stream.fileno(), 65536)
    if not data and wait_s:
        threading.Event().wait(wait_s)  # closed, and still running
    return data


def _end(program: subprocess.Popen[bytes]) -> None:
    """The program and all that it started."""
    _kill(program.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        program.wait(_MERCY_S)
    _kill(program.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        program.wait(_MERCY_S)


def _kill(group: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.killpg(group, number)
