"""Check lr.schedule: warm-up, peak and jumps of the learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    finding,
    finite,
    in_order,
    number_fact,
    place,
    result,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.lineage import Lineage
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.recipes import recipe_peak_lr
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, IntArray

LOSS = SignalKey("loss.train")
BATCH_SIZE = SignalKey("batch.size")
STATE = "see whether the scheduler's state was restored, and who changed the rate"
LATE = 100.0  # a log that begins later than this, or than 0.1% of the run, does not show the start
GAP = 20.0  # times the spacing of the first steps: a part of the log that was left out
AT_PEAK = 0.99
ASKED = 1.5  # times the warm-up that is seen: so much more in the settings was not followed
JUMP = 2.0  # up, between neighbouring values within 1% of the run
BEYOND = 1.25  # times the height so far: a schedule that begins again returns to about where it was
BACK = 0.8  # of the height so far: what comes back to it is a schedule that begins again
SETTLED_VALUES, SETTLED_STEPS = 20, 100.0
SMOOTH = 1.2  # from value to value: a warm-up under way rises by less
FAULT_SHARE = 0.01
FAULT_RATIO = 1.5
UNTRAINED = 6.0  # nats: a first loss this high is pretraining from the start
TOO_HIGH = 8.0  # times the recipes'


class _Schedule:
    """What one parameter group's learning rate did in the newest run of the log."""

    def __init__(self) -> None:
        self.lineage = Lineage()
        self.forget()

    def forget(self) -> None:
        """Another run begins: nothing of this one is kept."""
        self.first_step = math.nan
        self.first = math.nan
        self.second_step = math.nan
        self.peak = 0.0
        self.peak_step = math.nan
        self.after_peak = math.nan  # the step of the value that follows the highest one
        self.peak_index = 0
        self.last = math.nan
        self.last_step = math.nan
        self.count = 0
        self.tail = np.empty(0)
        self.has_come_back = False

    def keep_tail(self, lr: FloatArray) -> None:
        """Remembers the newest values."""
        self.tail = np.concatenate([self.tail, lr[-SETTLED_VALUES:]])[-SETTLED_VALUES:]

    def is_smooth(self, lr: FloatArray) -> bool:
        """Whether the last 20 values rose by little each: a jump that follows is none of a warm-up's."""
        last = np.concatenate([self.tail, lr[-SETTLED_VALUES:]])[-SETTLED_VALUES:]
        if len(last) < SETTLED_VALUES or not (last > 0).all():
            return False
        return bool((last[1:] <= SMOOTH * last[:-1]).all())


