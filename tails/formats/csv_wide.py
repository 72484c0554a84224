"""Tables with a column for each run: ``lr 1 - loss``, ``lr 2 - loss``, as a chart of several runs is exported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainmon.tails.formats.bulk import Bulk, Rows
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.record import Mark
from trainmon.tails.steps import step_rank

_BETWEEN = " - "


def columns_by_run(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Run -> its columns, each with what it measures; empty unless two runs have one metric, beside steps and times.

    >>> columns_by_run(["Step", "a - loss", "b - loss"])
    {'a': {'a - loss': 'loss'}, 'b': {'b - loss': 'loss'}}
    >>> columns_by_run(["Step", "a - loss", "a - lr"]), columns_by_run(["Step", "lr", "a - loss", "b - loss"])
    ({}, {})
    """
    runs: dict[str, dict[str, str]] = {}
    for name in filter(None, names):
        run, between, metric = name.rpartition(_BETWEEN)
        if between and run and metric:
            runs.setdefault(run, {})[name] = metric
        elif step_rank(name) is None and stamp_order(name) is None and not name.lower().startswith("relative time"):
            return {}
    metrics = [metric for own in runs.values() for metric in own.values()]
    return runs if len(set(metrics)) < len(metrics) else {}


class WideRuns:
    """Adds the rows of such a table to the runs that its columns are."""

    def __init__(self, names: Sequence[str], bulk: Bulk) -> None:
        self._runs = columns_by_run(names)
        self._numbers: dict[str, int] = {}
        self._bulk = bulk

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, rows: Rows) -> None:
        """Adds `rows`: to each run those in which one of its columns is filled."""
        reader = self._bulk.reader
        for run, own in self._runs.items():
            if run not in self._numbers:
                self._numbers[run] = reader.split.newest if reader.begin_run(f"run={run}") else -1
            if self._numbers[run] < 0:
                continue
            reader.enter(self._numbers[run])
            mine = [key for key in own if key in rows.columns]
            filled = np.zeros(len(rows.offsets), np.bool_)
            for key in mine:
                mark = rows.marks.get(key)
                filled |= ~np.isnan(rows.columns[key]) if mark is None else mark != Mark.ABSENT
            taken = rows.where(filled)
            common = {key: column for key, column in taken.columns.items() if _BETWEEN not in key}
            columns = common | {own[key]: taken.columns[key] for key in mine}
            marks = {own[key]: taken.marks[key] for key in mine if key in taken.marks}
            self._bulk.add_columns(columns, marks, taken.texts, taken.offsets, taken.lines)
