"""Files that are rewritten whole (trainer_state.json): read again when they change, new records by difference."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy as np

from trainmon.tails.clock import Clock
from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.opening import NotRegular, close, explain, open_regular, show
from trainmon.tails.record import Block, FloatArray, Parsed

MAX_DOCUMENT_BYTES = 1 << 30
_MIN_INTERVAL_S = 0.5
_COST_FACTOR = 10.0  # a document that takes long to read is read again that much less often
_PATIENCE_S = 5.0  # how long a half-written document may stay so before it is called one
_READ_BYTES = 1 << 22


class Difference:
    """Keeps of each reading only what the reading before did not have.

    Block by block, rows are dropped as long as their step and their values are those of the reading before;
    from the first row that differs on, all are passed on (a run resumed from an older checkpoint logs anew).
    """

    def __init__(self) -> None:
        self._known: list[tuple[tuple[str, str], FloatArray]] = []
        self._notes: set[tuple[int, str, str]] = set()
        self._facts: set[tuple[str, str, float | str]] = set()

    def of(self, parsed: Parsed) -> Parsed:
        """The part of `parsed` that is new. `lines` and `unreadable` stay those of the whole reading."""
        known = [((block.step_key, block.run), _prints(block)) for block in parsed.blocks]
        out = Parsed(lines=parsed.lines, unreadable=parsed.unreadable)
        for place, (block, (kind, prints)) in enumerate(zip(parsed.blocks, known, strict=True)):
            start = 0
            if place < len(self._known) and self._known[place][0] == kind:
                start = _common_rows(self._known[place][1], prints)
            if start < len(block):
                out.blocks.append(_rows_from(block, start))
                out.records += len(block) - start
        self._known = known
        for note in parsed.notes:
            if (note_key := (note.line_no, note.kind.value, note.text)) not in self._notes:
                self._notes.add(note_key)
                out.notes.append(note)
        for fact in parsed.facts:
            if (fact_key := (fact.run, fact.key, fact.value)) not in self._facts:
                self._facts.add(fact_key)
                out.facts.append(fact)
        return out


class DocumentReader:
    """Reads the document at `path` again whenever its size, time or identity changed. Never raises OSError."""

    def __init__(self, path: Path, document: DocumentFormat, clock: Clock) -> None:
        self.path = path
        self.problem = ""
        self.size = 0
        self.mtime: float | None = None
        self.records = 0
        self.lines = 0
        self.unreadable = 0
        self._format = document
        self._clock = clock
        self._difference = Difference()
        self._signature: tuple[int, ...] | None = None
        self._not_before = 0.0
        self._broken_since: float | None = None

    def poll(self, *, is_final: bool = False) -> Parsed:
        """What is new in the document; a half-written one gives nothing yet, unless `is_final`."""
        now = self._clock.monotonic()
        if now < self._not_before and not is_final:
            return Parsed()
        try:
            data = self._changed_content(is_final)
        except NotRegular as error:
            self.problem = str(error)
            return Parsed()
        except OSError as error:
            self.problem = explain(self.path, error)
            return Parsed()
        if data is None:
            self._say_broken(now)
            return Parsed()
        parsed = self._format.parse(data)
        self._not_before = now + max(_MIN_INTERVAL_S, _COST_FACTOR * (self._clock.monotonic() - now))
        is_broken = bool(parsed.unreadable) and (not parsed.records or parsed.records < self.records)
        if is_broken and not is_final:
            self._broken_since = now if self._broken_since is None else self._broken_since
            self._say_broken(now)
            return Parsed()
        self._broken_since = now - _PATIENCE_S if is_broken else None
        self._say_broken(now)
        self.records, self.lines, self.unreadable = parsed.records, parsed.lines, parsed.unreadable
        return self._difference.of(parsed)

    def _changed_content(self, is_final: bool) -> bytes | None:
        """The whole file; None when it is the one that was read before."""
        fd, status = open_regular(self.path)
        try:
            self.size, self.mtime = status.st_size, status.st_mtime
            beside, since = self._beside()
            signature = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, *since)
            if signature == self._signature and not (is_final and self._broken_since is not None):
                return None
            self._signature = signature
            if status.st_size > MAX_DOCUMENT_BYTES:
                self.problem = f"{show(self.path)}: a document of over 1 GiB; log lines of JSON (JSONL) instead"
                return None
            data = self._content(fd)
            if not self._format.companion:
                return data
            if self._beside()[1] != since:  # it was written meanwhile: the two may not belong together
                self._signature = None
                return None
            return self._format.joined(data, beside)
        finally:
            close(fd)

    def _beside(self) -> tuple[bytes, tuple[int, ...]]:
        """What the document's companion holds, and its size and time; nothing where there is none."""
        if not self._format.companion:
            return b"", ()
        try:
            fd, status = open_regular(f"{self.path}{self._format.companion}")
        except (NotRegular, OSError):
            return b"", ()
        try:
            self.mtime = max(self.mtime or 0.0, status.st_mtime)
            return _read_whole(fd), (status.st_size, status.st_mtime_ns)
        finally:
            close(fd)

    def _content(self, fd: int) -> bytes:
        """All that the open file holds."""
        return _read_whole(fd)

    def _say_broken(self, now: float) -> None:
        if self.size > MAX_DOCUMENT_BYTES:
            return
        self.problem = self._format.problem
        if self._broken_since is not None and now - self._broken_since >= _PATIENCE_S:
            self.problem = f"{show(self.path)}: not a whole document; half-written, or torn by a crash or a full disk"


def _read_whole(fd: int) -> bytes:
    pieces = []
    offset = 0
    while piece := os.pread(fd, _READ_BYTES, offset):
        pieces.append(piece)
        offset += len(piece)
        if offset > MAX_DOCUMENT_BYTES:
            break
    return b"".join(pieces)


def _prints(block: Block) -> FloatArray:
    """(n, 2): for each row its step and a sum that tells its values. A column that is not logged adds nothing."""
    sums = np.zeros(len(block))
    for key in sorted(block.columns):
        column = block.columns[key]
        sums += np.where(np.isfinite(column), column, 0.0) * _weight(key)
    return np.stack([np.nan_to_num(block.steps, nan=-1.0), sums], axis=1)


def _weight(key: str) -> float:
    """A factor that tells the columns apart, so that values that change places are noticed."""
    return 1.0 + zlib.crc32(key.encode("utf-8", "surrogatepass")) / 2**32


def _common_rows(old: FloatArray, new: FloatArray) -> int:
    rows = min(len(old), len(new))
    differs = np.flatnonzero((old[:rows] != new[:rows]).any(axis=1))
    return int(differs[0]) if len(differs) else rows


def _rows_from(block: Block, start: int) -> Block:
    if start == 0:
        return block
    return Block(
        block.source,
        block.steps[start:],
        block.times[start:],
        block.offsets[start:],
        block.lines[start:],
        {key: column[start:] for key, column in block.columns.items()},
        {key: marks[start:] for key, marks in block.marks.items()},
        block.step_key,
        block.time_kind,
        block.run,
        block.by_metric,
    )
