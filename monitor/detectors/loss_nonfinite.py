"""Check loss.nonfinite: NaN, Inf, null, zeroed or vanished loss."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.bad_run import BadRun
from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import Found, Place, finding, in_order, place, result, seen, tell, verdict_of
from trainmon.monitor.detectors.heldout_nonfinite import NonFiniteEvaluations
from trainmon.monitor.detectors.loss_neighbours import COMPANIONS, Neighbours
from trainmon.monitor.detectors.rank_losses import RankLosses
from trainmon.monitor.detectors.sparse_column import SparseColumn
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, Mark, MarkArray

LOSS = SignalKey("loss.train")
GRAD = SignalKey("grad.norm")
VANISHING = ("grad.norm", "optim.lr")  # only with these is a missing loss noticed: they come once a step
GAPS_OF_HISTORY = 5
# These go with the loss when it is lost: their absence beside a NaN does not make the row one of another table.
LOST_WITH_IT = ("loss.", "grad.", "param.", "tensor.", "update.")
NORMS_BESIDE = 0.9  # share of the losses that have a gradient norm, where it is logged with each of them
MOST_HELD = 200
STILL = 20  # losses in a row that are exactly 0.0 beside a sound norm, after as many ...
FAR_FROM_ZERO = 0.05  # ... that lay above this: what was small may be rounded to 0
MOST_OTHERS = 32


class LossNonFinite(Detector):
    """1-2 lone non-finite losses that recover are a WARN, 3 in a row or the last one a FAIL.

    A loss of exactly 0.0 beside a gradient norm that is not finite is one that the trainer filtered, and counts as NaN.
    A loss that is null or absent in 3 records that carry the other numbers of a step, or 0.0 in 5 in a row where no
    norm is, is a FAIL; one that is gone beside a norm that is not finite also where the log ends so. NaN in
    rows of a table where every other number of a step is absent too means "not logged" (tables fill their gaps so, and
    end so). The loss of one rank that is lost is judged as the run's. 0.0 in 20 in a row beside a sound norm, after
    losses far above it, is a WARN: a mask without tokens, or how it is logged.
    """

    id: ClassVar[str] = "loss.nonfinite"
    name: ClassVar[str] = "Non-finite Loss"
    signals: ClassVar[tuple[str, ...]] = ("loss.train", "loss.aux", "loss.rank")
    about: ClassVar[tuple[str, ...] | None] = ()  # that it is no number is what is judged
    order: ClassVar[int] = 10
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = "consecutive records whose loss is NaN, Inf, null, 0.0 or gone"
    source: ClassVar[str] = "METRICS.md, smallest faults; training-stability-monitor, non-finite loss"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.fail_run = int(limits["nonfinite.fail_run"])
        self.runs = {
            "nonfinite": BadRun("nonfinite", 1, self.fail_run),
            "filtered": BadRun("zero_loss", 1, self.fail_run),
            "null": BadRun("null_loss", int(limits["vanished.records"]), int(limits["vanished.records"])),
            "zero": BadRun("zero_loss", int(limits["zeroed.records"]), int(limits["zeroed.records"])),
            "still": BadRun(
                "zero_loss", STILL, np.inf, words="loss is exactly 0.0 beside a gradient norm that is sound"
            ),
            "vanished": BadRun("vanished", int(limits["vanished.records"]), int(limits["vanished.records"])),
        }
        self.good = 0
        self.recent: deque[float] = deque(maxlen=STILL)  # the newest losses that are not 0
        self.nonzero = 0
        self.norms = 0  # how many of these had a gradient norm beside them
        self.bad = 0
        self.furthest = -np.inf
        self.gap = 0
        self.longest_gap = 0
        self.with_others = False
        self.neighbours = Neighbours()
        self.sparse = SparseColumn()
        self.attempt: int | None = None
        self.others: dict[SignalKey, NonFiniteEvaluations] = {}
        self.ranks = RankLosses(self.fail_run)
        self.lost: list[Place] = []  # first and last of the newest steps whose loss went with a bad gradient

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads the loss and what stands beside it."""
        if frame.attempt != self.attempt:
            self._restart(frame.attempt)
        found: Found = []
        self._read_others(frame, found)
        self._read_loss(frame, found)
        self.ranks.feed(frame, found)
        return in_order(found)

    def _read_loss(self, frame: Frame, found: Found) -> None:
        column = frame.columns.get(LOSS)
        beside = self._companions(frame)
        if column is None and not (self.good and any(key.signal in VANISHING for key in beside)):
            return
        loss = column if column is not None else np.full(len(frame), np.nan)
        marks = frame.marks.get(LOSS)
        others_from = self._others_from(frame, loss)
        self.neighbours.meet(frame)
        clean = marks is None and bool(((loss > 0) & (loss < np.inf)).all())
        if clean and not self.lost and not any(run.count for run in self.runs.values()):
            self.good += len(loss)
            self.recent.extend(loss[-STILL:].tolist())
            self.nonzero += len(loss)
            self.norms += int(np.isfinite(beside[GRAD]).sum()) if GRAD in beside else 0
            self.furthest = max(self.furthest, float(np.max(frame.steps)))
            self.neighbours.all_good(frame)
            if self.sparse.period is None and len(loss):
                for row in range(min(len(loss), 2)):
                    self._good_again(frame, row, float(loss[row]), found)
            self.sparse.gap = 0
            self.longest_gap = max(self.longest_gap, self.gap)
            self.gap = 0
            self.with_others = others_from < len(frame)
            return
        self._walk(frame, loss, marks, beside, others_from, found)
        self.with_others = others_from < len(frame)

    def _read_others(self, frame: Frame, found: Found) -> None:
        """The losses beside the main one (a critic's, a router's): a WARN when they stop being numbers."""
        for key in frame.family("loss.aux"):
            if key not in self.others and len(self.others) < MOST_OTHERS:
                self.others[key] = NonFiniteEvaluations(key, "nonfinite", "loss beside the main one", "records")
            if key in self.others:
                self.others[key].feed(frame, found)

    def _others_from(self, frame: Frame, loss: FloatArray) -> int:
        """The row from which on the log is known to write other numbers beside the loss; `len(frame)` if not yet."""
        if self.with_others:
            return 0
        good = np.isfinite(loss)
        rows = [
            int(both[0])
            for key, values in frame.columns.items()
            if key != LOSS and not key.signal.startswith(("progress.", "eval.", *LOST_WITH_IT))
            if len(both := np.flatnonzero(good & np.isfinite(values)))
        ]
        return min(rows, default=len(frame))

    def _companions(self, frame: Frame) -> dict[SignalKey, FloatArray]:
        return {
            key: values
            for key, values in frame.columns.items()
            if key != LOSS and key.signal.startswith(COMPANIONS) and key.signal != "loss.aux"
        }

    def _walk(
        self,
        frame: Frame,
        loss: FloatArray,
        marks: MarkArray | None,
        beside: dict[SignalKey, FloatArray],
        others_from: int,
        found: Found,
    ) -> None:
        alive = np.zeros(len(loss), bool)
        for values in beside.values():
            alive |= np.isfinite(values)
        stepped = np.zeros(len(loss), bool)
        for key, values in beside.items():
            if key.signal in VANISHING:
                stepped |= np.isfinite(values)
        others = np.zeros(len(loss), bool)
        for key, values in frame.columns.items():
            if key != LOSS and key not in beside and not key.signal.startswith("progress."):
                others |= np.isfinite(values)
        near = self.neighbours.finite(frame)
        grad = frame.columns.get(GRAD)
        grad_ok = np.isfinite(grad) if grad is not None else np.zeros(len(loss), bool)
        grad_marks = frame.marks.get(GRAD)
        grad_marked = grad_marks.tolist() if grad_marks is not None else [Mark.ABSENT] * len(loss)
        grad_bad = grad_marks >= Mark.NAN if grad_marks is not None else np.zeros(len(loss), bool)
        for row, (x, mark) in enumerate(zip(loss.tolist(), self._marks(loss, marks), strict=True)):
            is_near = mark >= Mark.NAN and self.neighbours.tell(near, row)
            self.neighbours.learn(near, row, mark, is_near=is_near)
            self._lose(frame, row, x, mark, is_lost=bool(grad_bad[row]), is_step=bool(stepped[row]))
            if mark == Mark.ABSENT:
                if stepped[row]:
                    self._absent(frame, row, found)
                continue
            self.longest_gap = max(self.longest_gap, self.gap)
            self.gap = 0
            self._calm("vanished", frame, row, x, found)
            if x == 0.0 and self._is_filtered(Mark(grad_marked[row])):
                self._good_again(frame, row, x, found)
                self._calm("null", frame, row, x, found)
                self._calm("zero", frame, row, x, found)
                self._calm("still", frame, row, x, found)
                self.bad += 1
                self._count("filtered", frame, row, x, found)
            elif mark == Mark.NUMBER:
                self._number(frame, row, x, bool(grad_ok[row]), bool(grad_bad[row]), found)
            elif alive[row] or is_near or (not others[row] and row < others_from) or mark == Mark.SAID_NAN:
                # Other numbers of the step stand beside it, the log has nothing else at all, or it was said in words.
                if mark != Mark.NULL:
                    self._bad("nonfinite", frame, row, x, found, is_said=mark == Mark.SAID_NAN)
                elif self.good:
                    self._bad("null", frame, row, x, found)

    @staticmethod
    def _marks(loss: FloatArray, marks: MarkArray | None) -> list[int]:
        if marks is not None:
            return [int(mark) for mark in marks.tolist()]
        return [Mark.ABSENT if x != x else Mark.NUMBER if abs(x) < np.inf else Mark.POS_INF for x in loss.tolist()]

    def _bad(self, name: str, frame: Frame, row: int, x: float, found: Found, *, is_said: bool = False) -> None:
        """A loss that is NaN, Inf or null on a step's row, unless it is the gap of a column that is logged seldom."""
        if is_said or abs(x) == np.inf:
            self._replay(self.sparse.dense(), row, found)
        elif self.sparse.is_gap(name, place(frame, row, x)):
            if len(self.sparse.held) > MOST_HELD:
                self._replay(self.sparse.dense(), row, found)
            return
        self.bad += 1
        self._count(name, frame, row, x, found)

    def _good_again(self, frame: Frame, row: int, x: float, found: Found) -> None:
        self._replay(self.sparse.good(place(frame, row, x)), row, found)

    def _replay(self, held: list[tuple[str, Place]], row: int, found: Found) -> None:
        """What was held back while the rows could have been gaps turns out to have been losses."""
        for name, at in held:
            if name:
                self.bad += 1
                self.runs[name].hit(at, row, found)
            else:
                for run in self.runs.values():
                    if run.count:
                        run.end(at, row, found)

    def _number(self, frame: Frame, row: int, x: float, grad_ok: bool, grad_bad: bool, found: Found) -> None:
        self._good_again(frame, row, x, found)
        for name in ("nonfinite", "filtered", "null"):
            self._calm(name, frame, row, x, found)
        if x == 0.0 and not grad_ok and (self.nonzero or grad_bad):
            self._count("zero", frame, row, x, found)
            return
        self._calm("zero", frame, row, x, found)
        if x != 0.0:
            self.recent.append(x)
            self._calm("still", frame, row, x, found)
        elif len(self.recent) == STILL and min(self.recent) > FAR_FROM_ZERO:
            self._count("still", frame, row, x, found)
        self.good += 1
        self.nonzero += x != 0.0
        self.norms += x != 0.0 and grad_ok
        self.furthest = max(self.furthest, float(frame.steps[row]))

    def _is_filtered(self, norm: Mark) -> bool:
        """Whether a gradient norm beside a loss of 0.0 tells that the loss was not finite. A NaN of a table or record
        may be a gap: not where the norm is logged as often as the loss."""
        if norm is Mark.NAN:
            return self.nonzero > 0 and self.norms >= NORMS_BESIDE * self.nonzero
        return norm.is_non_finite

    def _lose(self, frame: Frame, row: int, x: float, mark: int, *, is_lost: bool, is_step: bool) -> None:
        """Trainers that do not print a loss that is NaN, or print 0.0: the gradient norm beside it tells."""
        is_gone = mark == Mark.ABSENT and is_step and self.good > 0 and frame.steps[row] > self.furthest
        if is_lost and (x == 0.0 or is_gone):
            self.lost = [*self.lost[:1], place(frame, row, x)]
        elif mark == Mark.NUMBER:
            self.lost = []

    def _is_lost(self) -> bool:
        """A step whose loss alone is gone may be one that was skipped: two in a row are not."""
        return bool(self.lost) and (len(self.lost) > 1 or self.lost[0].value == 0.0)

    def _absent(self, frame: Frame, row: int, found: Found) -> None:
        """A step without its loss: bad when the loss never was away for so long before.

        Steps that had their loss elsewhere (a file that lists one quantity after another) are none.
        """
        self.gap += 1
        if self.good >= GAPS_OF_HISTORY and self.gap > 3 * self.longest_gap and frame.steps[row] > self.furthest:
            self._count("vanished", frame, row, float("nan"), found)

    def _count(self, name: str, frame: Frame, row: int, x: float, found: Found) -> None:
        self.runs[name].hit(place(frame, row, x), row, found)

    def _calm(self, name: str, frame: Frame, row: int, x: float, found: Found) -> None:
        run = self.runs[name]
        if run.count:
            run.end(place(frame, row, x), row, found)

    def _restart(self, attempt: int) -> None:
        """A restart ends a run of bad values, but does not make them good."""
        self.attempt = attempt
        for run in self.runs.values():
            run.forget()
        self.ranks.forget()
        self.lost = []
        self.gap = 0
        self.furthest = -np.inf

    def finish(self) -> Iterable[Finding]:
        """The last loss is not finite: a FAIL, however few there are."""
        others = (said for other in self.others.values() for said in other.finish())
        return [*self._finish_loss(), *self.ranks.finish(), *others]

    def _finish_loss(self) -> list[Finding]:
        if self.sparse.held:  # what is held back counts if the log ends here; it may still go on
            ahead = copy.copy(self)
            ahead.runs, ahead.sparse = copy.deepcopy((self.runs, self.sparse))
            late: Found = []
            ahead._replay(ahead.sparse.dense(), 0, late)
            return [*(one for _, one in late), *ahead._finish_loss()]
        if self._is_lost() and not any(other.opened for other in self.runs.values()):
            first, last = self.lost[0], self.lost[-1]
            what = (
                f"the last loss {'is exactly 0.0' if last.value == 0.0 else 'is gone'} beside a gradient norm that is "
                f"not finite, since step {first.step:.15g}"
            )
            return [finding("open", "nonfinite", LOSS, Severity.FAIL, last, what, first=first)]
        for run in (self.runs["nonfinite"], self.runs["filtered"]):
            if run.count and run.first is not None and run.last is not None:
                what = f"the last loss is {run.words(run.last.value)} (step {run.last.step:.15g})"
                if run.count > 1:
                    words = run.words(run.last.value)
                    what = f"the last {run.count:,} losses are {words}, since step {run.first.step:.15g}"
                return [finding("grow", run.kind, LOSS, Severity.FAIL, run.last, what, first=run.first)]
        return [
            finding("grow", other.kind, LOSS, other.severity, other.last, other.so_far(), first=other.first)
            for other in self.runs.values()
            if other.opened and other.last is not None
        ]

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        verdict = verdict_of(view.episodes, recovery_softens=False)
        used = ("nonfinite.fail_run", "vanished.records", "zeroed.records")
        if verdict is not Verdict.PASS:
            advice = "see whether the step was skipped; if more come, lower the learning rate and check the data"
            if verdict is Verdict.FAIL:
                advice = (
                    "stop: the weights are probably lost. Go back to the last checkpoint before it; with fp16 check "
                    "the loss scale or use bf16, lower the learning rate, and look at the data of those steps"
                )
                if all(episode.recovered for episode in view.episodes):
                    advice = (
                        "the loss came back: see whether those steps were skipped, look at their data, and lower the "
                        "learning rate if more come; go back to the last checkpoint before it where it is worse"
                    )
            if verdict is Verdict.WARN and all(episode.kind == "zero_loss" for episode in view.episodes):
                advice = "see whether any token of those steps carries loss (labels, mask), and how the loss is logged"
            if all(episode.kind == "vanished" for episode in view.episodes):
                advice = "see why the loss is no longer logged: until it is, nothing tells whether the run learns"
            return result(self, verdict, tell(view.episodes), f"{self.good:,} finite values", advice, used)
        if not seen(view, "loss.train"):
            return result(self, Verdict.NO_DATA, "no training loss in the log; log it every step")
        if not self.good:
            count = seen(view, "loss.train")
            return result(self, Verdict.NO_DATA, f"logged {count:,} times, never as a number (null)")
        return result(self, Verdict.PASS, f"{self.good:,} values, all finite", used=used)
