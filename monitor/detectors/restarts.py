"""Check run.restarts: attempts, and whether what was trained again came out the same, D7."""

from __future__ import annotations

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
    numbers,
    place,
    result,
    resumed,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.failed_starts import FailedStarts
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.tail import Tail
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Note

LOSS = SignalKey("loss.train")
REPLAYS = SignalKey("count.bad_replays")
TRAINING = ("grad.norm", "optim.lr", "reward.mean")
REMEMBERED = 4096
COMPARED = 100
MIN_COMPARED = 10
TOLERANCE = 1e-3  # relative, METRICS.md D7
HIGHER = 0.02
UNLIKE = 0.5  # correlation below this: not the same data
WITHIN = 0.1  # an attempt that begins so far into the one before carries on from a checkpoint of it


class Restarts(Detector):
    """Each resume is INFO. Replayed steps that differ by more than 1e-3 relative are counted.

    When most of at least 10 replayed steps (the first 100) differ: if the two curves correlate, hardware or
    nondeterminism, or a state that was not restored where the loss is higher throughout (INFO); if they do not, the
    sampler's state was not restored and data was repeated or skipped (WARN, as advice: it is not comparable where
    batch size or world size changed).
    """

    id: ClassVar[str] = "run.restarts"
    name: ClassVar[str] = "Restarts and Replays"
    signals: ClassVar[tuple[str, ...]] = ("loss.train", "count.bad_replays")
    about: ClassVar[tuple[str, ...] | None] = ()  # attempts are counted without
    order: ClassVar[int] = 40
    triage: ClassVar[str] = "job"
    formula: ClassVar[str] = (
        "|L again - L before| / L before > 1e-3 beyond the printed digits, over the steps trained again"
    )
    source: ClassVar[str] = "METRICS.md D7; Deng, Reading a Pretraining Run (2026), bad replays"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.attempts = 0
        self.resumes = 0
        self.lost = 0.0
        self.replayed = 0
        self.bad = 0
        self._attempt: int | None = None
        self._last_step = self._began = self._ends = float("nan")
        self._losses = Tail(REMEMBERED)
        self._old: dict[float, float] = {}
        self._pairs: list[tuple[float, float]] = []
        self._first: Place | None = None
        self._last: Place | None = None
        self._told = False
        self._failed = FailedStarts()

    def note(self, note: Note) -> Iterable[Finding]:
        """A start that died before its first step is none of the attempts, which have steps; it is told of."""
        self._failed.note(note)
        return ()

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads steps and loss."""
        found: Found = []
        if not len(frame):
            return ()
        self._failed.row()
        if frame.attempt != self._attempt:
            self._begin(frame, found)
        if self._old:
            for row, step, x in zip(*numbers(frame, LOSS), strict=True):
                self._replay(frame, row, step, x, found)
        losses = finite(frame, LOSS)
        self._losses.extend(losses.steps, losses.values)
        self._last_step = max(self._last_step, float(frame.steps.max())) if self.attempts else float(frame.steps.max())
        return in_order(found)

    def _begin(self, frame: Frame, found: Found) -> None:
        self.attempts += 1
        first = float(frame.steps[0])
        into = WITHIN * (self._last_step - self._began)
        within = 0 < into <= first - self._began and first <= self._last_step
        if self._attempt is not None and (resumed(self._last_step, first) or within):
            self.resumes += 1
            rises = np.diff(self._losses.steps[-2:])
            self.lost += max(self._last_step - first + (float(rises[0]) if len(rises) else 0.0), 0.0)
            at = place(frame, 0, first)
            what = f"resumed at step {first:.15g} after step {self._last_step:.15g}"
            key = SignalKey("progress.step")
            found.append((0, finding("open", "restart", key, Severity.INFO, at, what)))
            found.append((0, finding("recover", "restart", key, Severity.INFO, at, what)))
            self._old = self._losses.by_step(first)
        else:
            self._old = {}
        self._attempt = frame.attempt
        self._ends = self._last_step
        self._losses.clear()
        self._last_step = self._began = first
        self._pairs = []
        self._told = False

    def _replay(self, frame: Frame, row: int, step: float, x: float, found: Found) -> None:
        if step > self._ends:
            self._old = {}
            found.extend((row, said) for said in self._judge())
            return
        before = self._old.pop(step, None)
        if before is None or len(self._pairs) >= COMPARED:
            return
        if not self._pairs:
            self._first = place(frame, row, x)
        self._pairs.append((before, x))
        self.replayed += 1
        self.bad += abs(x - before) > TOLERANCE * max(abs(x), abs(before))
        self._last = place(frame, row, x)
        if not self._old or len(self._pairs) >= COMPARED:
            found.extend((row, said) for said in self._judge())

    def _judge(self) -> list[Finding]:
        """What the steps trained again so far say, once all of them are there or the log ends."""
        if self._told or len(self._pairs) < MIN_COMPARED or self._last is None:
            return []
        differ = sum(1 for a, b in self._pairs if abs(a - b) > TOLERANCE * max(abs(a), abs(b)))
        if differ <= len(self._pairs) / 2:
            return []
        self._told = True
        alike = _correlation(self._pairs)
        severity = Severity.INFO if alike >= UNLIKE else Severity.WARN
        cause = "hardware or nondeterminism" if alike >= UNLIKE else "the data order was not restored"
        if alike >= UNLIKE and (higher := _all_higher(self._pairs)):
            cause = f"higher by {100 * higher:.2g}% throughout: the state was not restored"
        what = f"{differ} of {len(self._pairs)} steps trained again gave another loss ({cause}, r {alike:.2f})"
        of = self._last
        return [finding(a, "bad_replay", REPLAYS, severity, of, what, first=self._first) for a in ("open", "recover")]

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - the hook
        """A replay that was cut off is judged by what there is of it."""
        return self._judge()

    def finish(self) -> Iterable[Finding]:
        """As far as the log goes."""
        told, said = self._told, self._judge()
        self._told = told  # more may come
        return said

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        if not self.attempts or not seen(view, "loss.train", *TRAINING):
            return result(self, Verdict.NO_DATA, "no training steps in the log")
        counted = f"{self.attempts} attempt{'s' if self.attempts != 1 else ''}"
        if self.resumes:
            counted += f", {self.resumes} resumed, {self.lost:.15g} steps trained again"
        counted += self._failed.told()
        why = f"{self.bad} of {self.replayed} replayed steps differ by more than 0.1%" if self.replayed else ""
        if verdict_of(view.episodes) is not Verdict.PASS:
            advice = "see whether the sampler's state and the random seeds are in the checkpoint; ignore this if batch "
            advice += "size, world size or data changed"
            return result(self, Verdict.WARN, tell(view.episodes), why, advice, advisory=True)
        return result(self, Verdict.PASS, counted, why)


def _all_higher(pairs: list[tuple[float, float]]) -> float:
    """The median relative rise, where nine in ten of the later values are 2% and more above the earlier; else 0."""
    rises = sorted((b - a) / a for a, b in pairs if a > 0)
    return rises[len(rises) // 2] if rises and rises[len(rises) // 10] > HIGHER else 0.0


def _correlation(pairs: list[tuple[float, float]]) -> float:
    """Pearson's r of what the two curves do beside a parabola: that both fall is no likeness.

    1 where one of them does nothing else (then it says nothing).
    """
    curves = np.array(pairs)
    terms = np.vander(np.linspace(-1.0, 1.0, len(pairs)), 3)
    rest = curves - terms @ np.linalg.lstsq(terms, curves, rcond=None)[0]
    spread = np.sqrt((rest**2).sum(axis=0))
    if not (spread > 1e-9 * np.abs(curves).max(axis=0)).all():
        return 1.0
    return float((rest[:, 0] * rest[:, 1]).sum() / (spread[0] * spread[1]))
