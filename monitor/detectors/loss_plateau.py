"""Check loss.plateau: the loss has stopped falling while its own trend promised more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import (
    Place,
    Rl,
    finding,
    finite,
    number_fact,
    place,
    result,
    resumed,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.curve_points import Curve
from trainmon.monitor.detectors.meant import EPOCH, MeantChanges
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.kink import kink
from trainmon.monitor.stats.middle import median
from trainmon.monitor.stats.slope import falling_ends, slope_test
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

LOSS = SignalKey("loss.train")
LR = SignalKey("optim.lr")
DECAYED = 0.5  # of the peak: a decaying learning rate flattens the curve by design
PROMISED = 0.15  # the trend before must promise a fall of so much over the flat part ...
FLAT_SHARE = 0.5  # ... which is at least half of what the run has done
NO_BEND = 5.0  # ... and a stop must explain the curve better than a smooth bend; of healthy ones, many stand near 0
NEARLY_ALL = 0.95  # of the run, or more: flat from the beginning on, however it bent there
# A shorter end is told where nothing but a stop explains it.
STOPPED, PROMISED_BY_STOP = 25.0, 0.03  # the evidence of a stop against any smooth curve, and the least promise
HINTED, PROMISED_BY_HINT = 12.0, 0.02  # worth a note: of healthy curves, only such that have reached their floor
LOOKED_BACK = 8.0  # times the flat part's first step: what lies before that has another slope
LEAST_TREND = 8  # points
KEPT_PROMISE = 0.25  # a fall of a quarter of the promise is no plateau
FELL = 0.2  # the part before must have fallen by so much, or there was no trend
CONVERGED = 0.1  # nats: nothing more to fall
MIN_BEFORE = 4
MIN_FLAT = 12
LOOK = 1.1  # times the run's length at the last look
PARTS = 6  # of a flat end, each at its level
_FEW = 8  # ends whose slopes are tested sooner one by one
NEAR = KEPT_PROMISE * PROMISED  # of the log loss: at the level


@dataclass(frozen=True, slots=True)
class Plateau:
    """A flat end: where it begins, its level, the fall that the trend promised since (a share of the loss).

    `severity`: INFO where a smooth bend may still explain it.
    """

    first: Place
    last: Place
    level: float
    promised: float
    slope_error: float
    severity: Severity = Severity.WARN


class _Shape(NamedTuple):
    """A plateau by the points alone: the first of them, and what `Plateau` tells."""

    begin: int | None  # None: where the one that is open began
    level: float
    promised: float
    slope_error: float
    severity: Severity = Severity.WARN


def _flat_from(steps: FloatArray, u: FloatArray, least: float) -> int | None:
    """The start of the longest end, of at least `least` steps, whose slope is not different from 0 (|t| < 3)."""
    n = len(steps)
    if steps[-1] - steps[MIN_BEFORE:].min() < least:
        return None
    # A bend makes the error of a slope large, and a fall and a rise cancel: every part must be at the level.
    apart = np.abs(u - median(u[-MIN_FLAT:]))
    is_near = apart <= NEAR
    starts = np.arange(MIN_BEFORE, n - MIN_FLAT, max(1, n // 64))
    next_near = np.minimum.accumulate(np.where(is_near, np.arange(n), n)[::-1])[::-1][starts]
    begins = np.where(next_near < n, next_near, starts)  # many a start has the same one
    if (is_short := steps[-1] - steps[begins] < least).any():
        begins = begins[: int(np.argmax(is_short))]
    near = [0, *np.cumsum(is_near).tolist()]  # of the first so many
    level = [begin for begin in dict.fromkeys(begins.tolist()) if _is_level(apart, near, begin)]
    falls = falling_ends(steps, u, -3.0) if len(level) > _FEW else None
    for begin in level:
        if (falls is None or not falls[begin]) and slope_test(steps[begin:], u[begin:]).t > -3.0:
            return int(begin)
    return None


def _is_level(apart: FloatArray, near: list[int], begin: int) -> bool:
    """Whether the median of each of PARTS parts (`np.array_split`) of `apart[begin:]` is near: mostly, counts tell."""
    size, longer = divmod(len(apart) - begin, PARTS)
    at = begin
    for part in range(PARTS):
        end = at + size + (part < longer)
        counted, half = 2 * (near[end] - near[at]), end - at
        if counted < half or (counted == half and median(apart[at:end]) > NEAR):
            return False
        at = end
    return True


def _grown(held: Plateau, step: float) -> float:
    """What its trend has promised by `step`: what was told of it goes on until the loss leaves its level."""
    first = max(held.first.step, 1.0)
    return held.promised * math.log(max(step, first) / first) / math.log(max(held.last.step, 1.0 + first) / first)


class LossPlateau(Detector):
    """Over N = max(1,000 steps, 5% of the run) the slope is not different from 0, minding autocorrelation.

    Only a WARN, and only when the learning rate is not decayed and the loss stands above what the run's own power
    law, fitted to the part before, promised: 15% lower over a flat end of half of the run, 3% over a shorter one, where
    a fall that stops at once explains the curve so much better than any that flattens smoothly that it is no chance.
    Where it explains it better and chance is not ruled out it is a note. A loss below 0.1 nats has converged.
    """

    id: ClassVar[str] = "loss.plateau"
    name: ClassVar[str] = "Loss Plateau"
    signals: ClassVar[tuple[str, ...]] = ("loss.train", "optim.lr")
    order: ClassVar[int] = 5
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = (
        "slope of the loss over N = max(plateau.steps, plateau.share of the run), its error by batch means "
        "(autocorrelation), against the run's own trend"
    )
    source: ClassVar[str] = "METRICS.md, Loss Plateau; training-stability-monitor, Loss Plateau"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.curve = Curve()
        self.rl = Rl()
        self.lr_peak = 0.0
        self.lr = math.nan
        self.last: Place | None = None
        self._attempt: int | None = None
        self._last_step = math.nan
        self._found: tuple[tuple[float, ...], _Shape | None] | None = None
        self._look = 0.0  # the step from which on the next point is looked at
        self._opened = False
        self._held: Plateau | None = None  # the one that is open, as it was when it was told
        self._meant, self._row = MeantChanges(), 0

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Keeps the curve and the learning rate; looks for a plateau each time the run is a tenth longer."""
        if not len(frame):
            return ()
        if frame.attempt != self._attempt:
            if self._attempt is not None and not resumed(self._last_step, float(frame.steps[0])):
                self.curve.clear()
                self._found = None
                self.lr_peak = self._look = 0.0
                self._opened, self._held = False, None
            self._attempt = frame.attempt
        self._last_step = float(frame.steps[-1])
        self._meant.feed(frame)
        rates, own = finite(frame, LR), finite(frame, LOSS)
        end = int(np.searchsorted(own.rows, self.rl.first_row(frame)))
        found: list[Finding] = []
        at = seen_rates = 0
        while at < end:
            at = self.curve.feed(frame, own, at, end, self._look)
            row = int(own.rows[at - 1])
            upto = int(np.searchsorted(rates.rows, row, side="right"))
            self._rates(rates.values[seen_rates:upto])
            seen_rates = upto
            self.last, self._row = place(frame, row, float(own.values[at - 1])), row
            if self.last.step >= self._look and self.curve.is_whole:
                self._look = max(LOOK * self.last.step, self.last.step + MIN_FLAT)
                for said in self._judge():
                    self._opened = said.action in ("open", "grow")
                    self._held = self._held_after(said) if self._opened else None
                    found.append(said)
        self._rates(rates.values[seen_rates:])
        self._row = len(frame) - 1
        return found

    def _held_after(self, said: Finding) -> Plateau | None:
        """The plateau that is open, as it was when it was told so loudly for the first time."""
        held = self._held
        return held if held is not None and held.severity >= said.severity else self.find()

    def _rates(self, rates: FloatArray) -> None:
        if len(rates):
            self.lr_peak = max(self.lr_peak, float(rates.max()))
            self.lr = float(rates[-1])

    def window(self) -> float:
        """N of the rule, in steps."""
        total = number_fact(self.facts, "total_steps")
        done = self.curve.points[-1][0] if self.curve.points else 0.0
        return max(self.limits["plateau.steps"], self.limits["plateau.share"] * (total or done))

    @property
    def decayed(self) -> bool:
        """Whether the learning rate has come down to half of its peak."""
        return self.lr_peak > 0 and self.lr <= DECAYED * self.lr_peak

    def find(self) -> Plateau | None:
        """The plateau in which the log ends, if there is one."""
        points = self.curve.points
        if self.last is None or len(points) < MIN_BEFORE + MIN_FLAT or self.decayed or not self.curve.usable:
            return None
        # The answer for the same points is kept: most looks come before the next point is whole.
        held = 0.0 if self._held is None else self._held.first.step + 0.5 * self._held.severity
        asked = (len(points), self.curve.join, points[0][0], points[-1][0], self.window(), held)
        if self._found is None or self._found[0] != asked:
            self._found = (asked, self._shape())
        shape = self._found[1]
        if shape is None:
            return None
        if shape.begin is None:
            assert self._held is not None
            first = self._held.first
        else:
            first = points[shape.begin][2]
        return None if self._is_resized(first.step, self.last.step) else Plateau(first, self.last, *shape[1:])

    def _is_resized(self, after: float, upto: float) -> bool:
        """Whether batch or context were changed within: what each step does then, its trend did not promise."""
        return any(one.key != EPOCH and after < one.step <= upto and one.row <= self._row for one in self._meant.known)

    def _shape(self) -> _Shape | None:
        steps = np.array([p[0] for p in self.curve.points])
        u = np.array([p[1] for p in self.curve.points])
        level = median(u[-MIN_FLAT:])
        if math.exp(level) < CONVERGED:
            return None
        begin = _flat_from(steps, u, self.window())
        if begin is None:
            return None
        fit = slope_test(steps[begin:], u[begin:])
        held = None
        if self._held is not None and abs(level - math.log(self._held.level)) <= NEAR:
            held = _Shape(None, math.exp(level), _grown(self._held, float(steps[-1])), fit.error, self._held.severity)
            if held.severity is Severity.WARN:
                return held
        return self._fresh(steps, u, begin, held)

    def _fresh(self, steps: FloatArray, u: FloatArray, begin: int, held: _Shape | None) -> _Shape | None:
        """What the points from `begin` on tell by themselves; `held`, a note that stands, where they tell no more."""
        level, done = median(u[-MIN_FLAT:]), float(steps[-1] - steps[0])
        fit = slope_test(steps[begin:], u[begin:])
        flat = float(steps[-1] - steps[begin])
        fell = -fit.slope * flat
        back = int(np.searchsorted(steps, steps[begin] / LOOKED_BACK))
        back = min(back, max(begin - LEAST_TREND, 0))
        stop = kink(np.maximum(steps[back:], 1.0), u[back:])
        if (stop is None or stop.evidence < NO_BEND) and flat < NEARLY_ALL * done:
            return held
        hint = held
        if stop is not None and fell <= KEPT_PROMISE * stop.promised:
            at = back + stop.begin
            is_long = steps[-1] - steps[at] >= self.window()
            if is_long and stop.evidence >= STOPPED and stop.promised >= PROMISED_BY_STOP:
                return _Shape(at, math.exp(level), stop.promised, fit.error)
            if is_long and stop.evidence >= HINTED and stop.promised >= PROMISED_BY_HINT:
                hint = held or _Shape(at, math.exp(level), stop.promised, fit.error, Severity.INFO)
        promised = self._promise(steps[:begin], u[:begin], steps[begin], steps[-1])
        is_sure = fell + 2 * fit.error * flat <= KEPT_PROMISE * promised
        if flat < FLAT_SHARE * done or promised < PROMISED or not is_sure:
            return hint
        return _Shape(begin, math.exp(level), promised, fit.error)

    @staticmethod
    def _promise(steps: FloatArray, u: FloatArray, first: float, last: float) -> float:
        """The fall in log loss from `first` to `last` by the power law of the later part of the points before."""
        if len(steps) < MIN_BEFORE or u[0] - u[-1] < FELL:
            return 0.0
        part = slice(max(0, len(steps) // 2 - MIN_BEFORE), None)
        x = np.log(np.maximum(steps[part], 1.0))
        fit = slope_test(x, u[part])
        if fit.points < MIN_BEFORE or fit.t > -2.0:
            return 0.0
        return float(-fit.slope * (math.log(last) - math.log(max(first, 1.0))))

    def finish(self) -> Iterable[Finding]:
        """Judged on what there is now: a plateau is a state of the newest steps."""
        return self._judge()

    def _judge(self) -> list[Finding]:
        """The plateau that the curve stands on now; that the one told before has come to an end.

        It is taken back when the learning rate is decayed: that was to end it.
        """
        plateau = self.find()
        if plateau is None:
            at = self.last if self._opened else None
            ended: Action = "withdraw" if self.decayed else "recover"
            return [] if at is None else [finding(ended, "plateau", LOSS, Severity.WARN, at, "")]
        lr = f" while the learning rate stands at {self.lr:.3g}" if self.lr == self.lr and self.lr_peak > 0 else ""
        about = "" if plateau.severity is Severity.WARN else "about "
        what = (
            f"loss has stayed at {plateau.level:.4g} since {about}step {plateau.first.step:.15g}{lr}; "
            f"its trend before promised {-100 * math.expm1(-plateau.promised):.0f}% less by now"
        )
        if plateau.severity is not Severity.WARN:
            what += ", which is little beside the noise: it may only flatten"
        action: Action = "grow" if self._opened else "open"
        return [finding(action, "plateau", LOSS, plateau.severity, plateau.last, what, first=plateau.first)]

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("plateau.steps", "plateau.share")
        if verdict_of(view.episodes) is not Verdict.PASS:
            return result(
                self,
                Verdict.WARN,
                tell(view.episodes),
                "a slope not different from 0, with the noise's autocorrelation counted",
                "see whether the optimiser's state is alive (update ratio), whether data repeats, and whether the "
                "learning rate is too low or too high to fall further",
                used,
            )
        count = seen(view, "loss.train")
        if not count:
            return result(self, Verdict.NO_DATA, "no training loss in the log; log it every step")
        points = self.curve.points
        if not self.curve.usable or (view.rl and not points):
            return result(self, Verdict.NOT_APPLICABLE, "a policy's loss follows no falling curve")
        done = points[-1][0] - points[0][0] if points else 0.0
        if done < self.limits["plateau.steps"] or len(points) < MIN_BEFORE + MIN_FLAT:
            what = f"{count:,} values over {done:,.0f} steps are too few"
            return result(self, Verdict.NO_DATA, what, used=used)
        if self.decayed:
            return result(self, Verdict.PASS, "the learning rate is decayed: the curve may flatten", used=used)
        hints = [episode for episode in view.episodes if not episode.recovered]
        what = hints[-1].what if hints else "the loss follows its own trend"
        return result(self, Verdict.PASS, what, used=used)
