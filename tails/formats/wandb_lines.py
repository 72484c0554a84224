"""W&B's history as JSON lines, which have a fast reader: a record's items are key, value pairs whose values are JSON.

Most records are put together without being decoded. One that holds media, or anything laid out otherwise than W&B's
writers lay it out, is parsed (`wandb_record`) and written as JSON anew.
"""

from __future__ import annotations

import json
from typing import Any

from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS
from trainmon.tails.formats.protobuf_wire import signed, varint
from trainmon.tails.formats.wandb_record import parse_history

_ITEM, _STEP, _NUMBER = 0x0A, 0x12, 0x08  # history: an item, the step; in the step: its number
_KEY, _NESTED_KEY = 0x0A, 0x12  # item: the key, a part of a nested key
_VALUE = b"\x82\x01"  # item: the value in JSON
_TWO_BYTES = 0x80
_MEDIA = b"_type"
_BEGINS = frozenset(b'-0123456789NItfn"[{')  # values of JSON, NaN and Infinity among them
_OWN_STEP = b'"_step":'
_MOST_KEYS = 1 << 16
# W&B joins what was logged at one step: a text that says "eval" is not about all of it.
_LABELS = frozenset((*TYPE_KEYS, *SPLIT_KEYS))


class HistoryLines:
    """Makes the lines of one file."""

    def __init__(self) -> None:
        self._names: dict[bytes, bytes] = {}  # the bytes of an item's key -> the key in JSON, and a colon

    def line(self, data: bytes, start: int, end: int) -> bytes:
        """The history record at `data[start:end]` as a line without its end. Raises `WireError` or `IndexError` when it
        is none."""
        if data.find(_MEDIA, start, end) < 0:
            found = self._line(data, start, end)
            if found is not None:
                return found
        values = parse_history(data, start, end)
        return json_line({key: value for key, value in values.items() if not _is_label(key, value)})

    def _line(self, data: bytes, start: int, end: int) -> bytes | None:
        """The same for records of flat items; None for any other."""
        names = self._names
        parts: list[bytes] = []
        step: int | None = None
        has_step = False
        at = start
        while at < end:
            tag, size = data[at], data[at + 1]
            at += 2
            if size >= _TWO_BYTES:
                if data[at] >= _TWO_BYTES:
                    return None
                size = (size & 0x7F) | data[at] << 7
                at += 1
            stop = at + size
            if stop > end:
                return None
            if tag == _ITEM:
                key_end = at + 2 + data[at + 1]
                value = key_end + 3
                if data[key_end : key_end + 2] != _VALUE:
                    return None
                length = data[key_end + 2]
                if length >= _TWO_BYTES:
                    if data[value] >= _TWO_BYTES:
                        return None
                    length = (length & 0x7F) | data[value] << 7
                    value += 1
                if value + length != stop or not length or data[value] not in _BEGINS:
                    return None
                name = names.get(data[at:key_end]) or self._name(data[at:key_end])
                if name is None:
                    return None
                has_step = has_step or name == _OWN_STEP
                parts.append(name + data[value:stop])
            elif tag == _STEP:
                step = 0
                if size:
                    if data[at] != _NUMBER:
                        return None
                    number, behind = varint(data, at + 1)
                    if behind != stop:
                        return None
                    step = signed(number)
            else:
                return None
            at = stop
        if step is not None and not has_step:
            parts.append(b"%s%d" % (_OWN_STEP, step))
        line = b"{" + b",".join(parts) + b"}"
        return None if b"\n" in line else line

    def _name(self, raw: bytes) -> bytes | None:
        """The key of an item in JSON; None for one that is not read so."""
        if raw[0] not in (_KEY, _NESTED_KEY) or raw[1] >= _TWO_BYTES or len(raw) != 2 + raw[1]:
            return None
        try:
            key = raw[2:].decode()
        except UnicodeDecodeError:
            return None
        if key in _LABELS or len(self._names) >= _MOST_KEYS:
            return None
        name = self._names[raw] = json.dumps(key).encode() + b":"
        return name


def json_line(values: dict[str, Any]) -> bytes:
    """A record as a line without its end."""
    return json.dumps(values).encode()


def _is_label(key: str, value: Any) -> bool:
    return key in _LABELS and isinstance(value, str)
