"""The log book of a run: remarks of people, kept in the user's own data folder, never beside the log.

One file of JSON lines, each with its checksum, for each log file that a remark was made on; only ever appended to.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from trainmon import version
from trainmon.tails.own_files import own_folder, read_private
from trainmon.tails.sealed import DamagedError, require_whole, sealed

SCHEMA = "trainmon.note/1"
LONGEST = 2000
_MOST_BYTES = 4_000_000


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. `time` in UTC seconds, `step` the run's newest when it was written (None: no step known)."""

    schema: str = SCHEMA
    path: str
    time: float
    text: str
    step: float | None = None
    by: str = ""


def entry(remark: Remark) -> dict[str, object]:
    """A remark as documents have it."""
    return {"time": remark.time, "step": remark.step, "text": remark.text, "by": remark.by}


def document(run: str, remarks: Sequence[Remark], problems: Sequence[str]) -> dict[str, object]:
    """``trainmon.notes/1``: remarks on `run`, those in the book or the one that was written."""
    notes = [entry(remark) for remark in remarks]
    return {
        "schema": "trainmon.notes/1",
        "version": version(),
        "run": run,
        "notes": notes,
        "problems": list(problems),
    }


class Logbook:
    """The remarks of this user in `folder` (the XDG data folder's ``logbook``)."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            folder = own_folder("data") / "logbook"
        self.folder = folder

    def add(self, remark: Remark) -> None:
        """Appends `remark` to the book of the log file that it names. Raises OSError, ValueError."""
        if not remark.text.strip():
            raise ValueError("an empty note says nothing")
        if len(remark.text) > LONGEST:
            raise ValueError(f"a note of {len(remark.text)} characters is too long; at most {LONGEST}")
        path = self._file(remark.path)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size > _MOST_BYTES:
                raise ValueError(f"{path} is full; move it away to begin a new book")
            # A line that a crash cut short must not swallow this one.
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            line = (b"\n" if torn else b"") + sealed(msgspec.json.encode(remark))
            while line:  # a disk that is almost full takes a part, and fails with the next
                line = line[os.write(descriptor, line) :]
        finally:
            os.close(descriptor)

    def read(self, paths: Iterable[str]) -> tuple[tuple[Remark, ...], tuple[str, ...]]:
        """The remarks on any of the log files `paths`, oldest first, and a line for each book that cannot be read."""
        remarks: list[Remark] = []
        problems: list[str] = []
        for path in dict.fromkeys(_key(path) for path in paths):
            book = self._file(path)
            try:
                raw = read_private(book, 2 * _MOST_BYTES)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                problems.append(f"{book}: {words}; its notes are not shown")
                continue
            found, damaged = _decoded(raw.splitlines())
            remarks += found
            if damaged:
                problems.append(f"{book}: {damaged} damaged lines skipped")
        return tuple(sorted(remarks, key=lambda remark: remark.time)), tuple(problems)

    def _file(self, path: str) -> Path:
        import hashlib  # for runs that have a log book

        return self.folder / f"{hashlib.sha256(os.fsencode(_key(path))).hexdigest()[:20]}.jsonl"


def _key(path: str) -> str:
    return os.path.realpath(path)


def _decoded(lines: Sequence[bytes]) -> tuple[list[Remark], int]:
    remarks, damaged = [], 0
    for line in lines:
        try:
            require_whole(line + b"\n")
            remark = msgspec.json.decode(line, type=Remark)
        except (msgspec.MsgspecError, UnicodeDecodeError, DamagedError):
            damaged += 1
            continue
        if remark.schema == SCHEMA:
            remarks.append(remark)
    return remarks, damaged
