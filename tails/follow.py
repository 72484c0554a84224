"""Following one file: appended, truncated, replaced, gone, back, unreadable.

A file's identity is device, inode and content: the first up to 4 KiB and the last up to 1 KiB that were read.
The content decides. A new inode whose content goes on where reading stopped (a copy by rsync, a rewrite of the
same table) is read on; an old inode whose content is another one (truncated and grown again, copytruncate, a hole
left by a writer that kept its offset, a rewrite of the same size) begins anew. Both are told by `FileEvent`.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.opening import NotRegular, explain, open_regular, show

HEAD_BYTES = 4096
TAIL_BYTES = 1024
SETTLE_S = 1.0  # a shrunk file that is a prefix of what was read may be in the midst of being rewritten
GRACE_S = 10.0  # a writer may go on in a file that was renamed or deleted under it
RETRY_FIRST_S = 1.0
RETRY_LAST_S = 30.0
RECENT_S = 2.0  # a file system's time stamps may be this coarse
_HOLE_BYTES = 4096
_GONE = (errno.ENOENT, errno.ENOTDIR)


class FileEvent(StrEnum):
    """What happened to a file between two polls."""

    APPEARED = "appeared"
    TRUNCATED = "truncated"
    REPLACED = "replaced"
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

    `must_reopen`: look at the path by opening it (on network file systems this is what refreshes attributes).
    """

    def __init__(self, path: str | Path, clock: Clock, *, must_reopen: bool = False) -> None:
        self.path = path
        self.problem = ""
        self.offset = 0
        self.size = 0
        self.mtime: float | None = None
        self._clock = clock
        self._must_reopen = must_reopen
        self._fd: int | None = None
        self._identity: tuple[int, int] | None = None
        self._seen: tuple[int, int] | None = None  # size and mtime in ns when the content was last compared
        self._head = b""
        self._tail = b""
        self._is_there = False
        self._restart_as = FileEvent.TRUNCATED
        self._shrunk_at: float | None = None
        self._lost_at: float | None = None
        self._retry_at = 0.0
        self._retry_s = RETRY_FIRST_S

    @property
    def is_open(self) -> bool:
        """Whether a descriptor is held."""
        return self._fd is not None

    def release(self) -> None:
        """Gives the descriptor back; the next poll that finds a change opens the file again and reads on."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def unread(self, count: int) -> None:
        """Takes the last `count` bytes as not read: they will be given again."""
        self.offset -= count
        self._tail = self._tail[:-count] if count else self._tail
        self._head = self._head[: self.offset]

    def poll(self, budget_bytes: int) -> FollowUpdate:
        """What is new since the last poll, at most `budget_bytes` of it."""
        now = self._clock.monotonic()
        if now < self._retry_at:
            return FollowUpdate(b"", self.offset)
        events: list[FileEvent] = []
        try:
            update = self._poll(budget_bytes, now, events)
        except NotRegular as error:
            self.release()
            self._back_off(str(error), now)
        except OSError as error:
            self._failed(error, now, events)
        else:
            self._retry_s = RETRY_FIRST_S
            return update
        return FollowUpdate(b"", self.offset, tuple(events))

    # -- where the path leads ------------------------------------------------------------------------------------

    def _poll(self, budget: int, now: float, events: list[FileEvent]) -> FollowUpdate:
        if self._fd is not None:
            status = self._look()
            if status is None or (status.st_dev, status.st_ino) != self._identity:
                rest = self._rest_of_lost_file(budget, status, now, events)
                if rest is not None:
                    return rest
        if self._fd is None and not self._open(events):
            return FollowUpdate(b"", self.offset, tuple(events), is_at_end=True)
        self._lost_at = None
        if not self._is_there:
            self._is_there = True
            events.append(FileEvent.APPEARED)
        self.problem = ""
        update = self._read_on(budget, now, events)
        if self._shrunk_at is None:
            self._restart_as = FileEvent.TRUNCATED
        return update

    def _look(self) -> os.stat_result | None:
        """What the path leads to now; None when to nothing."""
        try:
            if self._must_reopen:
                fd, status = open_regular(self.path)
                os.close(fd)
                return status
            return os.stat(self.path)  # noqa: PTH116
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise

    def _rest_of_lost_file(
        self, budget: int, status: os.stat_result | None, now: float, events: list[FileEvent]
    ) -> FollowUpdate | None:
        """The end of a file that the path no longer leads to; None once the path's new file is to be read."""
        update = self._read_on(budget, now, events)
        if update.data or update.events:
            self._lost_at = now
            return replace(update, more=True, is_at_end=False)
        if self._lost_at is None:
            self._lost_at = now
        is_over = now - self._lost_at >= GRACE_S
        if status is not None and (status.st_size > 0 or is_over):
            self.release()
            return None
        if status is None:
            self._tell_gone(events)
        if is_over:
            self.release()
        return FollowUpdate(b"", self.offset, tuple(events), is_at_end=True)

    def _tell_gone(self, events: list[FileEvent]) -> None:
        if self._is_there:
            self._is_there = False
            self._restart_as = FileEvent.REPLACED
            self.problem = f"{show(self.path)}: deleted or moved away; it will be read on when it is back"
            events.append(FileEvent.GONE)

    def _open(self, events: list[FileEvent]) -> bool:
        """Opens what the path leads to; False when there is nothing, or nothing new since `release`."""
        try:
            if self._is_unchanged(os.stat(self.path)):  # noqa: PTH116
                self.problem = ""
                return False
            fd, status = open_regular(self.path)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            if self._is_there:
                self._tell_gone(events)
            elif self._identity is None:
                self.problem = explain(self.path, error)
            return False
        self._fd = fd
        identity = (status.st_dev, status.st_ino)
        if identity != self._identity:
            self._restart_as = FileEvent.TRUNCATED if self._identity is None else FileEvent.REPLACED
            self._identity = identity
            self._seen = None
        return True

    def _is_unchanged(self, status: os.stat_result) -> bool:
        is_same = (status.st_dev, status.st_ino) == self._identity and self._is_there
        return is_same and (status.st_size, status.st_mtime_ns) == self._seen and status.st_size == self.offset

    # -- what the open file holds --------------------------------------------------------------------------------

    def _read_on(self, budget: int, now: float, events: list[FileEvent]) -> FollowUpdate:
        assert self._fd is not None
        status = os.fstat(self._fd)
        self.size, self.mtime = status.st_size, status.st_mtime
        if self.offset and not self._goes_on(status):
            if self._may_be_mid_rewrite(status.st_size, now):
                return FollowUpdate(b"", self.offset, tuple(events))
            events.append(self._restart_as)
            self._restart()
        self._shrunk_at = None
        data = self._read(budget)
        if len(data) >= _HOLE_BYTES and data[0] == 0 and not data.strip(b"\0"):
            data = self._skip_hole(data)
            return self._passed_on(data, events, more=self.offset + len(data) < self._data_end())
        return self._passed_on(data, events, more=bool(data) and self.offset + len(data) < status.st_size)

    def _goes_on(self, status: os.stat_result) -> bool:
        """Whether the file still holds what was read of it."""
        if status.st_size < self.offset:
            return False
        seen = (status.st_size, status.st_mtime_ns)
        if seen != self._seen or self._clock.wall() - status.st_mtime < RECENT_S:
            if self._at(0, len(self._head)) != self._head:
                return False
            if self._at(self.offset - len(self._tail), len(self._tail)) != self._tail:
                return False
        self._seen = seen
        return True

    def _may_be_mid_rewrite(self, size: int, now: float) -> bool:
        """A file that shrank to a prefix of itself is given `SETTLE_S` to grow back."""
        if size >= self.offset or self._at(0, min(size, len(self._head))) != self._head[:size]:
            return False
        if self._shrunk_at is None:
            self._shrunk_at = now
        return now - self._shrunk_at < SETTLE_S

    def _restart(self) -> None:
        self.offset = 0
        self._head = b""
        self._tail = b""
        self._seen = None

    def _at(self, offset: int, length: int) -> bytes:
        assert self._fd is not None
        return os.pread(self._fd, length, offset) if length > 0 else b""

    def _read(self, budget: int) -> bytes:
        return self._at(self.offset, budget)

    def _passed_on(self, data: bytes, events: list[FileEvent], *, more: bool) -> FollowUpdate:
        offset = self.offset
        if offset < HEAD_BYTES and len(self._head) == offset:
            self._head += data[: HEAD_BYTES - offset]
        self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        self.offset += len(data)
        return FollowUpdate(data, offset, tuple(events), more, is_at_end=not more)

    def _skip_hole(self, data: bytes) -> bytes:
        """Goes on to where a sparse file has data; gives back the zeros where the file system cannot tell."""
        assert self._fd is not None
        try:
            start = os.lseek(self._fd, self.offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole up to the end: wait for it to be filled
                return b""
            return data
        if start <= self.offset:
            return data
        if not self._head:
            self._head = data[:HEAD_BYTES]
        self.offset = start
        self._tail = b""
        return b""

    def _data_end(self) -> int:
        """Where the file's data end, a hole at its end left out; its size where the file system cannot tell."""
        assert self._fd is not None
        try:
            os.lseek(self._fd, self.offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return self.offset
        return self.size

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
