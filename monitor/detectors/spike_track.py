"""Spikes of one series against its own last W values (METRICS.md D6)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from trainmon.monitor.detectors.common import Finite, Found, Place, finding, finite, place, resumed, same_value
from trainmon.monitor.detectors.drops import Drops, Low, dropped
from trainmon.monitor.detectors.heldout_trend import HeldOutTrend
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.open_spike import OpenSpike
from trainmon.monitor.detectors.settled import Settled
from trainmon.monitor.detectors.spike_bulk import highest_rise, may_be_out
from trainmon.monitor.detectors.spike_loudness import Loudness
from trainmon.monitor.detectors.spike_rule import SpikeRule
from trainmon.monitor.finding import Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.local_level import JUST_NOW, LocalLevel, local_level
from trainmon.monitor.stats.middle import median
from trainmon.monitor.stats.resolution import FULL_PRECISION, PrintResolution
from trainmon.monitor.stats.robust_score import EPS, NORMAL, RobustScore
from trainmon.monitor.stats.sliding import LEAST_WINDOW

OUT_IN_ALL = 3  # two values out in a row, or so many before it has recovered, are a warning at any score
_WORTH = 256  # fewer values than this are not worth looking at all at once ...
_MOST = 16384
_FEW = 8  # ... nor when one in so many may be out
_STRETCH = 64
_LITTLE = 32  # rows of a frame that are not worth an array
_log = np.log
ACCEPT_AFTER = 3  # a level that lasts so many times the recovery time is the new level


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
        self.open: OpenSpike | None = None
        self.settled = Settled()
        self.meant = MeantChanges() if rule.minds_changes else None
        self.held_out = HeldOutTrend() if rule.minds_changes else None
        self._drops = Drops()
        self._loudness = Loudness(rule)
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
        if len(frame.steps) <= _LITTLE:
            self._feed_few(frame, found, until)
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
                calm = start + self._calm(frame, own, start, end)
                stretch = _STRETCH if calm > start else 2 * stretch
                stop = min(calm + stretch, end) if end - calm > _WORTH else end
                if stop > calm:
                    self._run(frame, own, calm, stop, found)
                start = stop

    def _feed_few(self, frame: Frame, found: Found, until: int | None) -> None:
        """As `feed` for the few rows at a time of a log that is followed live: the same, without arrays of few values.

        Four rows take 0.4 of the time so, ten 0.6, thirty as long.
        """
        column = frame.columns.get(self.key)
        if column is None:
            return
        if until is not None:
            column = column[:until]
        resolution, score = self.resolution, self.score
        for row, (x, step) in enumerate(zip(column.tolist(), frame.steps.tolist(), strict=False)):
            if x - x != 0:  # not finite
                continue
            if frame.attempt != self._attempt:
                self._restart(frame.attempt, step)
            if resolution.decimals < FULL_PRECISION:
                resolution.update(x)
                score.half_unit = resolution.half_unit
            # Not by `math`: its logarithm may differ from that of longer frames in the last bit.
            self._take(frame, row, step, x, float(_log(x + EPS)) if x > 0 else math.nan, found)

    def _restart(self, attempt: int, first_step: float) -> None:
        carries_on = self._attempt is None or resumed(self._last_step, first_step)
        self.settled.restart(carries_on=carries_on, step=first_step)
        if not carries_on:
            self.score.robust.clear()
            self.open = None
            self._loudness.forget()
        if self.open is not None and first_step <= self.open.first.step:
            self.open = None  # a roll-back past the spike leaves it behind
        self._drops.take()
        self._attempt = attempt
        self._last_step = math.nan

    def _calm(self, frame: Frame, own: Finite, start: int, end: int) -> int:
        """Takes in values as long as none is out, many at once; how many. What `_run` would do, value by value."""
        robust, window = self.score.robust, self.rule.window
        end = min(end, start + _MOST)
        is_usual = self.open is None and not self._drops and self.score.log and len(robust) == window
        if end - start < _WORTH or not is_usual or window < LEAST_WINDOW:
            return 0
        xs, step = own.values[start:end], own.steps[start:end]
        odd = (xs <= 0) | (np.diff(step, prepend=self._last_step) == 0)
        n = int(np.argmax(odd)) if odd.any() else len(xs)
        if self.settled:
            n = min(n, self.settled.all_out(own.logs[start : start + n]))
        if n < _WORTH:
            return 0
        known = np.concatenate([robust.values(), own.logs[start : start + n]])
        low, candidates = may_be_out(known, self.rule, self._rise_log)
        if len(candidates) > n // _FEW:
            return 0
        for at in candidates.tolist():
            robust.load(known[at : at + window].tolist())
            if self._out(float(known[at + window])) is not None:
                n = at
                break
        rise, where = highest_rise(known, (known[window:] - low)[:n], robust, self.highest_rise)
        if where >= 0:
            robust.load(known[where : where + window].tolist())
            self._keep_highest(rise, float(step[where]))
        robust.load(known[n : n + window].tolist())
        if n:
            self.judged += n
            self._last_step, self._last_value = float(step[n - 1]), float(xs[n - 1])
            if self.settled:
                self.settled.pass_over(place(frame, int(own.rows[start + n - 1]), self._last_value))
        return n

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
        if self.settled:
            again = self.settled.take(u, place(frame, row, x), row, found)
            if again and self.open is None and not self._drops:
                robust.load(again[:-1])
        if self.open is not None or self._drops:
            self._busy(frame, row, u, x, found)
        elif len(robust) < self.rule.min_history:
            robust.update(u)
        else:
            self.judged += 1
            rise = u - robust.median
            if rise > self.highest_rise:
                self._keep_highest(rise, step)
            size = self._rise_log if self.score.log else self._size
            if -size <= rise <= size and not (self.rule.follows_falls and u - robust.last > size):
                robust.update(u)  # as `_out` would say, and as mostly
                return
            out = self._out(u)
            if out is None:
                robust.update(u)
            else:
                self._flag(frame, row, u, x, out, found)

    def _out(self, u: float) -> LocalLevel | None:
        """What `u` is a spike or a drop against, None where it is neither.

        The median of the window and its spread: the size rule first, then D6 without working out D. Where the window
        falls steeply, which widens its spread, also the trend, for what jumps up from the values just before.
        """
        robust, size = self.score.robust, self._rise_log if self.score.log else self._size
        rise = u - robust.median
        is_out = (rise > size or rise < -size) and self.score.above(abs(rise), self.rule.z)
        usual = LocalLevel(robust.median, self.score.spread) if is_out else None
        if not self.rule.follows_falls or not self.score.log or not self._jumps(u, size):
            return usual
        local = local_level(robust, self.score.floor)
        if local is None or u - local.expected <= size or local.score(u) <= self.rule.z:
            return usual
        if usual is None:
            return local
        return usual if usual.score(u) >= local.score(u) else replace(local, falls=False)

    def _jumps(self, u: float, size: float) -> bool:
        """Whether `u` stands above each of the values just before by `size`."""
        robust = self.score.robust
        return bool(robust) and u - robust.last > size and u - max(robust.newest(JUST_NOW)) > size

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
        self.settled.clear()
        self._drops.take()
        for x in kept:
            self.score.robust.update(x)

    def _flag(self, frame: Frame, row: int, u: float, x: float, usual: LocalLevel, found: Found) -> None:
        at = place(frame, row, x)
        if u < usual.expected:
            self._drops.low(Low(at, u, self.level, self.score.robust.median))
            return
        level = math.exp(usual.expected) if self.score.log else usual.expected
        z, ratio = usual.score(u), x / level if level > 0 else math.inf
        severity = Severity.WARN if self._is_loud(usual, u) else Severity.INFO
        band = usual.expected + max(self._size, self.rule.z * usual.spread / NORMAL)
        what = f"{self.rule.noun} rose from {level:.4g} to {x:.4g} at step {at.step:.15g} (z {z:.1f})"
        change = self.meant.just_before(at.step, row) if self.meant is not None and self.score.log else ""
        if change:
            what += f"; there {change}"
            severity = severity if ratio >= 1 + self.rule.fail_rise else Severity.INFO
        self.open = OpenSpike(at, usual, band, severity, x, at, what, is_meant=bool(change))
        self.open.recent.append(False)
        self.open.above.append(u)
        self.flags.append(row)
        self.ratio_steps += self._plain_ratio(u)
        detail: dict[str, float | str] = {"z": z, "ratio": ratio, "level": level}
        found.append((row, finding("open", "spike", self.key, severity, at, what, detail=detail)))

    def _is_loud(self, usual: LocalLevel, u: float) -> bool:
        """Whether the one value `u` is worth a warning. By a trend only the score says so: it is a guess."""
        ratio = math.exp(u - usual.expected) if self.score.log and not usual.falls else 0.0
        return self._loudness.is_loud(usual.score(u), ratio)

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
        # Values far below are held back until it is known whether they came and went, or are a level.
        self.judged += 1
        out = self._out(u)
        if (u < out.expected) if out is not None else self._drops.is_down(u):
            if self._drops.low(Low(place(frame, row, x), u, self.level, self.score.robust.median)):
                found += self._fallen(row)
                self._take_in()
            return
        if self._drops.high() or out is not None:
            if self._drops.are_drops:
                found += [(row, said) for said in dropped(self.key, self.rule.noun, self._drops.take())]
            self._take_in()
        if out is None:
            self.score.robust.update(u)
        else:
            self._flag(frame, row, u, x, out, found)

    def _take_in(self) -> None:
        """Values that were held back belong to the level."""
        for low in self._drops.take():
            self.score.robust.update(low.u)

    def _fallen(self, row: int) -> Found:
        """A loss that is half of what it was from one value to the next is worth a word."""
        low = self._drops.fallen(self.score.robust.median) if self.meant is not None and self.score.log else None
        if low is None or self.settled.goes_back(low.u):
            return []  # the end of a fault that was told
        if self.meant is not None and self.meant.just_before(low.at.step, row):
            return []
        return [(row, said) for said in dropped(self.key, self.rule.noun, [low], "stayed there")]

    def _go_on(self, spike: OpenSpike, frame: Frame, row: int, u: float, x: float, found: Found) -> None:
        self.judged += 1
        spike.values += 1
        inside = u <= spike.band
        spike.recent.append(inside)
        step = float(frame.steps[row])
        if inside:
            self.score.robust.update(u)
            if spike.is_back:
                if spike.last.step != spike.first.step:
                    found.append((row, spike.said("grow", self.key, spike.last)))
                at = place(frame, row, x)
                found.append((row, spike.said("recover", self.key, at)))
                self.open = None
                return
        else:
            self.flags.append(row)
            spike.out += 1
            in_a_row = not spike.recent[-2]
            spike.last = place(frame, row, x)
            spike.above.append(u)
            louder = spike.severity is Severity.INFO and not self.rule.lone_is_info
            louder = louder and not (spike.is_meant and u < spike.usual.expected + math.log1p(self.rule.fail_rise))
            is_long = (in_a_row or spike.out >= OUT_IN_ALL) and not spike.usual.falls
            louder = louder and (is_long or self._is_loud(spike.usual, u))
            if x > spike.worst or louder:
                spike.worst = max(x, spike.worst)
                if louder:
                    spike.severity = Severity.WARN
                found.append((row, spike.said("grow", self.key, spike.last)))
        self._judge_length(spike, frame, row, step, x, found)

    def _judge_length(self, spike: OpenSpike, frame: Frame, row: int, step: float, x: float, found: Found) -> None:
        rule = self.rule
        lasted = step - spike.first.step
        if lasted < rule.recovery_steps or spike.values < rule.recovery_values:
            return
        if not spike.failed and not rule.lone_is_info:
            spike.failed = True
            level = median(spike.above)
            if spike.is_meant and level - spike.usual.expected < math.log1p(rule.fail_rise):
                self._accept(spike, place(frame, row, x), row, found)
                return
            # A level that settled below the shift's FAIL is the business of `loss.shift`, which says so.
            if not self.score.log or level - spike.usual.expected >= math.log1p(rule.fail_rise):
                softer = self.held_out.no_worse(spike.first.step, step, row) if self.held_out is not None else ""
                spike.severity = Severity.WARN if softer else Severity.FAIL
                spike.what += f" and has not recovered after {lasted:.15g} steps{softer}"
                found.append((row, spike.said("grow", self.key, place(frame, row, x))))
        if lasted >= ACCEPT_AFTER * rule.recovery_steps and spike.values >= ACCEPT_AFTER * rule.recovery_values:
            self.score.robust.clear()
            for u in spike.above:
                self.score.robust.update(u)
            said = spike.said("settle", self.key, spike.last)
            found.append((row, said))
            self.settled.add(said, high=spike.band)
            self.open = None

    def _accept(self, spike: OpenSpike, at: Place, row: int, found: Found) -> None:
        """The level that an expected change has brought is the level from now on."""
        self.score.robust.clear()
        for u in spike.above:
            self.score.robust.update(u)
        found.append((row, spike.said("grow", self.key, spike.last)))
        found.append((row, spike.said("recover", self.key, at)))
        self.open = None

    def finish(self) -> Iterable[Finding]:
        """An open spike reaches to its last value."""
        said = self.settled.finish()
        said += dropped(self.key, self.rule.noun, self._drops.waiting()) if self._drops.are_drops else []
        return said if self.open is None else [*said, self.open.said("grow", self.key, self.open.last)]
