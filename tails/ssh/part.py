"""Parts of a file on another host, asked for and waited for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import TimeoutError as TooLate

from trainmon.tails.ssh.address import RemotePath
from trainmon.tails.ssh.answer import Piece
from trainmon.tails.ssh.ask import AskPiece, HostDownError
from trainmon.tails.ssh.host import Host

_ANSWER_S = 30.0
_BLOCK_BYTES = 256 << 10


def ask_piece(host: Host, remote: RemotePath, offset: int, length: int) -> Piece:
    """A part of a regular file there. Blocks. Raises OSError, also when the host does not answer."""
    try:
        piece = host.ask_for(AskPiece(remote.path, offset, length)).result(_ANSWER_S)
    except (HostDownError, TooLate) as error:
        raise OSError(None, f"{host.address.name} does not answer") from error
    if piece.error or piece.status is None:
        raise OSError(piece.error, os.strerror(piece.error), remote.name)
    return piece


def blocks_of(host: Host, remote: RemotePath, offset: int, identity: tuple[int, int] | None = None) -> Iterator[bytes]:
    """The bytes from `offset` on, read again, in pieces. Ends where they cannot be read, and where another file than
    that of `identity` lies."""
    while True:
        try:
            piece = ask_piece(host, remote, offset, _BLOCK_BYTES)
        except OSError:
            return
        data = piece.data
        if not data or (identity is not None and piece.status is not None and piece.status.identity != identity):
            return
        yield data
        offset += len(data)
