"""W&B's Record message, read without its package: history, config, system metrics, exit."""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any

from trainmon.tails.formats.json_text import tolerant
from trainmon.tails.formats.protobuf_wire import (
    FIXED64,
    LENGTH,
    VARINT,
    double_at,
    fields,
    signed,
    text,
    varint,
    zigzag,
)
from trainmon.tails.quick_dataclass import dataclass

# Record.record_type
_HISTORY, _CONFIG, _STATS, _RUN, _EXIT, _PREEMPTING = 2, 5, 7, 17, 18, 23
_NAMES = {
    _HISTORY: "history",
    _CONFIG: "config",
    _STATS: "stats",
    _RUN: "run",
    _EXIT: "exit",
    _PREEMPTING: "preempting",
}


@dataclass(slots=True)
class WandbRecord:
    """`kind`: config, stats, run, exit or preempting; `values`: what it says."""

    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    time: float | None = None
    resumed: bool = False
    name: str = ""


def find_record(data: bytes) -> tuple[str, int, int]:
    """What kind of record these bytes are, "" for one that is not read, and where its content begins and ends.

    Raises `WireError` when they are none.
    """
    end = len(data)
    at = _content_of(data)
    tag = data[at] if at else 0x80
    if tag & 7 == LENGTH and tag < 0x80:
        if at + 2 < end and data[at + 2] < 0x80 <= data[at + 1]:  # a size of two bytes, as most are
            size, start = data[at + 1] & 0x7F | data[at + 2] << 7, at + 3
        else:
            size, start = varint(data, at + 1)
        if start + size == end:  # a record's one content, as writers write it
            return _NAMES.get(tag >> 3, ""), start, end
    for number, kind, start, stop in fields(data):
        if kind == LENGTH and number in _NAMES:
            return _NAMES[number], start, stop
    return "", 0, 0


def _content_of(data: bytes) -> int:
    """The place behind the number that a record begins with; 0 when it begins otherwise."""
    if len(data) < 4 or data[0] != 0x08:
        return 0
    if data[3] < 0x80 <= data[2] and data[1] >= 0x80 and len(data) > 4:  # of three bytes, as most are
        return 4
    for at in range(1, min(len(data) - 1, 10)):
        if data[at] < 0x80:
            return at + 1
    return 0


def parse_record(kind: str, data: bytes, start: int, stop: int) -> WandbRecord:
    """The record, of a kind but history, whose content is `data[start:stop]`. Raises `WireError` when it is none."""
    record = WandbRecord(kind)
    _READ[kind](data, start, stop, record)
    return record


def parse_history(data: bytes, start: int, end: int) -> dict[str, Any]:
    """The values of the history record at `data[start:end]`, without its media. Raises `WireError` when it is none."""
    values: dict[str, Any] = {}
    step: int | None = None
    for number, kind, at, stop in fields(data, start, end):
        if number == 1 and kind == LENGTH:
            _item(data, at, stop, values)
        elif number == 2 and kind == LENGTH:
            step = next(
                (signed(varint(data, a)[0]) for n, k, a, _ in fields(data, at, stop) if n == 1 and k == VARINT), 0
            )
    if step is not None:
        values.setdefault("_step", step)
    _drop_media(values)
    return values


def _config(data: bytes, start: int, end: int, record: WandbRecord) -> None:
    for number, kind, at, stop in fields(data, start, end):
        if number == 1 and kind == LENGTH:
            _item(data, at, stop, record.values)
    record.values.pop("_wandb", None)


def _stats(data: bytes, start: int, end: int, record: WandbRecord) -> None:
    for number, kind, at, stop in fields(data, start, end):
        if number == 2 and kind == LENGTH:
            record.time = _timestamp(data, at, stop)
        elif number == 3 and kind == LENGTH:
            _item(data, at, stop, record.values)


def _run(data: bytes, start: int, end: int, record: WandbRecord) -> None:
    for number, kind, at, stop in fields(data, start, end):
        if number == 4 and kind == LENGTH:
            _config(data, at, stop, record)
        elif number == 8 and kind == LENGTH:
            record.name = text(data, at, stop)
        elif number == 17 and kind == LENGTH:
            record.time = _timestamp(data, at, stop)
        elif number == 18 and kind == VARINT:
            record.resumed = bool(varint(data, at)[0])


def _exit(data: bytes, start: int, end: int, record: WandbRecord) -> None:
    record.values["exit_code"] = 0
    for number, kind, at, _ in fields(data, start, end):
        if number == 1 and kind == VARINT:
            record.values["exit_code"] = signed(varint(data, at)[0])


def _nothing(data: bytes, start: int, end: int, record: WandbRecord) -> None:
    """Its being there says all."""


_READ = {"config": _config, "stats": _stats, "run": _run, "exit": _exit, "preempting": _nothing}


def _item(data: bytes, start: int, end: int, out: dict[str, Any]) -> None:
    """One key and value; nested keys are put where they belong."""
    path: list[str] = []
    value: Any = None
    for number, kind, at, stop in fields(data, start, end):
        if number == 1 and kind == LENGTH:
            path = [text(data, at, stop)]
        elif number == 2 and kind == LENGTH:
            path.append(text(data, at, stop))
        elif number in (8, 16) and kind == LENGTH:
            value = _json(data[at:stop])
        elif number == 7 and kind == LENGTH:
            value = text(data, at, stop)
        elif number == 6 and kind == FIXED64:
            value = double_at(data, at)
        elif number == 5 and kind == VARINT:
            value = zigzag(varint(data, at)[0])
        elif number == 4 and kind == VARINT:
            value = bool(varint(data, at)[0])
    place = out
    for name in path[:-1]:
        inner = place.get(name)
        if not isinstance(inner, dict):
            inner = place[name] = {}
        place = inner
    if path:
        place[path[-1]] = value


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        pass
    try:
        return tolerant(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _drop_media(values: dict[str, Any]) -> None:
    """Tables, images and histograms are described by numbers that are no metrics."""
    for key in [key for key, value in values.items() if isinstance(value, dict)]:
        inner = values[key]
        if "_type" in inner:
            del values[key]
        else:
            _drop_media(inner)


def _timestamp(data: bytes, start: int, end: int) -> float:
    parts = {number: signed(varint(data, at)[0]) for number, kind, at, _ in fields(data, start, end) if kind == VARINT}
    return parts.get(1, 0) + parts.get(2, 0) / 1e9
