"""A host's file systems as discovery walks them: listings and heads of files, many asked for at once."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from typing import TypeVar

from trainmon.tails.looks import HEAD_BYTES, NAMED_UNREAD, Doubt, content_looks_like_log
from trainmon.tails.opening import explain
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.scan import Child, Folder, Found, Scan, is_walked
from trainmon.tails.ssh.answer import Piece, Status
from trainmon.tails.ssh.ask import Ask, AskListing, AskMatches, AskPiece, HostDownError, Listing
from trainmon.tails.ssh.host import Host

ANSWER_S = 60.0
HANGS_S = 8.0  # after so long a file system there that is known to hang is taken for the reason
_SLICE_S = 0.5
_AT_ONCE = 64
_MAX_AHEAD = 4000  # directories asked for before a walk comes to them
_NO_MODE = 0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RemoteChild:
    """A name in a directory there."""

    name: str
    path: str
    is_a_link: bool
    status: Status

    def is_dir(self) -> bool:
        """Whether it leads to a directory."""
        return stat.S_ISDIR(self.status.mode or _NO_MODE)

    def is_file(self) -> bool:
        """Whether it leads to a regular file."""
        return stat.S_ISREG(self.status.mode or _NO_MODE)

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return self.is_a_link

    def inode(self) -> int:
        """Its inode."""
        return self.status.ino


class Heads:
    """What the contents of files said, kept until the file is another one: a search is made every few seconds."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, Doubt, int, int, int], bool] = {}

    def get(self, found: Found, status: Status) -> bool | None:
        """What was found of it before."""
        return self._said.get(_key(found, status))

    def put(self, found: Found, status: Status, says_so: bool) -> None:
        """Keeps it."""
        if len(self._said) > 100_000:
            self._said.clear()
        self._said[_key(found, status)] = says_so


class MountHangsError(HostDownError):
    """A file system there does not answer; the host does."""


