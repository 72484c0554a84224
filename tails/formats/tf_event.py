"""TensorFlow's Event message: wall time, step and the scalars of its summary."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from trainmon.tails.formats.protobuf_wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    WireError,
    fields,
    signed,
    text,
    varint,
)
from trainmon.tails.quick_dataclass import dataclass

_EVENT_WALL, _EVENT_STEP, _EVENT_SUMMARY = 1, 2, 5
_VALUE_TAG, _VALUE_SIMPLE, _VALUE_TENSOR = 1, 2, 8
_TENSOR_TYPE, _TENSOR_SHAPE, _TENSOR_CONTENT = 1, 2, 4
# data type -> field of its values, how one is stored
_KINDS = {1: (5, "<f"), 2: (6, "<d"), 3: (7, "varint"), 9: (10, "varint"), 4: (7, "varint"), 6: (7, "varint")}
_CONTENT = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 4: "<B", 6: "<b"}
_WORDS = {"<f": 4, "<d": 8}


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value: its tag, and, where it is stored as a float or double, the place and the size of it."""

    tag: str
    value: float
    place: int = -1
    size: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """`wall` seconds since the epoch; `step`; `scalars`."""

    wall: float
    step: int
    scalars: tuple[Scalar, ...]


def parse_event(data: bytes) -> Event:
    """The event that these bytes are. Raises `WireError` when they are none."""
    wall, step = math.nan, 0
    scalars: list[Scalar] = []
    for number, kind, start, stop in fields(data):
        if number == _EVENT_WALL and kind == FIXED64:
            wall = struct.unpack_from("<d", data, start)[0]
        elif number == _EVENT_STEP and kind == VARINT:
            step = signed(varint(data, start)[0])
        elif number == _EVENT_SUMMARY and kind == LENGTH:
            scalars += _scalars(data, start, stop)
    return Event(wall, step, tuple(scalars))


def _scalars(data: bytes, start: int, end: int) -> Iterator[Scalar]:
    for number, kind, at, stop in fields(data, start, end):
        if number == 1 and kind == LENGTH:
            scalar = _scalar(data, at, stop)
            if scalar is not None:
                yield scalar


def _scalar(data: bytes, start: int, end: int) -> Scalar | None:
    tag = ""
    found: tuple[float, int, int] | None = None
    for number, kind, at, stop in fields(data, start, end):
        if number == _VALUE_TAG and kind == LENGTH:
            tag = text(data, at, stop)
        elif number == _VALUE_SIMPLE and kind == FIXED32:
            found = (struct.unpack_from("<f", data, at)[0], at, 4)
        elif number == _VALUE_TENSOR and kind == LENGTH:
            found = _tensor(data, at, stop)
    return Scalar(tag, *found) if found is not None and tag else None


def _tensor(data: bytes, start: int, end: int) -> tuple[float, int, int] | None:
    """The one number of a tensor; None when it holds text, or not exactly one."""
    values: dict[int, tuple[int, int, int]] = {}
    data_type = 0
    for number, kind, at, stop in fields(data, start, end):
        if number == _TENSOR_TYPE and kind == VARINT:
            data_type = varint(data, at)[0]
        elif number == _TENSOR_SHAPE and kind == LENGTH:
            if _elements(data, at, stop) != 1:
                return None
        else:
            values[number] = (kind, at, stop)
    if data_type not in _KINDS:
        return None
    if _TENSOR_CONTENT in values:
        _, at, stop = values[_TENSOR_CONTENT]
        return _stored(data, _CONTENT[data_type], at, stop)
    field, form = _KINDS[data_type]
    if field not in values:
        return 0.0, -1, 0  # the default value, left out
    kind, at, stop = values[field]
    if form == "varint":
        number, behind = varint(data, at)
        return (float(signed(number)), -1, 0) if behind == stop else None
    return _stored(data, form, at, stop)


def _stored(data: bytes, form: str, at: int, stop: int) -> tuple[float, int, int] | None:
    size = struct.calcsize(form)
    if stop - at != size:
        return None
    return float(struct.unpack_from(form, data, at)[0]), at if form in _WORDS else -1, size


def _elements(data: bytes, start: int, end: int) -> int:
    count = 1
    for number, kind, at, stop in fields(data, start, end):
        if number == 2 and kind == LENGTH:
            size = next(
                (signed(varint(data, a)[0]) for n, k, a, _ in fields(data, at, stop) if n == 1 and k == VARINT), 0
            )
            count *= size
    return count


__all__ = ["Event", "Scalar", "WireError", "parse_event"]
