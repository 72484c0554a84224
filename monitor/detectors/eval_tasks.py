"""Check eval.tasks: task scores, greedy and sampled generation, media gain, averaged weights (rows 35-39)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from trainmon.monitor.amount import digits, named
from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    Track,
    finding,
    numbers,
    place,
    result,
    resumed,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

AVERAGED = "eval.averaged_weights"
WATCHED = ("eval.accuracy", "eval.greedy", "eval.sampled", "eval.media_gain", "eval.iou", AVERAGED)
SIGMAS = 4.0
SMOOTH = 3  # the best is the best median of so many: one lucky evaluation is no level
KEPT = 60
FEW = 10  # jumps between evaluations until their noise is known ...
UNKNOWN = 0.5  # ... before, only a fall by so much counts


class TaskTrack:
    """One score against its best (a median of 3): a tenth and 4 sigma of its noise below it, for 3 evaluations.

    The noise is that of the jumps between evaluations: small task sets are noisy. A score whose first value is above 1
    and falls is a loss, and judged the other way round (averaged weights are compared by loss or by score).
    """

    def __init__(self, key: SignalKey, limits: Thresholds) -> None:
        self.key = key
        self.drop = limits["task.drop"]
        self.evaluations = int(limits["eval.evaluations"])
        self.sign = 0.0
        self.best = -math.inf
        self.best_step = math.nan
        self.recent: deque[tuple[float, float]] = deque(maxlen=SMOOTH)
        self.jumps: deque[float] = deque(maxlen=KEPT)
        self.before = math.nan
        self.values = 0
        self.worse: list[Place] = []
        self.opened = False
        self.what = ""
        self._attempt: int | None = None
        self._last_step = math.nan

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the evaluations of `frame`."""
        rows, steps, values = numbers(frame, self.key)
        if rows and frame.attempt != self._attempt:
            if self._attempt is not None and not resumed(self._last_step, steps[0]):
                self.best, self.before, self.sign = -math.inf, math.nan, 0.0
                self.jumps.clear()
                self.recent.clear()
                self._close()
            elif steps[0] <= self.best_step or (self.worse and steps[0] <= self.worse[0].step):
                self.best = -math.inf if steps[0] <= self.best_step else self.best
                self.recent.clear()
                self._close()
            self._attempt = frame.attempt
        for row, step, x in zip(rows, steps, values, strict=True):
            if step != self._last_step:
                self._last_step = step
                self._take(frame, row, step, x, found)

    def _close(self) -> None:
        self.worse, self.opened = [], False
        self.what = ""

    @property
    def bar(self) -> float:
        """How far below its best the score counts."""
        if len(self.jumps) < FEW:
            return UNKNOWN * abs(self.best)
        noise = 1.4826 * sorted(self.jumps)[len(self.jumps) // 2] / math.sqrt(2)
        luck = math.sqrt(2 * math.log(self.values))  # how far the best of so many lies above a typical one
        return max(self.drop * abs(self.best), (SIGMAS + luck) * noise)

    def _take(self, frame: Frame, row: int, step: float, x: float, found: Found) -> None:
        if not self.sign:
            self.sign = -1.0 if self.key.signal == AVERAGED and x > 1.0 else 1.0
        y = self.sign * x
        self.values += 1
        if not self.worse and not math.isnan(self.before):
            self.jumps.append(abs(y - self.before))
        self.before = y
        if y < self.best - self.bar:
            self._worse(place(frame, row, x), row, found)
            return
        if self.opened:
            found.append((row, self._said("grow", self.worse[-1])))
            found.append((row, self._said("recover", place(frame, row, x))))
        self._close()
        self.recent.append((y, step))
        if len(self.recent) == SMOOTH:
            middle, at = sorted(self.recent)[SMOOTH // 2]
            if middle > self.best:
                self.best, self.best_step = middle, at

    def _worse(self, at: Place, row: int, found: Found) -> None:
        self.worse.append(at)
        del self.worse[1 : -self.evaluations]
        if self.opened or len(self.worse) < self.evaluations:
            return
        self.opened = True
        self.what = f"{named(self.key)} is {digits(at.value)} for {len(self.worse)} evaluations, its best was "
        self.what += f"{digits(self.sign * self.best)} at step {self.best_step:.15g}"
        found.append((row, self._said("open", at)))

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, "task_drop", self.key, Severity.WARN, at, self.what, first=self.worse[0])

    def finish(self) -> Iterable[Finding]:
        """An open one reaches to its last evaluation."""
        return [self._said("grow", self.worse[-1])] if self.opened else []


class EvalTasks(WatchingDetector):
    """A score a tenth below its best, beyond its own noise, for 3 evaluations: WARN."""

    id: ClassVar[str] = "eval.tasks"
    name: ClassVar[str] = "Task Scores"
    signals: ClassVar[tuple[str, ...]] = WATCHED
    watched: ClassVar[tuple[str, ...]] = WATCHED
    order: ClassVar[int] = 33
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = "best - score > max(drop * best, 4 sigma of the jumps)"
    source: ClassVar[str] = "METRICS.md D17, rows 35-39"

    def make_track(self, key: SignalKey) -> Track:
        """One task."""
        return TaskTrack(key, self.limits)

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("task.drop", "eval.evaluations")
        verdict = verdict_of(view.episodes)
        tracks = [track for track in self.tracks.values() if isinstance(track, TaskTrack)]
        if verdict is not Verdict.PASS:
            steps = sorted(track.best_step for track in tracks if track.opened)
            advice = "read samples of that task, and see whether prompt, tokenizer or decoding changed"
            if steps:
                advice += f"; the best checkpoint is that near step {steps[0]:.15g}"
            return result(self, verdict, tell(view.episodes), "each task against its best", advice, used)
        if not seen(view, *WATCHED):
            return result(self, Verdict.NO_DATA, "no task scores; run a fixed task set at key checkpoints")
        most = max((track.values for track in tracks), default=0)
        what = f"{len(tracks)} score{'s' if len(tracks) != 1 else ''}, {most} evaluation{'s' if most != 1 else ''}"
        if most < 2:
            return result(self, Verdict.NO_DATA, f"{what}: nothing to compare with", used=used)
        return result(self, Verdict.PASS, what, used=used)
