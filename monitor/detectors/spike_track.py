"""Spikes of one series against its own last W values (METRICS.md D6)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from trainmon.monitor.detectors.common import Found, Place, finding, numbers, place, resumed, same_value
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.resolution import PrintResolution
from trainmon.monitor.stats.robust_score import EPS, NORMAL, RobustScore
from trainmon.monitor.stats.sliding import LEAST_WINDOW, median_bounds
from trainmon.tails.record import FloatArray

RECOVERED_OF = 10
RECOVERED = 8
LONE_Z = 8.5  # a single value that is back at once is noise in the tail below this score, by either spread ...
TAIL = 0.98  # ... that of the middle (D6) and that of the upper tail, which skewed and heavy noise has wider ...
TAIL_SIGMAS = 2.054
LONE_RATIO = 1.5  # ... and this ratio: told, but no warning
HELD = 5  # so many values in a row far below the level are a new level, not dropped batches
_WORTH = 256  # fewer values than this are not worth looking at all at once ...
_MOST = 16384
_FEW = 16  # ... nor when one in so many may be out
_STRETCH = 64
ACCEPT_AFTER = 3  # a level that lasts so many times the recovery time is the new level


@dataclass(frozen=True, slots=True)
class SpikeRule:
    """Cut-offs. `relative` is the least rise over the median (0.10 = +10%), `recovery_*` R of METRICS.md."""

    window: int
    z: float
    relative: float
    min_history: int
    recovery_steps: float
    recovery_values: float
    lone_is_info: bool = False
    fail_rise: float = 0.25
    noun: str = "loss"


@dataclass(slots=True)
class _Open:
    """A spike that has not recovered. `band` is the highest u that counts as back inside."""

    first: Place
    level: float
    band: float
    severity: Severity
    worst: float
    last: Place
    what: str
    out: int = 1
    values: int = 1
    failed: bool = False
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=RECOVERED_OF))
    above: deque[float] = field(default_factory=lambda: deque(maxlen=100))


class SpikeTrack:
    """One series. `flags` holds the rows of the last frame at which a value was out (for co-spikes).

    Values that are flagged do not enter the window; a level that lasts 3 R is accepted as the new one. Values
    go by their logarithm until one below 0 is seen, from then on raw.
    """

    def __init__(self, key: SignalKey, rule: SpikeRule) -> None:
        self.key = key
        self.rule = rule
        self.score = RobustScore(rule.window)
        self.resolution = PrintResolution()
        self.highest_rise = 0.0
        self.highest = 0.0
        self.highest_step = math.nan
        self.judged = 0
        self.ratio_steps = 0
        self.flags: list[int] = []
        self.open: _Open | None = None
        self._held: list[tuple[int, Place, float]] = []
        self._attempt: int | None = None
        self._last_step = math.nan
        self._last_value = math.nan
        self._rise_log = math.log1p(rule.relative)

    @property
    def level(self) -> float:
        """The median of the window, in the signal's own scale; NaN before the first value."""
        median = self.score.robust.median
        return math.exp(median) if self.score.log else median

    def feed(self, frame: Frame, found: Found, until: int | None = None) -> None:
        """Reads rows (those before row `until`)."""
        self.flags = []
        rows, steps, values = numbers(frame, self.key)
        if not rows:
            return
        if until is not None and rows[-1] >= until:
            keep = int(np.searchsorted(rows, until))
            rows, steps, values = rows[:keep], steps[:keep], values[:keep]
            if not rows:
                return
        if frame.attempt != self._attempt:
            self._restart(frame.attempt, steps[0])
        bounds = list(self.resolution.extend(np.array(values)))
        ends = [start for start, _ in bounds[1:]] + [len(rows)]
        for (start, half_unit), end in zip(bounds, ends, strict=True):
            self.score.half_unit = half_unit
            stretch = _STRETCH
            while start < end:
                calm = start + self._calm(steps, values, start, end)
                stretch = _STRETCH if calm > start else 2 * stretch
                stop = min(calm + stretch, end) if end - calm > _WORTH else end
                self._run(frame, rows, steps, values, calm, stop, found)
                start = stop

    def _restart(self, attempt: int, first_step: float) -> None:
        if self._attempt is not None and not resumed(self._last_step, first_step):
            self.score.robust.clear()
            self.open = None
        if self.open is not None and first_step <= self.open.first.step:
            self.open = None  # a roll-back past the spike leaves it behind
        self._held.clear()
        self._attempt = attempt
        self._last_step = math.nan

    def _calm(self, steps: list[float], values: list[float], start: int, end: int) -> int:
        """Takes in values as long as none is out, many at once; how many. What `_run` would do, value by value."""
        robust, window = self.score.robust, self.rule.window
        end = min(end, start + _MOST)
        is_usual = self.open is None and not self._held and self.score.log and len(robust) == window
        if end - start < _WORTH or not is_usual or window < LEAST_WINDOW:
            return 0
        xs = np.array(values[start:end])
        step = np.array(steps[start:end])
        odd = (xs <= 0) | (np.diff(step, prepend=self._last_step) == 0)
        n = int(np.argmax(odd)) if odd.any() else len(xs)
        if n < _WORTH:
            return 0
        # Not numpy's logarithm: its last bit may differ from that of `_run`.
        known = [*robust.values(), *map(math.log, (xs[:n] + EPS).tolist())]
        us = np.array(known)
        low, high = median_bounds(us, window)
        us = us[window:]
        candidates = np.flatnonzero((us - low > self._rise_log) | (us - high < -self._rise_log))
        if len(candidates) > n // _FEW:
            return 0
        for at in candidates.tolist():
            robust.load(known[at : at + window])
            rise = known[at + window] - robust.median
            if (rise > self._rise_log or rise < -self._rise_log) and not self._quiet(known[at + window]):
                n = at
                break
        self._find_highest(known, (us - low)[:n], step)
        robust.load(known[n : n + window])
        if n:
            self.judged += n
            self._last_step, self._last_value = float(step[n - 1]), float(xs[n - 1])
        return n

    def _find_highest(self, known: list[float], most: FloatArray, steps: FloatArray) -> None:
        """The first of the largest rises; `most` bounds them from above."""
        robust, window = self.score.robust, self.rule.window
        best, where = self.highest_rise, -1
        for at in np.argsort(-most, kind="stable").tolist():
            if most[at] < best or most[at] <= self.highest_rise:
                break
            robust.load(known[at : at + window])
            rise = known[at + window] - robust.median
            if rise > best or (rise == best and -1 < at < where):
                best, where = rise, at
        if where >= 0:
            robust.load(known[where : where + window])
            self._keep_highest(best, float(steps[where]))

    def _run(
        self,
        frame: Frame,
        rows: list[int],
        steps: list[float],
        values: list[float],
        start: int,
        end: int,
        found: Found,
    ) -> None:
        robust = self.score.robust
        need = self.rule.min_history
        log, rise_log = math.log, self._rise_log
        ready = len(robust) >= need
        last_step, last_value = self._last_step, self._last_value
        for i in range(start, end):
            x = values[i]
            step = steps[i]
            if step == last_step and same_value(x, last_value):
                continue
            last_step, last_value = step, x
            if self.score.log:
                if x <= 0:
                    if x < 0:
                        self._go_raw()
                        robust.update(x)
                    continue
                u = log(x + EPS)
            else:
                u = x
            if self.open is None and not self._held:
                if not ready:
                    robust.update(u)
                    ready = len(robust) >= need
                    continue
                self.judged += 1
                rise = u - robust.median
                if rise > self.highest_rise:
                    self._keep_highest(rise, step)
                size = rise_log if self.score.log else self._size
                if (rise > size or rise < -size) and not self._quiet(u):
                    self._flag(frame, rows[i], u, x, found)
                    continue
                robust.update(u)
            else:
                self._busy(frame, rows[i], u, x, found)
                ready = len(robust) >= need
        self._last_step, self._last_value = last_step, last_value

    def _quiet(self, u: float) -> bool:
        """Whether `u` is neither a spike nor a drop: the size rule first, then D6 without working out D."""
        distance = abs(u - self.score.robust.median)
        return distance <= self._size or not self.score.above(distance, self.rule.z)

    def _keep_highest(self, rise: float, step: float) -> None:
        """Remembers the largest rise and its score, for the report."""
        self.highest_rise, self.highest_step = rise, step
        self.highest = NORMAL * rise / (self.score.spread + EPS)

    @property
    def _size(self) -> float:
        """The least distance from the median, in u, of a spike or a drop."""
        return self._rise_log if self.score.log else self.rule.relative * abs(self.score.robust.median)

    def _go_raw(self) -> None:
        """The series can be negative: the window is put back from logarithms to raw values."""
        kept = [math.exp(u) for u in self.score.robust.values()]
        self.score.robust.clear()
        self.score.log = False
        self.open = None
        self._held.clear()
        for x in kept:
            self.score.robust.update(x)

    def _flag(self, frame: Frame, row: int, u: float, x: float, found: Found) -> None:
        at = place(frame, row, x)
        if u < self.score.robust.median:
            self._held.append((row, at, u))
            return
        median, spread = self.score.robust.median, self.score.spread
        z = NORMAL * (u - median) / (spread + EPS)
        level = self.level
        ratio = x / level if level > 0 else math.inf
        loud = min(z, self._tail_score(u)) >= LONE_Z or (self.score.log and ratio >= LONE_RATIO)
        severity = Severity.WARN if loud and not self.rule.lone_is_info else Severity.INFO
        band = median + max(self._size, self.rule.z * spread / NORMAL)
        what = f"{self.rule.noun} rose from {level:.4g} to {x:.4g} at step {at.step:.15g} (z {z:.1f})"
        self.open = _Open(at, median, band, severity, x, at, what)
        self.open.recent.append(False)
        self.open.above.append(u)
        self.flags.append(row)
        self.ratio_steps += self._plain_ratio(u)
        detail: dict[str, float | str] = {"z": z, "ratio": ratio, "level": level}
        found.append((row, finding("open", "spike", self.key, severity, at, what, detail=detail)))

    def _tail_score(self, u: float) -> float:
        """How many sigma `u` lies above the median, sigma by the 98% quantile of the window."""
        robust = self.score.robust
        sigma = (robust.quantile(TAIL) - robust.median) / TAIL_SIGMAS
        return (u - robust.median) / (max(sigma, self.score.floor / NORMAL) + EPS)

    def _plain_ratio(self, u: float) -> bool:
        """The plain ratio: above 2.5x the median of the window without its last 10 values."""
        window = self.score.robust.values()[:-10]
        if not window or not self.score.log:
            return False
        return u - float(np.median(window)) > math.log(2.5)

    def _busy(self, frame: Frame, row: int, u: float, x: float, found: Found) -> None:
        if self.open is not None:
            self._go_on(self.open, frame, row, u, x, found)
            return
        # Values far below were held back: lone ones are drops, several in a row a new level.
        self.judged += 1
        if u < self.score.robust.median and not self._quiet(u):
            self._held.append((row, place(frame, row, x), u))
            if len(self._held) >= HELD:
                for _, _, held in self._held:
                    self.score.robust.update(held)
                self._held.clear()
            return
        drops = self._held
        self._held = []
        for _, at, _ in drops:
            what = (
                f"{self.rule.noun} dropped from {self.level:.4g} to {at.value:.4g} at step {at.step:.15g} and came back"
            )
            found.append((row, finding("open", "drop", self.key, Severity.INFO, at, what)))
            found.append((row, finding("recover", "drop", self.key, Severity.INFO, at, what)))
        if self._quiet(u):
            self.score.robust.update(u)
        else:
            self._flag(frame, row, u, x, found)

    def _go_on(self, spike: _Open, frame: Frame, row: int, u: float, x: float, found: Found) -> None:
        self.judged += 1
        spike.values += 1
        inside = u <= spike.band
        spike.recent.append(inside)
        step = float(frame.steps[row])
        if inside:
            self.score.robust.update(u)
            if sum(spike.recent) >= RECOVERED:
                if spike.last.step != spike.first.step:
                    found.append((row, self._said("grow", spike, spike.last, spike.what)))
                at = place(frame, row, x)
                found.append((row, self._said("recover", spike, at, spike.what)))
                self.open = None
                return
        else:
            self.flags.append(row)
            spike.out += 1
            spike.last = place(frame, row, x)
            spike.above.append(u)
            louder = spike.severity is Severity.INFO and not self.rule.lone_is_info
            if x > spike.worst or louder:
                spike.worst = max(x, spike.worst)
                if louder:
                    spike.severity = Severity.WARN
                found.append((row, self._said("grow", spike, spike.last, spike.what)))
        self._judge_length(spike, frame, row, step, x, found)

    def _judge_length(self, spike: _Open, frame: Frame, row: int, step: float, x: float, found: Found) -> None:
        rule = self.rule
        lasted = step - spike.first.step
        if lasted < rule.recovery_steps or spike.values < rule.recovery_values:
            return
        if not spike.failed and not rule.lone_is_info:
            spike.failed = True
            level = float(np.median(spike.above))
            # A level that settled below the shift's FAIL is the business of `loss.shift`, which says so.
            if not self.score.log or level - spike.level >= math.log1p(rule.fail_rise):
                spike.severity = Severity.FAIL
                spike.what += f" and has not recovered after {lasted:.15g} steps"
                found.append((row, self._said("grow", spike, place(frame, row, x), spike.what)))
        if lasted >= ACCEPT_AFTER * rule.recovery_steps and spike.values >= ACCEPT_AFTER * rule.recovery_values:
            self.score.robust.clear()
            for u in spike.above:
                self.score.robust.update(u)
            found.append((row, self._said("grow", spike, spike.last, spike.what)))
            self.open = None

    def _said(self, action: Action, spike: _Open, at: Place, what: str) -> Finding:
        return finding(action, "spike", self.key, spike.severity, at, what, first=spike.first)

    def finish(self) -> Iterable[Finding]:
        """An open spike reaches to its last value."""
        if self.open is None:
            return []
        return [self._said("grow", self.open, self.open.last, self.open.what)]
