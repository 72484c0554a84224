"""The older parts of a log that was rotated: log.1, log.2.gz, log-20260131.gz, log.2026-01-31; found, and read once.

A number without a log of number 0 beside it counts rotations (the higher, the older); with one it numbers ranks. Files
of formats that no rotation makes (event files, documents, tables of columns) have no parts.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from trainmon.tails.content import HEAD_BYTES, RECENT_S, TAIL_BYTES, Print, read_at
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.opening import close, open_regular
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.unpack import UnpackError, packing_of, unpacker

MAX_PARTS = 100
MAX_UNPACKED_BYTES = 16 << 30  # of one packed part: what is more is no log but a bomb
_NUMBERED = lazy(r"\.(\d{1,4})(\.gz)?")
_DATED = lazy(r"[.-](\d{4}-?\d\d-?\d\d(?:[-_T.]?\d\d(?:[-_:]?\d\d){0,2})?|\d{10})(?:\.(\d{1,4}))?(\.gz)?")
_NEVER = (".wandb", ".parquet", ".json", ".npz", ".pb", ".gz")
_PACKED_PIECE_BYTES = 64 << 10
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """One older part; `age` sorts the oldest first."""

    path: str
    age: tuple[int, str, int]
    is_packed: bool


def older_parts(path: str | Path, wall: float) -> list[Part]:
    """The rotated parts of the log at `path` as they lie there now, the oldest first. Raises OSError.

    `wall`: seconds since the epoch, now: a listing of a directory that has just changed is not used again.
    """
    directory, base = os.path.split(os.fspath(path))
    if not may_have_parts(base):
        return []
    status = os.stat(directory or ".")
    seen = (status.st_ino, status.st_mtime_ns) if wall - status.st_mtime > RECENT_S else None
    names = _listing(directory or ".") if seen is None else _known_listing(directory or ".", seen)
    return parts_among(directory, base, names)


def may_have_parts(base: str) -> bool:
    """Whether a file of the name `base` is of a kind that is rotated."""
    return bool(base) and "tfevents" not in base and not base.lower().endswith(_NEVER)


def parts_among(directory: str, base: str, names: Sequence[str]) -> list[Part]:
    """The parts of the log `base` among the sorted `names` of its directory, the oldest first."""
    parts: dict[tuple[int, str, int], Part] = {}
    for place in range(bisect_left(names, base), len(names)):
        name = names[place]
        if not name.startswith(base):
            break
        if name == f"{base}.0":
            return []
        part = _part(directory, base, name)
        # While log.1 is packed, log.1.gz grows beside it: the plain one is whole.
        if part is not None and not (part.is_packed and part.age in parts):
            parts[part.age] = part
    return sorted(parts.values(), key=lambda part: part.age)[-MAX_PARTS:]


def _part(directory: str, base: str, name: str) -> Part | None:
    rest = name[len(base) :]
    where = os.path.join(directory, name)
    if match := _NUMBERED.fullmatch(rest):
        number, packed = match.groups()
        return Part(where, (1, "", -int(number)), packed is not None) if int(number) else None
    if match := _DATED.fullmatch(rest):
        date, number, packed = match.groups()
        return Part(where, (0, re.sub(r"\D", "", date), int(number or 0)), packed is not None)
    return None


@lru_cache(maxsize=8)  # many logs of one directory ask in turn
def _known_listing(directory: str, seen: tuple[int, int]) -> tuple[str, ...]:
    """`_listing`; `seen`, the directory's inode and time of change, tells it from an older one."""
    del seen
    return _listing(directory)


def _listing(directory: str) -> tuple[str, ...]:
    return tuple(sorted(os.listdir(directory)))


class PartReader:
    """Reads one part from its start, packed or not. Raises OSError; a damaged part ends early and says so.

    `offset`: how much was given, unpacked; `size`: how much it holds, unpacked, as far as that is known.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self._packing = packing_of(part.path)
        self._fd, status = open_regular(part.path)
        self.identity = (status.st_dev, status.st_ino)
        self.size = self._disk_bytes = status.st_size
        self.rewind()
        if self._packing == "gz" and part.is_packed:
            last = read_at(self._fd, max(status.st_size - 4, 0), 4)
            self.size = int.from_bytes(last, "little")  # of the last member, modulo 4 GiB: a guess for the progress

    @property
    def print(self) -> Print:
        """What tells what was read so far."""
        return Print(self._head, self._tail, self.offset)

    def key(self) -> tuple[object, ...]:
        """Tells this file from all others, a hash of its first bytes from one that has its inode later."""
        import hashlib  # for logs that have parts

        try:
            first = read_at(self._fd, 0, HEAD_BYTES)
        except OSError:
            first = b""
        return (*self.identity, self._disk_bytes, hashlib.blake2b(first, digest_size=16).digest())

    def rewind(self) -> None:
        """Begins at the start again."""
        self.problem = ""
        self.offset = 0
        self._packed_offset = 0
        self._unpacker = unpacker(self._packing)
        self._packed = b""
        self._is_ended = False
        self._head = self._tail = b""

    def read(self, budget: int) -> bytes:
        """The next bytes, at most `budget`; empty at the end."""
        data = self._unpacked(budget) if self.part.is_packed else os.pread(self._fd, budget, self.offset)
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        self.offset += len(data)
        self.size = max(self.size, self.offset)
        return data

    def skip_to(self, known: Print) -> bool:
        """Whether this part begins with what `known` tells; if so, reading goes on behind that."""
        if not self.part.is_packed:
            if self.size < known.offset or not known.is_of(self._fd):
                return False
            self.offset, self._head, self._tail = known.offset, known.head, known.tail
            return True
        while self.offset < known.offset:
            if not self.read(min(_READ_BYTES, known.offset - self.offset)):
                return False
            if self.offset >= len(known.head) and self._head[: len(known.head)] != known.head:
                return False
        return self._head.startswith(known.head) and self._tail.endswith(known.tail)

    def close(self) -> None:
        """Gives the descriptor back."""
        if self._fd >= 0:
            close(self._fd)
            self._fd = -1

    def blocks(self, offset: int) -> Iterator[bytes]:
        """All that follows `offset`, in blocks."""
        if self.part.is_packed:
            while self.offset < offset and self.read(min(_READ_BYTES, offset - self.offset)):
                pass
        else:
            self.offset = offset
        while data := self.read(_READ_BYTES):
            yield data

    def _unpacked(self, budget: int) -> bytes:
        while not self._is_ended:
            if not self._packed and not self._unpacker.holds:
                self._packed = os.pread(self._fd, _PACKED_PIECE_BYTES, self._packed_offset)
                self._packed_offset += len(self._packed)
                if not self._packed:
                    return self._end("" if self._unpacker.is_ended else "ends in the midst of its packed data")
            if self._unpacker.is_ended:
                self._packed = self._packed.lstrip(b"\0")  # padding between members
                if not self._packed:
                    continue
                self._unpacker = unpacker(self._packing)
            try:
                data, self._packed = self._unpacker.take(self._packed, budget)
            except UnpackError:
                return self._end("its packed data are damaged")
            if self.offset + len(data) > MAX_UNPACKED_BYTES:
                return self._end(f"unpacks to over {MAX_UNPACKED_BYTES >> 30} GiB")
            if data:
                return data
        return b""

    def _end(self, problem: str) -> bytes:
        self._is_ended = True
        self.problem = problem
        return b""
