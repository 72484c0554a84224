"""A settings file beside a log, read whole when it changes."""

from __future__ import annotations

import os
from pathlib import Path

from trainmon.tails.inherited import owner_of
from trainmon.tails.opening import NotRegular, close, explain, open_regular
from trainmon.tails.status import FileStatus
from trainmon.tails.watch import POLL

_MAX_CONFIG_BYTES = 1 << 20


class ConfigFile:
    """A settings file: its content whenever it changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self.size = 0
        self.owner = ""
        self._signature: tuple[int, int, int] | None = None

    def release(self) -> None:
        """Holds no descriptor."""

    def poll(self) -> bytes | None:
        """The content, at most 1 MiB; None when it is the one that was given before or cannot be read."""
        try:
            fd, status = open_regular(self.path)
        except NotRegular as error:
            self.problem = str(error)
            return None
        except OSError as error:
            self.problem = explain(self.path, error)
            return None
        try:
            self.problem = ""
            self.size = status.st_size
            signature = (status.st_ino, status.st_size, status.st_mtime_ns)
            if signature == self._signature:
                return None
            self._signature = signature
            self.owner = owner_of(str(self.path))  # here: it may wait for the file system
            return os.pread(fd, _MAX_CONFIG_BYTES, 0)
        except OSError as error:
            self.problem = explain(self.path, error)
            return None
        finally:
            close(fd)

    def status(self) -> FileStatus:
        """What is known of the file."""
        return FileStatus(str(self.path), "config", self.size, self.size, 0, 0, 0, POLL, self.problem, owner=self.owner)
