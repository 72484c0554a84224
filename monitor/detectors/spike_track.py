"""Spikes of one series against its own last W values (METRICS.md D6)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import field
from heapq import heappush, heapreplace

import numpy as np

from trainmon.monitor.detectors.common import Finite, Found, Place, finding, finite, place, resumed, same_value
from trainmon.monitor.detectors.heldout_trend import HeldOutTrend
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.middle import median
from trainmon.monitor.stats.resolution import PrintResolution
from trainmon.monitor.stats.robust_score import EPS, NORMAL, RobustScore
from trainmon.monitor.stats.sliding import FINE, LEAST_WINDOW, mad_bound, median_bounds
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, IntArray

RECOVERED_OF = 10
RECOVERED = 8
OUT_IN_ALL = 3  # two values out in a row, or so many before it has recovered, are a warning at any score
HABIT = 10  # a run that jumped so often by as much and came straight back does so: told, but no warning
HELD = 5  # so many values in a row far below the level are a new level, not dropped batches
_WORTH = 256  # fewer values than this are not worth looking at all at once ...
_MOST = 16384
_FEW = 16  # ... nor when one in so many may be out
_MANY = 64  # when more than one in so many may be out, nearer bounds and the spread are looked at too
_STRETCH = 64
ACCEPT_AFTER = 3  # a level that lasts so many times the recovery time is the new level


@dataclass(frozen=True, slots=True)
class SpikeRule:
    """Cut-offs. `relative` is the least rise over the median (0.10 = +10%), `recovery_*` R of METRICS.md.

    A single value that is back at once is told and no warning below both `lone_z` and `lone_ratio` (value over median).
    `minds_changes`: a new level below `fail_rise` that begins where the work of a step was changed is a note.
    """

    window: int
    z: float
    relative: float
    min_history: int
    recovery_steps: float
    recovery_values: float
    lone_is_info: bool = False
    lone_z: float = 8.5
    lone_ratio: float = 1.5
    fail_rise: float = 0.25
    noun: str = "loss"
    minds_changes: bool = False


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
    is_meant: bool = False
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
        self.meant = MeantChanges() if rule.minds_changes else None
        self.held_out = HeldOutTrend() if rule.minds_changes else None
        self._held: list[tuple[int, Place, float]] = []
        self._largest: list[float] = []  # a heap of the scores of the HABIT largest spikes
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
        if self.meant is not None:
            self.meant.feed(frame)
        if self.held_out is not None:
            self.held_out.feed(frame)
        if len(frame) == 1:
            if until is None or until > 0:
                self._feed_one(frame, found)
            return
        own = finite(frame, self.key)
        count = len(own) if until is None else int(np.searchsorted(own.rows, until))
        if not count:
            return
        if frame.attempt != self._attempt:
            self._restart(frame.attempt, float(own.steps[0]))
        bounds = list(self.resolution.extend(own.values[:count]))
        ends = [start for start, _ in bounds[1:]] + [count]
        for (start, half_unit), end in zip(bounds, ends, strict=True):
            self.score.half_unit = half_unit
            stretch = _STRETCH
            while start < end:
                calm = start + self._calm(own, start, end)
                stretch = _STRETCH if calm > start else 2 * stretch
                stop = min(calm + stretch, end) if end - calm > _WORTH else end
                if stop > calm:
                    self._run(frame, own, calm, stop, found)
                start = stop

    def _feed_one(self, frame: Frame, found: Found) -> None:
        """As `feed` for the one row of a log that is followed live: the same, without arrays of one value."""
        column = frame.columns.get(self.key)
        if column is None:
            return
        x, step = float(column[0]), float(frame.steps[0])
        if not math.isfinite(x):
            return
        if frame.attempt != self._attempt:
            self._restart(frame.attempt, step)
        self.resolution.update(x)
        self.score.half_unit = self.resolution.half_unit
        # Not by `math`: its logarithm may differ from that of longer frames in the last bit.
        self._take(frame, 0, step, x, float(np.log(x + EPS)) if x > 0 else math.nan, found)

    def _restart(self, attempt: int, first_step: float) -> None:
        if self._attempt is not None and not resumed(self._last_step, first_step):
            self.score.robust.clear()
            self.open = None
            self._largest.clear()
        if self.open is not None and first_step <= self.open.first.step:
            self.open = None  # a roll-back past the spike leaves it behind
        self._held.clear()
        self._attempt = attempt
        self._last_step = math.nan

    def _calm(self, own: Finite, start: int, end: int) -> int:
        """Takes in values as long as none is out, many at once; how many. What `_run` would do, value by value."""
        robust, window = self.score.robust, self.rule.window
        end = min(end, start + _MOST)
        is_usual = self.open is None and not self._held and self.score.log and len(robust) == window
        if end - start < _WORTH or not is_usual or window < LEAST_WINDOW:
            return 0
        xs, step = own.values[start:end], own.steps[start:end]
        odd = (xs <= 0) | (np.diff(step, prepend=self._last_step) == 0)
        n = int(np.argmax(odd)) if odd.any() else len(xs)
        if n < _WORTH:
            return 0
        known = np.concatenate([robust.values(), own.logs[start : start + n]])
        low, candidates = self._candidates(known, n)
        if len(candidates) > n // _FEW:
            return 0
        for at in candidates.tolist():
            robust.load(known[at : at + window].tolist())
            u = float(known[at + window])
            rise = u - robust.median
            if (rise > self._rise_log or rise < -self._rise_log) and not self._quiet(u):
                n = at
                break
        self._find_highest(known, (known[window:] - low)[:n], step)
        robust.load(known[n : n + window].tolist())
        if n:
            self.judged += n
            self._last_step, self._last_value = float(step[n - 1]), float(xs[n - 1])
        return n

    def _candidates(self, known: FloatArray, n: int) -> tuple[FloatArray, IntArray]:
        """(n,) lower bounds of the medians, and which of the n values behind the first window may be out."""
        window, size = self.rule.window, self._rise_log
        us = known[window:]
        low, high = median_bounds(known, window)
        candidates = np.flatnonzero((us - low > size) | (us - high < -size))
        if len(candidates) <= n // _MANY:
            return low, candidates
        low, high = median_bounds(known, window, FINE)
        rise = np.maximum(us - low, high - us)
        limit = NORMAL * rise / self.rule.z - EPS  # as `RobustScore.above` has it
        candidates = np.flatnonzero((rise > size) & (limit * (1 + 1e-9) > mad_bound(known, window)))
        return low, candidates

    def _find_highest(self, known: FloatArray, most: FloatArray, steps: FloatArray) -> None:
        """The first of the largest rises; `most` bounds them from above."""
        robust, window = self.score.robust, self.rule.window
        best, where = self.highest_rise, -1
        hopeful = np.flatnonzero((most >= best) & (most > self.highest_rise))
        for at in hopeful[np.argsort(-most[hopeful], kind="stable")].tolist():
            if most[at] < best:
                break
            robust.load(known[at : at + window].tolist())
            rise = float(known[at + window]) - robust.median
            if rise > best or (rise == best and -1 < at < where):
                best, where = rise, at
        if where >= 0:
            robust.load(known[where : where + window].tolist())
            self._keep_highest(best, float(steps[where]))

    def _run(self, frame: Frame, own: Finite, start: int, end: int, found: Found) -> None:
        where = slice(start, end)
        rows, steps, values = own.rows[where].tolist(), own.steps[where].tolist(), own.values[where].tolist()
        for row, step, x, u in zip(rows, steps, values, own.logs[where].tolist(), strict=True):
            self._take(frame, row, step, x, u, found)

    def _take(self, frame: Frame, row: int, step: float, x: float, u: float, found: Found) -> None:
        """Judges one value; `u` is its logarithm, NaN where it has none."""
        if step == self._last_step and same_value(x, self._last_value):
            return
        self._last_step, self._last_value = step, x
        robust = self.score.robust
        if not self.score.log:
            u = x
        elif x <= 0:
            if x < 0:
                self._go_raw()
                robust.update(x)
            return
        if self.open is not None or self._held:
            self._busy(frame, row, u, x, found)
        elif len(robust) < self.rule.min_history:
            robust.update(u)
        else:
            self.judged += 1
            rise = u - robust.median
            if rise > self.highest_rise:
                self._keep_highest(rise, step)
            size = self._rise_log if self.score.log else self._size
            if (rise > size or rise < -size) and not self._quiet(u):
                self._flag(frame, row, u, x, found)
            else:
                robust.update(u)

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
        z, ratio = self._score(u, x)
        level = self.level
        severity = Severity.WARN if self._is_loud(z, ratio) else Severity.INFO
        band = median + max(self._size, self.rule.z * spread / NORMAL)
        what = f"{self.rule.noun} rose from {level:.4g} to {x:.4g} at step {at.step:.15g} (z {z:.1f})"
        change = self.meant.just_before(at.step, row) if self.meant is not None and self.score.log else ""
        if change:
            what += f"; there {change}"
            severity = severity if ratio >= 1 + self.rule.fail_rise else Severity.INFO
        self.open = _Open(at, median, band, severity, x, at, what, is_meant=bool(change))
        self.open.recent.append(False)
        self.open.above.append(u)
        self.flags.append(row)
        self.ratio_steps += self._plain_ratio(u)
        detail: dict[str, float | str] = {"z": z, "ratio": ratio, "level": level}
        found.append((row, finding("open", "spike", self.key, severity, at, what, detail=detail)))

    def _score(self, u: float, x: float) -> tuple[float, float]:
        """(z of D6, value over the median)."""
        level = self.level
        z = NORMAL * (u - self.score.robust.median) / (self.score.spread + EPS)
        return z, x / level if level > 0 else math.inf

    def _is_loud(self, z: float, ratio: float) -> bool:
        """Whether one value alone is worth a warning. Asked once a value: it remembers the largest scores."""
        if self.rule.lone_is_info:
            return False
        largest = self._largest
        is_habit = len(largest) == HABIT and largest[0] >= z
        if len(largest) < HABIT:
            heappush(largest, z)
        elif not is_habit:
            heapreplace(largest, z)
        is_large = z >= self.rule.lone_z or (self.score.log and ratio >= self.rule.lone_ratio)
        return is_large and not is_habit

    def _plain_ratio(self, u: float) -> bool:
        """The plain ratio: above 2.5x the median of the window without its last 10 values."""
        window = self.score.robust.values()[:-10]
        if not window or not self.score.log:
            return False
        return u - median(window) > math.log(2.5)

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
            in_a_row = not spike.recent[-2]
            spike.last = place(frame, row, x)
            spike.above.append(u)
            louder = spike.severity is Severity.INFO and not self.rule.lone_is_info
            louder = louder and not (spike.is_meant and u < spike.level + math.log1p(self.rule.fail_rise))
            louder = louder and (in_a_row or spike.out >= OUT_IN_ALL or self._is_loud(*self._score(u, x)))
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
            level = median(spike.above)
            if spike.is_meant and level - spike.level < math.log1p(rule.fail_rise):
                self._accept(spike, place(frame, row, x), row, found)
                return
            # A level that settled below the shift's FAIL is the business of `loss.shift`, which says so.
            if not self.score.log or level - spike.level >= math.log1p(rule.fail_rise):
                softer = self.held_out.no_worse(spike.first.step, step, row) if self.held_out is not None else ""
                spike.severity = Severity.WARN if softer else Severity.FAIL
                spike.what += f" and has not recovered after {lasted:.15g} steps{softer}"
                found.append((row, self._said("grow", spike, place(frame, row, x), spike.what)))
        if lasted >= ACCEPT_AFTER * rule.recovery_steps and spike.values >= ACCEPT_AFTER * rule.recovery_values:
            self.score.robust.clear()
            for u in spike.above:
                self.score.robust.update(u)
            found.append((row, self._said("grow", spike, spike.last, spike.what)))
            self.open = None

    def _accept(self, spike: _Open, at: Place, row: int, found: Found) -> None:
        """The level that an expected change has brought is the level from now on."""
        self.score.robust.clear()
        for u in spike.above:
            self.score.robust.update(u)
        found.append((row, self._said("grow", spike, spike.last, spike.what)))
        found.append((row, self._said("recover", spike, at, spike.what)))
        self.open = None

    def _said(self, action: Action, spike: _Open, at: Place, what: str) -> Finding:
        return finding(action, "spike", self.key, spike.severity, at, what, first=spike.first)

    def finish(self) -> Iterable[Finding]:
        """An open spike reaches to its last value."""
        if self.open is None:
            return []
        return [self._said("grow", self.open, self.open.last, self.open.what)]
