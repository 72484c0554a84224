"""A file system that fails on demand: a read-only mirror of a directory, through /dev/fuse.

It speaks the kernel's own protocol (include/uapi/linux/fuse.h, version 7.31), so that every fault is exactly the one
that was asked for: errors of one operation, reads that end early or give zeros, sizes that lag, no answer at all.
"""

from __future__ import annotations

import array
import contextlib
import errno
import json
import os
import select
import shutil
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar

_IN = struct.Struct("<IIQQIIII")
_OUT = struct.Struct("<IiQ")
_ATTR = struct.Struct("<QQQQQQIIIIIIIIII")
_ENTRY = struct.Struct("<QQQQII")
GETATTR_OUT = struct.Struct("<QII")
OPEN_OUT = struct.Struct("<QII")
_READ_IN = struct.Struct("<QQI")
_DIRENT = struct.Struct("<QQII")
_INIT_OUT = struct.Struct("<IIIIHHIIHH32x")
_STATFS_OUT = struct.Struct("<QQQQQIII28x")
DIRECT_IO = 1
_BUFFER_BYTES = (1 << 20) + 4096
NAMES = {
    1: "lookup",
    2: "forget",
    3: "getattr",
    14: "open",
    15: "read",
    17: "statfs",
    18: "release",
    25: "flush",
    26: "init",
    27: "opendir",
    28: "readdir",
    29: "releasedir",
    34: "access",
    36: "interrupt",
    38: "destroy",
    42: "forget",
}


@dataclass
class Faults:
    """What goes wrong from now on.

    `errors`: errno of an operation ("lookup", "getattr", "open", "read", "opendir"); `read_bytes`: no read gives more;
    `zeros_from`: reads give zeros from this offset on; `known_bytes`: no size above this is told, reads give all;
    `bad_bytes`: reads that begin before this offset give EIO, as on a bad sector; `inode_offset`: is added to all inode
    numbers; `hangs`: no call is answered.
    """

    errors: dict[str, int] = field(default_factory=dict)
    read_bytes: int | None = None
    zeros_from: int | None = None
    known_bytes: int | None = None
    bad_bytes: int = 0
    inode_offset: int = 0
    hangs: bool = False


