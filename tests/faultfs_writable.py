"""The file system that fails on demand, one that can be written: for what trainmon keeps of its own.

Every write goes through to the directory behind it at once, and each operation that changes something can be made to
fail: "create", "write", "fsync", "rename", "unlink", "mkdir", "setattr", "fsyncdir", besides those of `tests.faultfs`.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from tests.faultfs import DIRECT_IO, GETATTR_OUT, NAMES, OPEN_OUT, FaultFs, Server, mount

_SETATTR_IN = struct.Struct("<I4xQQQQQQIIII4xIIi")
_CREATE_IN = struct.Struct("<IIII")
_MKDIR_IN = struct.Struct("<II")
_WRITE_IN = struct.Struct("<QQIIQII")
_WRITE_OUT = struct.Struct("<II")
_MODE, _SIZE, _ATIME, _MTIME, _ATIME_NOW, _MTIME_NOW = 1, 8, 16, 32, 128, 256


class WritableFaultFs(FaultFs):
    """Shows `backing` at `point`, writable, until `close`."""

    SERVER = "tests.faultfs_writable"


class _WritableServer(Server):
    NAMES: ClassVar[dict[int, str]] = NAMES | {
        4: "setattr",
        9: "mkdir",
        10: "unlink",
        11: "rmdir",
        12: "rename",
        16: "write",
        20: "fsync",
        30: "fsyncdir",
        35: "create",
        45: "rename",
    }

    def answer(self, name: str, node: int, body: bytes) -> bytes:
        """What `body` asks for. Raises OSError."""
        path = self.backing / self.paths.get(node, "")
        if name == "open":
            if node not in self.held:
                self.held[node] = os.open(path, os.O_RDWR)
            if int.from_bytes(body[:4], "little") & os.O_TRUNC:
                os.ftruncate(self.held[node], 0)
            return OPEN_OUT.pack(0, DIRECT_IO, 0)
        if name == "create":
            flags, mode, *_ = _CREATE_IN.unpack_from(body)
            child = self.child(node, body[_CREATE_IN.size :])
            kept = os.O_CREAT | os.O_RDWR | flags & (os.O_EXCL | os.O_TRUNC)
            descriptor = os.open(self.backing / child, kept, mode & 0o7777)
            entry = self.entry(child)
            self.held[int.from_bytes(entry[:8], "little")] = descriptor
            return entry + OPEN_OUT.pack(0, DIRECT_IO, 0)
        if name == "write":
            _, offset, size, *_ = _WRITE_IN.unpack_from(body)
            done = os.pwrite(self.held[node], body[_WRITE_IN.size : _WRITE_IN.size + size], offset)
            return _WRITE_OUT.pack(done, 0)
        if name in ("fsync", "fsyncdir"):
            return b""  # nothing is held back
        if name == "mkdir":
            child = self.child(node, body[_MKDIR_IN.size :])
            (self.backing / child).mkdir(_MKDIR_IN.unpack_from(body)[0] & 0o7777)
            return self.entry(child)
        if name == "unlink":
            (self.backing / self.child(node, body)).unlink()
            return b""
        if name == "rmdir":
            (self.backing / self.child(node, body)).rmdir()
            return b""
        if name == "rename":
            return self._rename(node, body)
        if name == "setattr":
            return self._change(node, path, body)
        return super().answer(name, node, body)

    def _rename(self, node: int, body: bytes) -> bytes:
        # Its later form has flags between the directory and the names, which are not NUL at their first byte.
        (folder,) = struct.unpack_from("<Q", body)
        names = body[16:] if body[12:16] == bytes(4) else body[8:]
        old, new = names.rstrip(b"\0").split(b"\0")
        before, after = self.child(node, old), self.child(folder, new)
        (self.backing / before).replace(self.backing / after)
        for (path, inode), number in list(self.nodes.items()):
            if path == before or path.startswith(before + "/"):
                moved = after + path[len(before) :]
                self.nodes[moved, inode] = self.nodes.pop((path, inode))
                self.paths[number] = moved
        return b""

    def _change(self, node: int, path: Path, body: bytes) -> bytes:
        valid, _, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, *_ = _SETATTR_IN.unpack_from(body)
        place: int | Path = self.held.get(node, path)
        if valid & _MODE:
            os.chmod(place, mode & 0o7777)  # noqa: PTH101 - it may be a descriptor
        if valid & _SIZE:
            os.truncate(place, size)
        if valid & (_ATIME | _MTIME):
            now = os.stat(place)  # noqa: PTH116 - it may be a descriptor
            asked = [
                (valid & _ATIME, valid & _ATIME_NOW, atime * 10**9 + atime_ns, now.st_atime_ns),
                (valid & _MTIME, valid & _MTIME_NOW, mtime * 10**9 + mtime_ns, now.st_mtime_ns),
            ]
            if valid & (_ATIME_NOW | _MTIME_NOW):
                os.utime(place)
            else:
                os.utime(place, ns=tuple(given if is_set else old for is_set, _, given, old in asked))  # type: ignore[arg-type]
        found = os.fstat(place) if isinstance(place, int) else os.lstat(place)
        return GETATTR_OUT.pack(0, 0, 0) + self.attributes(found)


@contextmanager
def writable_fault_fs(backing: Path, point: Path) -> Iterator[WritableFaultFs]:
    """A `WritableFaultFs` that is taken away at the end. Ends the test where FUSE cannot be used."""
    backing.mkdir(parents=True, exist_ok=True)
    point.mkdir(parents=True, exist_ok=True)
    mounted = WritableFaultFs(backing, point)
    try:
        yield mounted
    finally:
        mounted.close()


def _main(backing: str, point: str) -> None:
    os.umask(0)  # the kernel has taken the caller's from the mode
    server = _WritableServer(Path(backing), mount(Path(point), "rw"))
    print("ready", flush=True)
    server.serve()


if __name__ == "__main__":
    _main(*sys.argv[1:])
