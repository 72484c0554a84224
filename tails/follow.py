"""Following one file: appended, truncated, replaced, gone, back, unreadable.

A file's identity is device, inode and content: the first up to 4 KiB and the last up to 1 KiB that were read.
The content decides. A new inode whose content goes on where reading stopped (a copy by rsync, a rewrite of the
same table) is read on; an old inode whose content is another one (truncated and grown again, copytruncate, a hole
left by a writer that kept its offset, a rewrite of the same size) begins anew. Both are told by `FileEvent`.
"""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.content import Content, Print
from trainmon.tails.opening import NotRegular, close, explain, open_again, open_regular, show
from trainmon.tails.quick_dataclass import dataclass

HAND_OVER_S = 1.0  # the last lines may still go into the old file when the new one has its first
GRACE_S = 10.0  # a writer may go on in a file that was renamed or deleted under it
RETRY_FIRST_S = 1.0
RETRY_LAST_S = 10.0
_GONE = (errno.ENOENT, errno.ENOTDIR)


class FileEvent(StrEnum):
    """What happened to a file between two polls."""

    APPEARED = "appeared"
    TRUNCATED = "truncated"
    REPLACED = "replaced"
    ROTATED = "rotated"
    GONE = "gone"


RESTARTS = frozenset({FileEvent.TRUNCATED, FileEvent.REPLACED})


@dataclass(frozen=True, slots=True)
class FollowUpdate:
    """One poll: `data` begins at byte `offset`, and comes after all `events` (a restart's data are the new file's).

    `more`: further bytes are there at once. `is_at_end`: everything that is in the file was read.
    """

    data: bytes
    offset: int
    events: tuple[FileEvent, ...] = ()
    more: bool = False
    is_at_end: bool = False


