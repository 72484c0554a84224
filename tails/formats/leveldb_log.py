"""LevelDB's log framing as W&B uses it: blocks of 32 KiB; chunks of CRC-32 (IEEE), length, type and data."""

from __future__ import annotations

import struct
import zlib

from trainmon.tails.quick_dataclass import dataclass

BLOCK = 32 * 1024
_HEADER = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_HEADER_BYTES = _HEADER.size
_SUMS = {kind: zlib.crc32(bytes([kind])) for kind in (_FULL, _FIRST, _MIDDLE, _LAST)}  # of the type alone


@dataclass(frozen=True, slots=True)
class LogRecords:
    """`records`: file offset and bytes of each; `damaged`: offsets where a block could not be read further; `end`:
    how far the data was used up: to the end of the last whole record, padding and damage included."""

    records: list[tuple[int, bytes]]
    damaged: list[int]
    end: int


def read_log(data: bytes, offset: int) -> LogRecords:
    """The whole records of `data`, which begins at byte `offset` of the file and at the beginning of a chunk, of
    padding, or within damage already told of."""
    records: list[tuple[int, bytes]] = []
    damaged: list[int] = []
    at = end = 0
    parts: list[bytes] = []
    first = -1
    total, header, crc_of = len(data), _HEADER.unpack_from, zlib.crc32
    while at < total:
        room = BLOCK - (offset + at) % BLOCK
        if room < _HEADER_BYTES:
            at += room
            end = _used(at, end, parts, data)
            continue
        if at + _HEADER_BYTES > total:
            break
        crc, size, kind = header(data, at)
        stop = at + _HEADER_BYTES + size
        if kind == 0 and size == 0 and crc == 0:
            if at + room > total:
                break
            at, parts, first = at + room, [], -1
            end = at
            continue
        body = data[at + _HEADER_BYTES : stop]
        is_possible = kind in _SUMS and _HEADER_BYTES + size <= room
        if is_possible and stop > total:
            break
        if not is_possible or crc_of(body, _SUMS[kind]) != crc:
            if at + room > total:
                break
            damaged.append(offset + at)
            at, parts, first = at + room, [], -1
            end = at
            continue
        if kind == _FULL:
            records.append((offset + at, body))
            parts, first = [], -1
            at = end = stop
            continue
        if kind == _FIRST:
            parts, first = [body], at
        elif parts:
            parts.append(body)
        at = stop
        if kind == _LAST:
            if parts:
                records.append((offset + first, b"".join(parts)))
            parts, first = [], -1
            end = at
    return LogRecords(records, damaged, min(end, total))


def _used(at: int, end: int, parts: list[bytes], data: bytes) -> int:
    return end if parts else min(at, len(data))
