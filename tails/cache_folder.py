"""The user's cache: private folders of entries that are written in one piece, checked when they are read, and bounded.

An entry is `MAGIC`, bytes, an index, the index's size (8 bytes), the checksum of all that (4 bytes) and `MAGIC` again.
``TRAINMON_CACHE=off`` (or ``--no-cache``) turns the cache off; ``TRAINMON_CACHE_MB`` bounds each folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from trainmon.tails.own_files import own_folder

MAGIC: Final = b"trainmon-cached-3\n"
_SIZE_BYTES: Final = 8
_SUM_BYTES: Final = 4
_END_BYTES: Final = _SIZE_BYTES + _SUM_BYTES + len(MAGIC)
_PIECE_BYTES: Final = 1 << 20
_DEFAULT_MB: Final = 1024
_LARGEST_SHARE: Final = 0.5  # of the room, for one entry
_MAX_INDEX_BYTES: Final = 64 << 20
_STALE_S: Final = 86400.0
_OFF: Final = {"off", "0", "no", "false"}

Index = TypeVar("Index")


def is_on() -> bool:
    """Whether the environment allows a cache."""
    return os.environ.get("TRAINMON_CACHE", "").strip().lower() not in _OFF


def folder(kind: str) -> Path:
    """Where the entries of a kind ("parsed") lie."""
    return own_folder("cache") / kind


def most_bytes() -> int:
    """How large one entry may be."""
    return int(_room_bytes() * _LARGEST_SHARE)


def opened(path: Path, wanted: Callable[[bytes], Index | None]) -> tuple[BinaryIO, Index] | None:
    """The entry at `path` and what `wanted` makes of its index; None where there is none that is whole, this user's own
    and wanted (`wanted` gives None, or raises ValueError).

    Every byte was read and agreed with the checksum: neither a disk that flips a bit nor one that cannot give a part is
    noticed later, once the first records were given. `wanted` is asked before, with an index that may be damaged.
    """
    try:
        # A pipe in its place must not be waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    index = None
    try:
        with contextlib.suppress(OSError, ValueError):
            index = _index(descriptor, wanted)
    finally:
        if index is None:
            os.close(descriptor)
    return None if index is None else (os.fdopen(descriptor, "rb"), index)


def _index(descriptor: int, wanted: Callable[[bytes], Index | None]) -> Index | None:
    found = os.fstat(descriptor)
    is_own = found.st_uid == os.geteuid() and not found.st_mode & 0o022
    end = found.st_size - _END_BYTES
    if not is_own or end < len(MAGIC):
        return None
    told = os.pread(descriptor, _END_BYTES, end)  # OSError for all that is no plain file: only those have places
    size = int.from_bytes(told[:_SIZE_BYTES], "little")
    if not told.endswith(MAGIC) or not 0 < size <= min(end, _MAX_INDEX_BYTES):
        return None
    index = wanted(os.pread(descriptor, size, end - size))
    checksum = int.from_bytes(told[_SIZE_BYTES:][:_SUM_BYTES], "little")
    return index if index is not None and _checksum(descriptor, end + _SIZE_BYTES) == checksum else None


def _checksum(descriptor: int, end: int) -> int | None:
    """That of the first `end` bytes; None where the disk does not give them all. Raises OSError."""
    checksum = offset = 0
    while offset < end:
        piece = os.pread(descriptor, min(end - offset, _PIECE_BYTES), offset)
        if not piece:
            return None
        checksum = zlib.crc32(piece, checksum)
        offset += len(piece)
    return checksum


class Draft:
    """An entry that is being written; nobody sees it before `keep`. Raises OSError where there is no private folder."""

    def __init__(self, kind: str) -> None:
        import tempfile  # for those who write

        descriptor, self._temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=_own_folder(kind))
        self._file: BinaryIO = os.fdopen(descriptor, "wb")
        self._checksum = self.size = 0
        self.write(MAGIC)

    def write(self, data: bytes | bytearray) -> None:
        """Adds to its bytes; `size` is how many there are. Raises OSError."""
        self._file.write(data)
        self._checksum = zlib.crc32(data, self._checksum)
        self.size += len(data)

    def keep(self, name: str, index: bytes, now: float) -> None:
        """Ends the entry, and puts it in the place of the one that was called `name`. `now`: wall-clock seconds."""
        self.write(index + len(index).to_bytes(_SIZE_BYTES, "little"))
        self.write(self._checksum.to_bytes(_SUM_BYTES, "little") + MAGIC)
        self._file.close()
        place = Path(self._temporary)
        place.replace(place.parent / name)
        self._temporary = ""
        _make_room(place.parent, Path(name).suffix, now)

    def drop(self) -> None:
        """What was written is of no use."""
        with contextlib.suppress(OSError):
            self._file.close()  # writes what it holds back, which fails again on a disk that is full or in trouble
        if self._temporary:
            with contextlib.suppress(OSError):
                Path(self._temporary).unlink(missing_ok=True)


def clear(kind: str, suffix: str) -> int:
    """Removes every entry; how many there were."""
    count = 0
    with contextlib.suppress(OSError):
        for path in folder(kind).glob("*" + suffix):
            path.unlink(missing_ok=True)
            count += 1
    return count


def _room_bytes() -> int:
    try:
        return int(float(os.environ.get("TRAINMON_CACHE_MB", "")) * (1 << 20))
    except (ValueError, OverflowError):
        return _DEFAULT_MB << 20


def _own_folder(kind: str) -> Path:
    """The folder, made if need be. Raises OSError when it is another's or open to others."""
    place = folder(kind)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{place} is not private to this user")
    return place


def _make_room(place: Path, suffix: str, now: float) -> None:
    """Lets go of the entries that were longest unused, and of what a crash has left."""
    entries = [(entry.stat(follow_symlinks=False), entry.path) for entry in os.scandir(place)]
    for found, path in entries:
        if path.endswith(".tmp") and now - found.st_mtime > _STALE_S:
            Path(path).unlink(missing_ok=True)
    kept = sorted(((found, path) for found, path in entries if path.endswith(suffix)), key=lambda one: -one[0].st_mtime)
    total = 0
    for found, path in kept:
        total += found.st_size
        if total > _room_bytes():
            Path(path).unlink(missing_ok=True)
