"""One reading of a JSON document: what is in it, whatever its shape."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from trainmon.tails.formats.at_the_end import done_by_count
from trainmon.tails.formats.bulk import Bulk
from trainmon.tails.formats.cells import as_float
from trainmon.tails.formats.config_facts import config_facts, looks_like_config
from trainmon.tails.formats.csv_header import losses_by_file, metric_of_file
from trainmon.tails.formats.json_shapes import (
    Series,
    column_of,
    elements,
    frame_records,
    holds_data,
    is_record_list,
    list_start,
    named_series,
    records_by_step,
    series_of,
)
from trainmon.tails.formats.json_text import decoded, size_of, tolerant
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.formats.line_index import Lines
from trainmon.tails.formats.records import Cells, RecordReader
from trainmon.tails.formats.stamps import parse_stamp, seconds_of
from trainmon.tails.formats.struct_plan import Columns, Marks
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Fact, FloatArray, MarkArray, NoteKind, Parsed
from trainmon.tails.steps import falls, is_loss_key, ranked_step_keys, says_eval, words_of

_BOM = b"\xef\xbb\xbf"
_RUN_DEPTH = 3
_NEXT_ARRAY = lazy(r"\s*\]\s*\[")  # arrays of records, one after another
_FEWEST_TURNED = 5  # records that stand newest first, for that to be no chance


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the document: what is put before the names of its series, and whether it is one of several runs."""

    prefix: str = ""
    in_run: bool = False


