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
        self._step = next((index for index, name in enumerate(self._names) if step_rank(name) is not None), -1)
        has_step = header is not None and self._step >= 0
        self._words = {index: _Words() for index in _may_tell_runs(header)} if header is not None and has_step else {}
        self._results = _Results(header.runs if header is not None and has_step else ())
        self._values: dict[int, set[str]] = {index: set() for index in self._columns}
        self._first: dict[int, str] = {}
        self._is_settled = False
        self.rows = 0  # that were seen until all was clear
        self._silent: dict[int, str] = {}
        self._known: dict[tuple[str, ...], str] = {}

    @property
    def count(self) -> int:
        """How many columns label."""
        return len(self._columns)

    def settle(self, rows: Sequence[Sequence[str]], *, final: bool) -> bool:
        """Decides by the first rows which columns label; False when more rows must be seen.

        Each call is given the rows of the one before and those that came since; what is decided follows from the rows
        up to the first at which all is clear, however many there are.
        """
        if self._is_settled:
            return True
        while not (is_clear := self._is_clear()) and self.rows < len(rows):
            self._see(rows[self.rows])
            self.rows += 1
        if not is_clear and not final:
            return False
        self._is_settled = True
        told = (index for index, words in self._words.items() if words.tell_runs(self.rows))
        self._columns = (*self._columns, *told, *(self._results.columns if self._results.are_rows else ()))
        for index in self._columns:
            values = self._values.get(index, ())
            if len(values) == 1 or self._is_process(index):  # the first to speak speaks for the run
                self._silent[index] = self._first.get(index, "")
        return True

    def _see(self, row: Sequence[str]) -> None:
        if not self.rows:
            self._first = dict(enumerate(row))
        step = _step(row[self._step]) if self._step >= 0 else None
        for index in [index for index, words in self._words.items() if not words.see(row[index], step)]:
            del self._words[index]
        self._results.see(row, step)
        for index, values in self._values.items():
            values.add(row[index])

    def _is_clear(self) -> bool:
        """Whether no further row changes what was decided."""
        if self.rows >= _HEAD_ROWS:
            return True
        if not self.rows or self._words or self._results.may_be_rows:
            return False
        return all(len(values) > 1 or self._is_process(index) for index, values in self._values.items())

    def _is_process(self, index: int) -> bool:
        return self._names[index].lower() in _PROCESSES

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


class _Words:
    """One column of words, of which few come again and again: they may name runs."""

    def __init__(self) -> None:
        self._newest: dict[str, float] = {}
        self._last = -math.inf
        self._goes_back = False
        self._has_begun = False

    def see(self, word: str, step: float | None) -> bool:
        """Takes in a row; False once the column tells no runs: a number, a long text, a step that goes back under one
        word. A column that begins empty tells none."""
        if is_number(word) or len(word) > _LONGEST or not (word or self._has_begun):
            return False
        self._has_begun = True
        if step is None:
            return True
        if step <= self._newest.get(word, -math.inf):
            return False
        self._goes_back = self._goes_back or step <= self._last
        self._newest[word] = self._last = step
        return True

    def tell_runs(self, rows: int) -> bool:
        """Whether the steps go back in the table, and never among the rows of one word."""
        return self._goes_back and 1 < len(self._newest) <= rows // 2


class _Results:
    """The columns that name runs, where each of several runs has one row: a table of results."""

    def __init__(self, columns: tuple[int, ...]) -> None:
        self.columns = columns
        self.may_be_rows = bool(columns)
        self._tops: dict[tuple[str, ...], float] = {}

    @property
    def are_rows(self) -> bool:
        """Whether it is such a table by what was seen."""
        return self.may_be_rows and len(self._tops) > 1

    def see(self, row: Sequence[str], step: float | None) -> None:
        """Takes in a row."""
        if step is None or not self.may_be_rows:
            return
        name = tuple(row[index] for index in self.columns)
        self.may_be_rows = step <= self._tops.setdefault(name, step)


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
