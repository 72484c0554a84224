"""Columns that tell apart what the rows of one table are about (tasks, models, ranks) become labels behind the keys."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmon.tails.formats.csv_header import Header, is_number
from trainmon.tails.steps import step_rank

_HEAD_ROWS = 256
_PROCESSES = ("rank", "worker")
_LONGEST = 120
_MOST = 500  # label sets kept apart; what comes after shares one


class Labels:
    """The label of each row: ``{variant=x}`` behind its keys.

    A column with one value in the first `_HEAD_ROWS` rows labels nothing; should another value come later, only its
    rows are labelled.

    >>> labels = Labels(Header.of(["task", "step", "acc"]))
    >>> labels.settle([["a", "1", "2.5"]], final=False), labels.settle([["a", "1", "2"], ["b", "1", "3"]], final=False)
    (False, True)
    >>> labels.suffixes([("a", "b"), ("1", "1"), ("2", "3")], ())
    ['{task=a}', '{task=b}']
    """

    def __init__(self, header: Header | None = None) -> None:
        self._columns = header.labels if header is not None else ()
        self._names = header.names if header is not None else ()
        self._runs = header.runs if header is not None else ()
        self._texts = _may_tell_runs(header) if header is not None else ()
        self._steps = [index for index, name in enumerate(self._names) if step_rank(name) is not None]
        self._silent: dict[int, str] = {}
        self._known: dict[tuple[str, ...], str] = {}

    def settle(self, rows: Sequence[Sequence[str]], *, final: bool) -> bool:
        """Decides by the first rows which columns label; False when more rows must be seen."""
        texts = self._texts_among(rows[:_HEAD_ROWS])
        if texts and len(rows) < _HEAD_ROWS and not final:
            return False
        told = (index for index in texts if self._tells_runs(index, rows[:_HEAD_ROWS]))
        self._columns = (*self._columns, *told, *self._results_of(rows[:_HEAD_ROWS]))
        single = {index: {row[index] for row in rows[:_HEAD_ROWS]} for index in self._columns}
        single = {index: values for index, values in single.items() if len(values) < 2}
        if single and len(rows) < _HEAD_ROWS and not final:
            return False
        self._silent = {index: next(iter(values)) for index, values in single.items()}
        for index in self._columns if rows else ():
            if self._names[index].lower() in _PROCESSES:  # the first to speak speaks for the run
                self._silent.setdefault(index, rows[0][index])
        return True

    def _texts_among(self, rows: Sequence[Sequence[str]]) -> list[int]:
        """The columns of words, of which few come again and again: they may name runs."""
        found = []
        for index in self._texts if self._steps else ():
            words = {row[index] for row in rows}
            if not any(map(is_number, words)) and all(len(word) <= _LONGEST for word in words) and any(words):
                found.append(index)
        return found

    def _tells_runs(self, index: int, rows: Sequence[Sequence[str]]) -> bool:
        """Whether the steps go back in the table, and never among the rows of one word in column `index`."""
        newest: dict[str, float] = {}
        last, goes_back = -math.inf, False
        for row in rows:
            step = _step(row[self._steps[0]])
            if step is None:
                continue
            if step <= newest.get(row[index], -math.inf):
                return False
            goes_back = goes_back or step <= last
            newest[row[index]] = last = step
        return goes_back and 1 < len(newest) <= len(rows) // 2

    def _results_of(self, rows: Sequence[Sequence[str]]) -> tuple[int, ...]:
        """The columns that name runs, where each of several runs has one row: a table of results."""
        columns = self._runs if self._steps else ()
        tops: dict[tuple[str, ...], float] = {}
        for row in rows if columns else ():
            step = _step(row[self._steps[0]])
            name = tuple(row[index] for index in columns)
            if step is not None and step > tops.setdefault(name, step):
                return ()
        return columns if len(tops) > 1 else ()

    def suffixes(self, table: Sequence[Sequence[str]], runs: Sequence[str]) -> list[str] | None:
        """(n,) the labels of the rows, `table` column by column; None when the table has no labels.

        `runs`: the names of the columns that tell runs apart, which label nothing.
        """
        if runs and any(self._names[index] in runs for index in self._columns):
            self._columns = tuple(index for index in self._columns if self._names[index] not in runs)
            self._known = {}
        if not self._columns:
            return None
        known = self._known
        out = []
        for values in zip(*(table[index] for index in self._columns), strict=True):
            suffix = known.get(values)
            if suffix is None:
                suffix = self._make(values)
                if len(known) >= _MOST and suffix:
                    suffix = "{others}"
                else:
                    known[values] = suffix
            out.append(suffix)
        return out

    def _make(self, values: Sequence[str]) -> str:
        parts = [
            f"{self._names[index]}={_safe(value)}"
            for index, value in zip(self._columns, values, strict=True)
            if value and self._silent.get(index) != value
        ]
        return "{" + ",".join(parts) + "}" if parts else ""


def _may_tell_runs(header: Header) -> tuple[int, ...]:
    """The columns that have no meaning yet and may hold words."""
    return tuple(index for index in header.numbers if index not in (*header.texts, *header.long))


def _step(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _safe(text: str) -> str:
    return text[:120].translate({ord("{"): "(", ord("}"): ")", ord("="): "-", ord(","): " "})
