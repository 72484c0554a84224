"""What was read of a file, remembered by its first and last bytes: does the file still hold it, and what comes next?

All reading of a followed file passes through here. `is_remote`: the file lies on a network file system, where
attributes and data arrive separately: a size may be older than the data, zeros may stand where data will be, a read
may end early. What looks like another file there is believed only when it still looks so `CONFIRM_S` later.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from trainmon.tails.opening import NotRegular, close, open_regular
from trainmon.tails.quick_dataclass import dataclass

HEAD_BYTES = 4096
TAIL_BYTES = 1024
SETTLE_S = 1.0  # a shrunk file that is a prefix of what was read may be in the midst of being rewritten
CONFIRM_S = 1.0
ZEROS_S = 3.0  # how long zeros near the end of a remote file may be data on its way
RECENT_S = 2.0  # a file system's time stamps may be this coarse
_HOLE_BYTES = 4096
_BLOCK_BYTES = 256 << 10
_ZEROS = bytes(16)  # fewer are taken for a number in a binary file
_ON_ITS_WAY_BYTES = 8 << 20


def read_at(fd: int, offset: int, length: int) -> bytes:
    """`length` bytes at `offset`, fewer only at the file's end: a read that ends early is read on."""
    data = os.pread(fd, length, offset) if length > 0 else b""
    while data and len(data) < length:
        more = os.pread(fd, length - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def file_blocks(path: str | Path, offset: int) -> Iterator[bytes]:
    """What follows `offset` in the file at `path`; ends early where it cannot be read."""
    try:
        fd, _ = open_regular(path)
    except (OSError, NotRegular):
        return
    try:
        while data := read_at(fd, offset, _BLOCK_BYTES):
            offset += len(data)
            yield data
    except OSError:
        return
    finally:
        close(fd)


@dataclass(frozen=True, slots=True)
class Print:
    """What tells a file by its content: its first bytes, and the last ones before `offset`."""

    head: bytes
    tail: bytes
    offset: int

    def is_of(self, fd: int) -> bool:
        """Whether the open file begins as this one did and holds the same before `offset`."""
        if not self.head or read_at(fd, 0, len(self.head)) != self.head:
            return False
        return read_at(fd, self.offset - len(self.tail), len(self.tail)) == self.tail


class Content:
    """What was read of one file: `offset` bytes. The file is given with each call, as a descriptor and its status."""

    def __init__(self, *, is_remote: bool = False) -> None:
        self.offset = 0
        self._is_remote = is_remote
        self._head = b""
        self._tail = b""
        self._seen: tuple[int, int] | None = None  # size and mtime in ns when the content was last compared
        self._doubted_at: float | None = None
        self._zeros: tuple[int, float] | None = None  # where zeros are waited for, and since when

    @property
    def print(self) -> Print:
        """What tells what was read so far."""
        return Print(self._head, self._tail, self.offset)

    @property
    def seen(self) -> tuple[int, int] | None:
        """Size and mtime (ns) at the last comparison."""
        return self._seen

    @property
    def is_in_doubt(self) -> bool:
        """Whether the file looked like another one at the last look, and is not yet believed to be one."""
        return self._doubted_at is not None

    def unread(self, count: int) -> None:
        """Takes the last `count` bytes as not read: they will be given again."""
        self.offset -= count
        self._tail = self._tail[:-count] if count else self._tail
        self._head = self._head[: self.offset]

    def forget(self) -> None:
        """Begins anew: nothing was read."""
        self.offset = 0
        self._head = self._tail = b""
        self._seen = self._doubted_at = self._zeros = None

    def expect_other(self) -> None:
        """The next file is compared whatever its size and time say."""
        self._seen = None

    def goes_on(self, fd: int, status: os.stat_result, now: float, wall: float) -> bool | None:
        """Whether the file still holds what was read of it; None while that cannot be told yet."""
        if self._holds(fd, status, wall):
            self._doubted_at = None
            return True
        if self._doubted_at is None:
            self._doubted_at = now
        if now - self._doubted_at < self._patience_s(fd, status.st_size):
            return None
        self._doubted_at = None
        return False

    def next(self, fd: int, size: int, budget: int, now: float) -> tuple[int, bytes, bool]:
        """(offset, data, whether more is there at once) of what comes next; a hole is skipped: the offset jumps."""
        data = os.pread(fd, budget, self.offset)
        if self._is_remote and _ZEROS in data:
            data = self._without_early_zeros(data, size, now)
        if len(data) >= _HOLE_BYTES and data[0] == 0 and not data.strip(b"\0"):
            data = self._skip_hole(fd, data)
            more = self.offset + len(data) < self._data_end(fd, size)
        else:
            more = bool(data) and self.offset + len(data) < size and self._zeros is None
        offset = self.offset
        if offset < HEAD_BYTES and len(self._head) == offset:
            self._head += data[: HEAD_BYTES - offset]
        self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        self.offset += len(data)
        return offset, data, more

    # -- is it the same ------------------------------------------------------------------------------------------

    def _holds(self, fd: int, status: os.stat_result, wall: float) -> bool:
        if not self.offset:
            return True
        seen = (status.st_size, status.st_mtime_ns)
        if status.st_size < self.offset:
            # A size that is older than the data: those are still there. Only a tail can tell.
            if not (self._is_remote and self._tail and self.print.is_of(fd)):
                return False
        elif (seen != self._seen or wall - status.st_mtime < RECENT_S) and not self._is_print_of(fd):
            return False
        self._seen = seen
        return True

    def _is_print_of(self, fd: int) -> bool:
        return not self._head or self.print.is_of(fd)

    def _patience_s(self, fd: int, size: int) -> float:
        """How long a file that looks like another one may do so before it is one."""
        if size < self.offset and read_at(fd, 0, min(size, len(self._head))) == self._head[:size]:
            return SETTLE_S
        return CONFIRM_S if self._is_remote else 0.0

    # -- zeros ---------------------------------------------------------------------------------------------------

    def _without_early_zeros(self, data: bytes, size: int, now: float) -> bytes:
        """`data` up to where zeros begin that may be data on its way."""
        cut = data.find(_ZEROS)
        place = self.offset + cut
        if place < size - _ON_ITS_WAY_BYTES:
            return data
        if self._zeros is None or self._zeros[0] != place:
            self._zeros = (place, now)
        if now - self._zeros[1] < ZEROS_S:
            return data[:cut]
        self._zeros = None
        return data

    def _skip_hole(self, fd: int, data: bytes) -> bytes:
        """Goes on to where a sparse file has data; gives back the zeros where the file system cannot tell."""
        try:
            start = os.lseek(fd, self.offset, os.SEEK_DATA)
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

    def _data_end(self, fd: int, size: int) -> int:
        """Where the file's data end, a hole at its end left out; its size where the file system cannot tell."""
        try:
            os.lseek(fd, self.offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return self.offset
        return size