class RemotePlaces:
    """The `scan.Places` of one host, for one search. Raises HostDownError when there is no answer."""

    def __init__(self, host: Host, heads: Heads) -> None:
        self.unread: list[str] = []
        self._host = host
        self._heads = heads
        self._clock = host.clock
        self._listings: dict[str, Future[Listing]] = {}
        self._status: dict[str, Status] = {}

    def children(self, path: str) -> tuple[tuple[int, int], list[Child]]:
        """A directory's identity and children; those that a walk will come to are asked for already."""
        asked = self._listings.pop(path) if path in self._listings else self._ask(AskListing(path))
        listing = self._wait(asked)
        if listing.error:
            raise OSError(listing.error, os.strerror(listing.error), path)
        children = [
            RemoteChild(os.fsdecode(entry.name), _joined(path, os.fsdecode(entry.name)), entry.is_link, entry.status)
            for entry in listing.entries
        ]
        children.sort(key=lambda child: child.name)
        for child in children:
            self._status[child.path] = child.status
            if child.is_dir() and is_walked(child.name) and len(self._listings) < _MAX_AHEAD:
                self._listings[child.path] = self._ask(AskListing(child.path))
        return listing.identity, list(children)

    def status(self, path: str) -> Status:
        """What stat says of `path`. Raises OSError."""
        if path not in self._status:
            piece = self._wait(self._ask(AskPiece(path, 0, 0)))
            if piece.error or piece.status is None:
                raise OSError(piece.error, os.strerror(piece.error), path)
            self._status[path] = piece.status
        return self._status[path]

    def is_dir(self, path: str) -> bool:
        """Whether there is a directory."""
        try:
            return stat.S_ISDIR(self.status(path).mode or _NO_MODE)
        except OSError:
            return False

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file."""
        try:
            return stat.S_ISREG(self.status(path).mode or _NO_MODE)
        except OSError:
            return False

    def may_anyone_write(self, path: str) -> bool:
        """Whether everybody may put a file there; also where that cannot be told."""
        try:
            mode = self.status(path).mode
        except OSError:
            return True
        return mode is None or bool(mode & stat.S_IWOTH)

    def identity(self, path: str) -> tuple[int, int]:
        """Device and inode."""
        return self.status(path).identity

    def exists(self, path: str) -> bool:
        """Whether there is something."""
        try:
            self.status(path)
        except OSError:
            return False
        return True

    def mtime(self, path: str) -> float:
        """When it was last written to, by the clock there."""
        return self.status(path).mtime

    def matches(self, pattern: str) -> list[str]:
        """The paths that a pattern matches."""
        return sorted(os.fsdecode(match) for match in self._wait(self._ask(AskMatches(pattern))))

    def why_unread(self, folder: str) -> OSError | None:
        """What keeps the directory from being read, if anything does."""
        error = self._wait(self._ask(AskListing(folder))).error
        return OSError(error, os.strerror(error), folder) if error else None

    def shows_training(self, found: list[Found]) -> list[Found]:
        """Those whose content shows what their names promise; read side by side."""
        kept = []
        for start in range(0, len(found), _AT_ONCE):
            batch = [(each, self._known(each)) for each in found[start : start + _AT_ONCE]]
            heads = {each.path: self._ask(AskPiece(each.path, 0, HEAD_BYTES)) for each, known in batch if known is None}
            for each, known in batch:
                if known if known is not None else self._looks(each, self._wait(heads[each.path])):
                    kept.append(each)
        return kept

    def _known(self, found: Found) -> bool | None:
        status = self._status.get(found.path)
        return self._heads.get(found, status) if status is not None else None

    def _looks(self, found: Found, head: Piece) -> bool:
        doubt = found.look.doubt
        if head.error or head.status is None:
            is_denied = head.error in (errno.EACCES, errno.EPERM)
            if is_denied and doubt not in NAMED_UNREAD:
                self.unread.append(explain(found.path, OSError(head.error, os.strerror(head.error))))
            return is_denied and doubt in NAMED_UNREAD
        if not stat.S_ISREG(head.status.mode or _NO_MODE):
            return False

        def read(size: int, place: int) -> bytes:
            if place + size <= len(head.data) or place == 0:
                return head.data[place : place + size]
            return self._wait(self._ask(AskPiece(found.path, place, size))).data

        says_so = content_looks_like_log(read, head.status.size, doubt)
        self._heads.put(found, head.status, says_so)
        return says_so

    def _ask(self, question: Ask[T]) -> Future[T]:
        return self._host.ask_for(question)

    def _wait(self, answer: Future[T]) -> T:
        began = self._clock.monotonic()
        while True:
            try:
                return answer.result(_SLICE_S)
            except TooLate as error:
                waited_s = self._clock.monotonic() - began
                if waited_s >= HANGS_S and self._host.hanging:  # all else would have been answered by now
                    raise MountHangsError(self._host.hanging) from error
                if waited_s >= ANSWER_S:
                    name = self._host.address.name
                    words = f"{name}: no answer within {ANSWER_S:.0f} s; is a file system there hanging?"
                    raise HostDownError(self._host.problem or words) from error


class FarJobPlaces:
    """A host's file systems as the files of jobs are looked for (`jobs.JobPlaces`)."""

    def __init__(self, places: RemotePlaces) -> None:
        self._places = places

    def names(self, folder: str) -> list[str]:
        """The names in a directory."""
        try:
            return [child.name for child in self._places.children(folder)[1]]
        except OSError:
            return []

    def mtime(self, path: str) -> float:
        """When a file was last written to."""
        try:
            return self._places.mtime(path)
        except OSError:
            return 0.0

    def scanned(self, folder: str) -> Folder:
        """What lies in and below a directory; what cannot be read there is not what was asked for."""
        return Scan(self._places).walk(folder)


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder != "." else name


def _key(found: Found, status: Status) -> tuple[str, Doubt, int, int, int]:
    # A file that shows numbers goes on to do so; one that does not yet is looked at again as it grows.
    return found.path, found.look.doubt, status.dev, status.ino, min(status.size, HEAD_BYTES)
