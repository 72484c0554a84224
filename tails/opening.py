"""Opening log files without ever blocking on them, and one clear line for each way in which that fails."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from pathlib import Path

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.text import printable

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_ADVICE = {
    errno.EACCES: "permission denied; ask its owner for read access to the file and its directories",
    errno.EPERM: "permission denied; ask its owner for read access to the file and its directories",
    errno.ENOENT: "not there yet; it will be read when it appears",
    errno.ENOTDIR: "not there: a part of this path is a file, not a directory; check the spelling",
    errno.ELOOP: "symbolic links go in a circle; name the file itself",
    errno.ENAMETOOLONG: "the name is longer than the file system allows; check the spelling",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n) or watch fewer files",
    errno.ENFILE: "the machine has too many open files; watch fewer files",
    errno.EIO: "read error (EIO): disk or file server in trouble; trying again, see dmesg",
    errno.ESTALE: "stale file handle: the file server replaced it; opening it again",
    errno.ETIMEDOUT: "the file server does not answer; trying again",
    errno.EHOSTDOWN: "the file server is down; trying again",
    errno.ENOTCONN: "the mount is disconnected; mount it again",
}

_KINDS = (
    (stat.S_ISDIR, "is a directory; name a file in it, or the directory that holds it"),
    (stat.S_ISFIFO, "is a pipe (FIFO), not a log file; read it with: trainmon watch - < FIFO"),
    (stat.S_ISSOCK, "is a socket, not a log file; name a regular file"),
    (stat.S_ISCHR, "is a device, not a log file; name a regular file"),
    (stat.S_ISBLK, "is a device, not a log file; name a regular file"),
)

_LIKE_REMOTE = lazy(r"(?:^|/)((?:\w[\w.+-]*@)?[A-Za-z][\w.-]*):([\w.][\w./-]*|)$", re.ASCII)  # as scp writes it


class NotRegular(Exception):  # noqa: N818 - a state of the path, told like one
    """The path is something that must not be read as a log; the message says what it is and what to do."""


def open_regular(path: str | Path) -> tuple[int, os.stat_result]:
    """Opens the regular file `path` for reading: its descriptor and what fstat says.

    Raises `NotRegular` (before opening, since opening a FIFO or a device may have effects) and OSError.
    """
    require_regular(path, os.stat(path))
    return open_again(path)


def open_again(path: str | Path) -> tuple[int, os.stat_result]:
    """As `open_regular`, for a path that led to a regular file a moment ago: asks for its status once."""
    fd = os.open(path, _FLAGS)
    try:
        status = os.fstat(fd)
        require_regular(path, status)
    except BaseException:
        close(fd)
        raise
    return fd, status


def close(fd: int) -> None:
    """Gives `fd` back. What a dead file server says to that (ENOTCONN, EIO) changes nothing: it was only read from."""
    with contextlib.suppress(OSError):
        os.close(fd)


def require_regular(path: str | Path, status: os.stat_result) -> None:
    """Raises `NotRegular` unless `status` is a regular file's."""
    if stat.S_ISREG(status.st_mode):
        return
    advice = next((text for test, text in _KINDS if test(status.st_mode)), "is no regular file; name a log file")
    raise NotRegular(f"{show(path)} {advice}")


def explain(path: str | Path, error: OSError) -> str:
    """One line for `error`: which file, what is wrong, what to do."""
    advice = _ADVICE.get(error.errno or 0)
    if advice is None:
        advice = f"cannot be read ({error.strerror or type(error).__name__}); trying again"
    elif error.errno == errno.ENOENT and (host := _LIKE_REMOTE.search(os.fspath(path))):
        advice = f"{advice} (on the host {host[1]} it is {host[1]}:~/{host[2]} or {host[1]}:/{host[2]})"
    return f"{show(path)}: {advice}"


def show(path: str | Path) -> str:
    """`path` as text that a terminal can only show."""
    return printable(str(path), 500)