class Reading:
    """One reading of a document."""

    def __init__(self, source: str, data: bytes) -> None:
        self.source = source
        begin = len(_BOM) if data.startswith(_BOM) else 0
        whole = data[begin:].lstrip(b"\0")
        self._shift = len(data) - len(whole)
        self.text, self._escaped = decoded(whole.rstrip(b"\0"))
        self.lines = JsonLines(source)
        self.reader: RecordReader = self.lines.reader
        self.bulk = Bulk(self.reader)
        self._newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        self._ascii = self.text.isascii()

    def read(self) -> Parsed:
        """Everything the document holds."""
        try:
            value = _decode(self.text)
        except (ValueError, RecursionError):
            self._salvage()
        else:
            self._read_value(value)
        out = self.reader.take()
        out.lines = len(self._newlines) + (not self.text.endswith("\n") and bool(self.text))
        return out

    def _read_value(self, value: Any) -> None:
        if isinstance(value, dict):
            self._read_object(value, _Place(), 0)
        elif is_record_list(value):
            series = named_series(value)
            if series:
                self._read_series(series, "")
            else:
                self._read_records("", value, _Place())
        elif isinstance(value, list):
            self._read_triples(value)

    def _salvage(self) -> None:
        """Several values one after another, or what is left of a torn document."""
        for key in ("log_history", "history", "records", ""):
            start = list_start(self.text, key)
            if start is not None:
                spans = list(elements(self.text, start))
                while not key and spans and (more := _NEXT_ARRAY.match(self.text, spans[-1][1])):
                    spans += (following := list(elements(self.text, more.end())))
                    if not following:
                        break
                if not key and spans and not self.text[spans[-1][1] :].strip(" \t\r\n]"):
                    self._read_spans(spans)
                    return
                is_growing = not key and spans and not self.text[spans[-1][1] :].strip(" \t\r\n,")
                if not is_growing:  # a list whose end is still to come has lost nothing
                    self._lost()
                self._read_spans(spans)
                return
        spans = list(elements(self.text, 0))
        if not spans or self.text[spans[-1][1] :].strip():
            self._lost()
        self._read_spans(spans)

    def _lost(self) -> None:
        self.reader.parsed.unreadable += 1
        self.reader.note(NoteKind.UNREADABLE, "the document ends early or is no JSON", 0, 1)

    def _read_object(self, value: dict[str, Any], place: _Place, depth: int) -> None:
        by_step = records_by_step(value) or frame_records(value)
        if by_step:
            self._read_records("", by_step, place)
            return
        series = series_of(value)
        named = {one.name for one in series}
        records = [key for key, entry in value.items() if is_record_list(entry) and key not in named]
        rest = {key: entry for key, entry in value.items() if key not in records}
        runs = [
            key for key, entry in rest.items() if isinstance(entry, dict) and depth < _RUN_DEPTH and holds_data(entry)
        ]
        named = {one.name for one in series} | {one.name.split("/")[0] for one in series}
        runs = [key for key in runs if key not in named]
        if not records and not series and not runs:
            self._read_flat(value)
            return
        self._read_facts({key: entry for key, entry in rest.items() if key not in named and key not in runs})
        self._read_series(series, place.prefix)
        for key in records:
            if series and not any("step" in str(name).lower() or "iter" in str(name).lower() for name in value[key][0]):
                self._read_aside(key, value[key])
            else:
                self._read_records(key, value[key], place)
        for key in rest:
            if isinstance(rest[key], list) and rest[key] and all(map(is_record_list, rest[key])):
                self._read_aside(key, [item for inner in rest[key] for item in inner])
        several = sum(not _is_part(key) for key in runs) > 1
        for key in runs:
            if several and not _is_part(key) and not self.reader.begin_run(f"run={key}"):
                continue
            prefix = f"{key}/" if says_eval(key) else place.prefix
            self._read_object(value[key], _Place(prefix, place.in_run or several), depth + 1)
        if (step := done_by_count(value)) is not None:
            self.reader.note(NoteKind.FINISHED, f"global_step is {step:.15g} of as many", 0, len(self._newlines), step)

    def _read_flat(self, value: dict[str, Any]) -> None:
        """A document without series or records: settings, or one record."""
        values, texts = self.reader.keys.row(value)
        if looks_like_config(values, texts):
            self._read_facts(value)
        else:
            self.reader.read(value, 0, 1)

    def _read_facts(self, value: dict[str, Any]) -> None:
        values, texts = self.reader.keys.row(value)
        for key, fact in config_facts(values, texts):
            self.reader.parsed.facts.append(Fact(self.source, 1, key, fact, self.reader.run.label))

    def _read_records(self, key: str, records: list[dict[str, Any]], place: _Place) -> None:
        start = list_start(self.text, key)
        spans = list(elements(self.text, start)) if start is not None and not place.in_run else []
        if len(records) > _FEWEST_TURNED and _newest_first(records):
            records, spans = records[::-1], spans[::-1]
        is_eval = says_eval(key) or bool(place.prefix)
        if len(spans) == len(records) and not is_eval:
            self._read_spans(spans)
            return
        for index, record in enumerate(records):
            typed = {"split": "eval", **record} if is_eval else record
            self.reader.read(typed, 0, 1, partial(self._behind, records, index))

    def _behind(self, records: list[dict[str, Any]], index: int, count: int) -> list[Cells]:
        """The numbers and texts of the records behind one."""
        return [self.reader.keys.row(record) for record in records[index + 1 : index + 1 + count]]

    def _read_spans(self, spans: list[tuple[int, int]]) -> None:
        """Records at these places of the text, by the fast way."""
        if not spans:
            return
        joined = "\n".join(self.text[start:end].replace("\n", " ").replace("\r", " ") for start, end in spans)
        lines = Lines(joined.encode("utf-8", "replace"), 1, 1)
        lines.offsets = self._offsets([start for start, _ in spans])
        lines.numbers = np.searchsorted(self._newlines, lines.offsets).astype(np.int64) + 1
        self.lines.read_lines(lines)

    def _offsets(self, places: list[int]) -> np.ndarray:
        if self._ascii:
            return np.array(places, np.int64) + self._shift
        out, at, size = [], 0, self._shift
        for place in places:
            size += size_of(self._escaped[at:place])
            at = place
            out.append(size)
        return np.array(out, np.int64)

    def _read_aside(self, key: str, records: list[dict[str, Any]]) -> None:
        """Records without a step beside series by name: one row, a rank as label."""
        row: dict[str, Any] = {}
        for record in records:
            rank = record.get("rank")
            suffix = f"{{rank={int(rank)}}}" if isinstance(rank, int | float) and math.isfinite(as_float(rank)) else ""
            row.update({f"{key}/{name}{suffix}": entry for name, entry in record.items() if name != "rank"})
        self.reader.read(row, 0, 1)

    def _read_triples(self, value: list[Any]) -> None:
        """TensorBoard's JSON export: ``[[wall time, step, value], ...]``."""
        rows = [item for item in value if isinstance(item, list) and len(item) == 3]
        if rows and len(rows) == len(value):
            times, steps, values = (list(column) for column in zip(*rows, strict=True))
            name = metric_of_file(self.source) or "Value"
            self._read_series([Series(name, values, column_of(steps)[0].tolist(), times)], "")

    def _read_series(self, series: list[Series], prefix: str) -> None:
        named = losses_by_file([one.name for one in series], self.source)
        series = [replace(one, name=name) for one, name in zip(series, named, strict=True)]
        stepped = [one for one in series if one.steps is not None]
        if all(_is_rising(one.steps or []) for one in stepped) and stepped:
            self._add_union(stepped, prefix)
        else:
            for one in stepped:
                self._add_union([one], prefix)
        by_place = [one for one in series if one.steps is None]
        if by_place:
            trained = [len(one.values) for one in by_place if is_loss_key(one.name) and not says_eval(one.name)]
            whole = max(trained or [len(one.values) for one in by_place])
            count = max(len(one.values) for one in by_place)
            made = {}
            for one in by_place:
                values, marks = column_of(one.values)
                made[prefix + one.name] = _placed(values, marks, _rows_of(one, whole), count)
            self._add(np.full(count, math.nan), made, [])

    def _add_union(self, series: list[Series], prefix: str) -> None:
        own = [np.array(one.steps, np.float64) for one in series]
        steps = own[0] if len(own) == 1 else np.unique(np.concatenate(own))
        made = {}
        for one, at in zip(series, own, strict=True):
            rows = np.arange(len(at)) if len(own) == 1 else np.searchsorted(steps, at)
            made[prefix + one.name] = _placed(*column_of(one.values), rows, len(steps))
        times = series[0].times if len({id(one.steps) for one in series}) == 1 or _same(own) else None
        self._add(steps, made, times or [])

    def _add(self, steps: np.ndarray, made: dict[str, tuple[np.ndarray, np.ndarray | None]], times: list[Any]) -> None:
        columns: Columns = {key: column for key, (column, _) in made.items()}
        marks: Marks = {key: mark for key, (_, mark) in made.items() if mark is not None}
        texts: dict[str, list[str | None]] = {}
        if len(steps) and not np.isnan(steps).all():
            self.reader.chooser.key = self.reader.chooser.key or "step"
            columns[self.reader.chooser.key] = steps
        if times and all(isinstance(time, str) and parse_stamp(time)[0] == parse_stamp(time)[0] for time in times[:1]):
            texts["timestamp"] = [time if isinstance(time, str) else None for time in times]
        elif times:
            stamps = column_of(times)[0]
            if len(stamps) and seconds_of(float(stamps[0])) == seconds_of(float(stamps[0])):
                columns["wall_time"] = stamps
        zeros = np.zeros(len(steps), np.int64)
        self.bulk.add_columns(columns, marks, texts, zeros, zeros + 1)


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.MsgspecError, RecursionError):
        return tolerant(text)


