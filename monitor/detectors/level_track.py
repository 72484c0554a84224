"""A lasting change of a series' level against its own history."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from typing import Literal

import numpy as np

from trainmon.monitor.amount import amount
from trainmon.monitor.detectors.common import Finite, Found, Place, finding, finite, place, resumed, same_value
from trainmon.monitor.detectors.habits import Levels, LevelsMark, Rhythm
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.settled import Settled
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.stats.sliding import COARSE, FINE, LEAST_WINDOW, median_bounds
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, IntArray

_WORTH = 256  # fewer values than this are not worth looking at all at once ...
_MOST = 16384
_FEW = 16  # ... nor when one in so many may be out
_MANY = 64  # when more than one in so many may be out, nearer bounds are looked at too
_STRETCH = 64
UNDER_WAY = 5  # values out of the level
RECOVERED_OF = 10
RECOVERED = 8
ACCEPT_AFTER = 10  # a level that lasts so many times the persistence is the new level
TYPICAL = 0.9  # a new level lies beyond this share of the values before it


@dataclass(frozen=True, slots=True)
class LevelRule:
    """When a level has changed. Ratios are against the median of the window: 1.3 up is +30%, 0.8 down is -20%.

    `steps`: how long it must last; `values`: the least number of logged values in that time; `fail_values`: so many
    values in a row beyond `fail` make a FAIL (0: the median of the stretch decides); `floor`: the least value that
    can be out (up only); `single`: a lone value so many times the level is told as INFO (0: not told).
    """

    kind: str
    noun: str
    warn: float
    fail: float
    steps: float
    values: int = 3
    window: int = 100
    min_history: int = 30
    direction: Literal["up", "down"] = "up"
    fail_values: int = 0
    floor: float = -math.inf
    single: float = 0.0
    keep_on_restart: bool = False
    worst_severity: Severity = Severity.FAIL


class _Stretch:
    """Values since the first one out of the level."""

    __slots__ = (
        "before",
        "first",
        "last",
        "level",
        "limit",
        "meant",
        "open",
        "outs",
        "recent",
        "severity",
        "tail",
        "values",
        "what",
        "worst",
        "young",
    )

    def __init__(self, first: Place, level: float, limit: float, window: int, before: LevelsMark) -> None:
        size = max(window // 5, 3)
        self.first = self.last = self.worst = first
        self.level = level
        self.limit = limit
        self.before = before  # the levels that the series had until then
        self.values = 0
        self.recent: deque[bool] = deque(maxlen=RECOVERED_OF)
        self.tail = RollingRobust(size)
        self.outs: deque[float] = deque(maxlen=size)
        self.open = False
        self.severity = Severity.WARN
        self.what = ""
        self.young = False
        self.meant = ""  # what was changed on purpose where it began


class LevelTrack:
    """One series. Values out of the level do not enter the window, until the new level is accepted.

    The level is the median of the last W values. A value is out when it lies beyond `warn` times the level. A
    stretch of such values is opened as a fault when it lasted `steps`, held `values` values, and its median is out
    and beyond 90% of the values before; it ends when 8 of 10 values in a row are back.
    """

    def __init__(self, key: SignalKey, rule: LevelRule, meant: MeantChanges | None = None) -> None:
        self.key = key
        self.meant = meant  # fed by the owner: below a FAIL, a level that moves with such a change is a note
        self.rule = rule
        self.robust = RollingRobust(rule.window)
        self.stretch: _Stretch | None = None
        self.settled = Settled()
        self.judged = 0
        self.worst_ratio = 1.0
        self._attempt: int | None = None
        self._last_step = math.nan
        self._last_value = math.nan
        self._up = rule.direction == "up"
        self.rebase_rows: list[int] = []
        self.epoch_rows: frozenset[int] = frozenset()
        self.levels = Levels()
        self.rhythm = Rhythm()

    def rebase(self) -> None:
        """The level is expected to change now (batch size, sequence length): begins anew."""
        self.robust.clear()
        self.stretch = None
        self.settled.clear()
        self.rhythm = Rhythm()

    def new_epoch(self) -> None:
        """The level may change now. Not where values are out of it already: that began before, and is a fault."""
        if self.stretch is None or len(self.stretch.outs) < UNDER_WAY:
            self.rebase()

    def _changed(self, rows: list[int]) -> None:
        """The work of a step was changed on purpose at `rows` of the newest frame."""
        if rows and self.epoch_rows.issuperset(rows):
            self.new_epoch()
        elif rows:
            self.rebase()

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        own = finite(frame, self.key)
        if not len(own):
            self._changed(self.rebase_rows)
            self.rebase_rows = []
            return
        if frame.attempt != self._attempt:
            first = float(own.steps[0])
            if self._attempt is not None and not (self.rule.keep_on_restart and resumed(self._last_step, first)):
                self.rebase()
                self.levels = Levels()
            if self.stretch is not None and first <= self.stretch.first.step:
                self.stretch = None  # a roll-back past the fault leaves it behind
            self.settled.restart(carries_on=True, step=first)
            self._attempt = frame.attempt
            self._last_step = math.nan
        fresh = self.rebase_rows
        self.rebase_rows = []
        if not fresh and len(own) >= _WORTH:
            self._feed_many(frame, own, found)
            return
        for row, step, x in zip(*own.lists, strict=True):
            if fresh and row >= fresh[0]:
                passed = bisect_right(fresh, row)
                self._changed(fresh[:passed])
                fresh = fresh[passed:]
            self._take(frame, row, step, x, found)
        self._changed(fresh)

    def _feed_many(self, frame: Frame, own: Finite, found: Found) -> None:
        """As `feed`; stretches in which no value is out are taken in at once."""
        at, end, stretch = 0, len(own), _STRETCH
        while at < end:
            calm = at + self._calm(frame, own, at, end)
            stretch = _STRETCH if calm > at else 2 * stretch
            at = min(calm + stretch, end) if end - calm > _WORTH else end
            where = slice(calm, at)
            ones = (own.rows[where].tolist(), own.steps[where].tolist(), own.values[where].tolist())
            for row, step, x in zip(*ones, strict=True):
                self._take(frame, row, step, x, found)

    def _calm(self, frame: Frame, own: Finite, start: int, end: int) -> int:
        """Takes in values as long as none is out; how many. What `_take` would do, one by one."""
        robust, window = self.robust, self.rule.window
        end = min(end, start + _MOST)
        is_usual = self.stretch is None and len(robust) == window >= LEAST_WINDOW and self.rule.min_history <= window
        if end - start < _WORTH or not is_usual:
            return 0
        same = np.diff(own.steps[start:end], prepend=self._last_step) == 0
        n = int(np.argmax(same)) if same.any() else end - start
        if self.settled:
            n = min(n, self.settled.all_out(own.values[start : start + n]))
        if n < _WORTH:
            return 0
        known = np.concatenate([robust.values(), own.values[start : start + n]])
        candidates = self._candidates(known, n)
        if candidates is None or len(candidates) > n // _FEW:
            return 0
        for at in candidates.tolist():
            robust.load(known[at : at + window].tolist())
            if self._out(float(known[at + window]), robust.median * self.rule.warn):
                n = at
                break
        robust.load(known[n : n + window].tolist())
        if not self.settled:
            self.levels.extend(own.values[start : start + n])
        self.judged += n
        if n:
            self._last_step, self._last_value = float(own.steps[start + n - 1]), float(own.values[start + n - 1])
            if self.settled:
                self.settled.pass_over(place(frame, int(own.rows[start + n - 1]), self._last_value))
        return n

    def _candidates(self, known: FloatArray, n: int) -> IntArray | None:
        """Which of the n values behind the first window may be out; None where medians may not be above 0."""
        window, warn = self.rule.window, self.rule.warn
        xs = known[window:]
        candidates: IntArray = np.empty(0, np.int64)
        for parts in (COARSE, FINE):
            low, high = median_bounds(known, window, parts)
            if low.min() <= 0:
                continue
            candidates = np.flatnonzero((xs > low * warn) & (xs > self.rule.floor) if self._up else xs < high * warn)
            if len(candidates) <= n // _MANY:
                return candidates
        return candidates if low.min() > 0 else None

    def _take(self, frame: Frame, row: int, step: float, x: float, found: Found) -> None:
        if step == self._last_step and same_value(x, self._last_value):
            return
        self._last_step, self._last_value = step, x
        if not (self.stretch is not None and self.stretch.open) and (not self.settled or self.settled.goes_back(x)):
            self.levels.update(x)  # what is told as a fault is no level it is used to
        if self.settled:
            again = self.settled.take(x, place(frame, row, x), row, found)
            if again and self.stretch is None:
                self.robust.load(again[:-1])
        if self.stretch is not None:
            self._go_on(self.stretch, frame, row, x, found)
        elif len(self.robust) < self.rule.min_history:
            self.robust.update(x)
        else:
            self.judged += 1
            level = self.robust.median
            if level > 0 and self._out(x, level * self.rule.warn):
                self._begin(frame, row, x, level * self.rule.warn, found)
            else:
                self.robust.update(x)

    def _shown(self, x: float) -> str:
        return amount(self.key.signal, x)

    def _out(self, x: float, limit: float) -> bool:
        return x > max(limit, self.rule.floor) if self._up else x < limit

    def _begin(self, frame: Frame, row: int, x: float, limit: float, found: Found) -> None:
        self.stretch = _Stretch(place(frame, row, x), self.robust.median, limit, self.rule.window, self.levels.mark())
        self.stretch.young = len(self.robust) < self.rule.window
        self.stretch.meant = self.meant.just_before(self.stretch.first.step, row) if self.meant is not None else ""
        if self.stretch.meant:
            self.stretch.severity = Severity.INFO
        self._go_on(self.stretch, frame, row, x, found)

    def _go_on(self, stretch: _Stretch, frame: Frame, row: int, x: float, found: Found) -> None:
        rule = self.rule
        self.judged += 1
        out = self._out(x, stretch.limit)
        stretch.values += 1
        stretch.recent.append(not out)
        stretch.tail.update(x)
        if out:
            at = place(frame, row, x)
            stretch.last = at
            stretch.outs.append(x)
            if (x > stretch.worst.value) if self._up else (x < stretch.worst.value):
                stretch.worst = at
        else:
            self.robust.update(x)
        if len(stretch.recent) >= RECOVERED and sum(stretch.recent) >= RECOVERED:
            self._end(stretch, frame, row, x, found)
            return
        if not stretch.open and self._is_noise(stretch, frame.steps[row]):
            self._end(stretch, frame, row, x, found)
            return
        if not out:
            return
        if not stretch.open:
            if self._has_lasted(stretch) or (rule.fail_values and self._run_beyond_fail(stretch)):
                stretch.open = True
                self.levels.take_back(stretch.before, stretch.tail.median)
                self._weigh(stretch)
                found.append((row, self._said("open", stretch, stretch.last)))
        else:
            if self._weigh(stretch) or stretch.worst is stretch.last:
                found.append((row, self._said("grow", stretch, stretch.last)))
            if stretch.last.step - stretch.first.step >= ACCEPT_AFTER * max(rule.steps, 1) and (
                stretch.values >= ACCEPT_AFTER * rule.values
            ):
                said = self._said("settle", stretch, stretch.last)
                found.append((row, said))
                if self._up:
                    self.settled.add(said, high=max(stretch.limit, rule.floor))
                else:
                    self.settled.add(said, low=stretch.limit)
                tail = stretch.tail.values()
                self.robust.clear()
                self.stretch = None
                for value in tail:
                    self.robust.update(value)

    def _has_lasted(self, stretch: _Stretch) -> bool:
        lasted = stretch.last.step - stretch.first.step
        return lasted >= self.rule.steps and stretch.values >= self.rule.values and self._is_level(stretch)

    def _is_level(self, stretch: _Stretch) -> bool:
        """Most values since the first are out, and their median is beyond what the level did before."""
        if sum(stretch.recent) * 2 > len(stretch.recent):
            return False
        middle = stretch.tail.median
        if not self._out(middle, stretch.limit) or self.levels.knows(middle, up=self._up):
            return False
        if self._up:
            return middle > self.robust.quantile(TYPICAL)
        return middle < self.robust.quantile(1 - TYPICAL)

    def _run_beyond_fail(self, stretch: _Stretch) -> bool:
        rule = self.rule
        tail = stretch.tail.values()[-rule.fail_values :]
        if len(tail) < rule.fail_values or any(list(stretch.recent)[-rule.fail_values :]):
            return False
        limit = stretch.level * rule.fail
        return all((x > limit if self._up else x < limit) for x in tail) and (
            tail[-1] >= tail[0] if self._up else tail[-1] <= tail[0]
        )

    def _weigh(self, stretch: _Stretch) -> bool:
        """Sets severity and words; whether the severity rose."""
        rule = self.rule
        before, middle = stretch.severity, stretch.tail.median
        ratio = middle / stretch.level if stretch.level else math.inf
        beyond = (ratio >= rule.fail if self._up else ratio <= rule.fail) if not rule.fail_values else False
        if beyond or (rule.fail_values and self._run_beyond_fail(stretch)):
            stretch.severity = max(before, Severity.FAIL)
        stretch.severity = min(stretch.severity, Severity.WARN if stretch.young else rule.worst_severity)
        self.worst_ratio = max(self.worst_ratio, ratio) if self._up else min(self.worst_ratio, ratio)
        change = "rose" if self._up else "fell"
        stretch.what = (
            f"{rule.noun} {change} from {self._shown(stretch.level)} to {self._shown(middle)} ({ratio:.2f}x) "
            f"at step {stretch.first.step:.15g}"
        )
        if stretch.meant:
            stretch.what += f", where {stretch.meant}"
        return stretch.severity > before

    def _end(self, stretch: _Stretch, frame: Frame, row: int, x: float, found: Found) -> None:
        if stretch.open:
            found.append((row, self._said("grow", stretch, stretch.last)))
            found.append((row, self._said("recover", stretch, place(frame, row, x))))
        elif self.rule.single and self._up and stretch.worst.value >= self.rule.single * stretch.level:
            self._tell_single(stretch, row, found)
        if not stretch.open:
            # It was noise, and belongs to the level: leaving it out would make the window narrower than the values are.
            for value in stretch.outs:
                self.robust.update(value)
        self.stretch = None

    def _tell_single(self, stretch: _Stretch, row: int, found: Found) -> None:
        """A lone slow step, unless it lies on the rhythm of checkpoints and evaluations."""
        at = stretch.worst
        if self.rhythm.expects(at.step):
            return
        what = f"one {self.rule.noun} of {self._shown(at.value)} at step {at.step:.15g}"
        what += f", {at.value / stretch.level:.1f}x its level"
        found.append((row, finding("open", "slow_step", self.key, Severity.INFO, at, what, first=stretch.first)))
        found.append((row, finding("recover", "slow_step", self.key, Severity.INFO, at, what)))

    def _is_noise(self, stretch: _Stretch, step: float) -> bool:
        """It lasted, and yet most of its values are those of the level, or of a level that the run had before."""
        if step - stretch.first.step < self.rule.steps or stretch.values < max(2 * RECOVERED_OF, self.rule.values):
            return False
        middle = stretch.tail.median
        return not self._out(middle, stretch.limit) or self.levels.knows(middle, up=self._up)

    def _said(self, action: Action, stretch: _Stretch, at: Place) -> Finding:
        detail: dict[str, float | str] = {"level": stretch.level}
        return finding(
            action, self.rule.kind, self.key, stretch.severity, at, stretch.what, first=stretch.first, detail=detail
        )

    def finish(self) -> Iterable[Finding]:
        """An open stretch reaches to its last value."""
        stretch, said = self.stretch, self.settled.finish()
        if stretch is None or not stretch.open:
            return said
        return [*said, self._said("grow", stretch, stretch.last)]
