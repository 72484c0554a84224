"""What was read of a large log, kept for the next time: columns, notes and facts, as they came out of its format.

An entry belongs to one state of one file: its real path, device and inode, size, time stamp and samples of its bytes,
and to the code that read it. A log that has grown since is read again. Where entries lie: `tails.cache_folder`.
Anything odd about an entry means that there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from trainmon.tails import cache_folder
from trainmon.tails.cache_folder import Draft, is_on
from trainmon.tails.formats import registry
from trainmon.tails.packing import Described, pack, unpack
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.reader import IntakeItem
from trainmon.tails.record import Block, Fact, Note, Parsed, TimeKind
from trainmon.tails.status import FileStatus, LogLine
from trainmon.tails.tail import TailUpdate

_SAMPLES: Final = 64
_SAMPLE_BYTES: Final = 4 << 10
_END_BYTES: Final = 64 << 10
_ITEM_RECORDS: Final = 1 << 16
_KIND: Final = "parsed"
_SUFFIX: Final = ".parsed"


class _Rows(msgspec.Struct, array_like=True):
    """One block: its arrays as `packing` describes them."""

    steps: Described
    times: Described
    offsets: Described
    lines: Described
    columns: dict[str, Described]
    marks: dict[str, Described]
    step_key: str
    time_kind: TimeKind
    run: str
    by_metric: bool


class _Item(msgspec.Struct, array_like=True):
    """One item of the intake; its arrays lie `size` bytes long at `offset`."""

    offset: int
    size: int
    blocks: list[_Rows]
    notes: list[Note]
    facts: list[Fact]
    lines: int
    records: int
    unreadable: int
    status: FileStatus


class _Index(msgspec.Struct, array_like=True):
    """The end of an entry."""

    identity: str
    items: list[_Item]
    tail: list[LogLine]


@dataclass(frozen=True, slots=True)
class Identity:
    """One state of one file. `name`: of its entry, the same for all states; `state`: what tells them apart."""

    name: str
    state: str
    mtime: float

    @classmethod
    def of(cls, path: Path) -> Identity | None:
        """The state of the plain file at `path` now; None when there is none, or it cannot be read."""
        try:
            with open(os.path.realpath(path), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    return None
                content = _samples(file, found.st_size)
        except OSError:
            return None
        place = os.fsencode(os.path.realpath(path))
        state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, content, _code())
        return cls(hashlib.blake2b(place, digest_size=16).hexdigest(), repr((place, state)), found.st_mtime)


def folder() -> Path:
    """Where the entries lie."""
    return cache_folder.folder(_KIND)


def clear() -> int:
    """Removes every entry; how many there were."""
    return cache_folder.clear(_KIND, _SUFFIX)


def through(
    path: Path, run_name: str, role: str, wall: Callable[[], float], read: Callable[[], Iterator[IntakeItem]]
) -> Iterator[IntakeItem]:
    """The items of the file at `path`: from the cache where it has them, else as `read` gives them, kept for later."""
    identity = Identity.of(path) if is_on() else None
    if identity is None:
        yield from read()
        return
    found = _find(identity)
    if found is not None:
        file, index = found
        with file:
            like = IntakeItem(run_name, str(path), TailUpdate(Parsed()), _NO_STATUS, role)
            yield from _items(file, index, like, wall() - identity.mtime)
        return
    recorder = _Recorder(identity, wall)
    try:
        for item in read():
            recorder.add(item)
            yield item
        if Identity.of(path) == identity:
            recorder.keep()
    finally:
        recorder.drop()


_NO_STATUS = FileStatus("", "", 0, 0, 0, 0, 0)


def _samples(file: BinaryIO, size: int) -> str:
    """A hash of the file's beginning, end and stretches between."""
    digest = hashlib.blake2b(digest_size=16)
    places = [(0, _END_BYTES), (max(size - _END_BYTES, 0), _END_BYTES)]
    places += [(size * part // _SAMPLES, _SAMPLE_BYTES) for part in range(1, _SAMPLES)]
    for offset, count in places:
        digest.update(os.pread(file.fileno(), count, offset))
    return digest.hexdigest()


@cache
def _code() -> str:
    """What reads logs: the modules of `tails` as they lie on the disk, formats of other packages."""
    here = Path(__file__).parent
    modules = sorted(
        (entry.path, entry.stat().st_size, entry.stat().st_mtime_ns)
        for place in (here, here / "formats")
        for entry in os.scandir(place)
        if entry.name.endswith(".py")
    )
    told = repr((modules, sorted(registry.added().items())))
    return hashlib.blake2b(told.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


# -- reading -----------------------------------------------------------------------------------------------------


def _find(identity: Identity) -> tuple[BinaryIO, _Index] | None:
    def wanted(told: bytes) -> _Index | None:
        index = msgspec.msgpack.decode(told, type=_Index)
        return index if index.identity == identity.state else None

    try:
        found = cache_folder.opened(folder() / (identity.name + _SUFFIX), wanted)
    except msgspec.MsgspecError:  # no ValueErrors before msgspec 0.21
        return None
    if found is not None:
        with contextlib.suppress(OSError):  # a folder that cannot be written
            os.utime(found[0].fileno())
    return found


def _items(file: BinaryIO, index: _Index, like: IntakeItem, age_s: float) -> Iterator[IntakeItem]:
    for number, item in enumerate(index.items):
        is_last = number == len(index.items) - 1
        data = os.pread(file.fileno(), item.size, item.offset)
        parsed = Parsed(
            [_block(rows, like.path, data) for rows in item.blocks],
            [replace(note, source=like.path) for note in item.notes],
            [replace(fact, source=like.path) for fact in item.facts],
            item.lines,
            item.records,
            item.unreadable,
        )
        lines = tuple(replace(line, path=like.path) for line in index.tail) if is_last else ()
        status = replace(item.status, path=like.path, newest_age_s=max(age_s, 0.0))
        update = TailUpdate(parsed, more=not is_last, lines=lines)
        yield replace(like, update=update, status=status, is_ended=is_last)


def _block(rows: _Rows, source: str, data: bytes) -> Block:
    return Block(
        source,
        unpack(rows.steps, data),
        unpack(rows.times, data),
        unpack(rows.offsets, data),
        unpack(rows.lines, data),
        {key: unpack(told, data) for key, told in rows.columns.items()},
        {key: unpack(told, data) for key, told in rows.marks.items()},
        rows.step_key,
        rows.time_kind,
        rows.run,
        rows.by_metric,
    )


# -- writing -----------------------------------------------------------------------------------------------------


class _Recorder:
    """Writes an entry beside the reading; anything that goes wrong means that there will be none."""

    def __init__(self, identity: Identity, wall: Callable[[], float]) -> None:
        self._identity = identity
        self._wall = wall
        self._items: list[_Item] = []
        self._tail: tuple[LogLine, ...] = ()
        self._gathered = Parsed()
        self._status: FileStatus | None = None
        self._draft: Draft | None = None
        with contextlib.suppress(OSError):
            self._draft = Draft(_KIND)

    def add(self, item: IntakeItem) -> None:
        """Keeps what one item said."""
        if self._draft is None:
            return
        if item.update.restarted or item.config is not None or item.status.problem:
            self.drop()  # a file that changes while it is read
            return
        self._gathered.add(item.update.parsed)
        self._status = item.status
        self._tail = item.update.lines
        if self._gathered.records >= _ITEM_RECORDS or item.is_ended:
            self._write()

    def keep(self) -> None:
        """All was read: the entry takes the place of the one before."""
        if self._draft is None or self._gathered.lines or not self._items:
            return
        index = _Index(self._identity.state, self._items, list(self._tail))
        try:
            self._draft.keep(self._identity.name + _SUFFIX, msgspec.msgpack.encode(index), self._wall())
            self._draft = None
        except (OSError, ValueError, msgspec.MsgspecError):
            self.drop()

    def drop(self) -> None:
        """What was written is of no use."""
        if self._draft is not None:
            self._draft.drop()
        self._draft = None

    def _write(self) -> None:
        assert self._draft is not None
        assert self._status is not None
        parsed, self._gathered = self._gathered, Parsed()
        out = bytearray()
        try:
            blocks = [_rows(block, out) for block in parsed.blocks]
            offset = self._draft.size
            if offset + len(out) > cache_folder.most_bytes():
                self.drop()
                return
            self._draft.write(out)
        except (OSError, ValueError):
            self.drop()
            return
        counts = (parsed.lines, parsed.records, parsed.unreadable)
        self._items.append(_Item(offset, len(out), blocks, parsed.notes, parsed.facts, *counts, self._status))


def _rows(block: Block, out: bytearray) -> _Rows:
    return _Rows(
        pack(block.steps, out),
        pack(block.times, out),
        pack(block.offsets, out),
        pack(block.lines, out),
        {key: pack(column, out) for key, column in block.columns.items()},
        {key: pack(marks, out) for key, marks in block.marks.items()},
        block.step_key,
        block.time_kind,
        block.run,
        block.by_metric,
    )
