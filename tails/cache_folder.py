"""The user's cache: private folders of entries that are written in one piece, checked when they are read, and bounded.

An entry is `MAGIC`, bytes, an index, the index's size (8 bytes) and `MAGIC` again. ``TRAINMON_CACHE=off`` (or
``--no-cache``) turns the cache off; ``TRAINMON_CACHE_MB`` bounds each folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from trainmon.tails.own_files import own_folder

MAGIC: Final = b"trainmon-cached-2\n"
_DEFAULT_MB: Final = 1024
_LARGEST_SHARE: Final = 0.5  # of the room, for one entry
_MAX_INDEX_BYTES: Final = 64 << 20
_STALE_S: Final = 86400.0
_OFF: Final = {"off", "0", "no", "false"}


def is_on() -> bool:
    """Whether the environment allows a cache."""
    return os.environ.get("TRAINMON_CACHE", "").strip().lower() not in _OFF


def folder(kind: str) -> Path:
    """Where the entries of a kind ("parsed") lie."""
    return own_folder("cache") / kind


def most_bytes() -> int:
    """How large one entry may be."""
    return int(_room_bytes() * _LARGEST_SHARE)


def opened(path: Path) -> tuple[BinaryIO, bytes] | None:
    """The entry at `path` and its index; None where there is none that is whole and this user's own."""
    try:
        # A pipe in its place must not be waited for.
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError:
        return None
    index = None
    with contextlib.suppress(OSError):
        index = _index(file)
    if index is None:
        file.close()
        return None
    return file, index


def _index(file: BinaryIO) -> bytes | None:
    found = os.fstat(file.fileno())
    is_own = found.st_uid == os.geteuid() and stat.S_ISREG(found.st_mode) and not found.st_mode & 0o022
    end = found.st_size - len(MAGIC) - 8
    if not is_own or end < len(MAGIC):
        return None
    tail = os.pread(file.fileno(), len(MAGIC) + 8, end)
    size = int.from_bytes(tail[:8], "little")
    if tail[8:] != MAGIC or not 0 < size <= min(end, _MAX_INDEX_BYTES):
        return None
    return os.pread(file.fileno(), size, end - size)


class Draft:
    """An entry that is being written; nobody sees it before `keep`. Raises OSError where there is no private folder."""

    def __init__(self, kind: str) -> None:
        import tempfile  # for those who write

        descriptor, self._temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=_own_folder(kind))
        self.file: BinaryIO = os.fdopen(descriptor, "wb")
        self.file.write(MAGIC)

    def keep(self, name: str, index: bytes, now: float) -> None:
        """Ends the entry, and puts it in the place of the one that was called `name`. `now`: wall-clock seconds."""
        self.file.write(index + len(index).to_bytes(8, "little") + MAGIC)
        self.file.close()
        place = Path(self._temporary)
        place.replace(place.parent / name)
        self._temporary = ""
        _make_room(place.parent, Path(name).suffix, now)

    def drop(self) -> None:
        """What was written is of no use."""
        with contextlib.suppress(OSError):
            self.file.close()  # writes what it holds back, which fails again on a disk that is full or in trouble
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
