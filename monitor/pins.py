"""Steps of a run that stay raw: those around its episodes."""

from __future__ import annotations

from typing import Final

import numpy as np

from trainmon.monitor.axis import Axis
from trainmon.monitor.rows import BoolArray
from trainmon.tails.record import FloatArray

_MARGIN_STEPS: Final = 100.0
_MOST_ATTEMPTS: Final = 256  # the newest: what the others did is thinned like all that is old


class Pins:
    """Intervals of steps, by attempt.

    >>> pins = Pins()
    >>> pins.add(0, 500.0, 510.0)
    >>> steps = np.array([100.0, 450.0, 610.0, 611.0])
    >>> axis = Axis(steps, steps, np.zeros(4, np.int64))
    >>> pins.on(axis, 10).tolist(), pins.on(axis, 1).tolist()
    ([False, True, True, False], [False, False, True, False])
    """

    def __init__(self) -> None:
        self._intervals: dict[int, list[tuple[float, float]]] = {}

    def add(self, attempt: int, first_step: float, last_step: float) -> None:
        """Pins the steps from `first_step` to `last_step`, and 100 on either side."""
        pins = self._intervals.setdefault(attempt, [])
        if len(self._intervals) > _MOST_ATTEMPTS:
            del self._intervals[min(self._intervals)]
        low, high = first_step - _MARGIN_STEPS, last_step + _MARGIN_STEPS
        if pins and pins[-1][0] <= low <= pins[-1][1]:
            pins[-1] = (pins[-1][0], max(high, pins[-1][1]))
        else:
            pins.append((low, high))

    def on(self, axis: Axis, most: int) -> BoolArray:
        """(n,) the points of `axis` that are pinned; of more than `most` the newest."""
        keep = np.zeros(len(axis), np.bool_)
        for attempt, pins in self._intervals.items():
            low, high = _merged(pins)
            place = np.searchsorted(low, axis.steps, "right") - 1
            keep |= (axis.attempts == attempt) & (place >= 0) & (axis.steps <= high[place])
        pinned = np.flatnonzero(keep)
        keep[pinned[: max(len(pinned) - most, 0)]] = False
        return keep


def _merged(pins: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    """Intervals as ascending ones that do not overlap: lower and upper ends."""
    lows: list[float] = []
    highs: list[float] = []
    for low, high in sorted(pins):
        if highs and low <= highs[-1]:
            highs[-1] = max(highs[-1], high)
        else:
            lows.append(low)
            highs.append(high)
    return np.array(lows), np.array(highs)
