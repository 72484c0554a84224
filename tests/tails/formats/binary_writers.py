"""Writers of small event files and W&B files, for tests: nothing of the readers is used."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while True:
        byte, value = value & 0x7F, value >> 7
        if not value:
            return out + bytes([byte])
        out += bytes([byte | 0x80])


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def double_field(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def float_field(number: int, value: float) -> bytes:
    return varint(number << 3 | 5) + struct.pack("<f", value)


# -- TensorBoard ---------------------------------------------------------------------------------------------------


def _crc_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC_OF_BYTE = [_crc_of_byte(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """CRC-32C, masked."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_OF_BYTE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    head = struct.pack("<Q", len(payload))
    return head + struct.pack("<I", crc32c(head)) + payload + struct.pack("<I", crc32c(payload))


def version() -> bytes:
    return frame(double_field(1, 1.5e9) + bytes_field(3, b"brain.Event:2"))


def simple(tag: str, value: float) -> bytes:
    return bytes_field(1, bytes_field(1, tag.encode()) + float_field(2, value))


def tensor(tag: str, value: float, kind: str = "content") -> bytes:
    shape = bytes_field(2, b"")
    if kind == "content":
        inner = number_field(1, 1) + shape + bytes_field(4, struct.pack("<f", value))
    elif kind == "double":
        inner = number_field(1, 2) + shape + bytes_field(6, struct.pack("<d", value))
    elif kind == "int64":
        inner = number_field(1, 9) + shape + bytes_field(10, varint(int(value)))
    else:
        inner = (
            number_field(1, 1)
            + bytes_field(2, bytes_field(2, number_field(1, 2)))
            + bytes_field(4, struct.pack("<ff", value, value))
        )
    metadata = bytes_field(9, bytes_field(1, bytes_field(1, b"scalars")))
    return bytes_field(1, bytes_field(1, tag.encode()) + bytes_field(8, inner) + metadata)


def event(step: int, *values: bytes, wall: float = 1.7e9) -> bytes:
    body = double_field(1, wall + step)
    if step:
        body += number_field(2, step)
    return frame(body + (bytes_field(5, b"".join(values)) if values else b""))


# -- W&B -----------------------------------------------------------------------------------------------------------

WANDB_HEADER = b":W&B" + struct.pack("<HB", 0xBEE1, 0)


def wandb_file(records: Iterable[bytes]) -> bytes:
    """The records in LevelDB's log framing."""
    out = WANDB_HEADER
    for record in records:
        first = True
        while True:
            room = 32768 - len(out) % 32768
            if room < 7:
                out += b"\0" * room
                continue
            part, record = record[: room - 7], record[room - 7 :]
            kind = (1 if not record else 2) if first else (4 if not record else 3)
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            first = False
            if not record:
                break
    return out


def _items(values: dict[str, Any], number: int, path: tuple[str, ...] = ()) -> bytes:
    out = b""
    for key, value in values.items():
        if isinstance(value, dict):
            out += _items(value, number, (*path, key))
        else:
            names = b"".join(bytes_field(2, name.encode()) for name in (*path, key))
            out += bytes_field(number, names + bytes_field(16, json.dumps(value).encode()))
    return out


def history(step: int, **values: Any) -> bytes:
    return bytes_field(2, _items(values, 1) + bytes_field(2, number_field(1, step)))


def old_history(**values: Any) -> bytes:
    items = b"".join(
        bytes_field(1, bytes_field(1, key.encode()) + bytes_field(16, json.dumps(value).encode()))
        for key, value in values.items()
    )
    return bytes_field(2, items)


def run(**config: Any) -> bytes:
    return bytes_field(17, bytes_field(1, b"abc") + bytes_field(4, _items(config, 1)) + bytes_field(8, b"name"))


def stats(seconds: int, **values: Any) -> bytes:
    items = b"".join(
        bytes_field(3, bytes_field(1, key.encode()) + bytes_field(16, json.dumps(value).encode()))
        for key, value in values.items()
    )
    return bytes_field(7, bytes_field(2, number_field(1, seconds)) + items)


def exit_record(code: int) -> bytes:
    return bytes_field(18, number_field(1, code) if code else b"")
