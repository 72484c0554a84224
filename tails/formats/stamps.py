"""Time stamps inside structured records: which keys hold one, and what they say."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache

import numpy as np

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import FloatArray, TimeKind

# Best first: a key that means nothing but a time stamp before one that may also be a duration.
_NAMES = (
    *("timestamp", "_timestamp", "@timestamp", "timestamps", "datetime", "date_time", "created_at", "logged_at"),
    *("wall_time", "walltime", "wall time", "timestamp_ms", "time_ms", "time_stamp", "unix_time", "epoch_time", "utc"),
    *("ts", "time", "date", "asctime", "created", "at"),
)
_ORDER = {name: order for order, name in enumerate(_NAMES)}
# Seconds from 2001 to 2100; numbers outside are durations. The same in milli-, micro- and nanoseconds.
_EARLIEST_S, _LATEST_S = 1.0e9, 4.1e9
_UNITS = (1.0, 1e3, 1e6, 1e9)
_ISO = lazy(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?", re.IGNORECASE)


@lru_cache(maxsize=65536)
def stamp_order(key: str) -> int | None:
    """The place of `key` among the names of time stamps, 0 the surest; None when it is no such name.

    >>> stamp_order("_timestamp") is None, stamp_order("elapsed_time")
    (False, None)
    """
    return _ORDER.get(re.split(r"[/.]", key[:200])[-1].strip().lower())


def stamp_keys(keys: Iterable[str]) -> list[str]:
    """Those of `keys` that are named like time stamps, surest first."""
    named = [(order, key) for key in keys if (order := stamp_order(key)) is not None]
    return [key for _, key in sorted(named)]


def epoch_seconds(values: FloatArray) -> FloatArray:
    """(n,) seconds since the epoch of numbers that are s, ms, us or ns since the epoch; NaN where they are none.

    >>> epoch_seconds(np.array([1784048753.74, 1784048753740.0, 9.97])).tolist()
    [1784048753.74, 1784048753.74, nan]
    """
    out = np.full(len(values), math.nan)
    for unit in _UNITS:
        inside = (values >= _EARLIEST_S * unit) & (values <= _LATEST_S * unit)
        if inside.any():
            out[inside] = values[inside] / unit
    return out


def seconds_of(value: float) -> float:
    """The same for one number."""
    for unit in _UNITS:
        if _EARLIEST_S * unit <= value <= _LATEST_S * unit:
            return value / unit
    return math.nan


def parse_stamp(text: str) -> tuple[float, TimeKind]:
    """Seconds since the epoch of an ISO 8601 text; a text without a zone is read as UTC and is naive.

    >>> parse_stamp("2026-03-25T10:09:23+00:00"), parse_stamp("2026-03-25 10:09:23")[1].value
    ((1774433363.0, <TimeKind.ABSOLUTE: 'absolute'>), 'naive')
    """
    match = _ISO.match(text) if len(text) < 64 else None
    if match is None:
        return math.nan, TimeKind.NONE
    day, clock, zone = match.groups()
    head, _, fraction = clock.replace(",", ".").partition(".")
    try:
        moment = datetime.fromisoformat(f"{day}T{head}{_offset(zone)}")
        seconds = moment.timestamp() + (float(f"0.{fraction}") if fraction else 0.0)
    except (ValueError, OverflowError):
        return math.nan, TimeKind.NONE
    return seconds, TimeKind.ABSOLUTE if zone else TimeKind.NAIVE


def _offset(zone: str | None) -> str:
    if zone is None or zone.upper() in ("Z", "UTC", "GMT"):
        return "+00:00"
    return zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"


def time_of(values: Mapping[str, float | None], texts: Mapping[str, str]) -> tuple[float, TimeKind]:
    """When the record was written, by its surest key that holds a time stamp; (NaN, NONE) when none does."""
    for key in stamp_keys((*values, *texts)):
        number = values.get(key)
        if number is not None:
            seconds = seconds_of(number)
            if seconds == seconds:
                return seconds, TimeKind.ABSOLUTE
        elif key in texts:
            seconds, kind = parse_stamp(texts[key])
            if seconds == seconds:
                return seconds, kind
    return math.nan, TimeKind.NONE
