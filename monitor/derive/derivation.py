"""Rules D1-D17 of METRICS.md: signals that the log does not carry, from those that it does.

A signal that is logged is never derived; one that begins to be logged is derived no more. Every rule is
incremental and row by row, so that the cut into frames does not matter. `Derivation.texts` says of each derived
signal what it was made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from trainmon.monitor.derive.evaluation import EvaluationRule, MediaRule
from trainmon.monitor.derive.experts import ExpertRule
from trainmon.monitor.derive.groups import GlobalMeanRule, GroupRule
from trainmon.monitor.derive.layers import EncoderRule, ResidualRule, UpdateRule
from trainmon.monitor.derive.rank_mean import RankMeanRule
from trainmon.monitor.derive.rank_peak import RankPeakRule
from trainmon.monitor.derive.ranks import RankRule
from trainmon.monitor.derive.speaker import SpeakerRule
from trainmon.monitor.derive.system import ComputeRule, FragmentationRule, MemoryShareRule, StepTimeRule, TokenRateRule
from trainmon.monitor.derive.training import ClipRateRule, ReplayRule, SkipRule
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, IntArray, Mark, MarkArray, Note


class Rule(Protocol):
    """One derivation rule."""

    def apply(self, draft: Draft) -> None:
        """Reads the draft's columns and puts what follows from them."""
        ...

    def new_attempt(self) -> None:
        """A (re)start: nothing is differenced across it."""
        ...

    def note(self, note: Note) -> None:
        """Hears an event of the log."""
        ...


class Draft:
    """A frame while it is being added to. `put` keeps to the rule that what is logged is never derived."""

    def __init__(self, frame: Frame, logged: set[SignalKey], texts: dict[SignalKey, str]) -> None:
        self.frame = frame
        self.columns = dict(frame.columns)
        self.marks = dict(frame.marks)
        self._logged = logged
        self._texts = texts
        self._is_raised = False
        self._spoken: dict[SignalKey, tuple[int, int]] = {}
        self.families: dict[str, list[SignalKey]] = {}
        for key in frame.columns:
            self.families.setdefault(key.signal, []).append(key)

    def __len__(self) -> int:
        return len(self.frame)

    def column(self, signal: str) -> FloatArray | None:
        """The column of `signal` without labels, logged or derived so far; None when there is none."""
        return self.columns.get(SignalKey(signal))

    def wants(self, key: SignalKey) -> bool:
        """Whether `key` may be derived: it was not logged in an earlier frame, or was one rank's own."""
        return key not in self._logged or key in self._spoken

    def put(self, key: SignalKey, values: FloatArray, text: str, marks: MarkArray | None = None) -> None:
        """Adds a derived column; rows from the first logged value on are left as logged. `marks`: (n,), of it."""
        if not self.wants(key):
            return
        if key in self._spoken:
            self._put_between(key, values, text, marks)
            return
        logged = self.frame.columns.get(key)
        if logged is not None:
            rows = self.frame.logged(key)
            first = int(rows[0]) if len(rows) else len(values)
            values = np.concatenate([values[:first], logged[first:]])
            if marks is not None or key in self.marks:
                late = self.marks[key] if key in self.marks else _marks_of(values)
                early = _marks_of(values) if marks is None else marks
                self.marks[key] = np.concatenate([early[:first], late[first:]])
        elif marks is not None:
            self.marks[key] = marks
        if np.isnan(values).all() and marks is None:
            return
        self.columns[key] = values
        self._texts.setdefault(key, text)

    def open_between(self, key: SignalKey, begin: int, end: int) -> None:
        """See `DraftLike`."""
        self._spoken[key] = (begin, end)

    def speak(self, key: SignalKey, own: SignalKey, rows: IntArray) -> None:
        """See `DraftLike`."""
        plain = self.columns[key].copy()
        moved, marks = np.full(len(self), np.nan), self.marks.get(key)
        moved[rows] = plain[rows]
        plain[rows] = np.nan
        if marks is not None:
            self.marks[own] = np.full(len(self), Mark.ABSENT, np.uint8)
            self.marks[own][rows] = marks[rows]
            self.marks[key] = marks.copy()
            self.marks[key][rows] = Mark.ABSENT
        self.columns |= {key: plain, own: moved}
        self.families.setdefault(own.signal, []).append(own)
        self._is_raised = True

    def _put_between(self, key: SignalKey, values: FloatArray, text: str, marks: MarkArray | None) -> None:
        """As `put`, in the rows in which a rank's own was taken for the run's; the others stay as logged."""
        between = slice(*self._spoken[key])
        before = self.columns.get(key, np.full(len(self), np.nan))
        whole = before.copy()
        whole[between] = values[between]
        if marks is not None or key in self.marks:
            made = self.marks.get(key, _marks_of(before)).copy()
            made[between] = (_marks_of(values) if marks is None else marks)[between]
            self.marks[key] = made
        self.columns[key] = whole
        self._texts[key] = text
        self._is_raised = True

    def raise_to(self, key: SignalKey, values: FloatArray) -> None:
        """Raises a logged column; where nothing changes it stays as it is."""
        logged = self.columns.get(key)
        if np.isnan(values).all() or (logged is not None and np.array_equal(values, logged, equal_nan=True)):
            return
        if key in self.marks:
            self.marks[key] = np.where(np.isnan(values), self.marks[key], Mark.NUMBER).astype(np.uint8)
        self.columns[key] = values
        self._is_raised = True

    def done(self) -> Frame:
        """The frame with what was put."""
        self._logged.update(self.frame.columns)
        for key in self.frame.columns:
            if key not in self._spoken:
                self._texts.pop(key, None)
        if len(self.columns) == len(self.frame.columns) and not self._is_raised:
            return self.frame
        return replace(self.frame, columns=self.columns, marks=self.marks)


def _marks_of(values: FloatArray) -> MarkArray:
    return np.where(np.isnan(values), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)


class Derivation:
    """All rules, in the order in which they build on each other."""

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        self.texts: dict[SignalKey, str] = {}
        self._logged: set[SignalKey] = set()
        self._rules: Sequence[Rule] = (
            SpeakerRule(),
            RankRule(),
            RankPeakRule(),
            GlobalMeanRule(),
            RankMeanRule(),
            GroupRule(),
            StepTimeRule(facts),
            TokenRateRule(facts),
            ComputeRule(facts),
            MemoryShareRule(facts),
            FragmentationRule(),
            ClipRateRule(limits, facts),
            ExpertRule(facts),
            UpdateRule(),
            ResidualRule(),
            EncoderRule(),
            EvaluationRule(facts),
            MediaRule(),
            SkipRule(),
            ReplayRule(),
        )

    def apply(self, frame: Frame) -> Frame:
        """`frame` with the columns that can be derived. Shapes as `Frame`'s."""
        draft = Draft(frame, self._logged, self.texts)
        for rule in self._rules:
            rule.apply(draft)
        return draft.done()

    def new_attempt(self) -> None:
        """A (re)start."""
        for rule in self._rules:
            rule.new_attempt()

    def note(self, note: Note) -> None:
        """An event of the log, in its place among the rows."""
        for rule in self._rules:
            rule.note(note)
