"""TFRecord framing: length (uint64), masked CRC of the length, data, masked CRC of the data."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.crc32c import crc_of, masked_crcs
from trainmon.tails.quick_dataclass import dataclass

HEADER, FOOTER = 12, 4
_LENGTH = struct.Struct("<Q")
# Larger records are pictures and histograms: their check sums cost much and guard nothing that is read.
_CHECKED_BYTES = 8192
_LARGEST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Frames:
    """What whole frames `data` holds: `starts`, `lengths` (n,) of their payloads, in order; `damaged` (k,) the places
    where bytes had to be passed over; `end`: the place behind the last whole frame; `is_lost`: whether the bytes
    before `end` ended in damage that goes on."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    damaged: list[int]
    end: int
    is_lost: bool


def frames_of(data: bytes, is_lost: bool = False) -> Frames:
    """Walks the frames of `data`; `is_lost` tells that it begins in the midst of damage already told of."""
    raw = np.frombuffer(data, np.uint8)
    starts: list[NDArray[np.int64]] = []
    lengths: list[NDArray[np.int64]] = []
    damaged: list[int] = []
    at = 0
    while at + HEADER <= len(data):
        found, sizes, stop = _walk(data, at)
        good = _valid_headers(raw, found - HEADER)
        count = len(found) if good.all() else int(np.argmin(good))
        starts.append(found[:count])
        lengths.append(sizes[:count])
        is_lost = is_lost and count == 0
        at = int(found[count]) - HEADER if count < len(found) else stop
        if at + HEADER > len(data) or crc_of(data[at : at + 8]) == int.from_bytes(data[at + 8 : at + 12], "little"):
            break  # torn, not damaged
        if not is_lost:
            damaged.append(at)
        at, is_lost = _next_header(raw, at + 1)
    where = np.concatenate(starts) if starts else np.zeros(0, np.int64)
    size = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    whole = _valid_data(raw, where, size)
    damaged += (where[~whole] - HEADER).tolist()
    return Frames(where[whole], size[whole], sorted(damaged), at, is_lost)


def _walk(data: bytes, at: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Payload starts and lengths from `at` on, believing every length; the place behind the last whole frame."""
    starts: list[int] = []
    sizes: list[int] = []
    unpack, total = _LENGTH.unpack_from, len(data)
    while at + HEADER <= total:
        size = unpack(data, at)[0]
        stop = at + HEADER + size + FOOTER
        if stop > total:
            break
        starts.append(at + HEADER)
        sizes.append(size)
        at = stop
    return np.array(starts, np.int64), np.array(sizes, np.int64), at


def _valid_headers(raw: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(at):
        return np.zeros(0, np.bool_)
    valid: NDArray[np.bool_] = masked_crcs(raw, at, 8) == _words(raw, at + 8)
    return valid


def _valid_data(raw: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    valid = np.ones(len(starts), np.bool_)
    for size in np.unique(sizes[(sizes >= 4) & (sizes <= _CHECKED_BYTES)]).tolist():
        rows = np.flatnonzero(sizes == size)
        valid[rows] = masked_crcs(raw, starts[rows], size) == _words(raw, starts[rows] + size)
    return valid


def _words(raw: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.uint32]:
    return np.ascontiguousarray(raw[at[:, None] + np.arange(4)]).view("<u4")[:, 0]


def _next_header(raw: NDArray[np.uint8], at: int) -> tuple[int, bool]:
    """The next place from `at` on where a valid header stands, and False; else where one may still begin, and True."""
    last = len(raw) - HEADER
    for start in range(at, last + 1, 1 << 16):
        places = np.arange(start, min(start + (1 << 16), last + 1))
        # The high bytes of a length are zero; all-zero stretches fail the CRC.
        small = (raw[places + 4] | raw[places + 5] | raw[places + 6] | raw[places + 7]) == 0
        places = places[small]
        good = places[_valid_headers(raw, places)]
        if len(good):
            return int(good[0]), False
    return max(at, last + 1), True
