"""Notices that the work of a step has changed: batch ramps, longer sequences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trainmon.monitor.detectors.level_track import LevelTrack
from trainmon.monitor.frame import Frame, SignalKey

CHANGED = 0.05
BATCH = ("batch.size", "batch.seq_length")


class BatchWatch:
    """Keeps the last batch size and sequence length; where one changes by 5%, levels of speed begin anew."""

    def __init__(self) -> None:
        self.last: dict[SignalKey, float] = {}

    def changes(self, frame: Frame) -> list[int]:
        """The rows of `frame` at which the batch is another one."""
        rows: set[int] = set()
        for name in BATCH:
            for key in frame.family(name):
                column = frame.columns[key]
                finite = np.flatnonzero(np.isfinite(column))
                if not len(finite):
                    continue
                values = column[finite]
                before = np.concatenate([[self.last.get(key, math.nan)], values[:-1]])
                rows.update(finite[np.abs(values - before) > CHANGED * np.abs(before)].tolist())
                self.last[key] = float(values[-1])
        return sorted(rows)

    def rebase(self, frame: Frame, tracks: Sequence[LevelTrack]) -> None:
        """Tells `tracks` at which rows of `frame` to begin anew."""
        changes = self.changes(frame)
        for track in tracks if changes else ():
            if track.key in frame.columns:
                track.rebase_rows = changes
            else:
                track.rebase()
