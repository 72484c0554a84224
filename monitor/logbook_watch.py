"""The log books of the runs that are watched, read again when they change, in a thread of their own: the home directory
may hang like any other mount."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from trainmon.monitor.logbook import Logbook, Remark
from trainmon.tails.clock import Clock
from trainmon.tails.worker_top import keep_going

INTERVAL_S = 2.0


class LogbookWatch:
    """Tells `on_change` the name of each run whose remarks are others than before."""

    def __init__(self, clock: Clock, on_change: Callable[[str], None], book: Logbook | None = None) -> None:
        self._clock, self._on_change = clock, on_change
        self._book = book
        self._paths: dict[str, tuple[str, ...]] = {}
        self._remarks: dict[str, tuple[Remark, ...]] = {}
        self._stamp: tuple[tuple[str, int, int], ...] = ()
        self._stopping = threading.Event()
        self.problem = ""  # one line once looking has failed
        self._looked_for: dict[str, tuple[str, ...]] = {}
        self._thread = threading.Thread(target=self._work, name="trainmon-logbook", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ends; does not wait for a home directory that hangs."""
        self._stopping.set()

    def know(self, run: str, paths: Sequence[str]) -> None:
        """From now on the remarks on the log files `paths` are those of `run`."""
        self._paths[run] = tuple(paths)

    def of(self, run: str) -> tuple[Remark, ...]:
        """What is known now, oldest first."""
        return self._remarks.get(run, ())

    def _work(self) -> None:
        keep_going("looking for remarks", self._look, self._stopping, self._say)

    def _look(self) -> None:
        paths = dict(self._paths)
        stamp = self._looked()
        if stamp != self._stamp or paths != self._looked_for:
            self._stamp, self._looked_for = stamp, paths
            if stamp or self._remarks:
                self._read(paths)
        self._stopping.wait(INTERVAL_S)

    def _say(self, failure: str) -> None:
        self.problem = failure

    def _looked(self) -> tuple[tuple[str, int, int], ...]:
        """Name, size and time of every book: what changes when a remark is made."""
        if self._book is None:
            self._book = Logbook()
        try:
            entries = [(entry.name, entry.stat()) for entry in os.scandir(self._book.folder)]
        except OSError:
            return ()
        return tuple(sorted((name, found.st_size, found.st_mtime_ns) for name, found in entries))

    def _read(self, paths: dict[str, tuple[str, ...]]) -> None:
        assert self._book is not None
        for run, files in paths.items():
            remarks, _ = self._book.read(files)
            if remarks != self._remarks.get(run, ()):
                self._remarks[run] = remarks
                self._on_change(run)
