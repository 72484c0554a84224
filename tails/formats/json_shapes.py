"""Shapes of whole JSON documents: series by name, lists of records, and where the records stand in the text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from trainmon.tails.formats.builder import mark_of
from trainmon.tails.formats.cells import as_float, number_in
from trainmon.tails.formats.long_form import NAME_KEYS
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, Mark, MarkArray
from trainmon.tails.steps import is_training_key, ranked_step_keys, says_eval, words_of

_DECODER = json.JSONDecoder(parse_int=float, strict=False)
_MOST_IN_POINT = 5  # a step and a value, its time, and what else a writer adds
_BETWEEN = lazy(r"[\s,]*")
_COUNTS = frozenset(("step", "steps", "iter", "iters", "iteration", "iterations"))
_WHOLE = lazy(r"\s*-?\d+(?:\.0*)?\s*")


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity: `values` with their `steps` (None: by place) and `times` (None: unknown)."""

    name: str
    values: list[Any]
    steps: list[float] | None = None
    times: list[Any] | None = None


def column_of(values: list[Any]) -> tuple[FloatArray, MarkArray | None]:
    """(n,) float64 of JSON scalars, and marks where something that is no number was logged; text is not logged."""
    column = np.full(len(values), math.nan)
    odd: dict[int, Mark] = {}
    for index, value in enumerate(values):
        number = number_in(value) if isinstance(value, str) else value
        if isinstance(number, bool) or (value is not None and not isinstance(number, int | float)):
            continue
        if number is None:
            odd[index] = Mark.NULL
            continue
        column[index] = as_float(number)
        if not math.isfinite(column[index]):
            odd[index] = mark_of(float(column[index]))
    if not odd:
        return column, None
    marks = np.where(np.isnan(column), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)
    for index, mark in odd.items():
        marks[index] = mark
    return column, marks


def series_of(document: dict[str, Any]) -> list[Series]:
    """The series that the entries of a document are: ``{"loss": {"values": {"1": 2.5}}}``, ``{"loss": {"steps": [..],
    "values": [..]}}``, ``{"loss": {"1": 2.5}}`` or, by place, ``{"loss": [2.5, ..]}``.

    >>> found = series_of({"lm loss": {"start_step": 5, "values": {"5": 2.5}}, "lr": [1, 2]})
    >>> [(one.name, one.steps, one.values) for one in found]
    [('lm loss', [5.0], [2.5]), ('lr', None, [1, 2])]
    """
    found = [series for name, entry in _entries(document) if (series := _series(name, entry)) is not None]
    return _with_common_steps(found)


