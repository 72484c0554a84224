"""A file on another host with the interface of `follow.Follower`."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.follow import RESTARTS, FileEvent, FollowUpdate
from trainmon.tails.opening import NotRegular, explain, require_regular
from trainmon.tails.ssh.address import RemotePath
from trainmon.tails.ssh.ask import is_gone
from trainmon.tails.ssh.host import Host
from trainmon.tails.ssh.part import blocks_of
from trainmon.tails.ssh.remote_file import RemoteFile
from trainmon.tails.ssh.rotated import RotatedParts

_TURN_S = 0.5


class RemoteFollower:
    """Gives what is new in the file `remote`, in order and each byte once, whatever happens to the connection.

    `wake` is called, in the host's thread, when there is something to poll for. With `patience_s` a poll waits until
    something comes, and gives up when nothing has for so long (reading a file to its end).
    """

    def __init__(
        self,
        remote: RemotePath,
        host: Host,
        clock: Clock,
        *,
        wake: Callable[[], None] | None = None,
        patience_s: float = 0.0,
    ) -> None:
        self.path: str | Path = remote.name
        self.offset = 0
        self.written_at: float | None = None  # when it was last seen to be written to, on the monotonic clock
        self._remote = remote
        self._host = host
        self._clock = clock
        self._wake = wake or (lambda: None)
        self._patience_s = patience_s
        self._news = threading.Event()
        self._is_closed = False
        self._was_there = False
        self._has_given_up = False
        self._first = 0  # where what is read live begins, after the parts that lay there before
        self._base = 0  # where the present file begins, after those that were rotated away
        self._older = RotatedParts(remote, host, clock, self._tell)
        self._seen: tuple[int, int] | None = None  # size and time stamp
        self._watched: RemoteFile | None = None  # for the host's thread, which may call before all is made
        self._watched = self._file = host.watch(remote.path, self._tell)

    def _tell(self) -> None:
        """In the host's thread."""
        status = self._watched.status if self._watched is not None else None
        if status is not None and (status.size, status.mtime_ns) != self._seen:
            # At first by its time stamp; then by when the change came, whatever the clock of a file server says.
            age_s = 0.0 if self._seen else max(self._clock.wall() - (status.mtime - self._host.skew_s), 0.0)
            self.written_at = self._clock.monotonic() - age_s
            self._seen = status.size, status.mtime_ns
        self._news.set()
        self._wake()

    @property
    def is_open(self) -> bool:
        """No descriptor is held here."""
        return False

    @property
    def has_news(self) -> bool:
        """Whether a poll would give something."""
        return self._file.has_news if self._older.is_done else self._older.has_news and self._file.was_answered

    @property
    def is_known(self) -> bool:
        """Whether the host answered for the file at least once, or cannot be reached."""
        return self._file.was_answered or self._host.has_failed

    @property
    def size(self) -> int:
        """Of the file, as far as it is known."""
        status = self._file.status
        known = status is not None and not self._file.error
        size = self._base + (status.size if known and status is not None else 0)
        return max(size + self._older.left_bytes, self.offset)

    @property
    def mtime(self) -> float | None:
        """When it was last written to, by our clock."""
        status = self._file.status
        return status.mtime - self._host.skew_s if status is not None else None

    @property
    def problem(self) -> str:
        """What is wrong, one line; "" when all is well."""
        if host_problem := self._host.problem_of(self._file.path):
            return host_problem
        file = self._file
        if file.error:
            if is_gone(file.error) and self._was_there:
                return f"{self.path}: deleted or moved away; it will be read on when it is back"
            return explain(self.path, OSError(file.error, os.strerror(file.error)))
        status = file.status
        if status is not None and status.mode is not None and not stat.S_ISREG(status.mode):
            try:
                require_regular(self.path, os.stat_result((status.mode, *[0] * 9)))
            except NotRegular as error:
                return str(error)
        if file.left_out:
            return f"{self.path}: {file.left_out / 1e6:,.0f} MB of its history were left out (--ssh-history)"
        return self._older.problem

    def poll(self, budget_bytes: int) -> FollowUpdate:
        """What is new since the last poll, at most `budget_bytes` of it."""
        if self._patience_s:
            self._await()
        if not self._older.is_done:
            update = self._poll_older(budget_bytes)
            if update.data or not self._older.is_done:
                return update
        data, offset, arrived, more = self._file.take(budget_bytes)
        events = [each.event for each in arrived if each.event is not None]
        for each in arrived:
            self._was_there = True
            if each.event is FileEvent.ROTATED:  # offsets go on from the end of the older file
                self._base += each.offset
            elif each.event in RESTARTS:
                self._base = self._first = 0
        if data or not self._file.has_news:
            self.offset = self._base + offset + len(data)
        is_at_end = not more and (self._file.is_at_end or self._is_hopeless())
        if self._patience_s:
            more = not is_at_end
        return FollowUpdate(data, self.offset - len(data), tuple(events), more, is_at_end)

    def _poll_older(self, budget_bytes: int) -> FollowUpdate:
        """What is new of the parts that lay there before; they are looked for once it is known what the log is."""
        file, start, data = self._file, self.offset, b""
        if file.was_answered:
            present = file.status.identity if file.status is not None and not file.error else None
            data = self._older.poll(present, budget_bytes)
            self._first = self._base = self.offset = start + len(data)
            self._was_there = self._was_there or bool(data)
        more = bool(data) or bool(self._patience_s and not self._has_given_up)
        return FollowUpdate(data, start, (), more, not more and self._has_given_up)

    def unread(self, count: int) -> None:
        """Takes the last `count` bytes as not read: they will be given again."""
        if count:
            self.offset -= count
            self._file.rewind(self.offset - self._base)

    def release(self) -> None:
        """Ends the watch when the file was read to its end for good; otherwise there is nothing to give back."""
        if self._patience_s:
            self.close()

    def blocks(self, offset: int) -> Iterator[bytes]:
        """The bytes from `offset` on, read again over there; blocks."""
        if offset < self._first:
            yield from self._older.blocks(offset)
            offset = self._first
        if offset >= self._base:
            yield from blocks_of(self._host, self._remote, offset - self._base)

    def close(self) -> None:
        """Ends the watch."""
        if not self._is_closed:
            self._is_closed = True
            self._host.unwatch(self._file)

    def _is_hopeless(self) -> bool:
        """Whether nothing can come for now: no such file, no rights, no regular file."""
        file = self._file
        if not file.was_answered:
            return False
        is_odd = file.status is not None and file.status.mode is not None and not stat.S_ISREG(file.status.mode)
        return bool(file.error) or is_odd

    def _await(self) -> None:
        """Waits for news while there is more to come; gives up after `patience_s` without any."""
        until = self._clock.monotonic() + self._patience_s
        while not self.has_news and not (self._older.is_done and (self._file.is_at_end or self._is_hopeless())):
            if self._clock.monotonic() >= until or (self._host.has_failed and not self._was_there):
                self._file.is_at_end = self._has_given_up = True
                return
            self._news.wait(_TURN_S)
            self._news.clear()
