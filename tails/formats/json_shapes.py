"""Shapes of whole JSON documents: series by name, lists of records, and where the records stand in the text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainmon.tails.formats.builder import mark_of
from trainmon.tails.formats.cells import as_float, number_in
from trainmon.tails.record import FloatArray, Mark, MarkArray
from trainmon.tails.steps import ranked_step_keys

_DECODER = json.JSONDecoder(parse_int=float, strict=False)
_BETWEEN = re.compile(r"[\s,]*")
_WHOLE = re.compile(r"\s*-?\d+(?:\.0*)?\s*")


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
    found = [series for name, entry in document.items() if (series := _series(name, entry)) is not None]
    return _with_common_steps(found)


def _series(name: str, entry: Any) -> Series | None:
    if isinstance(entry, list):
        return (
            Series(name, entry)
            if len(entry) > 1 and all(map(_is_scalar, entry)) and any(map(_is_number, entry))
            else None
        )
    if not isinstance(entry, dict) or not entry:
        return None
    values = entry.get("values", entry.get("value"))
    if isinstance(values, dict):
        return _by_step(name, values)
    if isinstance(values, list):
        steps = entry.get("steps", entry.get("step"))
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
    """Series by place get their steps from a list of steps of the same length beside them."""
    by_place = {series.name: series for series in found if series.steps is None}
    out = []
    used: set[str] = set()
    for series in found:
        if series.steps is not None:
            out.append(series)
            continue
        keys = [key for key in ranked_step_keys(by_place) if len(by_place[key].values) == len(series.values)]
        if not keys or keys[0] == series.name:
            out.append(series)
        else:
            used.add(keys[0])
            out.append(Series(series.name, series.values, _floats(by_place[keys[0]].values)))
    return [series for series in out if series.name not in used]


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
