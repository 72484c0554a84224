"""`spike.co_count` for drawing: how often loss and gradient norm have spiked together so far (D5)."""

from __future__ import annotations

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
        self._points: list[tuple[float, float, float, int]] = []

    def add(self, frame: Frame) -> None:
        """To be called after the detectors saw `frame`."""
        if self._detector is None:
            return
        rows, self._detector.matched = self._detector.matched, []
        for row in rows:
            self._count += 1
            self._points.append((float(frame.steps[row]), float(frame.times[row]), float(self._count), frame.attempt))
        del self._points[:-_KEPT]

    def view(self) -> SeriesView | None:
        """The cumulative count; None while there was no co-spike."""
        if not self._points:
            return None
        steps, times, counts, attempts = (np.array(part) for part in zip(*self._points, strict=True))
        return SeriesView(
            self.key,
            "steps",
            steps,
            counts,
            counts,
            counts,
            attempts,
            np.empty(0),
            len(steps),
            float(counts[-1]),
            derived="steps at which loss and gradient norm both spiked, so far (D5)",
            times=times,
        )
