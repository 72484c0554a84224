"""Check grad.norm: level, spikes and non-finite values of the gradient norm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.amount import digits
from trainmon.monitor.detectors.bad_run import BadRun
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
from trainmon.monitor.detectors.level_track import LevelRule, LevelTrack
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.spike_rule import SpikeRule
from trainmon.monitor.detectors.spike_track import SpikeTrack
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Mark

GRAD = SignalKey("grad.norm")
LOSS = SignalKey("loss.train")
ABSURD = 1000.0  # a norm of so many times the clip threshold leaves a thousandth of every update's length
OFTEN = 0.5  # above 5x the threshold in more than half of the steps: learning rate too high, or threshold too low
_FEW = 16  # so many values are counted one by one sooner than together
SITS = 1e-3  # this near to the threshold (relative) a value sits on it
SAT_SHARE = 0.05
WARM_UP = 100  # values: what the norm does while it settles is not its level


def grad_rule(limits: Thresholds) -> SpikeRule:
    """METRICS.md: z > 10 and 5x the median; alone it is INFO."""
    return SpikeRule(
        window=int(limits["window"]),
        z=limits["grad.spike.z"],
        relative=limits["grad.spike.ratio"] - 1,
        min_history=min(int(limits["spike.min_history"]), int(limits["window"])),
        recovery_steps=limits["spike.recovery_steps"],
        recovery_values=limits["spike.recovery_values"],
        lone_is_info=True,
        noun="gradient norm",
    )


BESIDE = ("optim.", "sys.", "loss.", "count.")  # numbers of a step
KNOWN_ROWS, FEWEST_ROWS = 50, 10


class GradNorm(Detector):
    """Level: 5x for 100 steps WARN, 100x and rising for 3 values FAIL. Lone spikes are INFO (spike.co warns).

    A lone NaN norm beside a normal loss is a skipped step (INFO); 3 in a row, or beside a bad loss, a FAIL. A median
    norm of 1000x the clip threshold is absurd against any recipe: WARN.
    """

    id: ClassVar[str] = "grad.norm"
    name: ClassVar[str] = "Gradient Norm"
    signals: ClassVar[tuple[str, ...]] = ("grad.norm", "loss.train")
    about: ClassVar[tuple[str, ...] | None] = ("grad.norm",)
    order: ClassVar[int] = 2
    triage: ClassVar[str] = "gradients"
    formula: ClassVar[str] = (
        "share of steps with G_2 > clip; level = median over grad.level.steps against the level before; a spike: "
        "z_t (D6) > grad.spike.z and G_2 > grad.spike.ratio times the median"
    )
    source: ClassVar[str] = (
        "METRICS.md D4, D6 and METRICS.md, smallest faults; Deng, Reading a Pretraining Run (2026), G_2 before "
        "clipping; training-stability-monitor, Gradient Norm"
    )

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.spikes = SpikeTrack(GRAD, grad_rule(limits))
        self.meant = MeantChanges()
        self.level = LevelTrack(
            GRAD,
            LevelRule(
                kind="grad_level",
                noun="gradient norm",
                warn=limits["grad.level.warn"],
                fail=limits["grad.level.fail"],
                steps=limits["grad.level.steps"],
                fail_values=int(limits["grad.level.fail_values"]),
                window=int(limits["window"]),
                keep_on_restart=True,
            ),
            self.meant,
        )
        self.fail_run = int(limits["nonfinite.fail_run"])
        self.count = 0
        self.above = 0
        self.far_above = 0
        self.sits = 0
        self.largest = 0.0
        self.largest_step = 0.0
        self.absurd: Place | None = None
        self.last: Place | None = None
        self.bad_run = 0
        self.bad_first: Place | None = None
        self.bad_last: Place | None = None
        self.bad_words: dict[str, None] = {}  # what was logged, in order
        self.bad_open = False
        self.bad_severity = Severity.INFO
        self.company = _Company()
        self._attempt: int | None = None

    @property
    def clip(self) -> float:
        """The clip threshold: the run's own where it is known, unless a flag or file set one."""
        own = number_fact(self.facts, "clip_threshold")
        if not self.limits.is_set("clip") and own is not None and own > 0:
            return own
        return self.limits["clip"]

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads the norm, and the loss beside a norm that is not finite."""
        self.spikes.flags = []
        self.meant.feed(frame)
        if frame.attempt != self._attempt:
            self._attempt, self.bad_run, self.bad_open = frame.attempt, 0, False
        if GRAD not in frame.columns:
            return ()
        found: Found = []
        self.spikes.feed(frame, found)
        self.level.feed(frame, found)
        self.company.learn(frame)
        marks = frame.marks.get(GRAD)
        if marks is not None or self.bad_run:
            self._non_finite(frame, found)
        self._count(frame)
        return in_order(found)

    def _count(self, frame: Frame) -> None:
        own = finite(frame, GRAD)
        if not len(own):
            return
        values, clip = own.values, self.clip
        self.count += len(values)
        if len(values) <= _FEW:
            for x, step in zip(values.tolist(), own.steps.tolist(), strict=True):
                self.above += x > clip
                self.far_above += x > 5 * clip
                self.sits += abs(x - clip) <= SITS * clip
                if x > self.largest:
                    self.largest, self.largest_step = x, step
        else:
            self.above += int((values > clip).sum())
            self.far_above += int((values > 5 * clip).sum())
            self.sits += int((np.abs(values - clip) <= SITS * clip).sum())
            top = int(values.argmax())
            if values[top] > self.largest:
                self.largest, self.largest_step = float(values[top]), float(own.steps[top])
        self.last = place(frame, int(own.rows[-1]), float(values[-1]))

    def _non_finite(self, frame: Frame, found: Found) -> None:
        marks = frame.marks.get(GRAD)
        column = frame.columns[GRAD].tolist()
        loss = frame.columns.get(LOSS)
        loss_marks = frame.marks.get(LOSS)
        for row in frame.logged(GRAD).tolist():
            mark = Mark.NUMBER if marks is None else Mark(int(marks[row]))
            if mark.is_non_finite:
                loss_bad = loss_marks is not None and Mark(int(loss_marks[row])).is_non_finite
                loss_bad |= loss is not None and bool(loss[row] == 0.0)  # a trainer filtered it
                loss_there = loss_bad or (loss is not None and bool(np.isfinite(loss[row])))
                if loss_there or self.company.is_step(frame, row):
                    self._bad(frame, row, column[row], bool(loss_bad), found)
            elif mark is Mark.NUMBER and self.bad_run:
                self._good(frame, row, column[row], found)

    def _bad(self, frame: Frame, row: int, x: float, loss_bad: bool, found: Found) -> None:
        at = place(frame, row, x)
        self.bad_run += 1
        self.bad_last = at
        if self.bad_run == 1:
            self.bad_first, self.bad_severity, self.bad_words = at, Severity.INFO, {}
        self.bad_words[BadRun.words(x)] = None
        before = self.bad_severity
        if self.bad_run >= self.fail_run or loss_bad:
            self.bad_severity = Severity.FAIL
        if not self.bad_open:
            found.append((row, self._say_bad("open", at)))
            self.bad_open = True
        elif self.bad_severity > before:
            found.append((row, self._say_bad("grow", at)))

    def _say_bad(self, action: str, at: Place) -> Finding:
        first = self.bad_first or at
        what = f"gradient norm is {' and '.join(self.bad_words)} from step {first.step:.15g}"
        if self.bad_severity is Severity.INFO:
            what = f"gradient norm is not finite at step {first.step:.15g} beside a normal loss: a skipped step"
        assert action in ("open", "grow", "recover")
        return finding(
            "open" if action == "open" else "grow" if action == "grow" else "recover",
            "nonfinite",
            GRAD,
            self.bad_severity,
            at,
            what,
            first=first,
        )

    def _good(self, frame: Frame, row: int, x: float, found: Found) -> None:
        at = place(frame, row, x)
        if self.bad_last is not None and self.bad_run > 1:
            found.append((row, self._say_bad("grow", self.bad_last)))
        found.append((row, self._say_bad("recover", at)))
        self.bad_run = 0
        self.bad_open = False

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - the hook
        """Open faults reach to the last value of their attempt."""
        return self._reaching()

    def _reaching(self) -> list[Finding]:
        said = [*self.spikes.finish(), *self.level.finish()]
        if self.bad_open and self.bad_last is not None:
            said.append(self._say_bad("grow", self.bad_last))
        return said

    def finish(self) -> Iterable[Finding]:
        """Open faults reach to their last value; the level of the newest values against the clip threshold."""
        said = self._reaching()
        median = self.spikes.level
        if self.last is not None and len(self.spikes.score) >= 30 and median > ABSURD * self.clip:
            times = median / self.clip
            shown = f"{times:,.0f}" if times < 1e6 else f"{times:.3g}"
            what = f"gradient norm is {median:.3g} in the median, {shown}x the clip threshold"
            said.append(finding("open", "absurd_level", GRAD, Severity.WARN, self.last, what))
        return said

    @property
    def clipped(self) -> bool:
        """Whether the norm was logged after clipping: it never passes the threshold and often sits on it."""
        return (
            self.count >= 30 and self.largest <= self.clip * (1 + SITS) and self.sits >= max(3, SAT_SHARE * self.count)
        )

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("clip", "grad.spike.z", "grad.spike.ratio", "grad.level.warn", "grad.level.fail")
        verdict = verdict_of(view.episodes)
        clip = self.clip
        if verdict is not Verdict.PASS:
            advice = "lower the learning rate or the clip threshold, and check the data of those steps"
            if any(e.kind == "absurd_level" for e in view.episodes):
                advice = "check that the norm is that of unscaled, averaged gradients; clipping hides its size"
            if any(e.kind == "nonfinite" and e.severity > Severity.INFO for e in view.episodes):
                advice = "check the loss scale (fp16) or use bf16; go back to a checkpoint before it"
            return result(self, verdict, tell(view.episodes), self._shares(clip), advice, used)
        if not seen(view, "grad.norm"):
            if not seen(view, "loss.train"):
                return result(self, Verdict.NO_DATA, "no gradient norm in the log")
            return result(
                self,
                Verdict.WARN,
                "flying blind: no gradient norm in the log",
                "the gradient norm moves before the loss; spikes cannot be told from bad data without it",
                "log the global gradient norm before clipping, every step",
                advisory=True,
            )
        if not self.count:
            return result(self, Verdict.NO_DATA, "the gradient norm was logged, but never as a number")
        if self.clipped:
            what = f"never above the clip threshold {clip:.15g} and often exactly on it: logged after clipping"
            return result(self, Verdict.NO_DATA, what, advice="log the norm before clipping", used=used)
        if self.count >= 100 and self.far_above > OFTEN * self.count:
            what = (
                f"above 5x the clip threshold {clip:.15g} in {self.far_above / self.count:.0%} of {self.count:,} steps"
            )
            advice = f"lower the learning rate, or clip at the norm's own level ({self.spikes.level:.3g})"
            return result(self, Verdict.WARN, what, self._shares(clip), advice, used, advisory=True)
        spikes = sum(1 for e in view.episodes if e.kind == "spike")
        lone = f"; {spikes} lone spike{'s' if spikes != 1 else ''} without a loss spike" if spikes else ""
        what = (
            f"median {digits(self.spikes.level)}, largest {digits(self.largest)} at step {self.largest_step:.15g}{lone}"
        )
        return result(self, Verdict.PASS, what, self._shares(clip), used=used)

    def _shares(self, clip: float) -> str:
        if not self.count:
            return ""
        return (
            f"{self.above / self.count:.1%} of {self.count:,} values above {clip:.15g}, "
            f"{self.far_above / self.count:.1%} above {5 * clip:.15g}; "
            f"largest {self.largest:.4g} at step {self.largest_step:.15g}"
        )


class _Company:
    """What stands beside the gradient norm: whether a row whose norm is not finite is a step or a gap of a table."""

    def __init__(self) -> None:
        self.rows = self.alone = 0

    def learn(self, frame: Frame) -> None:
        """Counts, among the first values, those with no other number of a step in their row."""
        if self.rows >= KNOWN_ROWS:
            return
        for row in np.flatnonzero(np.isfinite(frame.columns[GRAD]))[: KNOWN_ROWS - self.rows].tolist():
            self.rows += 1
            self.alone += not (_has(frame, row, BESIDE) or _has(frame, row, (LOSS.signal,)))

    def is_step(self, frame: Frame, row: int) -> bool:
        """Another number of the step is there; or none ever is, and nothing of an evaluation either."""
        if _has(frame, row, BESIDE):
            return True
        is_alone = self.alone >= FEWEST_ROWS and 10 * self.alone >= 9 * self.rows
        return is_alone and not _has(frame, row, ("eval.",))


def _has(frame: Frame, row: int, signals: tuple[str, ...]) -> bool:
    """Whether a number of one of these (beginnings of) signals stands in the row."""
    return any(key.signal.startswith(signals) and np.isfinite(values[row]) for key, values in frame.columns.items())
