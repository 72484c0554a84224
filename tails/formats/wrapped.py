"""Log lines wrapped by a container runtime or a JSON logger: ``{"log": "step 1 loss 2.3\\n", "time": ...}``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec

from trainmon.tails.formats.cells import as_float
from trainmon.tails.formats.stamps import time_of
from trainmon.tails.prefix import NO_PREFIX, Prefix, read_prefix
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import TimeKind
from trainmon.tails.steps import is_training_key, step_rank
from trainmon.tails.text import strip_escapes

_TEXTS = ("log", "message", "msg", "textPayload", "text", "line", "MESSAGE", "body")
_GROUPS = ("jsonPayload", "_source", "attributes")
_DIGIT = re.compile(r"\d")
_LONGEST_PREFIX = 400
_DECODER = msgspec.json.Decoder()


def message_of(record: dict[str, Any]) -> str | None:
    """The text that `record` is a wrapper of; None when it is none, or carries metrics of its own.

    >>> message_of({"log": "step 1 loss 2.5", "stream": "stdout"}), message_of({"msg": "train", "step": 1, "loss": 2.5})
    ('step 1 loss 2.5', None)
    """
    inner = next((record[key] for key in _GROUPS if isinstance(record.get(key), dict)), None)
    text: str | None = next((record[key] for key in _TEXTS if isinstance(record.get(key), str)), None)
    if text is None and "stream_name" in record:  # a Kaggle notebook's log
        text = _string(record.get("data"))
    if text is None and _DIGIT.search(said := _string(record.get("event"))) is not None:
        text = said  # structlog's; without a number it is as often the kind of a record
    if text is None and inner is not None:  # the message stands in a group of its own, as Google's do
        return message_of(inner)
    if text is None or any(_is_metric(key, value) for key, value in record.items()):
        return None
    return text


@dataclass(slots=True)
class Wrapped:
    """The lines in a wrapped one, and what its wrapper and what is before that say of them."""

    lines: list[str]
    prefix: Prefix


def unwrap(line: str) -> Wrapped | None:
    """What a wrapped `line` holds, also behind a rank or a time; None for any other line.

    A record of metrics in JSON is its own text: its wrapper tells but the time.

    >>> unwrap('{"log": "loss 2.5", "time": "2025-01-15T10:00:00Z"}').prefix.time
    1736935200.0
    >>> unwrap('[rank3]: {"message": "loss 2.5", "level": "info"}')
    Wrapped(lines=['loss 2.5'], prefix=Prefix(at=0, rank='3', ...))
    """
    at = line.find("{", 0, _LONGEST_PREFIX)
    if at < 0 or not line.endswith("}") or line[at + 1 : at + 40].lstrip()[:1] != '"':
        return None
    is_entry = line[:at].strip() in ("[", ",") and '"stream_name"' in line[at : at + 40]
    outer = read_prefix(line) if at and not is_entry else NO_PREFIX
    if line[outer.at : at].strip() and not is_entry:
        return None
    try:
        record = _DECODER.decode(line[at:])
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    text = message_of(record)
    numbers = {key: as_float(value) for key, value in record.items() if isinstance(value, int | float)}
    time, kind = time_of(numbers, {key: value for key, value in record.items() if isinstance(value, str)})
    is_outer = kind is TimeKind.NONE and outer.time is not None
    if is_outer:
        kind = outer.time_kind
    elif kind is TimeKind.NONE and text is None:
        return None
    said = outer.time if is_outer else None if kind is TimeKind.NONE else time
    prefix = replace(outer, at=0, time=said, time_kind=kind, is_clock=is_outer and outer.is_clock)
    return Wrapped([line[at:]] if text is None else strip_escapes(text).splitlines(), prefix)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_metric(key: str, value: object) -> bool:
    if isinstance(value, dict) and any(_is_metric(inner, one) for inner, one in value.items()):
        return True
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (is_number or isinstance(value, dict)) and (
        is_training_key(key) or step_rank(key) is not None or key == "metrics"
    )