class FaultFs:
    """Shows `backing` at `point` until `close`.

    A process of its own serves it: should the test be killed in a call, the server ends too, and so does the call.
    `SERVER`: its module.
    """

    SERVER = "tests.faultfs"

    def __init__(self, backing: Path, point: Path) -> None:
        self.backing, self.point = backing, point
        from tests.sshd import require_fuse, server_lacking  # not for the server, which starts sooner without

        self._faults = Faults()
        require_fuse()
        self._server = subprocess.Popen(
            [sys.executable, "-m", self.SERVER, str(backing), str(point)],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if (said := self._answer()) != "ready":
            self.close()
            server_lacking(f"a FUSE file system cannot be mounted: {said}")

    def set(self, **faults: object) -> None:
        """Changes the given `Faults`; holds when this returns."""
        self._faults = replace(self._faults, **faults)  # type: ignore[arg-type]
        self._ask(asdict(self._faults))

    def mend(self) -> None:
        """Ends all faults."""
        self._faults = Faults()
        self._ask(asdict(self._faults))

    def calls(self) -> dict[str, int]:
        """How often each operation was asked for."""
        counts: dict[str, int] = json.loads(self._ask(None))
        return counts

    def close(self) -> None:
        """Takes the mount away; calls that wait fail."""
        from tests.sshd import unmount

        self._server.kill()
        self._server.communicate()
        unmount(self.point)

    def _ask(self, message: object) -> str:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()


class Server:
    """Answers the kernel, and whoever writes to the standard input. `NAMES`: of the operations, by their numbers."""

    NAMES: ClassVar[dict[int, str]] = NAMES

    def __init__(self, backing: Path, fd: int) -> None:
        self.backing = backing
        self.faults = Faults()
        self.calls: dict[str, int] = {}
        self.paths = {1: ""}
        self.nodes: dict[tuple[str, int], int] = {}
        self.held: dict[int, int] = {}  # node -> descriptor of its file, which may have lost its name
        self._fd = fd

    # -- the kernel's requests -------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Works until the standard input ends."""
        while True:
            kernel = [] if self.faults.hangs else [self._fd]
            ready, _, _ = select.select([0, *kernel], [], [])
            if 0 in ready:
                line = sys.stdin.buffer.readline()
                if not line:
                    return
                if (faults := json.loads(line)) is not None:
                    self.faults = Faults(**faults)
                sys.stdout.write(json.dumps(self.calls) + "\n")
                sys.stdout.flush()
            elif self._fd in ready:
                self._serve_one()

    def _serve_one(self) -> None:
        try:
            request = os.read(self._fd, _BUFFER_BYTES)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                return
            sys.exit(0)  # ENODEV: unmounted
        _, opcode, unique, node, *_ = _IN.unpack_from(request)
        name = self.NAMES.get(opcode, "")
        if name in ("forget", "interrupt"):
            return
        self.calls[name] = self.calls.get(name, 0) + 1
        try:
            if name in self.faults.errors:
                raise OSError(self.faults.errors[name], "asked for")
            data, code = self.answer(name, node, request[_IN.size :]), 0
        except OSError as error:
            data, code = b"", -(error.errno or errno.EIO)
        with contextlib.suppress(OSError):  # the caller was interrupted meanwhile
            os.write(self._fd, _OUT.pack(_OUT.size + len(data), code, unique) + data)

    def answer(self, name: str, node: int, body: bytes) -> bytes:
        """What `body` asks for. Raises OSError."""
        if name == "init":
            _, minor, readahead = struct.unpack_from("<III", body)
            return _INIT_OUT.pack(7, min(minor, 31), readahead, 0, 12, 9, 1 << 20, 1, 256, 0)
        if name == "statfs":
            return _STATFS_OUT.pack(1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096)
        if name in ("release", "releasedir", "flush", "access", "destroy"):
            return b""
        if name == "lookup":
            return self.entry(self.child(node, body))
        path = self.backing / self.paths[node]
        if name == "getattr":
            found = os.fstat(self.held[node]) if node in self.held else os.lstat(path)
            return GETATTR_OUT.pack(0, 0, 0) + self.attributes(found)
        if name == "opendir":
            return OPEN_OUT.pack(0, 0, 0)
        if name == "open":
            if node not in self.held:
                self.held[node] = os.open(path, os.O_RDONLY)
            return OPEN_OUT.pack(0, DIRECT_IO, 0)
        if name == "read":
            return self._read(self.held[node], *_READ_IN.unpack_from(body)[1:])
        if name == "readdir":
            return _listing(path, *_READ_IN.unpack_from(body)[1:])
        raise OSError(errno.ENOSYS, name)

    def child(self, node: int, name: bytes) -> str:
        """The path of what is called `name` (it may end in NUL) in the directory `node`."""
        return os.path.join(self.paths[node], os.fsdecode(name.rstrip(b"\0")))  # noqa: PTH118 - as text

    def entry(self, path: str) -> bytes:
        """What the kernel is told of the file at `path`."""
        found = os.lstat(self.backing / path)
        known = self.nodes.setdefault((path, found.st_ino), len(self.nodes) + 2)
        self.paths[known] = path
        return _ENTRY.pack(known, 0, 0, 0, 0, 0) + self.attributes(found)

    def attributes(self, found: os.stat_result) -> bytes:
        """The kernel's form of a status."""
        size = found.st_size
        if self.faults.known_bytes is not None and stat.S_ISREG(found.st_mode):
            size = min(size, self.faults.known_bytes)
        times = [divmod(ns, 10**9) for ns in (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)]
        return _ATTR.pack(
            found.st_ino + self.faults.inode_offset,
            size,
            (size + 511) // 512,
            *(seconds for seconds, _ in times),
            *(nanoseconds for _, nanoseconds in times),
            *(found.st_mode, found.st_nlink, found.st_uid, found.st_gid, 0, 4096, 0),
        )

    def _read(self, fd: int, offset: int, size: int) -> bytes:
        if offset < self.faults.bad_bytes:
            raise OSError(errno.EIO, "a bad sector")
        if self.faults.read_bytes is not None:
            size = min(size, self.faults.read_bytes)
        data = os.pread(fd, size, offset)
        if self.faults.zeros_from is not None and offset + len(data) > self.faults.zeros_from:
            kept = max(self.faults.zeros_from - offset, 0)
            data = data[:kept] + bytes(len(data) - kept)
        return data


def _listing(directory: Path, offset: int, size: int) -> bytes:
    out = b""
    for place, name in enumerate(sorted(os.listdir(directory))[offset:], offset + 1):  # noqa: PTH208
        raw = os.fsencode(name)
        entry = _DIRENT.pack(place + 1, place, len(raw), 0) + raw
        entry += bytes(-len(entry) % 8)
        if len(out) + len(entry) > size:
            break
        out += entry
    return out


@contextmanager
def fault_fs(backing: Path, point: Path) -> Iterator[FaultFs]:
    """A `FaultFs` that is taken away at the end. Ends the test where FUSE cannot be used."""
    point.mkdir(parents=True, exist_ok=True)
    mounted = FaultFs(backing, point)
    try:
        yield mounted
    finally:
        mounted.close()


def mount(point: Path, access: str) -> int:
    """A FUSE connection at `point` ("ro" or "rw"): fusermount3 mounts, and hands the descriptor over."""
    mounter = shutil.which("fusermount3") or "fusermount3"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        done = subprocess.run(
            [mounter, "-o", f"{access},nosuid,nodev,fsname=faultfs,subtype=faultfs", "--", str(point)],
            env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(done.stderr.decode(errors="replace").strip())
        fds = array.array("i")
        _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(fds.itemsize))
        fds.frombytes(ancillary[0][2][: fds.itemsize])
    os.set_inheritable(fds[0], False)
    return fds[0]


def _main(backing: str, point: str) -> None:
    server = Server(Path(backing), mount(Path(point), "ro"))
    print("ready", flush=True)
    server.serve()


if __name__ == "__main__":
    _main(*sys.argv[1:])
