"""inotify(7) by the C library: one descriptor for all directories, read by whoever waits on it, no thread of its own.

watchdog was measured against this: it spends two threads and one inotify instance (of 128 a user) on each directory,
and two switches of threads on each write.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from typing import Final

MODIFY: Final = 0x002
MOVED_FROM: Final = 0x040
MOVED_TO: Final = 0x080
CREATE: Final = 0x100
DELETE: Final = 0x200
DELETE_SELF: Final = 0x400
MOVE_SELF: Final = 0x800
UNMOUNT: Final = 0x2000
OVERFLOW: Final = 0x4000
IGNORED: Final = 0x8000
_ONLYDIR: Final = 0x01000000

_WANTED = MODIFY | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF | _ONLYDIR
_ENDED = DELETE_SELF | MOVE_SELF | UNMOUNT | IGNORED
_HEAD = struct.Struct("iIII")
_BUFFER_BYTES = 64 << 10

# Limits of the user or the machine (fs.inotify.*, ulimit -n) rather than of the directory that was asked for.
LIMITS = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Inotify:
    """The names that change in the directories that were added. Raises OSError where the kernel has none to give."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "inotify_init1"):
            raise OSError(errno.ENOSYS, "this system has no inotify")
        self._libc = libc
        self._directories: dict[int, set[str]] = {}  # one directory may be known by several paths
        self._numbers: dict[str, int] = {}
        self.fd = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, directory: str) -> bool:
        return directory in self._numbers

    def add(self, directory: str) -> None:
        """Watches the files in `directory`. Raises OSError: not there, no directory, or a limit (`LIMITS`)."""
        number = _checked(self._libc.inotify_add_watch(self.fd, os.fsencode(directory), _WANTED))
        self._directories.setdefault(number, set()).add(directory)
        self._numbers[directory] = number

    def remove(self, directory: str) -> None:
        """Watches `directory` no more."""
        number = self._numbers.pop(directory, None)
        if number is None:
            return
        names = self._directories[number]
        names.discard(directory)
        if not names:
            del self._directories[number]
            self._libc.inotify_rm_watch(self.fd, number)  # fails when the directory is gone, and so is the watch

    def take(self) -> tuple[set[tuple[str, str]], set[str], bool]:
        """((directory, name) of what changed, directories that are watched no more, whether events were lost).

        Never blocks.
        """
        changed: set[tuple[str, str]] = set()
        lost: set[str] = set()
        overflowed = False
        for number, mask, name in self._events():
            overflowed |= bool(mask & OVERFLOW)
            if mask & _ENDED:
                lost |= self._forget(number, is_gone=bool(mask & IGNORED))
            elif name:
                changed |= {(directory, name) for directory in self._directories.get(number, ())}
        return changed, lost, overflowed

    def _events(self) -> Iterator[tuple[int, int, str]]:
        """(watch, mask, name in the directory) of what has come by now; some 4000 at most, the rest the next time."""
        try:
            data = os.read(self.fd, _BUFFER_BYTES)
        except BlockingIOError:
            return
        place = 0
        while place < len(data):
            number, mask, _, length = _HEAD.unpack_from(data, place)
            place += _HEAD.size + length
            yield number, mask, os.fsdecode(data[place - length : place].rstrip(b"\0"))

    def close(self) -> None:
        """Gives the descriptor and all its watches back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self._directories.clear()
        self._numbers.clear()

    def _forget(self, number: int, *, is_gone: bool) -> set[str]:
        names = self._directories.pop(number, set())
        for name in names:
            self._numbers.pop(name, None)
        if names and not is_gone:
            self._libc.inotify_rm_watch(self.fd, number)
        return names


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
