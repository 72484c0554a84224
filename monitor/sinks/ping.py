"""The dead man's switch: as long as trainmon sees every run, it touches a file or asks for a URL, once a minute.

Whoever looks at the file, or serves the URL, raises the alarm when nothing comes: the watcher itself may be gone.
"""

from __future__ import annotations

import os
import stat
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from trainmon import version
from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.worker import Say
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tails.clock import Clock
from trainmon.tails.text import printable

INTERVAL_S: Final = 60.0
_TIMEOUT_S: Final = 10.0


class Ping:
    """`target`: an http(s) URL or the path of a file. It is pinged once in `interval_s`, when all that was looked at
    since the last time could be read. Raises SinkError for another kind of URL."""

    def __init__(self, target: str, say: Say, clock: Clock, interval_s: float = INTERVAL_S) -> None:
        self._is_url = "://" in target
        if self._is_url and not target.lower().startswith(("http://", "https://")):
            raise SinkError(f"ping: {printable(target.partition(':')[0], 20)} is no http or https URL, and no file")
        self._target = target
        self._say = say
        self._clock = clock
        self._interval_s = interval_s
        self._blind = ""
        self._has_seen = False
        self._due_s = 0.0
        self._problem = ""
        self._thread: threading.Thread | None = None

    def look(self, fleet: FleetSnapshot, *, is_alive: bool = True) -> None:
        """Takes in what is seen now, and pings when it is time to. `is_alive`: the fleet is looked at right now."""
        blind = blindness(fleet) if is_alive else "nothing was read for a while"
        now = self._clock.monotonic()
        if not self._has_seen:  # a long history is read first: an interval begins when that is done
            if blind:
                return
            self._has_seen, self._due_s = True, now + self._interval_s
        self._blind = self._blind or blind
        if now < self._due_s:
            return
        self._due_s = now + self._interval_s
        if not self._blind:
            self._send()
        self._blind = blind

    def _send(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return  # the last one still waits for its answer
        self._thread = threading.Thread(target=self._work, name="trainmon-ping", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            if self._is_url:
                _request(self._target)
            else:
                touch(Path(self._target))
        except (OSError, ValueError) as error:
            where = "the URL" if self._is_url else printable(self._target, 200)
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            problem = f"ping: {where}: {printable(str(reason), 120)}"
            if problem != self._problem:
                self._problem = problem
                self._say(problem)
        else:
            self._problem = ""


def blindness(fleet: FleetSnapshot) -> str:
    """Why not all could be seen; "" where it could.

    An empty file, or one whose content is no log, hides nothing: there is nothing in it.
    """
    if fleet.reading:
        return "the history is still being read"
    if not fleet.runs:
        return "there is no run"
    if fleet.problems:
        return fleet.problems[0]
    for run in fleet.runs:
        if run.progress < 1:
            return f"{run.name}: being read"
        if run.problems:
            return run.problems[0]
        for file in run.files:
            if file.problem and not file.problem.endswith(_HARMLESS):
                return file.problem
    return ""


_HARMLESS: Final = ("empty; nothing was written to it yet", "name a log or a metrics file")


def touch(path: Path) -> None:
    """Makes the file's time now, and the file where there is none; its content is left alone. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a plain file")
        os.utime(descriptor)
    finally:
        os.close(descriptor)


class _SameKind(urllib.request.HTTPRedirectHandler):
    """Follows to http and https alone."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        """See the base."""
        if not newurl.lower().startswith(("http://", "https://")):
            raise urllib.error.HTTPError(newurl, code, "redirected to another kind of URL", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _request(url: str) -> None:
    opener = urllib.request.build_opener(_SameKind)
    request = urllib.request.Request(url, headers={"User-Agent": f"trainmon/{version()}"})
    with opener.open(request, timeout=_TIMEOUT_S) as answer:
        answer.read(1024)
