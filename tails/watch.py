"""Wake-ups: inotify where the file system tells of every write, polling where it does not.

Directories are watched, not files, so that creation and replacement are seen. A heartbeat polls every file, since
inotify can miss. The thread that reads waits on the inotify descriptor itself. `Schedule` decides when each file is
looked at next; `Watcher` waits.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.fstype import Mount, mount_of
from trainmon.tails.inotify import LIMITS, Inotify
from trainmon.tails.schedule import HEARTBEAT_S, INOTIFY, POLL, Schedule

__all__ = ["HEARTBEAT_S", "INOTIFY", "POLL", "Watcher"]

LISTEN_S = 1.0  # how old a newest byte may be before it is known, and the rest between wake-ups, where nobody hurries
RETRY_S = 60.0  # after a limit of inotify was reached
_ADVICE = {
    errno.ENOSPC: "the limit of inotify watches is reached (fs.inotify.max_user_watches)",
    errno.EMFILE: "no more inotify instances (fs.inotify.max_user_instances) or open files (ulimit -n) are allowed",
}


class Watcher:
    """Waits for files to change. All belongs to one thread but `interrupt`, which may come from any."""

    def __init__(self, clock: Clock, *, use_inotify: bool = True) -> None:
        self.problem = ""
        self.written_at: dict[str, float] = {}  # path -> when it was last seen to be written to, on the monotonic clock
        self._clock = clock
        self._use_inotify = use_inotify
        self._schedule = Schedule()
        self._inotify: Inotify | None = None
        self._by_directory: dict[str, dict[str, str]] = {}  # directory -> name in it -> path
        self._blind: set[str] = set()  # paths that inotify would not tell of
        self._no_inotify_before = float("-inf")
        self._round_at = float("-inf")
        self._rests_until = float("-inf")
        self._lock = threading.Lock()
        self._woken_fd, self._wake_fd = os.pipe()
        self._poll, self._interruption = select.poll(), select.poll()
        for fd in (self._woken_fd, self._wake_fd):
            os.set_blocking(fd, False)
        for poll in (self._poll, self._interruption):
            poll.register(self._woken_fd, select.POLLIN)

    def add(self, path: Path, mount: Mount | None = None) -> str:
        """Watches `path` from now on: "inotify" or "poll"."""
        name = str(path)
        is_link = os.path.islink(path)
        if is_link or (mount or mount_of(path)).is_blind:
            self._blind.add(name)
        self._by_directory.setdefault(str(path.parent), {})[path.name] = name
        now = self._clock.monotonic()
        by = POLL if name in self._blind else self._watch_directory(str(path.parent), now)
        self._schedule.add(name, by, now)
        return by

    def remove(self, path: Path) -> None:
        """Stops watching `path`."""
        name, directory = str(path), str(path.parent)
        self._schedule.remove(name)
        self.written_at.pop(name, None)
        self._blind.discard(name)
        names = self._by_directory.get(directory, {})
        names.pop(path.name, None)
        if not names:
            self._by_directory.pop(directory, None)
            if self._inotify is not None:
                self._inotify.remove(directory)

    def watched_by(self, path: Path) -> str:
        """How `path` is watched now."""
        return self._schedule.watched_by(str(path))

    def polled(
        self,
        path: Path,
        *,
        changed: bool,
        age_s: float | None = None,
        cost_s: float | None = None,
        again_s: float | None = None,
    ) -> None:
        """Says that `path` was polled and whether something new was there; see `Schedule.polled`."""
        now = self._clock.monotonic()
        name = str(path)
        if changed:
            self.written_at[name] = max(self.written_at.get(name, float("-inf")), now - max(age_s or 0.0, 0.0))
        self._schedule.polled(name, now, changed=changed, age_s=age_s, cost_s=cost_s, again_s=again_s)
        if changed and name not in self._blind and self._schedule.watched_by(name) == POLL:
            # The directory was not there before, was made anew, or a limit was reached.
            self._schedule.set_by(name, self._watch_directory(str(path.parent), now), now)

    def wake(self, path: Path) -> None:
        """Makes `path` due now."""
        self._schedule.wake(str(path), self._clock.monotonic())

    def attend(self, paths: frozenset[Path], others_s: float) -> None:
        """`paths` are looked at when they are written to; all others together, every `others_s` seconds."""
        self._schedule.attend(frozenset(map(str, paths)), others_s, self._clock.monotonic())

    def wait(self, timeout_s: float) -> list[Path]:
        """The paths to poll now; empty after `timeout_s`, or when the watcher was interrupted."""
        end = self._clock.monotonic() + timeout_s
        while True:
            now = self._clock.monotonic()
            due = self._schedule.next_due()
            gathered_at = min(self._round_at + self._schedule.gather_s, end)
            if due is not None and due <= now < gathered_at:
                self._clock.sleep(gathered_at - now)
                now = self._clock.monotonic()
            moment = end if due is None else min(due, end)
            is_interrupted = self._sleep(max(moment - now, 0.0))  # never without a look at the events
            now = self._clock.monotonic()
            due = self._schedule.next_due()
            is_due = due is not None and due <= now and now >= self._round_at + self._schedule.gather_s
            if is_interrupted or is_due or now >= end:
                self._round_at = now
                return [Path(path) for path in self._schedule.take_due(now)]

    def interrupt(self) -> None:
        """Ends a `wait` that is going on, or the next one."""
        with self._lock:
            if self._wake_fd >= 0:
                with contextlib.suppress(BlockingIOError):  # it was interrupted often enough already
                    os.write(self._wake_fd, b"!")

    def close(self) -> None:
        """Gives all descriptors back."""
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        with self._lock:
            ours, self._wake_fd, self._woken_fd = (self._wake_fd, self._woken_fd), -1, -1
        for fd in ours:
            if fd >= 0:
                os.close(fd)

    def _sleep(self, seconds: float) -> bool:
        """Sleeps until something happens, never again within `LISTEN_S` where nobody is in a hurry; whether that was an
        interruption."""
        interrupted = False
        rest_s = min(self._rests_until - self._clock.monotonic(), seconds)
        if rest_s > 0 and self._schedule.is_patient:  # many writes a second would wake nobody but this thread
            self._interruption.poll(1000.0 * rest_s)
            seconds = 0.0
        for fd, _ in self._poll.poll(1000.0 * seconds):
            if fd == self._woken_fd:
                interrupted = True
                os.read(fd, 4096)
            else:
                self._take_events()
        return interrupted

    def _take_events(self) -> None:
        assert self._inotify is not None
        now = self._clock.monotonic()
        self._rests_until = now + LISTEN_S
        changed, lost, overflowed = self._inotify.take()
        for directory, name in changed:
            path = self._by_directory.get(directory, {}).get(name)
            if path is not None:
                self.written_at[path] = now
                self._schedule.wake(path, now)
        for directory in lost:
            for path in self._by_directory.get(directory, {}).values():
                self._schedule.set_by(path, POLL, now)
        if overflowed:
            self._schedule.wake_all(now)

    def _watch_directory(self, directory: str, now: float) -> str:
        if not self._use_inotify or now < self._no_inotify_before:
            return POLL
        try:
            if self._inotify is None:
                self._inotify = Inotify()
                self._poll.register(self._inotify.fd, select.POLLIN)
            if directory not in self._inotify:
                self._inotify.add(directory)
        except OSError as error:
            if error.errno in LIMITS:
                self._no_inotify_before = now + RETRY_S
                words = _ADVICE.get(error.errno or 0, "the machine has no more inotify to give")
                self.problem = f"{words}: some files are polled instead, every {HEARTBEAT_S:.0f} s or more often"
            elif error.errno == errno.ENOSYS:
                self._use_inotify = False
            return POLL
        self.problem = ""
        return INOTIFY
