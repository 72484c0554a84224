"""Records of trackers' queues on disk, which wait there to be sent: Neptune's and ClearML's.

Neptune's hold several values of one metric, each of which becomes a record of its own; ClearML's name a metric by its
chart and the line in it.
"""

from __future__ import annotations

from typing import Any

from trainmon.tails.formats.json_text import Objects

_LOGS = frozenset(("LogFloats", "LogSeriesValue"))
_KEYS = frozenset(("obj", "version", "at"))
_SETS = frozenset(("train", "training", "val", "valid", "validation", "test", "eval"))
_MOST_VALUES = 100_000


def with_single_values(objects: Objects) -> tuple[Objects, bool]:
    """The records, those of a tracker's queue as one record for each value; and whether there was one.

    >>> log = {"type": "LogFloats", "path": ["train", "loss"], "values": [{"value": 2.5, "step": 1.0, "ts": 9.0}]}
    >>> with_single_values([(0, {"obj": log, "version": 3}), (80, {"step": 2})])
    ([(0, {'step': 1.0, 'train/loss': 2.5, 'timestamp': 9.0}), (80, {'step': 2})], True)
    """
    if not any("obj" in record or "variant" in record for _, record in objects):
        return objects, False
    found: Objects = []
    is_any = False
    for place, record in objects:
        rows = _rows(record)
        is_any = is_any or rows is not None
        found += [(place, row) for row in ([record] if rows is None else rows)]
    return found, is_any


def _rows(record: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The records that a tracker's record stands for; None where it is something else."""
    chart, line = record.get("metric"), record.get("variant")
    if isinstance(chart, str) and isinstance(line, str) and "iter" in record and "value" in record:
        name = chart if line == chart else f"{line}/{chart}" if line.lower() in _SETS else f"{chart}/{line}"
        return [{"step": record["iter"], name: record["value"], "timestamp": record.get("timestamp")}]
    told = record.get("obj")
    if not isinstance(told, dict) or not record.keys() <= _KEYS:
        return None
    path, values = told.get("path"), told.get("values")
    if not isinstance(path, list) or not all(isinstance(part, str) for part in path):
        return None
    if told.get("type") not in _LOGS or not isinstance(values, list):
        return []  # sets or deletes something that is no metric
    name = "/".join(path)
    return [
        {"step": one.get("step"), name: one.get("value"), "timestamp": one.get("ts")}
        for one in values[:_MOST_VALUES]
        if isinstance(one, dict)
    ]
