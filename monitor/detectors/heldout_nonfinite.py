"""Evaluations whose held-out loss is NaN or Inf, told from the gaps that tables fill with NaN."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from trainmon.monitor.detectors.common import Found, Place, finding, place, resumed
from trainmon.monitor.detectors.evaluated_beside import EvaluatedBeside
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.rows import BoolArray
from trainmon.tails.record import IntArray, Mark

KIND = "held_out_nonfinite"
FEWEST = 2  # finite evaluations before one that is not finite says anything
FEWEST_OF_GAPS = 5  # where NaN also stands in rows without an evaluation
LONGER = 3  # times the longest gap so far


class NonFiniteEvaluations:
    """One series, such as an evaluation set: NaN where its finite values say that a number was due.

    Two evaluations in a row that are NaN are a WARN, after 2 finite values (5 where there are gaps). Many loggers write
    NaN on every row without an evaluation; in such a table only a number beside it, of the same evaluation, shows that
    there was one (`EvaluatedBeside`): a column that ends early was not evaluated any more. NaN in the words of lines is
    told when it lasts longer than 3 times the longest gap. Inf is written by no logger for a gap: two in a row are
    told. Null is a gap. Never a FAIL: the weights may be fine.
    """

    def __init__(
        self, key: SignalKey, kind: str = KIND, noun: str = "held-out loss", times: str = "evaluations"
    ) -> None:
        self.key, self.kind, self.noun, self.times = key, kind, noun, times
        self.finite = 0
        self.longest = 0  # gap
        self.gap = 0  # rows since the last number
        self.streak = 0  # those of them that were evaluations
        self.opened = False
        self.first: Place | None = None
        self.last: Place | None = None
        self._has_inf = False
        self._is_said = False
        self._beside = EvaluatedBeside(key)
        self._last_good = np.nan
        self._attempt: int | None = None
        self._last_step = np.nan

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the evaluations of `frame`."""
        column, marks = frame.columns[self.key], frame.marks.get(self.key)
        good = np.isfinite(column)
        bad = np.isinf(column) if marks is None else (marks >= Mark.NAN) & (marks != Mark.NULL)
        rows = np.flatnonzero(good | bad)
        if not len(rows):
            return
        if frame.attempt != self._attempt:
            self._restart(frame.attempt, float(frame.steps[rows[0]]))
        self._last_step = float(frame.steps[rows[-1]])
        self._beside.read(frame)
        self._walk(frame, rows, good, found)
        self._beside.leave()

    def _walk(self, frame: Frame, rows: IntArray, good: BoolArray, found: Found) -> None:
        ends = np.flatnonzero(good[rows]).tolist()
        if len(ends) == len(rows) and not self.gap:
            self.finite += len(ends)
            self._beside.good(rows, ends_gap=False)
            self._last_good = float(frame.steps[rows[-1]])
            return
        begin = 0
        for end in ends:
            self._bad(frame, rows[begin:end], found)
            self._good(frame, int(rows[end]), found)
            begin = end + 1
        self._bad(frame, rows[begin:], found)

    def _restart(self, attempt: int, first: float) -> None:
        self._forget()
        if self._attempt is not None and not resumed(self._last_step, first):
            self.finite = self.longest = 0
        self._attempt = attempt

    def _forget(self) -> None:
        self.streak, self.gap, self.opened, self._has_inf, self._is_said = 0, 0, False, False, False

    @property
    def not_since(self) -> float:
        """The step of the last evaluation, where none came for much longer than ever before; else NaN."""
        is_over = self.finite >= FEWEST_OF_GAPS and 0 < LONGER * self.longest < self.gap
        return self._last_good if is_over and not self.opened else np.nan

    def _good(self, frame: Frame, row: int, found: Found) -> None:
        self.finite += 1
        if self.opened:
            found += [(row, said) for said in self.finish()]
            found.append((row, self._said("recover", place(frame, row, float(frame.columns[self.key][row])))))
        else:
            self.longest = max(self.longest, self.gap)
        self._beside.good(np.array([row]), ends_gap=self.gap > 0 and not self.opened)
        self._last_good = float(frame.steps[row])
        self._forget()

    def _bad(self, frame: Frame, rows: IntArray, found: Found) -> None:
        """The (n,) rows that follow on each other, none of them finite."""
        rows = self._evaluated(frame, rows)
        if not len(rows):
            return
        values = frame.columns[self.key][rows]
        before = self.streak
        if not before:
            self.first = place(frame, int(rows[0]), float(values[0]))
        infinite = np.flatnonzero(np.isinf(values))
        opens = (max(LONGER * self.longest, 1) if self._is_said else 1) - before
        if self._has_inf or len(infinite):
            opens = min(opens, max(0 if self._has_inf else int(infinite[0]), 1 - before))
        self._has_inf = self._has_inf or bool(len(infinite))
        is_known = self.finite >= (FEWEST_OF_GAPS if self.longest and not self._has_inf else FEWEST)
        opens = max(opens, 0)
        if not self.opened and is_known and opens < len(rows):
            self.streak, self.opened = before + opens + 1, True
            at = place(frame, int(rows[opens]), float(values[opens]))
            found.append((int(rows[opens]), self._said("open", at)))
        self.streak = before + len(rows)
        self.last = place(frame, int(rows[-1]), float(values[-1]))

    def _evaluated(self, frame: Frame, rows: IntArray) -> IntArray:
        """Those of the `rows` on which a number was due."""
        self.gap += len(rows)
        due = self._beside.due(rows)
        if not self.longest or not len(rows):
            return rows
        values, marks = frame.columns[self.key][rows], frame.marks.get(self.key)
        if marks is not None and (marks[rows] == Mark.SAID_NAN).any():
            self._is_said = True
            return rows
        return rows[due | np.isinf(values)]

    def _said(self, action: Action, at: Place) -> Finding:
        first = self.first or at
        word = "not finite" if self._has_inf else "NaN"
        what = f"{self.noun} ({self.key}) is {word} since step {first.step:.15g}"
        is_by_length = self.longest and self._is_said
        what += f" (last {self.streak:,} {self.times})" if not is_by_length else f" ({self.streak:,} rows"
        what += f"; never over {self.longest:,} in a row before)" if is_by_length else ""
        return finding(action, self.kind, self.key, Severity.WARN, at, what, first=first)

    def finish(self) -> Iterable[Finding]:
        """Open until the last evaluation."""
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []
