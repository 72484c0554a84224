"""What SQLite has written beside a database and not yet into it (``runs.db-wal``), put into its bytes."""

from __future__ import annotations

import struct
from typing import Final

MAGIC: Final = b"SQLite format 3\0"
_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_WAL_MAGICS = (0x377F0682, 0x377F0683)
_VERSIONS = slice(18, 20)  # of the database's header: 2 when there is a log, 1 when there is none
_SIZE_IN_PAGES = slice(28, 32)


def with_log(data: bytes, log: bytes) -> bytes:
    """The database `data` with the pages that whole transactions left in `log`, as one that has no log.

    >>> with_log(MAGIC + bytes(2) + b"\\x02\\x02" + bytes(80), b"")[18:20]
    b'\\x01\\x01'
    """
    out = bytearray(data)
    pages, size = _pages(log)
    for number, page in pages.items():
        at = (number - 1) * len(page)
        if at > len(out):
            out += bytes(at - len(out))
        out[at : at + len(page)] = page
    if size:
        page_size = len(next(iter(pages.values())))
        del out[size * page_size :]
        out[_SIZE_IN_PAGES] = size.to_bytes(4, "big")
    if out[:16] == MAGIC:
        out[_VERSIONS] = b"\x01\x01"
    return bytes(out)


def _pages(log: bytes) -> tuple[dict[int, bytes], int]:
    """The newest of each page that a whole transaction wrote, and the database's size in pages behind the last."""
    if len(log) < _HEADER.size:
        return {}, 0
    magic, _, page_size, _, *salts, _, _ = _HEADER.unpack_from(log)
    if magic not in _WAL_MAGICS or page_size not in (1 << power for power in range(9, 17)):
        return {}, 0
    pages: dict[int, bytes] = {}
    open_ones: dict[int, bytes] = {}
    size = 0
    for at in range(_HEADER.size, len(log) - _FRAME.size - page_size + 1, _FRAME.size + page_size):
        number, committed, *own_salts, _, _ = _FRAME.unpack_from(log, at)
        if own_salts != salts or not number:
            break  # left over from before the log began anew
        open_ones[number] = log[at + _FRAME.size : at + _FRAME.size + page_size]
        if committed:
            pages |= open_ones
            open_ones, size = {}, committed
    return {number: page for number, page in pages.items() if number <= size}, size
