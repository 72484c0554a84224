"""A scale held against another number of the same step: what moves with that is no fault of its own."""

from __future__ import annotations

import math
from abc import abstractmethod

from trainmon.monitor.detectors.common import Found
from trainmon.monitor.detectors.scale_track import ScaleRule, ScaleTrack
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import Mark


class RelativeTrack(ScaleTrack):
    """Judges each value over the best reference that the run has logged; once a better one is there it is kept to."""

    def __init__(self, key: SignalKey, rule: ScaleRule) -> None:
        super().__init__(key, rule)
        self._reference = 0

    @abstractmethod
    def references(self, rows: list[int]) -> list[tuple[float, ...]]:
        """For each row of the newest frame what its value may be divided by, the best last; none where not above 0."""

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        rows = frame.logged(self.key).tolist()
        if not rows:
            return
        if frame.attempt != self._attempt:
            self._begin_attempt(frame.attempt, float(frame.steps[rows[0]]))
        marks = frame.marks.get(self.key)
        column = frame.columns[self.key]
        for row, references in zip(rows, self.references(rows), strict=True):
            x, step = float(column[row]), float(frame.steps[row])
            if step == self._last_step or (marks is not None and marks[row] == Mark.NULL):
                continue
            self._last_step = step
            if not math.isfinite(x):
                self._bad(frame, row, x, found)
                continue
            best = max((place for place, usual in enumerate(references) if usual > 0), default=0)
            if best > self._reference:
                self._reference = best
                self.robust.clear()
            usual = references[self._reference]
            if usual > 0:
                self.unit = usual
                self.take(frame, row, x / usual, x, found)