def _placed(
    values: FloatArray, marks: MarkArray | None, rows: np.ndarray, count: int
) -> tuple[FloatArray, MarkArray | None]:
    """A column of `count` rows that holds the values at `rows`."""
    column, mark = np.full(count, math.nan), None
    column[rows] = values
    if marks is not None:
        mark = np.zeros(count, np.uint8)
        mark[rows] = marks
    return column, mark


def _rows_of(series: Series, whole: int) -> np.ndarray:
    """The rows of a series without steps among `whole` of the training: what is measured less often is spread evenly.

    >>> _rows_of(Series("val_loss", [3, 2]), 10).tolist(), _rows_of(Series("lr", [1, 2, 3]), 10).tolist()
    ([4, 9], [0, 1, 2])
    """
    count = len(series.values)
    if count < 2 or count >= whole or (whole % count and not says_eval(series.name)):
        return np.arange(count)
    return (np.arange(1, count + 1) * whole) // count - 1


def _newest_first(records: list[dict[str, Any]]) -> bool:
    key = next(iter(ranked_step_keys(records[0])), "")
    steps = [as_float(step) for one in records if isinstance(step := one.get(key), int | float)]
    return len(steps) > _FEWEST_TURNED and falls(steps)


def _is_part(key: str) -> bool:
    """Whether what stands under `key` is a part of a run, its training or an evaluation, and no run."""
    return says_eval(key) or not words_of(key).isdisjoint(("train", "training"))


def _is_rising(steps: list[float]) -> bool:
    return all(a < b for a, b in pairwise(steps))


def _same(arrays: list[np.ndarray]) -> bool:
    return all(np.array_equal(arrays[0], other) for other in arrays[1:])
