"""Questions that are answered once: a directory, a part of a file, what matches a pattern, a scheduler's program."""

from __future__ import annotations

import errno
import stat
from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import Generic, TypeVar

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.answer import (
    Entry,
    Piece,
    end_of_listing,
    entries_of,
    number,
    piece_of,
    result_of,
    settled,
)
from trainmon.tails.ssh.frame import Frame, escaped, word

MAX_ENTRIES = 100_000
MAX_MATCHES = 10_000
PROGRAMS = ("squeue", "scontrol", "sacct", "sinfo")

T = TypeVar("T")


class HostDownError(Exception):
    """There is no answer: the message is one line that says which host, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A directory. `error`: an errno, 0 when it was read; `identity`: device and inode."""

    error: int
    identity: tuple[int, int]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended (124: it took too long, 127: it is not there) and what it printed."""

    status: int
    stdout: bytes
    stderr: bytes


class Ask(ABC, Generic[T]):
    """One question. `answer` is filled by the host's thread."""

    def __init__(self) -> None:
        self.answer: Future[T] = Future()

    @abstractmethod
    def line(self, place: int) -> bytes:
        """What is sent, under the number `place`."""

    @abstractmethod
    def take(self, frame: Frame) -> bool:
        """Takes a packet of its number; True when it was the last."""

    def fail(self, error: Exception) -> None:
        """No answer will come."""
        if not self.answer.done():
            self.answer.set_exception(error)


class AskListing(Ask[Listing]):
    """A directory's entries."""

    def __init__(self, path: str | bytes) -> None:
        super().__init__()
        self._path = word(path)
        self._entries: list[Entry] = []

    def line(self, place: int) -> bytes:
        """What is sent."""
        return b"l %d %s\n" % (place, self._path)

    def take(self, frame: Frame) -> bool:
        """Takes one packet."""
        if frame.kind == "L" and len(self._entries) < MAX_ENTRIES:
            self._entries += entries_of(frame.payload)
        if frame.kind != "M":
            return False
        error, identity = end_of_listing(frame.payload)
        self.answer.set_result(Listing(error, identity, tuple(self._entries)))
        return True


class AskPiece(Ask[Piece]):
    """A part of a file, at most 1 MiB; a negative offset counts from its end."""

    def __init__(self, path: str | bytes, offset: int, length: int, *, is_shell: bool = False) -> None:
        super().__init__()
        self._line = (word(path), offset, length)
        self.length = length
        self.is_shell = is_shell
        self._before: Piece | None = None

    def line(self, place: int) -> bytes:
        """What is sent."""
        return b"k %d %s %d %d\n" % (place, *self._line)

    def take(self, frame: Frame) -> bool:
        """Takes one packet; of the shell's reader two, of which the second says whether the file stayed."""
        if frame.kind == "K":
            piece = piece_of(frame.payload)
            is_whole = piece.error or piece.status is None or not stat.S_ISREG(piece.status.mode or 0)
            if self.is_shell and not is_whole:
                self._before = piece
                return False
            self.answer.set_result(piece)
            return True
        if frame.kind == "k" and self._before is not None:
            self.answer.set_result(settled(self._before, frame.payload))
            return True
        return False


class AskMatches(Ask[tuple[bytes, ...]]):
    """The paths that a pattern matches; ``**`` crosses directories where the reader is Python."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self._pattern = word(pattern)
        self._matches: list[bytes] = []

    def line(self, place: int) -> bytes:
        """What is sent."""
        return b"b %d %s\n" % (place, self._pattern)

    def take(self, frame: Frame) -> bool:
        """Takes one packet."""
        if frame.kind == "B" and len(self._matches) <= MAX_MATCHES and b"\0" not in frame.payload:
            self._matches.append(frame.payload)
        if frame.kind != "b":
            return False
        number(frame.payload)
        self.answer.set_result(tuple(self._matches))
        return True


class AskBeside(AskMatches):
    """The paths that begin with a path: what lies beside a log under its name and something more."""

    def line(self, place: int) -> bytes:
        """What is sent."""
        return b"n %d %s\n" % (place, self._pattern)


class AskProgram(Ask[Ran]):
    """Runs one of `PROGRAMS` with the words given, each passed as it is; no shell reads them.

    Raises ValueError for any other program, or a word with a NUL.
    """

    def __init__(self, words: tuple[str, ...], limit_s: int) -> None:
        super().__init__()
        if not words or words[0] not in PROGRAMS or any("\0" in each for each in words):
            raise ValueError(f"only {', '.join(PROGRAMS)} are run on other hosts")
        self._words = b" ".join(escaped(each.encode("utf-8", "surrogateescape")) or b"\\0000" for each in words)
        self._limit_s = limit_s

    def line(self, place: int) -> bytes:
        """What is sent."""
        return b"x %d %d %s\n" % (place, self._limit_s, self._words)

    def take(self, frame: Frame) -> bool:
        """Takes one packet."""
        if frame.kind != "R":
            return False
        self.answer.set_result(Ran(*result_of(frame.payload)))
        return True


def is_gone(error: int) -> bool:
    """Whether an errno says that nothing is there."""
    return error in (errno.ENOENT, errno.ENOTDIR)
