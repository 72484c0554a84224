"""Check eval.heldout: held-out loss against its best, D16."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import (
    Finite,
    Found,
    Place,
    SeriesDetector,
    Track,
    finding,
    finite,
    numbers,
    place,
    result,
    resumed,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.heldout_nonfinite import KIND, NonFiniteEvaluations
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.ewma import Ewma
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray

# One of them is judged: they are the same number in other units.
HELD_OUT = ("eval.nll", "eval.bits_per_byte", "eval.perplexity")
LOSS = SignalKey("loss.train")
EPOCH = SignalKey("progress.epoch")


class HeldOutTrack:
    """One evaluation set: so many evaluations in a row above its best."""

    def __init__(self, key: SignalKey, limits: Thresholds, train: _TrainLoss) -> None:
        self.key = key
        self.warn = 1 + limits["eval.warn"]
        self.fail = 1 + limits["eval.fail"]
        self.evaluations = int(limits["eval.evaluations"])
        self.train = train
        self.best = math.inf
        self.best_step = math.nan
        self.train_at_best = math.nan
        self.values = 0
        self.worse: list[Place] = []
        self.opened = False
        self.severity = Severity.WARN
        self.what = ""
        self.jumps: list[float] = []
        self.before = math.nan
        self._attempt: int | None = None
        self._last_step = math.nan
        self._shown: tuple[float, float, int] = (math.nan, math.nan, -1)  # value, epoch, training losses until there

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the evaluations of `frame`."""
        rows, _, values = numbers(frame, self.key)
        for row, x in zip(rows, values, strict=True):
            self.one(frame, row, x, found)

    def one(self, frame: Frame, row: int, x: float, found: Found) -> None:
        """Reads one evaluation."""
        step = float(frame.steps[row])
        if frame.attempt != self._attempt:
            if self._attempt is not None and not resumed(self._last_step, step):
                self.best, self.worse, self.opened, self.jumps, self.before = math.inf, [], False, [], math.nan
            elif step <= self.best_step:
                # The best was reached on the branch that a roll-back abandons.
                self.best, self.worse, self.opened, self.severity = math.inf, [], False, Severity.WARN
            elif self.worse and step <= self.worse[0].step:
                self.worse, self.opened, self.severity = [], False, Severity.WARN
            self._attempt = frame.attempt
        if step == self._last_step or self._is_shown_again(frame, row, x):
            return
        self._last_step = step
        if self.key.signal == "eval.perplexity":
            # 2% of the loss, of which perplexity is the exponential.
            x = math.log(x) if x > 0 else math.inf
        self._take(frame, row, step, x, found)

    def _is_shown_again(self, frame: Frame, row: int, x: float) -> bool:
        """Whether a progress bar shows its newest evaluation on: the same value on the next training row of the epoch.

        A value that rows of the training without one lie between was evaluated anew, though it be the same.
        """
        if not _has(frame, LOSS, row):
            return False
        epoch = float(frame.columns[EPOCH][row]) if _has(frame, EPOCH, row) else math.nan
        value, in_epoch, count = self._shown
        self._shown = x, epoch, self.train.count
        is_same_epoch = math.isnan(epoch) or math.isnan(in_epoch) or math.floor(epoch) == math.floor(in_epoch)
        return x == value and self.train.count == count + 1 and is_same_epoch

    def _noise(self) -> float:
        """Twice the typical relative jump between evaluations that the curve does not explain: small sets are noisy.

        A jump less the one before it has lost the curve's slope and holds three times the variance of a jump's half.
        """
        if len(self.jumps) < 5:
            return 0.0
        turns = sorted(abs(b - a) for a, b in itertools.pairwise(self.jumps))
        return 2 * turns[len(turns) // 2] / math.sqrt(3)

    def _take(self, frame: Frame, row: int, step: float, x: float, found: Found) -> None:
        self.values += 1
        if self.before > 0 and not self.opened and not self.worse:
            self.jumps.append(x / self.before - 1)
            del self.jumps[:-50]
        self.before = x
        if x <= self.best:
            if self.opened:
                self._recover(place(frame, row, x), row, found)
            self.best, self.best_step, self.train_at_best = x, step, self.train.level
            self.worse, self.opened, self.severity = [], False, Severity.WARN
            return
        if self.best <= 0 or x <= self.best * max(self.warn, 1 + self._noise()):
            if not self.opened:
                self.worse = []
            elif x <= self.best * self.warn:
                self._recover(place(frame, row, x), row, found)
                self.worse, self.opened, self.severity = [], False, Severity.WARN
            return
        self.worse.append(place(frame, row, x))
        if len(self.worse) >= self.evaluations:
            self._judge(row, found)

    def _recover(self, at: Place, row: int, found: Found) -> None:
        """It lasted to its newest bad evaluation, and is over at `at`."""
        found += [(row, self._said("grow", self.worse[-1])), (row, self._said("recover", at))]

    def _judge(self, row: int, found: Found) -> None:
        at = self.worse[-1]
        rise = at.value / self.best - 1
        over_fitting = self.train.level < self.train_at_best
        before = self.severity
        beyond = all(p.value >= self.best * self.fail for p in self.worse[-self.evaluations :])
        if beyond and not over_fitting and not math.isnan(self.train.level):
            self.severity = Severity.FAIL
        why = ": over-fitting, since the training loss goes on falling" if over_fitting else ""
        self.what = (
            f"held-out loss ({self._name}) is {at.value:.4g}, {rise:+.0%} against its best {self.best:.4g} "
            f"at step {self.best_step:.15g}{why}"
        )
        self._speak(row, at, before, found)

    def _speak(self, row: int, at: Place, before: Severity, found: Found) -> None:
        action: Action = "grow" if self.opened else "open"
        if not self.opened or self.severity > before or at.value >= max(p.value for p in self.worse):
            found.append((row, self._said(action, at)))
        self.opened = True

    @property
    def _name(self) -> str:
        return f"log of {self.key}" if self.key.signal == "eval.perplexity" else str(self.key)

    def _said(self, action: Action, at: Place) -> Finding:
        first = self.worse[0] if self.worse else at
        return finding(action, "held_out", self.key, self.severity, at, self.what, first=first)

    def finish(self) -> Iterable[Finding]:
        """Open until the last evaluation."""
        return [self._said("grow", self.worse[-1])] if self.opened and self.worse else []


def _has(frame: Frame, key: SignalKey, row: int) -> bool:
    column = frame.columns.get(key)
    return column is not None and math.isfinite(column[row])


class _TrainLoss:
    """The level of the training loss."""

    def __init__(self) -> None:
        self.mean = Ewma(0.05)
        self.count = 0

    def extend(self, values: FloatArray) -> None:
        """Takes in the next losses of the log."""
        self.mean.extend(values)
        self.count += len(values)

    @property
    def level(self) -> float:
        """NaN while there is none."""
        return self.mean.value


class HeldOut(SeriesDetector):
    """2% above its best for 3 evaluations is a WARN ("over-fitting" when the training loss falls).

    10% above while the training loss does not fall is a FAIL: the model got worse. Over-fitting stays a WARN. So does a
    held-out loss that is NaN or Inf where a number was due, as far as tables that fill gaps with NaN let one tell.
    """

    id: ClassVar[str] = "eval.heldout"
    name: ClassVar[str] = "Held-out Loss"
    signals: ClassVar[tuple[str, ...]] = HELD_OUT
    watched: ClassVar[tuple[str, ...]] = HELD_OUT
    order: ClassVar[int] = 32
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = "held-out loss / its best so far - 1, for eval.evaluations evaluations"
    source: ClassVar[str] = "METRICS.md D16 and METRICS.md, smallest faults: held-out loss"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.train = _TrainLoss()
        self.nonfinite: dict[SignalKey, NonFiniteEvaluations] = {}

    def make_track(self, key: SignalKey) -> Track:
        """An evaluation set against its best."""
        return HeldOutTrack(key, self.limits, self.train)

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Evaluations meet the training loss of their rows."""
        found: Found = []
        keys = sorted(
            (key for key in frame.columns if key.signal in HELD_OUT), key=lambda key: HELD_OUT.index(key.signal)
        )
        if not keys:
            self.train.extend(finite(frame, LOSS).values)
            return ()
        self._in_step(frame, keys, finite(frame, LOSS), found)
        for key in keys:
            told: Found = []
            self.nonfinite.setdefault(key, NonFiniteEvaluations(key)).feed(frame, told)
            found += told if key in self.tracks else []
        found.sort(key=lambda pair: pair[0])
        return [said for _, said in found]

    def finish(self) -> Iterable[Finding]:
        """What is open reaches to the last evaluation."""
        lost = (track for key, track in sorted(self.nonfinite.items()) if key in self.tracks)
        return [*super().finish(), *(said for track in lost for said in track.finish())]

    def _is_judged(self, key: SignalKey) -> bool:
        """Perplexity and bits per byte are left alone once the loss itself was seen for the same set."""
        place = HELD_OUT.index(key.signal)
        return not any(other.labels == key.labels and HELD_OUT.index(other.signal) < place for other in self.tracks)

    def _in_step(self, frame: Frame, keys: list[SignalKey], loss: Finite, found: Found) -> None:
        evaluations = sorted((row, at) for at, key in enumerate(keys) for row in numbers(frame, key).rows)
        before = np.searchsorted(loss.rows, [row for row, _ in evaluations], side="right").tolist()
        i = 0
        for (row, at), until in zip(evaluations, before, strict=True):
            self.train.extend(loss.values[i:until])
            i = until
            key = keys[at]
            track = self.tracks.get(key)
            if track is None:
                if not self._is_judged(key):
                    continue
                track = self.tracks[key] = self.make_track(key)
            assert isinstance(track, HeldOutTrack)
            track.one(frame, row, float(frame.columns[key][row]), found)
        self.train.extend(loss.values[i:])

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("eval.warn", "eval.fail", "eval.evaluations")
        verdict = verdict_of(view.episodes)
        tracks = [t for t in self.tracks.values() if isinstance(t, HeldOutTrack)]
        if verdict is not Verdict.PASS:
            if all(episode.kind == KIND for episode in view.episodes):
                advice = (
                    "see whether the evaluation itself fails (an empty batch, fp16, a bad sample) or the weights do: "
                )
                advice += "evaluate the newest checkpoint and the one before that step"
                return result(self, verdict, tell(view.episodes), "", advice, used)
            best = min((t.best_step for t in tracks if t.opened), default=math.nan)
            advice = "stop or regularise: the best checkpoint is that near"
            advice += f" step {best:.15g}" if not math.isnan(best) else " its best evaluation"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, *HELD_OUT):
            return result(self, Verdict.NO_DATA, "no held-out loss in the log; evaluate every 0.5-2% of training")
        most = max((t.values for t in tracks), default=0)
        if most <= self.evaluations_needed:
            what = f"{most} evaluation{'s' if most != 1 else ''}, too few to say whether it turns"
            return result(self, Verdict.NO_DATA, what, used=used)
        best_track = min(tracks, key=lambda t: (HELD_OUT.index(t.key.signal), t.best))
        sets = f" over {len(tracks)} sets" if len(tracks) > 1 else ""
        what = f"{most} evaluations{sets}, best {best_track.best:.4g} at step {best_track.best_step:.15g}"
        ended = self.nonfinite[best_track.key].not_since if best_track.key in self.nonfinite else math.nan
        what += f"; not evaluated since step {ended:.15g}" if not math.isnan(ended) else ""
        return result(self, Verdict.PASS, what, used=used)

    @property
    def evaluations_needed(self) -> int:
        """Below this many nothing can have turned."""
        return int(self.limits["eval.evaluations"])
