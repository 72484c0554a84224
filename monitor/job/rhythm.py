"""The rhythm in which a run's data comes: gaps between records, long pauses, bursts of a writer that buffers."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import numpy as np

from trainmon.monitor.job.state import Pause, Pulse
from trainmon.monitor.stats.middle import median, quantile
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.tails.record import Block, FloatArray, TimeKind

_KEPT_GAPS: Final = 1000
_KEPT_PAUSES: Final = 64
_KEPT_ARRIVALS: Final = 50
_ENOUGH: Final = 5
_FEW: Final = 50  # so many gaps are sorted in one by one, more all together
_LONG_GAPS: Final = 3.0  # a pause is so many usual gaps long, and at least so many seconds
_LONG_S: Final = 2.0
# A burst: so many records at once, and so far from the next that no poll of ours can be what gathered them.
_BURST_RECORDS: Final = 4
_BURST_S: Final = 10.0


class Rhythm:
    """The gaps between a run's records, in seconds: from their time stamps, else from when they arrived.

    Gaps between stamps are only taken within one source and forwards; the rest are restarts or other clocks.
    """

    def __init__(self) -> None:
        self._gaps = RollingRobust(_KEPT_GAPS)
        self._pauses: deque[Pause] = deque(maxlen=_KEPT_PAUSES)
        self._last: dict[str, tuple[float, float]] = {}  # source -> time and step of its last record
        self._arrivals: deque[tuple[float, int]] = deque(maxlen=_KEPT_ARRIVALS)  # when, how many records
        self._arrived: tuple[float, float] | None = None
        self._is_stamped = False

    def add(self, block: Block, monotonic_s: float, *, live: bool) -> None:
        """Learns from one block."""
        if not len(block):
            return
        if live:
            self._arrive(len(block), monotonic_s)
        if block.time_kind in (TimeKind.ABSOLUTE, TimeKind.NAIVE):
            self._add_stamped(block)
        elif live:
            step = float(block.steps[-1])
            if self._arrived is not None and monotonic_s > self._arrived[0]:
                gap_s = monotonic_s - self._arrived[0]
                self._keep(np.array([gap_s]), np.array([self._arrived[1]]))
            self._arrived = (monotonic_s, step)

    def _add_stamped(self, block: Block) -> None:
        known = np.flatnonzero(~np.isnan(block.times))[-_KEPT_GAPS:]
        if not len(known):
            return
        self._is_stamped = True
        times, steps = block.times[known], block.steps[known]
        if block.source in self._last:
            time, step = self._last[block.source]
            times, steps = np.concatenate(([time], times)), np.concatenate(([step], steps))
        self._last[block.source] = (float(times[-1]), float(steps[-1]))
        gaps = np.diff(times)
        forwards = gaps > 0
        self._keep(gaps[forwards], steps[:-1][forwards])

    def _keep(self, gaps: FloatArray, steps: FloatArray) -> None:
        """Keeps the gaps, and those behind a step that are long against the others as pauses."""
        if len(gaps) < _FEW:
            for gap in gaps.tolist():
                self._gaps.update(gap)
        else:
            self._gaps.load([*self._gaps.values(), *gaps.tolist()][-_KEPT_GAPS:])
        if len(self._gaps) < _ENOUGH:
            return
        limit = max(_LONG_GAPS * self.median_s, _LONG_S)
        for place in np.flatnonzero((gaps > limit) & ~np.isnan(steps)).tolist():
            self._pauses.append(Pause(float(steps[place]), float(gaps[place])))

    def _arrive(self, records: int, monotonic_s: float) -> None:
        # What is read in pieces within a second came at once.
        if self._arrivals and monotonic_s - self._arrivals[-1][0] < 1.0:
            when, before = self._arrivals[-1]
            self._arrivals[-1] = (when, before + records)
        else:
            self._arrivals.append((monotonic_s, records))

    @property
    def median_s(self) -> float:
        """The usual gap; NaN before there is one."""
        return self._gaps.median

    @property
    def p99_s(self) -> float | None:
        """The 99th percentile of the last gaps; None until 5 are known."""
        return self._gaps.quantile(0.99) if len(self._gaps) >= _ENOUGH else None

    def pulse(self, age_s: float | None, *, seen_growing: bool) -> Pulse:
        """How the data arrives, with the age of the newest."""
        median = self.median_s if len(self._gaps) >= _ENOUGH else math.nan  # one long gap is no rhythm
        burst_s, records, apart_s = self._bursts()
        if burst_s is not None and records is not None and not self._is_stamped and apart_s is not None:
            median = apart_s / records
        gap_s = None if math.isnan(median) else median
        return Pulse(age_s, self.p99_s, seen_growing, gap_s, tuple(self._pauses), burst_s, records)

    def _bursts(self) -> tuple[float | None, float | None, float | None]:
        """(longest usual gap between arrivals, records at once, usual gap); None each where data does not come so."""
        if len(self._arrivals) < _ENOUGH:
            return None, None, None
        when = np.array([arrival[0] for arrival in self._arrivals])
        # The first is what was there already.
        records = median([arrival[1] for arrival in self._arrivals][1:])
        gaps = np.diff(when)
        apart_s = median(gaps)
        if records < _BURST_RECORDS or apart_s < _BURST_S:
            return None, None, None
        if self._is_stamped and not apart_s >= _LONG_GAPS * self.median_s:
            return None, None, None
        return quantile(gaps, 0.99), records, apart_s
