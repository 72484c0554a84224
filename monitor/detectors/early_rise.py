"""A loss that climbs steadily while the run is too young for the rules of shift and drift."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from trainmon.monitor.detectors.common import Finite, Found, Place, finding, finite, place, resumed
from trainmon.monitor.detectors.heldout_trend import HeldOutTrend
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.middle import median

VALUES = 20  # of a block
YOUNG = 75  # blocks: later the rules of shift and drift know the run
FEWEST = 5  # blocks before the rise, from which the noise is known
WARN_BLOCKS, FAIL_BLOCKS, FAIL_STEPS = 2, 5, 100.0
SIGMAS = 6.0
JUMP_VALUES = 3  # above each of as many before
_TINY = 1e-300


class EarlyRise:
    """+25% above the lowest block of 20 values, and 6 sigma: for 2 blocks a WARN, for 5 and 100 steps a FAIL.

    Shift and drift need some 500 steps before they judge, and a climb of so many percent a hundred steps widens the
    spread that the spike rule measures against. Sigma is that of neighbouring blocks' medians (in logarithms), before
    the rise, from which the curve's own slope has dropped out. A jump among the first 100 values, which are not judged,
    is where the rise began.
    """

    def __init__(self, key: SignalKey, rise: float, held_out: HeldOutTrend, meant: MeantChanges) -> None:
        self.key = key
        self.meant = meant
        self.minded = -math.inf
        self.held_out = held_out
        self.softer = ""
        self.rise = math.log1p(rise)
        self.blocks: list[float] = []
        self.count = 0
        self.open: Place | None = None
        self.severity = Severity.WARN
        self.base = math.nan
        self.last: Place | None = None
        self.what = ""
        self._out: list[Place] = []  # where each of the newest blocks above the bar began
        self._early: list[Place] = []  # of the first `FEWEST` blocks, each value's
        self._buffer: list[float] = []
        self._begin: Place | None = None
        self._back = 0
        self._attempt: int | None = None
        self._last_step = math.nan
        self._usable = True

    def feed(self, frame: Frame, found: Found, until: int) -> None:
        """Reads the rows before row `until`."""
        own = finite(frame, self.key)
        end = int(np.searchsorted(own.rows, until))
        if not end:
            return
        if frame.attempt != self._attempt:
            self._restart(frame.attempt, float(own.steps[0]))
        self._last_step = float(own.steps[end - 1])
        if self._usable and (self.count < YOUNG or self.open is not None):
            self._read(frame, own, end, found)

    def _restart(self, attempt: int, first: float) -> None:
        if self._attempt is not None:
            self._buffer, self._early, self._out, self.open = [], [], [], None
            self.minded = math.nextafter(first, -math.inf)
            if not resumed(self._last_step, first):
                self.blocks, self.count, self._usable = [], 0, True
        self._attempt = attempt

    def _read(self, frame: Frame, own: Finite, end: int, found: Found) -> None:
        at = 0
        while at < end and (self.count < YOUNG or self.open is not None):
            if not self._buffer:
                self._begin = place(frame, int(own.rows[at]), float(own.values[at]))
            stop = min(at + VALUES - len(self._buffer), end)
            self._buffer += own.values[at:stop].tolist()
            if len(self.blocks) < FEWEST:
                pairs = zip(own.rows[at:stop].tolist(), own.values[at:stop].tolist(), strict=True)
                self._early += [place(frame, row, x) for row, x in pairs]
            at = stop
            if len(self._buffer) < VALUES:
                return
            middle, row = median(self._buffer), int(own.rows[stop - 1])
            self._buffer = []
            if middle <= 0:
                self._usable = False
                return
            self._close(math.log(middle), place(frame, row, middle), row, found)

    def _close(self, u: float, at: Place, row: int, found: Found) -> None:
        self.count += 1
        if self.meant.known and self.meant.between(self.minded, at.step, row):
            self.minded = at.step
            if self.open is None:
                self.blocks, self._early, self._out = (
                    [],
                    [],
                    [],
                )  # another batch, context or epoch has a level of its own
        if self.open is not None:
            self._go_on(u, at, row, found)
            return
        first = self._begin or at
        above = u - min(self.blocks, default=u)
        if len(self.blocks) >= FEWEST and above >= self.rise and above >= self._bar():
            self._out.append(first)
            if len(self._out) >= WARN_BLOCKS:
                self.base, self.severity, self._back = min(self.blocks), Severity.WARN, 0
                self.open = self._jumped() or self._out[0]
                self._say("open", u, at, row, found)
            return
        # What was above the bar alone is noise, and counts as such.
        self._out = []
        self.blocks.append(u)

    def _jumped(self) -> Place | None:
        """Where the loss jumped before any block was judged, and after its lowest one began; None where it did not."""
        begin = VALUES * self.blocks.index(self.base)
        if len(self.blocks) > FEWEST or len(self._early) < FEWEST * VALUES:
            return None
        u = [math.log(max(at.value, _TINY)) for at in self._early]
        ups = {
            i: min(u[i : i + JUMP_VALUES]) - max(u[i - JUMP_VALUES : i])
            for i in range(max(begin, JUMP_VALUES), len(u) - JUMP_VALUES)
        }
        at = max(ups, key=ups.__getitem__)
        return self._early[at] if ups[at] >= self.rise / 2 else None

    def _bar(self) -> float:
        steps = np.diff(self.blocks)
        noise = 1.4826 * median(np.abs(steps - median(steps)))
        return max(self.rise, SIGMAS * noise)

    def _go_on(self, u: float, at: Place, row: int, found: Found) -> None:
        self._back = self._back + 1 if u - self.base < self.rise / 2 else 0
        if self._back >= WARN_BLOCKS:
            found.append((row, self._said("recover", at)))
            self.open, self._out = None, []
            return
        if u - self.base < self.rise:
            return
        self._out = [*self._out[:FAIL_BLOCKS], at]
        before, self.softer = self.severity, ""
        lasted = at.step - (self.open or at).step
        if self.severity < Severity.FAIL and len(self._out) > FAIL_BLOCKS and lasted >= FAIL_STEPS:
            self.softer = self.held_out.no_worse((self.open or at).step, at.step, row)
            self.severity = Severity.WARN if self.softer else Severity.FAIL
        is_worse = self.last is None or at.value > self.last.value
        if self.severity > before or is_worse:
            self._say("grow", u, at, row, found)

    def _say(self, action: Action, u: float, at: Place, row: int, found: Found) -> None:
        self.last = at
        self.what = (
            f"loss climbed from {math.exp(self.base):.4g} to {at.value:.4g} ({100 * math.expm1(u - self.base):+.0f}%)"
        )
        self.what += f" since step {(self.open or at).step:.15g}{self.softer}"
        found.append((row, self._said(action, at)))

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, "climb", self.key, self.severity, at, self.what, first=self.open)

    def finish(self) -> Iterable[Finding]:
        """An open rise reaches to its worst block."""
        return [self._said("grow", self.last)] if self.open is not None and self.last is not None else []
