"""What packets say, as typed values. The far side is not trusted: what is not of the expected form is a BadAnswer."""

from __future__ import annotations

import errno
import re
import zlib

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.frame import BadAnswer

MAX_CHUNK_BYTES = 1 << 20
_NUMBER = re.compile(rb"[0-9]{1,20}")
_HEX = re.compile(rb"[0-9a-f]{1,8}")
_MAX_SIZE = 1 << 62


@dataclass(frozen=True, slots=True)
class Status:
    """What stat says of a file; `mode` None where it was not told."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    mode: int | None = None

    @property
    def identity(self) -> tuple[int, int]:
        """What stays the same as long as it is the same file."""
        return self.dev, self.ino

    @property
    def mtime(self) -> float:
        """Seconds since the epoch, by the clock of that file system."""
        return self.mtime_ns / 1e9


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory, and what it leads to."""

    name: bytes
    is_link: bool
    status: Status


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file; `error` is an errno and 0 when it was read."""

    error: int
    status: Status | None = None
    data: bytes = b""


def number(word: bytes) -> int:
    """A number of at most 20 digits."""
    if not _NUMBER.fullmatch(word):
        raise BadAnswer("it sent something that is no number where one belongs")
    return int(word)


def status_of(words: list[bytes]) -> Status:
    """Four numbers, or five with the mode in hexadecimal."""
    if len(words) not in (4, 5) or (len(words) == 5 and not _HEX.fullmatch(words[4])):
        raise BadAnswer("it sent a file status that is none")
    dev, ino, size = map(number, words[:3])
    mtime_ns = _nanoseconds(words[3])
    if size > _MAX_SIZE:
        raise BadAnswer(f"it told of a file of {size} bytes")
    return Status(dev, ino, size, mtime_ns, int(words[4], 16) if len(words) == 5 else None)


def _nanoseconds(word: bytes) -> int:
    """Nanoseconds, as such or as seconds with nine decimals."""
    seconds, dot, rest = word.partition(b".")
    if dot and len(rest) != 9:
        raise BadAnswer("it sent a time that is none")
    return number(seconds + rest)


def stat_or_errno(payload: bytes) -> Status | int:
    """The payload of S."""
    words = payload.split(b" ")
    return number(words[0]) if len(words) == 1 else status_of(words)


def data_of(payload: bytes) -> tuple[int, Status, int, bytes]:
    """The payload of D: turn, status, offset and the bytes that are there."""
    line, _, body = payload.partition(b"\n")
    words = line.split(b" ")
    if len(words) != 8:
        raise BadAnswer("it sent data without saying of what")
    offset, length = number(words[5]), number(words[6])
    if length > MAX_CHUNK_BYTES or offset > _MAX_SIZE:
        raise BadAnswer("it sent more at once than it may")
    if words[7] == b"z":
        body = _unpacked(body, length)
    if len(body) != length:
        raise BadAnswer("it sent another number of bytes than it said")
    return number(words[0]), status_of(words[1:5]), offset, body


def _unpacked(body: bytes, length: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(body, length + 1)
    except zlib.error as error:
        raise BadAnswer("it sent compressed data that cannot be read") from error


def difference_of(payload: bytes) -> tuple[int, Status, bytes]:
    """The payload of X: turn, status and the first bytes of what is there now."""
    line, _, body = payload.partition(b"\n")
    words = line.split(b" ")
    return number(words[0]), status_of(words[1:5]), body


def piece_of(payload: bytes) -> Piece:
    """The payload of K."""
    line, separator, body = payload.partition(b"\n")
    if not separator:
        return Piece(number(line) or 5)
    return Piece(0, status_of(line.split(b" ")), body)


def settled(before: Piece, after: bytes) -> Piece:
    """A part with its padding taken off: what the file still held when it had been read, if it is the same file."""
    if not re.fullmatch(rb"[0-9a-f. ]+", after):
        return Piece(errno.ENOENT)
    words = after.split(b" ")
    if len(words) == 1:  # why it could not be read to its end
        return Piece(number(words[0]) or errno.EIO)
    status = status_of(words)
    assert before.status is not None
    if status.identity != before.status.identity or status.size < before.status.size:
        return Piece(errno.EAGAIN)
    return before


def entries_of(payload: bytes) -> list[Entry]:
    """The payload of L. One whose parts do not fit together (the directory changed meanwhile) gives nothing."""
    links, _, rest = payload.partition(b"\n")
    stats, _, names = rest.partition(b"\n\n")
    lines, parts = stats.split(b"\n"), names.split(b"/")
    if not len(links) == len(lines) == len(parts):
        return []
    entries = []
    for link, line, name in zip(links, lines, parts, strict=True):
        words = line.split(b" ")
        if name in (b"", b".", b"..") or b"\0" in name or len(words) != 5:
            raise BadAnswer("it sent a directory entry that is none")
        entries.append(Entry(name, link == ord("1"), status_of([*words[1:], words[0]])))
    return entries


def end_of_listing(payload: bytes) -> tuple[int, tuple[int, int]]:
    """The payload of M: an errno (0: all is well), and the directory's identity."""
    words = payload.split(b" ")
    if len(words) != 3:
        raise BadAnswer("it ended a directory without saying how")
    return number(words[0]), (number(words[1]), number(words[2]))


def result_of(payload: bytes) -> tuple[int, bytes, bytes]:
    """The payload of R: exit status, stdout, stderr."""
    line, _, body = payload.partition(b"\n")
    words = line.split(b" ")
    if len(words) != 2:
        raise BadAnswer("it told the end of a program without its status")
    length = number(words[1])
    return number(words[0]), body[:length], body[length:]


def silence_of(payload: bytes) -> tuple[bytes, float]:
    """The payload of Q: a mount, and for how many seconds it has not answered (0: it does again)."""
    seconds, _, mount = payload.partition(b" ")
    return mount[:4096], float(number(seconds))
