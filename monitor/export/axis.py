"""The column of ``trainmon export --by``: how many tokens or FLOPs, or how much time, a row's step amounts to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from trainmon.monitor.compare.alignment import Axis, places
from trainmon.monitor.snapshot import RunSnapshot

# One exported row: attempt, step, and a value a column; None where the row does not log it.
Row = tuple[int, float, list[float | None]]
Sink = Callable[[str, Row], None]

_COLUMNS: dict[Axis, tuple[str, ...]] = {"tokens": ("tokens",), "flops": ("flops",), "step": (), "time": ("time_s",)}
_WHY: dict[Axis, str] = {
    "tokens": "neither tokens nor batch size and sequence length are known; log tokens, or set tokens_per_batch"
    " in a trainmon.toml beside the log",
    "flops": "FLOPs are 6 x parameters x tokens, which are not both known; set parameters and tokens_per_batch"
    " in a trainmon.toml beside the log",
    "time": "no step time is logged and no time stamp to have it from",
    "step": "",
}


def columns_of(axis: Axis | None) -> tuple[str, ...]:
    """The columns that `axis` adds: none for steps, which every row has.

    >>> columns_of("time"), columns_of("step"), columns_of(None)
    (('time_s',), (), ())
    """
    return _COLUMNS[axis] if axis is not None else ()


def why_unknown(axis: Axis | None) -> str:
    """What a log lacks that does not tell its place on `axis`, and what to do about it."""
    return _WHY[axis] if axis is not None else ""


class Along:
    """Passes rows on to `write`; with an axis that adds a column, at the end of each run, when all of it is known.

    `scaled`: runs to take the places from instead, by name. `unknown`: names of runs whose places are not known.
    """

    def __init__(self, axis: Axis | None, write: Sink, scaled: Mapping[str, RunSnapshot] | None = None) -> None:
        self._axis = axis if columns_of(axis) else None
        self._write = write
        self._scaled = scaled or {}
        self._waiting: dict[str, list[Row]] = {}
        self.unknown: list[str] = []

    def take(self, run: str, row: Row) -> None:
        """One row of `run`."""
        if self._axis is None:
            self._write(run, row)
        else:
            self._waiting.setdefault(run, []).append(row)

    def close(self, run: RunSnapshot) -> None:
        """The run was read to its end."""
        rows = self._waiting.pop(run.name, [])
        if self._axis is None or not rows:
            return
        steps = np.array([row[1] for row in rows])
        at = places(self._scaled.get(run.name, run), steps, self._axis)
        if at is None or not np.isfinite(at).any():
            self.unknown.append(run.name)
            at = np.full(len(rows), math.nan)
        for (attempt, step, values), x in zip(rows, at.tolist(), strict=True):
            self._write(run.name, (attempt, step, [x if math.isfinite(x) else None, *values]))