def _entries(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of a document; those of plots by title and line (ClearML) as ``title/line``."""
    for name, entry in document.items():
        if (
            isinstance(entry, dict)
            and entry
            and all(isinstance(one, dict) and {"x", "y"} <= set(one) for one in entry.values())
        ):
            yield from ((f"{name}/{line}", one) for line, one in entry.items())
        else:
            yield name, entry


def named_series(records: list[dict[str, Any]]) -> list[Series]:
    """The series that records with a name and a list of values are (Aim); of another subset than training, under it.

    >>> found = named_series([{"name": "loss", "context": {"subset": "val"}, "values": [2, 1], "iters": [1, 2]}])
    >>> found[0].name, found[0].steps
    ('val/loss', [1.0, 2.0])
    """
    found = []
    for record in records:
        name, context = record.get("name"), record.get("context")
        subset = context.get("subset") if isinstance(context, dict) else None
        if isinstance(name, str) and isinstance(record.get("values"), list):
            key = f"{subset}/{name}" if isinstance(subset, str) and subset not in ("train", "training") else name
            series = _series(key, {one: entry for one, entry in record.items() if one not in ("name", "context")})
            found += [series] if series is not None else []
    return found if len(found) == len(records) else []


def records_by_step(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of ``{"10": {"loss": 2.5}, "20": {"loss": 2.25}}``; none when the document is something else."""
    if not document or not all(_WHOLE.fullmatch(step) and isinstance(one, dict) for step, one in document.items()):
        return []
    return [{"step": float(step), **one} for step, one in document.items()]


def frame_records(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a data frame that was written with its columns' names apart; none when the document is no such.

    >>> frame_records({"columns": ["step", "loss"], "index": [0], "data": [[10, 2.5]]})
    [{'step': 10, 'loss': 2.5}]
    """
    names, rows = document.get("columns"), document.get("data")
    if not isinstance(names, list) or not isinstance(rows, list) or not all(isinstance(name, str) for name in names):
        return []
    if not names or not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return []
    return [dict(zip(names, row, strict=True)) for row in rows]


def _of_points(name: str, points: list[Any]) -> Series | None:
    """The series that a list of ``{"step": 10, "value": 2.5}`` or of ``[10, 2.5]`` is; None when it is none."""
    if is_record_list(points):
        step = next(iter(ranked_step_keys(points[0])), None)
        value = next((key for key in ("value", "val", "y") if key in points[0]), None)
        if (
            step is None
            or value is None
            or len(points[0]) > _MOST_IN_POINT
            or not points[0].keys().isdisjoint(NAME_KEYS)
        ):
            return None
        if not all(_is_number(point.get(step)) and value in point and _is_scalar(point[value]) for point in points):
            return None
        return Series(name, [point[value] for point in points], _floats([point[step] for point in points]))
    if not (is_training_key(name) or says_eval(name)):
        return None
    if not all(isinstance(point, list) and len(point) == 2 and _is_number(point[0]) for point in points):
        return None
    steps = _floats([point[0] for point in points])
    is_counted = all(a < b for a, b in pairwise(steps)) and all(step == step // 1 for step in steps)
    if len(points) < 2 or not is_counted or not all(_is_scalar(point[1]) for point in points):
        return None
    return Series(name, [point[1] for point in points], steps)


def _series(name: str, entry: Any) -> Series | None:
    if isinstance(entry, list):
        if entry and isinstance(entry[0], dict | list):
            return _of_points(name, entry)
        return (
            Series(name, entry)
            if len(entry) > 1 and all(map(_is_scalar, entry)) and any(map(_is_number, entry))
            else None
        )
    if not isinstance(entry, dict) or not entry:
        return None
    values = next((entry[key] for key in ("values", "value", "y") if key in entry), None)
    if isinstance(values, dict):
        return _by_step(name, values)
    if isinstance(values, list):
        steps = next((entry[key] for key in ("steps", "step", "iters", "iterations", "x") if key in entry), None)
        times = entry.get("timestamps", entry.get("times"))
        if isinstance(steps, list) and len(steps) == len(values):
            return Series(
                name, values, _floats(steps), times if isinstance(times, list) and len(times) == len(values) else None
            )
        start, interval = entry.get("start_step"), entry.get("step_interval", 1)
        if _is_number(start) and _is_number(interval):
            return Series(name, values, [start + interval * place for place in range(len(values))])
        return Series(name, values) if all(map(_is_scalar, values)) else None
    return _by_step(name, entry)


def _by_step(name: str, values: dict[str, Any]) -> Series | None:
    if values and all(_WHOLE.fullmatch(step) for step in values) and all(map(_is_scalar, values.values())):
        return Series(name, list(values.values()), [float(step) for step in values])
    return None


def _with_common_steps(found: list[Series]) -> list[Series]:
    """Series by place get their steps from a list of steps of the same length beside them, those of a data frame by
    the numbers of its rows from its column of steps."""
    found = _with_column_of_steps(found)
    by_place = {series.name: series for series in found if series.steps is None}
    out = []
    used: set[str] = set()
    for series in found:
        if series.steps is not None:
            out.append(series)
            continue
        keys = [key for key in ranked_step_keys(by_place) if len(by_place[key].values) == len(series.values)]
        keys = _held_out_steps(series, by_place) or keys
        if not keys or keys[0] == series.name:
            out.append(series)
        else:
            used.add(keys[0])
            out.append(Series(series.name, series.values, _floats(by_place[keys[0]].values)))
    return [series for series in out if series.name not in used]


def _held_out_steps(series: Series, by_place: dict[str, Series]) -> list[str]:
    """The lists beside a series of held-out values that count its own steps: ``val_steps`` beside ``val_loss``."""
    if not says_eval(series.name) or not words_of(series.name).isdisjoint(_COUNTS):
        return []
    return [
        name
        for name, other in by_place.items()
        if says_eval(name) and not words_of(name).isdisjoint(_COUNTS) and len(other.values) == len(series.values)
    ]


def _with_column_of_steps(found: list[Series]) -> list[Series]:
    by_row = {one.name: one for one in found if one.steps == list(range(len(one.values)))}
    keys = ranked_step_keys(by_row)
    if not keys or len(by_row) < 2 or len(by_row) < len(found):
        return found
    counted = by_row[keys[0]].values
    if not all(map(_is_number, counted)) or any(len(one.values) != len(counted) for one in found):
        return found
    return [Series(one.name, one.values, _floats(counted)) for one in found if one.name != keys[0]]


def _floats(values: list[Any]) -> list[float]:
    floats: list[float] = column_of(values)[0].tolist()
    return floats


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, int | float | str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_record_list(value: Any) -> bool:
    """Whether `value` is a list of objects."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def holds_data(value: dict[str, Any], depth: int = 1) -> bool:
    """Whether an object of a document holds records or series, itself or in an object `depth` levels down."""
    if any(is_record_list(entry) for entry in value.values()):
        return True
    if any(one.steps is not None or len(one.values) > 1 for one in series_of(value)):
        return True
    return depth > 0 and any(isinstance(entry, dict) and holds_data(entry, depth - 1) for entry in value.values())


def elements(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Start and end of each object from `start` on, commas and blanks between; stops at the first that is torn."""
    while True:
        match = _BETWEEN.match(text, start)
        start = match.end() if match is not None else start
        if text[start : start + 1] != "{":
            return
        try:
            _, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield start, end
        start = end


def list_start(text: str, key: str) -> int | None:
    """The place behind the bracket that opens the list under `key`, its first mention; "" is the document itself."""
    pattern = r"\s*\[" if not key else re.escape(json.dumps(key)) + r"\s*:\s*\["
    match = re.match(pattern, text) if not key else re.search(pattern, text)
    return match.end() if match is not None else None