class Follower:
    """Reads what is new in the file at `path`. Never raises OSError: `problem` says in one line what is wrong.

    `must_reopen`: the file lies on a network file system. Each look at the path opens it (this is what refreshes its
    attributes there) and asks for its status once; reading goes on by the new descriptor.
    """

    def __init__(self, path: str | Path, clock: Clock, *, must_reopen: bool = False) -> None:
        self.path = path
        self.problem = ""
        self.size = 0
        self.mtime: float | None = None
        self.before: Print | None = None  # what was read of the file before the last restart
        self._clock = clock
        self._must_reopen = must_reopen
        self._content = Content(is_remote=must_reopen)
        self._fd: int | None = None
        self._identity: tuple[int, int] | None = None
        self._is_regular = False  # the path led to a regular file when it was last looked at
        self._is_there = False
        self._absence = OSError(errno.ENOENT, "")
        self._restart_as = FileEvent.TRUNCATED
        self._lost_at: float | None = None
        self._retry_at = 0.0
        self._retry_s = RETRY_FIRST_S

    @property
    def offset(self) -> int:
        """How much was read of the present file."""
        return self._content.offset

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the present file; None before the first."""
        return self._identity

    @property
    def print(self) -> Print:
        """What tells what was read of the present file."""
        return self._content.print

    @property
    def is_open(self) -> bool:
        """Whether a descriptor is held."""
        return self._fd is not None

    def release(self) -> None:
        """Gives the descriptor back; the next poll that finds a change opens the file again and reads on."""
        if self._fd is not None:
            close(self._fd)
            self._fd = None

    def unread(self, count: int) -> None:
        """Takes the last `count` bytes as not read: they will be given again."""
        self._content.unread(count)

    def poll(self, budget_bytes: int) -> FollowUpdate:
        """What is new since the last poll, at most `budget_bytes` of it."""
        now = self._clock.monotonic()
        if now < self._retry_at:
            return FollowUpdate(b"", self.offset)
        events: list[FileEvent] = []
        try:
            update = self._poll_again_when_stale(budget_bytes, now, events)
        except NotRegular as error:
            self._is_regular = False
            self.release()
            self._back_off(str(error), now)
        except OSError as error:
            self._failed(error, now, events)
        else:
            self._retry_s = RETRY_FIRST_S
            return update
        return FollowUpdate(b"", self.offset, tuple(events))

    # -- where the path leads ------------------------------------------------------------------------------------

    def _poll_again_when_stale(self, budget: int, now: float, events: list[FileEvent]) -> FollowUpdate:
        """A stale handle says that the server put another file there: that is opened at once, and once only."""
        try:
            return self._poll(budget, now, events)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            self.release()
            return self._poll(budget, now, events)

    def _poll(self, budget: int, now: float, events: list[FileEvent]) -> FollowUpdate:
        fresh, status = self._look()
        try:
            if self._fd is not None and (status is None or _identity(status) != self._identity):
                if not self._is_same_content(fresh, status):
                    rest = self._rest_of_lost_file(budget, status, now, events)
                    if rest is not None:
                        return rest
                self.release()
            if status is None:
                self._say_not_there(events)
                return FollowUpdate(b"", self.offset, tuple(events), is_at_end=True)
            if fresh is None and self._fd is None:
                if self._is_unchanged(status):
                    self.problem = ""
                    return FollowUpdate(b"", self.offset, tuple(events), is_at_end=True)
                fresh, status = open_regular(self.path)
            if fresh is not None:
                self._take_up(fresh, status)
                fresh = None
        finally:
            if fresh is not None:
                close(fresh)
        self._lost_at = None
        if not self._is_there:
            self._is_there = True
            events.append(FileEvent.APPEARED)
        self.problem = ""
        update = self._read_on(budget, now, events, status)
        if not self._content.is_in_doubt:
            self._restart_as = FileEvent.TRUNCATED
        return update

    def _look(self) -> tuple[int | None, os.stat_result | None]:
        """What the path leads to now, None when to nothing; with a descriptor where that must be had to know."""
        try:
            if not self._must_reopen:
                return None, os.stat(self.path)
            fd, status = (open_again if self._is_regular else open_regular)(self.path)
        except OSError as error:
            if error.errno in _GONE:
                self._absence = error.with_traceback(None)  # which would hold every frame it came through
                return None, None
            raise
        self._is_regular = True
        return fd, status

    def _is_same_content(self, fd: int | None, status: os.stat_result | None) -> bool:
        """Whether another inode holds what was read: on some network file systems a file's inode number changes."""
        if fd is None or status is None or status.st_size < self.offset or not self.offset:
            return False
        return self._content.print.is_of(fd)

    def _rest_of_lost_file(
        self, budget: int, status: os.stat_result | None, now: float, events: list[FileEvent]
    ) -> FollowUpdate | None:
        """The end of a file that the path no longer leads to; None once the path's new file is to be read."""
        assert self._fd is not None
        update = self._read_on(budget, now, events, os.fstat(self._fd))
        if update.data or update.events:
            self._lost_at = now
            return replace(update, is_at_end=False)
        if self._lost_at is None:
            self._lost_at = now
        lost_s = now - self._lost_at
        if status is not None and lost_s >= (HAND_OVER_S if status.st_size > 0 else GRACE_S):
            return None
        if status is None:
            self._tell_gone(events)
        if lost_s >= GRACE_S:
            self.release()
        return FollowUpdate(b"", self.offset, tuple(events), is_at_end=True)

    def _say_not_there(self, events: list[FileEvent]) -> None:
        self._is_regular = False
        if self._is_there:
            self._tell_gone(events)
        elif self._identity is None:
            self.problem = explain(self.path, self._absence)

    def _tell_gone(self, events: list[FileEvent]) -> None:
        if self._is_there:
            self._is_there = False
            self._restart_as = FileEvent.REPLACED
            self.problem = f"{show(self.path)}: deleted or moved away; it will be read on when it is back"
            events.append(FileEvent.GONE)

    def _take_up(self, fd: int, status: os.stat_result) -> None:
        """Reads by `fd` from now on."""
        self.release()
        self._fd = fd
        identity = _identity(status)
        if identity != self._identity:
            self._restart_as = FileEvent.TRUNCATED if self._identity is None else FileEvent.REPLACED
            self._identity = identity
            self._content.expect_other()

    def _is_unchanged(self, status: os.stat_result) -> bool:
        is_same = _identity(status) == self._identity and self._is_there
        is_read = status.st_size == self.offset and not self._content.is_in_doubt
        return is_same and is_read and (status.st_size, status.st_mtime_ns) == self._content.seen

    # -- what the open file holds --------------------------------------------------------------------------------

    def _read_on(self, budget: int, now: float, events: list[FileEvent], status: os.stat_result) -> FollowUpdate:
        assert self._fd is not None
        self.size, self.mtime = status.st_size, status.st_mtime
        goes_on = self._content.goes_on(self._fd, status, now, self._clock.wall())
        if goes_on is None:
            return FollowUpdate(b"", self.offset, tuple(events))
        if not goes_on:
            events.append(self._restart_as)
            self.before = self._content.print
            self._content.forget()
        offset, data, more = self._content.next(self._fd, status.st_size, budget, now)
        return FollowUpdate(data, offset, tuple(events), more, is_at_end=not more)

    # -- what fails ----------------------------------------------------------------------------------------------

    def _failed(self, error: OSError, now: float, events: list[FileEvent]) -> None:
        self.release()
        if error.errno in _GONE:
            self._tell_gone(events)
        self._back_off(explain(self.path, error), now)

    def _back_off(self, problem: str, now: float) -> None:
        self.problem = problem
        self._retry_at = now + self._retry_s
        self._retry_s = min(2 * self._retry_s, RETRY_LAST_S)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
