"""What derivation rules and detectors see: rows of one attempt with the log's keys mapped to signals."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

import numpy as np

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, IntArray, Mark, MarkArray, TimeKind


class SignalKey(NamedTuple):
    """One series: a signal of the table (``loss.train``) or a raw key, with its labels in sorted order."""

    signal: str
    labels: tuple[tuple[str, str], ...] = ()

    def __deepcopy__(self, _memo: dict[int, object]) -> SignalKey:
        return self

    def __str__(self) -> str:
        if not self.labels:
            return self.signal
        return f"{self.signal}{{{','.join(f'{name}={value}' for name, value in self.labels)}}}"

    @property
    def label_dict(self) -> dict[str, str]:
        """The labels as a plain dictionary."""
        return dict(self.labels)


@dataclass(frozen=True, slots=True)
class Frame:
    """`n` rows of one attempt, in the order of the log; several rows may share a step.

    `steps`: (n,) float64, never NaN (an ordinal stands in where the log has no step).
    `times`: (n,) float64 seconds, NaN where unknown. `lines`: (n,) int64. `path`: the source the rows are from.
    `columns`: signal -> (n,) float64 in the signal's unit; NaN is "not logged" unless `marks` says otherwise.
    `marks`: signal -> (n,) uint8 of `Mark`, only for columns where NaN, Inf or null was logged.
    """

    attempt: int
    path: str
    steps: FloatArray
    times: FloatArray
    lines: IntArray
    columns: dict[SignalKey, FloatArray]
    marks: dict[SignalKey, MarkArray] = field(default_factory=dict)
    time_kind: TimeKind = TimeKind.NONE

    def __len__(self) -> int:
        return len(self.steps)

    def logged(self, key: SignalKey) -> IntArray:
        """Row indices, ascending, at which `key` was logged (also as NaN, Inf or null)."""
        marks = self.marks.get(key)
        if marks is not None:
            return np.flatnonzero(marks != Mark.ABSENT)
        column = self.columns.get(key)
        if column is None:
            return np.empty(0, np.int64)
        return np.flatnonzero(~np.isnan(column))

    def family(self, signal: str) -> list[SignalKey]:
        """The keys of `signal` in this frame, whatever their labels."""
        return [key for key in self.columns if key.signal == signal]
