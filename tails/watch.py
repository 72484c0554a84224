"""Wake-ups: inotify (through watchdog) where the file system tells of every write, polling where it does not.

Directories are watched, not files, so that creation and replacement are seen. A heartbeat polls every file, since
inotify can miss. Files that grew lately are polled fast, others slowly. `Schedule` decides; `Watcher` waits.
"""

from __future__ import annotations

import errno
import heapq
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainmon.tails.clock import Clock
from trainmon.tails.fstype import Mount, mount_of

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

LEAST_S = 0.03  # a file that is written to without pause is not polled more often
HOT_S = 0.25
HEARTBEAT_S = 2.0
COLD_S = 5.0
IS_HOT_FOR_S = 30.0
IS_COLD_AFTER_S = 600.0
MAX_DIRECTORIES = 64  # watchdog may spend two threads and one inotify instance (of 128 a user) on each

INOTIFY = "inotify"
POLL = "poll"
_INTERRUPT = ""


@dataclass(slots=True)
class _Entry:
    by: str
    due: float
    changed_at: float
    polled_at: float = float("-inf")


class Schedule:
    """When each path is to be polled next, in monotonic seconds.

    >>> schedule = Schedule()
    >>> schedule.add("a.log", POLL, now=0.0)
    >>> schedule.take_due(0.0), schedule.take_due(0.1)
    (['a.log'], [])
    >>> schedule.polled("a.log", now=0.1, changed=True)
    >>> schedule.next_due()
    0.35
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, path: str, by: str, now: float) -> None:
        """Watches `path`; it is due at once."""
        self._entries[path] = _Entry(by, now, now)
        heapq.heappush(self._heap, (now, path))

    def remove(self, path: str) -> None:
        """Forgets `path`."""
        self._entries.pop(path, None)

    def watched_by(self, path: str) -> str:
        """How `path` is watched; "" when it is not."""
        entry = self._entries.get(path)
        return entry.by if entry is not None else ""

    def set_by(self, path: str, by: str) -> None:
        """Says how `path` is watched from now on."""
        if path in self._entries:
            self._entries[path].by = by

    def wake(self, path: str, now: float) -> None:
        """`path` is due now, or `LEAST_S` after it was last polled."""
        entry = self._entries.get(path)
        if entry is not None:
            self._set_due(path, min(max(now, entry.polled_at + LEAST_S), entry.due))

    def polled(self, path: str, now: float, *, changed: bool) -> None:
        """`path` was polled; `changed`: something new was there."""
        entry = self._entries.get(path)
        if entry is None:
            return
        entry.polled_at = now
        if changed:
            entry.changed_at = now
        self._set_due(path, now + self._interval_s(entry, now))

    def next_due(self) -> float | None:
        """When the next path is due; None when there is none."""
        while self._heap:
            due, path = self._heap[0]
            entry = self._entries.get(path)
            if entry is not None and entry.due == due:
                return due
            heapq.heappop(self._heap)
        return None

    def take_due(self, now: float) -> list[str]:
        """The paths that are due; each must be given back by `polled`."""
        taken = []
        while (due := self.next_due()) is not None and due <= now:
            _, path = heapq.heappop(self._heap)
            self._entries[path].due = float("inf")
            taken.append(path)
        return taken

    def _interval_s(self, entry: _Entry, now: float) -> float:
        quiet_s = now - entry.changed_at
        if entry.by == INOTIFY:
            return HEARTBEAT_S if quiet_s > HEARTBEAT_S else HEARTBEAT_S / 2
        if quiet_s < IS_HOT_FOR_S:
            return HOT_S
        return HEARTBEAT_S if quiet_s < IS_COLD_AFTER_S else COLD_S

    def _set_due(self, path: str, due: float) -> None:
        entry = self._entries.get(path)
        if entry is not None and entry.due != due:
            entry.due = due
            heapq.heappush(self._heap, (due, path))


class Watcher:
    """Waits for files to change. `wait` belongs to one thread; `wake_all` and `close` may come from any."""

    def __init__(self, clock: Clock, *, use_inotify: bool = True) -> None:
        self.problem = ""
        self._clock = clock
        self._use_inotify = use_inotify
        self._schedule = Schedule()
        self._woken: set[str] = set()
        self._condition = threading.Condition()
        self._is_closed = False
        self._observer: BaseObserver | None = None
        self._watches: dict[str, ObservedWatch] = {}
        self._paths_of: dict[str, set[str]] = {}

    def add(self, path: Path, mount: Mount | None = None) -> str:
        """Watches `path` from now on: "inotify" or "poll"."""
        by = POLL
        is_link = os.path.islink(path)  # noqa: PTH114 - what it leads to is written to elsewhere
        if self._use_inotify and not is_link and not (mount or mount_of(path)).is_blind:
            by = self._watch_directory(str(path.parent))
        self._paths_of.setdefault(str(path.parent), set()).add(str(path))
        self._schedule.add(str(path), by, self._clock.monotonic())
        return by

    def remove(self, path: Path) -> None:
        """Stops watching `path`."""
        self._schedule.remove(str(path))
        directory = str(path.parent)
        paths = self._paths_of.get(directory, set())
        paths.discard(str(path))
        if not paths:
            self._paths_of.pop(directory, None)
            watch = self._watches.pop(directory, None)
            if watch is not None and self._observer is not None:
                self._observer.unschedule(watch)

    def watched_by(self, path: Path) -> str:
        """How `path` is watched now."""
        return self._schedule.watched_by(str(path))

    def polled(self, path: Path, *, changed: bool) -> None:
        """Says that `path` was polled and whether something new was there."""
        self._schedule.polled(str(path), self._clock.monotonic(), changed=changed)

    def wake(self, path: Path) -> None:
        """Makes `path` due now."""
        self._wake_paths({str(path)})

    def wait(self, timeout_s: float) -> list[Path]:
        """The paths to poll now; empty after `timeout_s`, or when the watcher was interrupted or closed."""
        end = self._clock.monotonic() + timeout_s
        while True:
            now = self._clock.monotonic()
            if due := self._schedule.take_due(now):
                return [Path(path) for path in due]
            woken = self._sleep_until(min(end, self._schedule.next_due() or end), now)
            for path in woken:
                self._schedule.wake(path, self._clock.monotonic())
            if not woken or self._is_closed or _INTERRUPT in woken:
                return [Path(path) for path in self._schedule.take_due(self._clock.monotonic())]

    def _sleep_until(self, moment: float, now: float) -> set[str]:
        """Sleeps, unless woken; by whom."""
        with self._condition:
            if not self._woken and not self._is_closed and moment > now:
                self._condition.wait(moment - now)
            woken, self._woken = self._woken, set()
        return woken

    def interrupt(self) -> None:
        """Ends a `wait` that is going on."""
        self._wake_paths({_INTERRUPT})

    def close(self) -> None:
        """Ends all waiting and gives the inotify descriptors back."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()

    def _wake_paths(self, paths: set[str]) -> None:
        with self._condition:
            self._woken |= paths
            self._condition.notify_all()

    def _watch_directory(self, directory: str) -> str:
        if directory in self._watches:
            return INOTIFY
        if len(self._watches) >= MAX_DIRECTORIES or not os.path.isdir(directory):  # noqa: PTH112
            return POLL
        try:
            self._watches[directory] = self._observe(directory)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENFILE):
                self.problem = "the limit of inotify watches is reached; polling instead (see fs.inotify.*)"
            return POLL
        return INOTIFY

    def _observe(self, directory: str) -> ObservedWatch:
        from watchdog import events  # some 75 ms, and not needed where all is polled
        from watchdog.observers import Observer

        if self._observer is None:
            observer = Observer()
            observer.daemon = True
            observer.start()
            self._observer = observer
        handler = _handler(self._wake_paths)
        wanted = [
            events.FileModifiedEvent,
            events.FileCreatedEvent,
            events.FileMovedEvent,
            events.FileDeletedEvent,
        ]
        return self._observer.schedule(handler, directory, recursive=False, event_filter=wanted)


def _handler(tell: Callable[[set[str]], None]) -> FileSystemEventHandler:
    from watchdog.events import FileSystemEventHandler

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            tell({os.fsdecode(name) for name in (event.src_path, event.dest_path) if name})

    return Handler()
