"""Tags of one event file that count on another counter than the training rows.

One process writes one event file, so a tag whose steps go back begins anew; but rows whose steps lie behind those of
other tags only, while their own go on, count something else (epochs beside iterations).
"""

from __future__ import annotations

import math

import numpy as np

from trainmon.tails.formats.table import Batch
from trainmon.tails.record import FloatArray, Mark
from trainmon.tails.steps import is_training_key


class TagCounters:
    """The newest step of each tag, and of the rows that count as the training rows do."""

    def __init__(self) -> None:
        self._newest: dict[str, float] = {}
        self._main = -math.inf
        self._lead: tuple[str, ...] = ()  # the tags that brought the main counter to where it is
        self._foreign: set[str] = set()

    def own_steps(self, batch: Batch) -> FloatArray:
        """(n,) the steps of `batch`, NaN where a row counts on another counter."""
        steps = batch.steps
        if not len(steps):
            return steps
        logged = {
            key: batch.marks[key] != Mark.ABSENT if key in batch.marks else ~np.isnan(column)
            for key, column in batch.columns.items()
        }
        rises = steps[0] >= self._main and bool((np.diff(steps) >= 0).all())
        if rises and self._foreign.isdisjoint(logged):
            for key, rows in logged.items():
                self._newest[key] = float(steps[len(rows) - 1 - int(rows[::-1].argmax())])
            self._main = float(steps[-1])
            self._lead = tuple(key for key, rows in logged.items() if rows[-1])
            return steps
        keys = list(logged)
        table = np.array(list(logged.values())).T
        own = [
            self._own_step(step, tuple(keys[place] for place in np.flatnonzero(row)))
            for step, row in zip(steps.tolist(), table, strict=True)
        ]
        return np.array(own)

    def _own_step(self, step: float, tags: tuple[str, ...]) -> float:
        """The step of one row of `tags`."""
        counted = tuple(tag for tag in tags if tag not in self._foreign)
        goes_back = any(self._newest.get(tag, -math.inf) >= step for tag in counted)
        for tag in tags:
            self._newest[tag] = step
        if not counted:
            return math.nan
        if step < self._main and not goes_back:
            if _weight(counted) <= _weight(self._lead):
                return math.nan
            self._foreign.update(self._lead)  # it is those that ran ahead
        self._main, self._lead = step, counted
        return step


def _weight(tags: tuple[str, ...]) -> int:
    """How much tags say of where the training is: a loss most, what else it trains for more than the rest."""
    return max((is_training_key(tag) + (is_training_key(tag) and "loss" in tag.lower()) for tag in tags), default=0)
