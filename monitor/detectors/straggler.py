"""Check sys.straggler: one rank that sets the pace, D10."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import Found, Place, finding, in_order, place, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import keys_of
from trainmon.monitor.detectors.newest import Newest
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray

EPS = 1e-12
ALIKE = 0.005  # ranks this near to each other were timed behind a barrier
PLACEHOLDER = SignalKey("sys.straggler")
MOSTLY = 0.5  # of the values since its first, a rank that is slow must be the slow one
FEWEST = 3  # values of a slow rank, where values beyond the limit are rare ...
FEWEST_IN_NOISE = 10  # ... and where they are not: three of one rank come together by chance
RARE = 0.01
PRIOR = 50  # values that are taken to have been judged before: one of them beyond the limit


class Straggler(Detector):
    """S above 1.1 with the same rank for 100 steps, in most of them, is a WARN, above 1.5 a FAIL.

    Three values are enough where S is hardly ever above 1.1 (less than 1% of the values), else ten are asked for: in
    noisy step times now this rank is the slowest, now that, and soon the same one again.

    From step times by rank where they are logged, else from the step's time less each rank's wait for collectives (the
    slow rank waits least), else from a logged S. Times that are alike over all ranks were taken behind the collectives
    and name nobody: NO DATA.
    """

    id: ClassVar[str] = "sys.straggler"
    name: ClassVar[str] = "Straggler"
    signals: ClassVar[tuple[str, ...]] = ("sys.rank_step_time", "sys.straggler", "sys.comm_wait")
    order: ClassVar[int] = 23
    triage: ClassVar[str] = "step_time"
    formula: ClassVar[str] = "S = tau / (median over ranks of tau_r + eps), before the collectives"
    source: ClassVar[str] = (
        "METRICS.md D10 and METRICS.md, smallest faults: straggler; Deng, Reading a Pretraining Run (2026)"
    )

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.step_time = Newest(SignalKey("sys.step_time"))
        self.rank: str | None = None
        self.key = PLACEHOLDER
        self.first: Place | None = None
        self.last: Place | None = None
        self.values = 0
        self.calm = 0
        self.since = 0  # values since the first of the slow rank
        self.stray = 0  # values beyond the limit that came to nothing
        self.opened = False
        self.severity = Severity.WARN
        self.scores: list[float] = []
        self.judged = 0
        self.highest = 0.0
        self.widest = 0.0
        self.what = ""
        self._attempt: int | None = None

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads step times by rank, or S."""
        found: Found = []
        if frame.attempt != self._attempt:
            self._attempt, self.rank, self.opened = frame.attempt, None, False
        self.step_time.feed(frame)
        ranks = keys_of(frame, ("sys.rank_step_time",))
        waits = [key for key in keys_of(frame, ("sys.comm_wait",)) if "rank" in key.label_dict]
        if len(ranks) >= 2:
            self._by_rank(frame, ranks, np.stack([frame.columns[key] for key in ranks]), found)
        elif len(waits) >= 2:
            rows = np.arange(len(frame))
            step_time = np.array(self.step_time.at(rows.tolist()))
            own = step_time - np.stack([frame.columns[key] for key in waits])
            self._by_rank(frame, waits, np.where(own > 0, own, np.nan), found)
        else:
            for key in keys_of(frame, ("sys.straggler",)):
                for row in frame.logged(key).tolist():
                    score = float(frame.columns[key][row])
                    if math.isfinite(score):
                        self._take(frame, row, key.label_dict.get("rank", ""), key, score, found)
        return in_order(found)

    def _by_rank(self, frame: Frame, keys: list[SignalKey], table: FloatArray, found: Found) -> None:
        here = np.isfinite(table)
        counted = here.sum(axis=0)
        rows = np.flatnonzero(counted >= 2)
        if not len(rows):
            return
        times, counted = np.where(here, table, np.inf)[:, rows], counted[rows]
        slowest = np.where(here[:, rows], times, -np.inf).argmax(axis=0)
        ranked, column = np.sort(times, axis=0), np.arange(len(rows))  # ranks without a value come last
        middle = (ranked[(counted - 1) // 2, column] + ranked[counted // 2, column]) / 2
        top = times[slowest, column]
        self.widest = max(self.widest, float(((top - ranked[0]) / (middle + EPS)).max()))
        scores = (top / (middle + EPS)).tolist()
        names = [key.label_dict.get("rank", str(at)) for at, key in enumerate(keys)]
        for row, at, score in zip(rows.tolist(), slowest.tolist(), scores, strict=True):
            self._take(frame, row, names[at], keys[at], score, found)

    def _take(self, frame: Frame, row: int, rank: str, key: SignalKey, score: float, found: Found) -> None:
        self.judged += 1
        self.highest = max(self.highest, score)
        if score <= self.limits["straggler.warn"] or (self.rank is not None and rank != self.rank):
            self._calm(frame, row, score, found)
            if score <= self.limits["straggler.warn"] or self.rank is not None:
                return
        at = place(frame, row, score)
        if self.rank is None:
            self.rank, self.key, self.first, self.values, self.scores = rank, key, at, 0, []
            self.since = 0
            self.severity = Severity.WARN
        self.calm = 0
        self.since += 1
        self.values += 1
        self.last = at
        self.scores.append(score)
        if len(self.scores) > 100:
            del self.scores[0]
        self._judge(at, row, found)

    def _judge(self, at: Place, row: int, found: Found) -> None:
        first = self.first or at
        if at.step - first.step < self.limits["straggler.steps"] or not (self.opened or self._is_steady()):
            return
        middle = sorted(self.scores)[len(self.scores) // 2]
        before = self.severity
        if middle >= self.limits["straggler.fail"]:
            self.severity = Severity.FAIL
        if not self.opened or self.severity > before:
            who = f"rank {self.rank}" if self.rank else "one rank"
            self.what = f"{who} takes {middle:.2f}x the median of the ranks since step {first.step:.15g}"
            action: Action = "grow" if self.opened else "open"
            self.opened = True
            found.append((row, self._said(action, at)))

    def _is_steady(self) -> bool:
        """Whether the rank has been the slow one too often for chance."""
        is_rare = self.stray + 1 < RARE * (self.judged + PRIOR)
        return self.values >= max(FEWEST if is_rare else FEWEST_IN_NOISE, MOSTLY * self.since)

    def _calm(self, frame: Frame, row: int, score: float, found: Found) -> None:
        """10 steps in which the rank was not the slow one end the matter."""
        if self.rank is None:
            return
        self.calm += 1
        self.since += 1
        if self.calm < 10:
            return
        if not self.opened:
            self.stray += self.values
        if self.opened:
            found.append((row, self._said("grow", self.last or place(frame, row, score))))
            found.append((row, self._said("recover", place(frame, row, score))))
        self.opened = False
        self.rank = None

    def _said(self, action: Action, at: Place) -> Finding:
        key = SignalKey("sys.straggler", self.key.labels)
        return finding(action, "straggler", key, self.severity, at, self.what, first=self.first)

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - the hook
        """An open one reaches to the last value of its attempt."""
        return self.finish()

    def finish(self) -> Iterable[Finding]:
        """An open one reaches to its last value."""
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("straggler.warn", "straggler.fail", "straggler.steps")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            who = f"rank {self.rank}'s host" if self.rank else "that rank's host"
            advice = f"look at {who}: clocks, temperature, network errors, other processes; drain it if it stays slow"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not self.judged and not seen(view, "sys.rank_step_time", "sys.straggler"):
            return result(self, Verdict.NO_DATA, "no step time by rank; log the compute time of each")
        if self.judged and not seen(view, "sys.straggler") and self.widest < ALIKE:
            what = "all ranks take the same time: it was measured behind the collectives"
            return result(self, Verdict.NO_DATA, what, advice="log each rank's time before the collectives")
        if not self.judged:
            return result(self, Verdict.NO_DATA, "only one rank's step time is logged")
        return result(self, Verdict.PASS, f"largest S {self.highest:.2f}, no rank slow for long", used=used)
