"""A log with the parts that were rotated away: one stream of bytes, the oldest part first, nothing lost or twice.

`History` gives what `Follower` gives, with offsets that count from the start of the oldest part that was read. When
the path leads to a new file, and what was read of the old one lies in a rotated part now (renamed, copied or packed),
the rest of that part and all parts after it are read before the new file: `FileEvent.ROTATED` in place of a restart.

Parts change their names with every rotation, also while they are read. So the next one is always looked for anew: it
is the one behind the part, told by its content, that was read last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.content import Print, file_blocks
from trainmon.tails.follow import RESTARTS, FileEvent, Follower, FollowUpdate
from trainmon.tails.opening import NotRegular, explain, show
from trainmon.tails.parts import Part, PartReader, older_parts

_TRIES = 3
_MOST_PARTS = 10_000  # far more than anyone keeps of one log


class History:
    """What is in the log at `path` and in its rotated parts, then what is added. Never raises OSError.

    `problem`, `size`, `mtime`, `offset`: as a `Follower`'s, sizes and offsets of all parts together.
    """

    def __init__(self, path: str | Path, clock: Clock, *, must_reopen: bool = False) -> None:
        self._clock = clock
        self._follower = Follower(path, clock, must_reopen=must_reopen)
        self._starts = [0]  # where each part that was read begins; at last, the one that is being read
        self._part: PartReader | None = None  # that is being read; None: the present file is
        self._last: tuple[tuple[int, int], Print] | None = None  # identity and content of the part before
        self._read: dict[tuple[object, ...], None] = {}  # keys of the parts that were read, the newest of them
        self._stash: FollowUpdate | None = None  # of the present file, told once the parts before it are read
        self._is_begun = False
        self._is_rotated = False
        self._problem = ""
        self._left = 0  # bytes in parts that were not yet read, about

    @property
    def path(self) -> str | Path:
        """Where the log is."""
        return self._follower.path

    @path.setter
    def path(self, path: str | Path) -> None:
        self._follower.path = path

    @property
    def problem(self) -> str:
        """One line on what is wrong; "" when nothing is."""
        return self._follower.problem or self._problem

    @property
    def offset(self) -> int:
        """How much was read."""
        return self._starts[-1] + (self._part.offset if self._part is not None else self._follower.offset)

    @property
    def size(self) -> int:
        """How much there is, as far as is known."""
        part = self._part.size if self._part is not None else 0
        return max(self._starts[-1] + part + self._left + self._follower.size, self.offset)

    @property
    def mtime(self) -> float | None:
        """When the present file was last written to, by its time stamp."""
        return self._follower.mtime

    @property
    def is_open(self) -> bool:
        """Whether a descriptor is held between polls."""
        return self._follower.is_open or self._part is not None

    def release(self) -> None:
        """Gives the descriptor of the present file back until it changes."""
        self._follower.release()

    def unread(self, count: int) -> None:
        """Takes the last `count` bytes as not read: they will be given again. Only at the end of the present file."""
        self._follower.unread(count)

    def poll(self, budget_bytes: int) -> FollowUpdate:
        """What is new since the last poll, at most `budget_bytes` of it."""
        if not self._is_begun:
            self._begin()
        while self._part is not None:
            offset = self.offset
            if data := self._read_part(budget_bytes):
                return FollowUpdate(data, offset, self._rotation(), more=True)
        if self._stash is None:
            self._stash = self._follow(budget_bytes)
            if self._part is not None:
                return FollowUpdate(b"", self.offset, self._rotation(), more=True)
        update, self._stash = self._stash, None
        return replace(update, offset=self._starts[-1] + update.offset, events=(*self._rotation(), *update.events))

    def blocks(self, offset: int) -> Iterator[bytes]:
        """The bytes from `offset` on, read from wherever they lie now; none where that part was deleted."""
        place = max(number for number, start in enumerate(self._starts) if start <= offset)
        offset -= self._starts[place]
        behind = len(self._starts) - 1 - place  # parts from the wanted one to the present file
        parts = [part for part in self._parts() if not _is_empty(part)] if behind else []
        if len(parts) < behind:
            return
        for part in parts[len(parts) - behind :]:
            try:
                with closing(PartReader(part)) as reader:
                    yield from reader.blocks(offset)
            except (OSError, NotRegular):
                return
            offset = 0
        yield from file_blocks(self.path, offset)

    # -- the present file ----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._is_begun = True
        parts = self._parts()
        self._left = sum(map(_size_about, parts))
        self._part = self._next_part()

    def _follow(self, budget: int) -> FollowUpdate:
        """Polls the present file; finds out whether parts must be read before what that gives."""
        is_first = self._follower.identity is None
        update = self._follower.poll(budget)
        if is_first and self._follower.identity is not None:
            self._part = self._next_part()  # the log was rotated after its parts were listed, before it was opened
        elif RESTARTS & set(update.events):
            before = self._follower.before
            self._part = self._part_of(before) if before is not None and before.head else None
            if self._part is None:
                self._starts = [0]
                self._last = None
            else:
                self._is_rotated = True
                update = replace(update, events=tuple(event for event in update.events if event not in RESTARTS))
        return update

    def _rotation(self) -> tuple[FileEvent, ...]:
        is_rotated, self._is_rotated = self._is_rotated, False
        return (FileEvent.ROTATED,) if is_rotated else ()

    # -- parts ---------------------------------------------------------------------------------------------------

    def _read_part(self, budget: int) -> bytes:
        """The next bytes of the part that is being read; when it has no more, the next part is."""
        assert self._part is not None
        try:
            data = self._part.read(budget)
        except OSError as error:
            data = self._read_again(error, budget)
        if not data:
            self._end_part()
        return data

    def _read_again(self, error: OSError, budget: int) -> bytes:
        """A read that failed is tried from the start of the part, by a new handle."""
        assert self._part is not None
        known, part = self._part.print, self._part.part
        for _ in range(_TRIES):
            try:
                again = PartReader(part)
                if again.skip_to(known):
                    data = again.read(budget)
                    self._part.close()
                    self._part = again
                    return data
                again.close()
            except NotRegular:
                break
            except OSError as failure:
                error = failure
        self._problem = explain(part.path, error)
        return b""

    def _end_part(self) -> None:
        part, self._part = self._part, None
        assert part is not None
        if part.problem:
            self._problem = f"{show(part.part.path)}: {part.problem}; read up to there"
        self._starts.append(self._starts[-1] + part.offset)
        self._last = (part.identity, part.print)
        self._read[part.key()] = None
        while len(self._read) > _MOST_PARTS:
            del self._read[next(iter(self._read))]
        self._left = max(self._left - _size_about(part.part), 0)
        part.close()
        self._part = self._next_part()

    def _next_part(self) -> PartReader | None:
        """The part behind the one that was read last (the oldest, when none was), opened; None: the present file."""
        parts = [part for part in self._parts() if not _is_empty(part)]
        place = -1 if self._last is None else self._place_of_last(parts)
        for part in parts[place + 1 :]:
            try:
                reader = PartReader(part)
            except OSError as error:
                self._problem = explain(part.path, error)
                continue
            except NotRegular as error:
                self._problem = str(error)
                continue
            if self._is_present(reader):
                reader.close()
                return None
            if reader.key() not in self._read:
                return reader
            reader.close()
        return None

    def _is_present(self, reader: PartReader) -> bool:
        """Whether this part is the file that the follower still reads, by another name now, or packed meanwhile."""
        if self._follower.identity is None or self._leads_to() == self._follower.identity:
            return False
        is_same = reader.identity == self._follower.identity
        if not self._follower.offset or not (is_same or reader.part.is_packed):
            return is_same
        try:
            if reader.skip_to(self._follower.print):
                return True
        except OSError:
            return is_same
        reader.rewind()
        return False

    def _leads_to(self) -> tuple[int, int] | None:
        """Device and inode of what lies at the path now."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _place_of_last(self, parts: list[Part]) -> int:
        """Where the part that was read last is in `parts` now; -1 when it was deleted: all others are newer."""
        assert self._last is not None
        identity, known = self._last
        for place, part in enumerate(parts):
            try:
                with closing(PartReader(part)) as reader:
                    if (reader.identity == identity or part.is_packed) and reader.skip_to(known):
                        return place
            except (OSError, NotRegular):
                continue
        return -1

    def _part_of(self, before: Print) -> PartReader | None:
        """The part that holds what was read of the present file's predecessor, to be read on from there."""
        for part in reversed(self._parts()):
            try:
                reader = PartReader(part)
            except (OSError, NotRegular):
                continue
            try:
                if reader.skip_to(before):
                    return reader
            except OSError:
                pass
            reader.close()
        return None

    def _parts(self) -> list[Part]:
        try:
            return older_parts(self.path, self._clock.wall())
        except OSError:
            return []


def _is_empty(part: Part) -> bool:
    return _size_about(part) == 0


def _size_about(part: Part) -> int:
    """Unpacked bytes in `part`; a guess for a packed one."""
    try:
        return os.stat(part.path).st_size * (8 if part.is_packed else 1)
    except OSError:
        return 0
