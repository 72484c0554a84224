"""Log lines wrapped by a container runtime or a JSON logger: ``{"log": "step 1 loss 2.3\\n", "time": ...}``."""

from __future__ import annotations

from typing import Any

import msgspec

from trainmon.tails.formats.stamps import time_of
from trainmon.tails.record import TimeKind
from trainmon.tails.steps import is_training_key, step_rank

_TEXTS = ("log", "message", "msg", "textPayload", "text", "line", "MESSAGE", "body")
_GROUPS = ("jsonPayload", "_source", "attributes")
_DECODER = msgspec.json.Decoder()


def message_of(record: dict[str, Any]) -> str | None:
    """The text that `record` is a wrapper of; None when it is none, or carries metrics of its own.

    >>> message_of({"log": "step 1 loss 2.5", "stream": "stdout"}), message_of({"msg": "train", "step": 1, "loss": 2.5})
    ('step 1 loss 2.5', None)
    """
    inner = next((record[key] for key in _GROUPS if isinstance(record.get(key), dict)), None)
    text: str | None = next((record[key] for key in _TEXTS if isinstance(record.get(key), str)), None)
    if text is None and inner is not None:  # the message stands in a group of its own, as Google's do
        return message_of(inner)
    if text is None or any(_is_metric(key, value) for key, value in record.items()):
        return None
    return text


def unwrap(line: str) -> tuple[str, float, TimeKind] | None:
    """The text in a wrapped `line`, and when it was written (NaN, NONE when it does not say).

    >>> unwrap('{"log": "loss 2.5", "time": "2025-01-15T10:00:00Z"}')
    ('loss 2.5', 1736935200.0, <TimeKind.ABSOLUTE: 'absolute'>)
    """
    if not line.endswith("}") or not any(f'"{key}"' in line for key in _TEXTS):
        return None
    try:
        record = _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return None
    text = message_of(record) if isinstance(record, dict) else None
    if text is None:
        return None
    numbers = {key: float(value) for key, value in record.items() if isinstance(value, int | float)}
    time, kind = time_of(numbers, {key: value for key, value in record.items() if isinstance(value, str)})
    return text, time, kind


def _is_metric(key: str, value: object) -> bool:
    if isinstance(value, dict) and any(_is_metric(inner, one) for inner, one in value.items()):
        return True
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (is_number or isinstance(value, dict)) and (
        is_training_key(key) or step_rank(key) is not None or key == "metrics"
    )