class LrSchedule(Detector):
    """The rules of METRICS.md's five checks. Advice about the settings, unless the start of the run went wrong."""

    id: ClassVar[str] = "lr.schedule"
    name: ClassVar[str] = "LR Schedule"
    signals: ClassVar[tuple[str, ...]] = ("optim.lr",)
    order: ClassVar[int] = 3
    triage: ClassVar[str] = "gradients"
    formula: ClassVar[str] = "warm-up share = first step at the peak / total steps; jump = LR against its neighbours"
    source: ClassVar[str] = "METRICS.md, LR Schedule; training-stability-monitor, LR Schedule"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.groups: dict[SignalKey, _Schedule] = {}
        self.start = _Start()
        self.meant = MeantChanges()

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads the learning rate, and the loss of the first steps."""
        found: Found = []
        self.start.feed(frame)
        self.meant.feed(frame)
        for key in sorted(frame.family("optim.lr")):
            self._feed(self.groups.setdefault(key, _Schedule()), key, frame, found)
        return in_order(found)

    def _feed(self, group: _Schedule, key: SignalKey, frame: Frame, found: Found) -> None:
        own = finite(frame, key)
        if not len(own):
            return
        rows, at, lr = own.rows, own.steps, own.values
        first, last = float(at[0]), float(at[-1])
        restart = group.lineage.enter(frame.attempt, first)
        if restart is not None:
            if restart.resumed:
                # It goes on from restored optimiser state: no warm-up is due, and a smaller step is no jump.
                group.last = math.nan
                group.tail = group.tail[:0]
            else:
                group.forget()
        group.lineage.saw(first, last, len(own))
        if not group.count:
            group.first, group.first_step = float(lr[0]), first
        if math.isnan(group.second_step) and len(later := np.flatnonzero(at > group.first_step)):
            group.second_step = float(at[later[0]])
        self._jumps(group, key, frame, rows, lr, at, found)
        top = int(lr.argmax())
        if lr[top] > group.peak:
            group.peak, group.peak_step = float(lr[top]), float(at[top])
            group.peak_index = group.count + top
            group.after_peak = float(at[top + 1]) if top + 1 < len(at) else math.nan
        elif math.isnan(group.after_peak):
            group.after_peak = first
        group.count += len(own)
        group.last, group.last_step = float(lr[-1]), last
        group.keep_tail(lr)

    def _jumps(
        self,
        group: _Schedule,
        key: SignalKey,
        frame: Frame,
        rows: IntArray,
        lr: FloatArray,
        at: FloatArray,
        found: Found,
    ) -> None:
        before = np.concatenate([[group.last], lr[:-1]])
        before_at = np.concatenate([[group.last_step], at[:-1]])
        # A rise to a value that was passed before is a jump; a new highest value belongs to the warm-up, unless the
        # rate had reached its height long before.
        highest = np.maximum.accumulate(np.concatenate([[group.peak], lr[:-1]]))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            rises = (before > 0) & (lr > JUMP * before)
            jumps = rises & (((lr <= highest * 1.001) & (before < 0.5 * highest)) | (lr > highest * 1.001))
        for i in np.flatnonzero(jumps).tolist():
            is_new = lr[i] > highest[i] * 1.001
            if at[i] <= before_at[i]:
                continue
            if is_new and not (_has_settled(group, lr[:i], at[:i]) or group.is_smooth(lr[:i])):
                continue
            row = int(rows[i])
            place_ = place(frame, row, float(lr[i]))
            what = f"learning rate jumped from {before[i]:.3g} to {lr[i]:.3g} at step {at[i]:.15g}"
            change = self.meant.just_before(place_.step, row, BATCH_SIZE)
            why = _unexplained(float(lr[i]), float(highest[i]))
            if why and lr[i] < highest[i]:
                why = "" if group.has_come_back else why  # one that begins again at lower and lower heights does so
                group.has_come_back = True
            severity = Severity.WARN if why and not change else Severity.INFO
            what += f", where {change}" if change else why
            found.append((row, finding("open", "lr_jump", key, severity, place_, what)))
            found.append((row, finding("recover", "lr_jump", key, severity, place_, what)))

    def _total(self) -> float | None:
        return number_fact(self.facts, "total_steps")

    def finish(self) -> Iterable[Finding]:
        """A run without warm-up that went wrong in its first 1%."""
        group = self._main()
        if group is None or not self._starts_at_peak(group):
            return []
        total = self._total() or group.last_step
        bad = self.start.fault(FAULT_SHARE * total)
        if bad is None:
            return []
        what = f"no warm-up (learning rate {group.peak:.3g} from the first step), and the loss went wrong "
        what += f"at step {bad.step:.15g}"
        return [finding("open", "no_warmup", SignalKey("optim.lr"), Severity.FAIL, bad, what)]

    def _main(self) -> _Schedule | None:
        return max(self.groups.values(), key=lambda group: group.count, default=None)

    def _sees_start(self, group: _Schedule) -> bool:
        total = self._total() or 0.0
        return group.first_step <= max(LATE, 0.001 * total)

    def _starts_at_peak(self, group: _Schedule) -> bool:
        return (
            self._sees_start(group)
            and group.first_step <= 10
            and group.count >= 10
            and group.first >= AT_PEAK * group.peak > 0
        )

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("warmup.share", "warmup.steps")
        group = self._main()
        if group is None or not seen(view, "optim.lr"):
            return result(self, Verdict.NO_DATA, "no learning rate in the log; log it every step")
        if verdict_of(view.episodes) is Verdict.FAIL:
            return result(
                self,
                Verdict.FAIL,
                tell(view.episodes),
                "",
                self._begin_again(group),
                used,
            )
        if group.peak_step != group.peak_step:
            what = f"the learning rate is {group.last:.3g} in all {group.count:,} values"
            if group.count < 10:
                return result(self, Verdict.NO_DATA, f"{what}, too few to judge", used=used)
            return result(
                self,
                Verdict.WARN,
                f"{what}: nothing is learned",
                "",
                "look at the schedule and skipped steps",
                used,
                True,
            )
        advice = self._advice(group)
        jumps = [e for e in view.episodes if e.kind == "lr_jump"]
        why = (
            f"{group.first:.3g} at step {group.first_step:.15g}, peak {group.peak:.3g} at step {group.peak_step:.15g}, "
        )
        why += f"now {group.last:.3g} at step {group.last_step:.15g}"
        if verdict_of(view.episodes) is Verdict.WARN:
            return result(self, Verdict.WARN, tell(view.episodes), why, STATE, used)
        if advice is not None:
            return result(self, Verdict.WARN, advice[0], why, advice[1], used, advisory=True)
        if len(jumps) == 1:
            what = jumps[0].what
            return result(self, Verdict.WARN, what, why, STATE, used, advisory=True)
        told = f"; {len(jumps)} restarts of the schedule" if jumps else ""
        if not self._sees_start(group):
            what = f"the log starts at step {group.first_step:.15g}: the warm-up is not in it{told}"
            return result(self, Verdict.NO_DATA, what, why, used=used)
        what = f"peak {group.peak:.3g} at step {group.peak_step:.15g}, now {group.last:.3g}{told}"
        return result(self, Verdict.PASS, what, why, used=used)

    def _advice(self, group: _Schedule) -> tuple[str, str] | None:
        parameters = number_fact(self.facts, "parameters")
        optimizer = str(self.facts.get("optimizer", "")).lower()
        if parameters and "adam" in optimizer and group.peak > TOO_HIGH * recipe_peak_lr(parameters):
            usual = recipe_peak_lr(parameters)
            return (
                f"peak {group.peak:.3g} is {group.peak / usual:.0f}x what published recipes use at this size",
                f"try {usual:.1e}",
            )
        if not self._sees_start(group) or group.count < 10:
            return None
        if self._starts_at_peak(group):
            total = self._total() or group.last_step
            return (
                f"no warm-up: the learning rate is at its peak {group.peak:.3g} from the first step",
                self._configured(1.0) or f"warm up over 2-5% of the steps (about {max(0.03 * total, 1):,.0f})",
            )
        return self._over_before_the_log(group) or self._short_warmup(group)

    def _over_before_the_log(self, group: _Schedule) -> tuple[str, str] | None:
        """A log of every n-th step whose first value is the peak: a warm-up was shorter than that, if there was one."""
        first, spacing = group.first_step, group.second_step - group.first_step
        total = self._total() or group.last_step
        if not group.first >= AT_PEAK * group.peak > 0 or not first <= spacing:
            return None
        if first >= self.limits["warmup.share"] * total or first >= self.limits["warmup.steps"]:
            return None
        what = f"the learning rate is at its peak {group.peak:.3g} in the first value, at step {first:.15g}: "
        what += f"a warm-up, if there was one, took less than {first / total:.1%} of {total:,.0f} steps"
        return what, self._configured(first) or f"2-5% is usual: {0.02 * total:,.0f} to {0.05 * total:,.0f} steps"

    def _begin_again(self, group: _Schedule) -> str:
        """Advice for a run that went wrong without warm-up: the one its own settings name, where they name one."""
        total, asked = self._total() or group.last_step, number_fact(self.facts, "warmup_steps")
        usual = f"2-5% of the steps, {max(0.02 * total, 1):,.0f} to {max(0.05 * total, 1):,.0f}"
        if asked is None:
            return f"start again with a linear warm-up over {usual}"
        if asked < 2.0:
            return f"the run's settings ask for no warm-up: set one over {usual}, and start again"
        return (
            f"start again with the warm-up of {asked:,.0f} steps that the run's settings ask for: "
            "see why the schedule does not follow them"
        )

    def _configured(self, seen: float) -> str:
        """Advice where the run's own settings ask for a warm-up that is longer than the one of `seen` steps, or ""."""
        asked = number_fact(self.facts, "warmup_steps")
        if asked is None or asked < max(ASKED * seen, 2.0):
            return ""
        return f"the run's settings ask for a warm-up of {asked:,.0f} steps: see why the schedule does not follow them"

    def _short_warmup(self, group: _Schedule) -> tuple[str, str] | None:
        total = self._total()
        if total is None or group.peak_step >= group.last_step:
            return None
        spacing = group.second_step - group.first_step
        if group.after_peak - group.peak_step > GAP * spacing > 0:
            return None  # the log has a hole there: the rate may have gone on rising in it
        length = group.peak_step - min(group.first_step, 1.0)
        share, least = self.limits["warmup.share"], self.limits["warmup.steps"]
        if 0 < length < share * total and length < least and group.second_step <= group.peak_step:
            return (
                f"warm-up of {length:.15g} steps is {length / total:.1%} of {total:,.0f}",
                self._configured(length) or f"2-5% is usual: {0.02 * total:,.0f} to {0.05 * total:,.0f} steps",
            )
        return None


