"""A log, a document and a settings file on another host, with the interfaces of their local kin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.config_file import ConfigFile
from trainmon.tails.document import MAX_DOCUMENT_BYTES, DocumentReader
from trainmon.tails.formats import registry
from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.ingest import Detect
from trainmon.tails.opening import explain
from trainmon.tails.ssh.address import RemotePath
from trainmon.tails.ssh.answer import Status
from trainmon.tails.ssh.follower import RemoteFollower
from trainmon.tails.ssh.host import Host
from trainmon.tails.ssh.hosts import hosts
from trainmon.tails.ssh.part import ask_piece
from trainmon.tails.tail import Tail

BY_SSH = "ssh"
PATIENCE_S = 60.0
_PIECE_BYTES = 1 << 20
_MAX_CONFIG_BYTES = 1 << 20
_TRIES = 3


class RemoteTail(Tail):
    """Reads the log `remote`. `wake` and `patience_s` as for `RemoteFollower`."""

    def __init__(
        self,
        remote: RemotePath,
        host: Host,
        *,
        clock: Clock,
        detect: Detect = registry.detect,
        wake: Callable[[], None] | None = None,
        patience_s: float = 0.0,
    ) -> None:
        self._remote = remote
        self._host = host
        self._wake = wake
        self._patience_s = patience_s
        self._own = RemoteFollower(remote, host, clock, wake=wake, patience_s=patience_s)
        super().__init__(remote.name, clock=clock, detect=detect, follower=self._own)
        self.watched_by = BY_SSH

    @property
    def has_news(self) -> bool:
        """Whether a poll would give something."""
        return self._own.has_news

    @property
    def is_known(self) -> bool:
        """Whether there is anything to say of it: the host answered, or cannot be reached."""
        return self._own.is_known

    @property
    def written_at(self) -> float | None:
        """When it was last seen to be written to, on the monotonic clock; None: not known."""
        return self._own.written_at

    def move_to(self, path: Path) -> None:
        """Reads on in a newer state of the same document."""
        self._remote = self._remote.named(str(path))
        self.path = path
        self._own.close()
        self._own = RemoteFollower(self._remote, self._host, self._clock, wake=self._wake, patience_s=self._patience_s)
        self._follower = self._own
        if isinstance(self._document, RemoteDocument):
            self._document.remote, self._document.path = self._remote, path

    def wake_as(self, wake: Callable[[], None]) -> None:
        """What to call from the next `move_to` on when there is news."""
        self._wake = wake

    def close(self) -> None:
        """Ends the watch there."""
        self._own.close()

    def _open_document(self, document: DocumentFormat) -> DocumentReader:
        return RemoteDocument(self._remote, self._host, document, self._clock)


class RemoteDocument(DocumentReader):
    """A document that is read whole again when it changed."""

    def __init__(self, remote: RemotePath, host: Host, document: DocumentFormat, clock: Clock) -> None:
        super().__init__(Path(remote.name), document, clock)
        self.remote = remote
        self._host = host

    def _changed_content(self, is_final: bool) -> bytes | None:
        """The whole file; None when it is the one that was read before. Raises OSError."""
        first = ask_piece(self._host, self.remote, 0, 0)
        status = first.status
        assert status is not None
        self.size, self.mtime = status.size, status.mtime - self._host.skew_s
        signature = (*status.identity, status.size, status.mtime_ns)
        if signature == self._signature and not (is_final and self._broken_since is not None):
            return None
        self._signature = signature
        if status.size > MAX_DOCUMENT_BYTES:
            self.problem = f"{self.remote.name}: a document of over 1 GiB; log lines of JSON (JSONL) instead"
            return None
        return read_whole(self._host, self.remote, MAX_DOCUMENT_BYTES)[1]


class RemoteConfig(ConfigFile):
    """A settings file: its content whenever it changed."""

    def __init__(self, remote: RemotePath, host: Host) -> None:
        super().__init__(Path(remote.name))
        self._remote = remote
        self._host = host
        self._told: Status | None = None

    def poll(self) -> bytes | None:
        """The content, at most 1 MiB; None when it is the one that was given before or cannot be read."""
        try:
            first = ask_piece(self._host, self._remote, 0, 0)
            if first.status == self._told:
                return None
            self._told, content = read_whole(self._host, self._remote, _MAX_CONFIG_BYTES)
        except OSError as error:
            self.problem = explain(self.path, error)
            return None
        self.problem = ""
        self.size = len(content)
        return content


def read_whole(host: Host, remote: RemotePath, limit: int) -> tuple[Status, bytes]:
    """All of a file, as it was at one moment where that can be had in a few tries. Raises OSError."""
    content = b""
    status: Status | None = None
    for _ in range(_TRIES):
        parts: list[bytes] = []
        size, first, is_same = 0, None, True
        while size < limit:
            piece = ask_piece(host, remote, size, _PIECE_BYTES)
            status = piece.status
            first = first or status
            is_same = is_same and first == status
            parts.append(piece.data)
            size += len(piece.data)
            if len(piece.data) < _PIECE_BYTES:
                break
        content = b"".join(parts)[:limit]
        if is_same:
            break
    assert status is not None
    return status, content


def open_once(remote: RemotePath, role: str, clock: Clock, detect: Detect) -> RemoteTail | RemoteConfig:
    """What reads `remote` to its end, for a caller that polls it until there is no more."""
    host = hosts().host(remote.address)
    if role == "config":
        return RemoteConfig(remote, host)
    return RemoteTail(remote, host, clock=clock, detect=detect, patience_s=PATIENCE_S)
