"""Whether a value that is out is worth a warning by itself."""

from __future__ import annotations

from heapq import heappush, heapreplace

from trainmon.monitor.detectors.spike_rule import SpikeRule

HABIT = 10  # a run that jumped so often by as much and came straight back does so: told, but no warning


class Loudness:
    """Remembers the scores of the HABIT largest spikes, so that what a run does by habit is told and no warning."""

    def __init__(self, rule: SpikeRule) -> None:
        self.rule = rule
        self._largest: list[float] = []  # a heap

    def is_loud(self, z: float, ratio: float) -> bool:
        """Whether one value alone is worth a warning; `ratio`: over the level. Asked once a value: it is remembered."""
        if self.rule.lone_is_info:
            return False
        largest = self._largest
        is_habit = len(largest) == HABIT and largest[0] >= z
        if len(largest) < HABIT:
            heappush(largest, z)
        elif not is_habit:
            heapreplace(largest, z)
        return (z >= self.rule.lone_z or ratio >= self.rule.lone_ratio) and not is_habit

    def forget(self) -> None:
        """Another run begins."""
        self._largest.clear()
