"""`spike.co_count` for drawing: how often loss and gradient norm have spiked together so far (D5)."""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np

from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.co_spike import CO, CoSpike
from trainmon.monitor.frame import Frame
from trainmon.monitor.snapshot import SeriesView

_KEPT: Final = 4096


class CoSeries:
    """Counts what the detector `spike.co` matched; one point a match, the newest 4,096."""

    key = CO

    def __init__(self, detectors: list[Detector]) -> None:
        self._detector = next((found for found in detectors if isinstance(found, CoSpike)), None)
        self._count = 0
        self._steps, self._times, self._counts, self._attempts = (array("d") for _ in range(4))

    def add(self, frame: Frame) -> None:
        """To be called after the detectors saw `frame`."""
        if self._detector is None:
            return
        rows, self._detector.matched = self._detector.matched, []
        for row in rows:
            self._count += 1
            point = (frame.steps[row], frame.times[row], self._count, frame.attempt)
            for part, value in zip(self._parts, point, strict=True):
                part.append(float(value))
        for part in self._parts:
            del part[:-_KEPT]

    @property
    def _parts(self) -> tuple[array[float], ...]:
        return self._steps, self._times, self._counts, self._attempts

    def view(self) -> SeriesView | None:
        """The cumulative count; None while there was no co-spike."""
        if not self._count:
            return None
        steps, times, counts = (np.array(part) for part in (self._steps, self._times, self._counts))
        return SeriesView(
            self.key,
            "steps",
            steps,
            counts,
            counts,
            counts,
            np.array(self._attempts, np.int64),
            np.empty(0),
            len(steps),
            float(counts[-1]),
            derived="steps at which loss and gradient norm both spiked, so far (D5)",
            times=times,
        )
