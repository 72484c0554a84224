"""Records that stand for several: trackers' queues on disk, which wait there to be sent, telemetry, buffered arrays.

Neptune's hold several values of one metric, each of which becomes a record of its own; ClearML's name a metric by its
chart and the line in it; OpenTelemetry's hold a tree of metrics with their points; a buffer that is written every so
many steps holds lists of as many values.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from trainmon.tails.formats.cells import number_in
from trainmon.tails.formats.json_text import Objects
from trainmon.tails.steps import ranked_step_keys, step_rank

_LOGS = frozenset(("LogFloats", "LogSeriesValue"))
_KEYS = frozenset(("obj", "version", "at"))
_HINTS = frozenset(("obj", "variant", "resourceMetrics"))
_SETS = frozenset(("train", "training", "val", "valid", "validation", "test", "eval"))
_MOST_VALUES = 100_000
_FEWEST_LISTS = 2


def with_single_values(objects: Objects) -> tuple[Objects, bool]:
    """The records, those that stand for several taken apart; and whether there was one.

    >>> log = {"type": "LogFloats", "path": ["train", "loss"], "values": [{"value": 2.5, "step": 1.0, "ts": 9.0}]}
    >>> with_single_values([(0, {"obj": log, "version": 3}), (80, {"step": 2})])
    ([(0, {'step': 1.0, 'train/loss': 2.5, 'timestamp': 9.0}), (80, {'step': 2})], True)
    """
    if not any(_may_be_several(record) for _, record in objects):
        return objects, False
    found: Objects = []
    is_any = False
    for place, record in objects:
        rows = _rows(record)
        is_any = is_any or rows is not None
        found += [(place, row) for row in ([record] if rows is None else rows)]
    return found, is_any


def _may_be_several(record: dict[str, Any]) -> bool:
    if not record.keys().isdisjoint(_HINTS):
        return True
    first = next(iter(record.values()), None)
    return isinstance(first, list) and len(first) > 1 and isinstance(first[0], int | float)


def _rows(record: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The records that a record stands for; None where it is one of its own."""
    if isinstance(record.get("resourceMetrics"), list):
        return list(_points(record["resourceMetrics"]))
    if (buffered := _buffered(record)) is not None:
        return buffered
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


def _buffered(record: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The records of ``{"step": [1, 2], "loss": [2.5, 2.25]}``: lists of one length, one of them of rising steps."""
    lists = list(record.values())
    if len(lists) < _FEWEST_LISTS or not all(isinstance(one, list) and len(one) == len(lists[0]) for one in lists):
        return None
    key = next(iter(ranked_step_keys(record)), None)
    if key is None or not 1 < len(lists[0]) <= _MOST_VALUES:
        return None
    steps = record[key]
    if not all(isinstance(step, int | float) for step in steps) or any(b <= a for a, b in pairwise(steps)):
        return None
    return [dict(zip(record, values, strict=True)) for values in zip(*lists, strict=True)]


def _points(resources: list[Any]) -> Iterator[dict[str, Any]]:
    """The points of OpenTelemetry's metrics: what is measured, its step among the attributes, and its time."""
    scopes = [scope for resource in _dicts(resources) for scope in _dicts(resource.get("scopeMetrics"))]
    for metric in (metric for scope in scopes for metric in _dicts(scope.get("metrics"))):
        name = metric.get("name")
        told: dict[str, Any] = next(
            (metric[kind] for kind in ("gauge", "sum") if isinstance(metric.get(kind), dict)), {}
        )
        for point in _dicts(told.get("dataPoints")) if name else ():
            row: dict[str, Any] = {str(name): point.get("asDouble", point.get("asInt"))}
            for attribute in _dicts(point.get("attributes")):
                key, value = attribute.get("key"), attribute.get("value")
                if isinstance(key, str) and isinstance(value, dict) and step_rank(key) is not None:
                    row[key] = next(iter(value.values()), None)
            nanoseconds = number_in(str(point.get("timeUnixNano")))
            yield row | ({} if nanoseconds is None else {"timestamp": nanoseconds / 1e9})


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