def _unexplained(lr: float, highest: float) -> str:
    """Why a jump to `lr` is none that a schedule makes: one that begins again comes back to about its height."""
    if lr > BEYOND * highest:
        return ", beyond its height so far"
    return f", neither beyond nor back to {highest:.3g}" if lr < BACK * highest else ""


def _has_settled(group: _Schedule, lr: FloatArray, at: FloatArray) -> bool:
    """Whether the rate reached its height 20 values and 100 steps before the last of `lr` (at `at`): no warm-up."""
    if not group.count + len(lr):
        return False
    top = int(lr.argmax()) if len(lr) else 0
    is_here = len(lr) > 0 and lr[top] > group.peak
    index, step = (group.count + top, float(at[top])) if is_here else (group.peak_index, group.peak_step)
    last = float(at[-1]) if len(lr) else group.last_step
    return group.count + len(lr) - 1 - index >= SETTLED_VALUES and last - step >= SETTLED_STEPS


class _Start:
    """The loss of a run's first steps."""

    def __init__(self) -> None:
        self.values: list[Place] = []
        self.first_bad: Place | None = None
        self._attempt: int | None = None

    def feed(self, frame: Frame) -> None:
        """Keeps the first values of the newest run."""
        column = frame.columns.get(LOSS)
        if column is None:
            return
        own = finite(frame, LOSS)
        if frame.attempt != self._attempt:
            self._attempt = frame.attempt
            if len(own) and own.steps[0] <= 10:
                self.values, self.first_bad = [], None
        if len(self.values) < 2000:
            left = slice(2000 - len(self.values))
            ones = zip(own.rows[left].tolist(), own.values[left].tolist(), strict=True)
            self.values += [place(frame, row, x) for row, x in ones]
        if self.first_bad is None:
            marks = frame.marks.get(LOSS)
            bad = np.flatnonzero((marks >= 2) & (marks <= 4)) if marks is not None else np.empty(0, np.int64)
            if len(bad):
                self.first_bad = place(frame, int(bad[0]), float(column[bad[0]]))

    def fault(self, until: float) -> Place | None:
        """The first loss that is not finite, or the end of a first 1% that ends 1.5x above its start."""
        early = [p for p in self.values if p.step <= until]
        if not early or early[0].step > 10 or early[0].value < UNTRAINED:
            return None
        if self.first_bad is not None and self.first_bad.step <= until:
            return self.first_bad
        last = sorted(p.value for p in early[-5:])
        if len(early) >= 10 and last[len(last) // 2] > FAULT_RATIO * early[0].value:
            return early[-1]
        return None
