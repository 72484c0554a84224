"""File-system types: which mount a path lies on, and whether inotify sees writes made from elsewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path

from trainmon.tails.quick_dataclass import dataclass

_MAX_STEPS = 4096  # components of a path, links followed; circles end here
MOUNTINFO = Path("/proc/self/mountinfo")

# inotify tells only of writes that pass through this machine's own VFS; on these, others write as well.
_BLIND = frozenset(
    {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "fhgfs", "cifs", "smb3", "smbfs", "smb2", "ceph", "9p", "overlay"}
    | {"afs", "pvfs2", "orangefs", "glusterfs", "panfs", "wekafs", "virtiofs", "vboxsf", "vmhgfs", "gfs2", "ocfs2"}
)

_NO_SERVER = frozenset({"", "overlay", "virtiofs", "vboxsf", "vmhgfs"})  # blind, but nothing far away has to answer

# f_type of statfs(2), for when /proc is not there: include/uapi/linux/magic.h and the vendors' headers.
_MAGIC = {
    0x6969: "nfs",
    0x0BD00BD0: "lustre",
    0x47504653: "gpfs",
    0x19830326: "beegfs",
    0xFF534D42: "cifs",
    0xFE534D42: "smb3",
    0x517B: "smbfs",
    0x65735546: "fuse",
    0x00C36400: "ceph",
    0x01021997: "9p",
    0x794C7630: "overlay",
    0x5346414F: "afs",
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0x2FC12FC1: "zfs",
}


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount: where it is (`point`), its type (``ext4``, ``nfs4``, ...; "" when unknown)."""

    point: str
    fstype: str

    @property
    def is_blind(self) -> bool:
        """Whether inotify misses writes here; an unknown type is taken for one where it does."""
        return not self.fstype or self.fstype in _BLIND or self.fstype.startswith("fuse")

    @property
    def may_hang(self) -> bool:
        """Whether a call on it waits for a server, which may not answer."""
        return self.is_blind and self.fstype not in _NO_SERVER


def read_mounts(mountinfo: Path = MOUNTINFO) -> tuple[Mount, ...]:
    """The mounts of this process, in order of mounting; empty where the kernel does not say."""
    try:
        text = mountinfo.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ()
    mounts = []
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if separator and len(fields) > 4:
            mounts.append(Mount(_unescape(fields[4]), kind[0]))
    return tuple(mounts)


def mount_of(path: str | Path, mounts: tuple[Mount, ...] | None = None) -> Mount:
    """The mount that `path` lies on: longest match, the later of two at one point. Touches no file below it.

    `path` is taken as it is written (made absolute); resolve symbolic links before, where that may not hang.
    """
    known = read_mounts() if mounts is None else mounts
    absolute = os.path.abspath(path)
    best: Mount | None = None
    for mount in known:
        point = mount.point.rstrip("/")
        inside = absolute == point or absolute.startswith(f"{point}/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best if best is not None else Mount("/", _statfs_type(absolute))


def mount_behind(path: str | Path, mounts: tuple[Mount, ...] | None = None) -> Mount:
    """The mount that `path` leads to, symbolic links followed; touches nothing on a mount that may hang.

    Links that lie on such a mount are not followed: what they lead to is its reader's affair.
    """
    known = read_mounts() if mounts is None else mounts
    by_point = {mount.point.rstrip("/") or "/": mount for mount in known}  # the later of two at one point
    todo = os.path.abspath(path).split("/")[:0:-1]
    place = "/"
    for _ in range(_MAX_STEPS):
        if not todo:
            break
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            place = os.path.dirname(place)
            continue
        place = f"{place.rstrip('/')}/{name}"
        if place in by_point and by_point[place].may_hang:
            return mount_of("/".join((place, *reversed(todo))), known)
        try:
            target = os.readlink(place)
        except OSError:
            continue
        place = "/" if target.startswith("/") else os.path.dirname(place)
        todo += target.split("/")[::-1]
    return mount_of(place, known)


def _unescape(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), field)


def _statfs_type(path: str) -> str:
    """The type by statfs(2)'s magic number; "" when that says nothing."""
    import ctypes  # costs some 10 ms, and is needed only where /proc is missing

    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(256)
    if not hasattr(libc, "statfs") or libc.statfs(os.fsencode(path), buffer) != 0:
        return ""
    magic = ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    return _MAGIC.get(magic, "")
