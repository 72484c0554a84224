"""D4 and D7: clip rate, skipped and replayed steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike, number_fact
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.stats.rolling_share import RollingShare
from trainmon.monitor.stats.tail import Tail
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, IntArray, Note, NoteKind

LOSS: Final = SignalKey("loss.train")
# Shares of a few values jump about: the rate begins with this many.
_FEWEST_VALUES: Final = 20
_REPLAYED_STEPS: Final = 100
_REMEMBERED_LOSSES: Final = 4096
_REPLAY_TOLERANCE: Final = 1e-3


class ClipRateRule(DerivationRule):
    """D4: share of the last W values of the gradient norm above the clip threshold."""

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        self._limits = limits
        self._facts = facts
        self._window = int(limits["window"])
        self._share = RollingShare(self._window)

    def new_attempt(self) -> None:
        """The window starts anew."""
        self._share.clear()

    def apply(self, draft: DraftLike) -> None:
        """Puts `grad.clip_rate`."""
        key = SignalKey("grad.clip_rate")
        norms = draft.column("grad.norm")
        if norms is None or not draft.wants(key):
            return
        rows = np.flatnonzero(~np.isnan(norms))
        limit = self._threshold()
        known = len(self._share)
        share = self._share.extend(norms[rows] > limit)
        too_few = max(min(_FEWEST_VALUES, self._window) - 1 - known, 0)
        result = np.full(len(draft), np.nan)
        result[rows[too_few:]] = share[too_few:]
        draft.put(key, result, f"share of the last {self._window} gradient norms above {limit:g} (D4)")

    def _threshold(self) -> float:
        told = number_fact(self._facts, "clip_threshold")
        return told if told is not None and not self._limits.is_set("clip") else self._limits["clip"]


class SkipRule(DerivationRule):
    """D7: skipped steps counted from the lines that tell of them."""

    def __init__(self) -> None:
        self._count = 0
        self._told: tuple[str, int] | None = None
        self._changed = False

    def note(self, note: Note) -> None:
        """Counts a line that tells of a skipped step once, whatever it says besides."""
        if note.kind in (NoteKind.SKIPPED_STEP, NoteKind.LOSS_SCALE_OVERFLOW):
            place = (note.source, note.line_no)
            if place != self._told:
                self._count += 1
                self._changed = True
            self._told = place

    def apply(self, draft: DraftLike) -> None:
        """Puts `count.skipped_steps` on the first row after the count rose."""
        if self._changed and len(draft):
            column = np.full(len(draft), np.nan)
            column[0] = self._count
            draft.put(SignalKey("count.skipped_steps"), column, "lines that tell of a skipped step (D7)")
            self._changed = False


class ReplayRule(DerivationRule):
    """D7: of the first steps trained again after a resume, those whose loss differs by more than 1e-3 relative."""

    def __init__(self) -> None:
        self._before = Tail(_REMEMBERED_LOSSES)
        self._old: dict[float, float] | None = None  # what was logged before of the steps that are trained again
        self._losses = Tail(_REMEMBERED_LOSSES)
        self._replayed = 0
        self._bad = 0

    def new_attempt(self) -> None:
        """What was trained so far is what a replay is held against."""
        self._before, self._losses = self._losses, Tail(_REMEMBERED_LOSSES)
        self._old = None
        self._replayed = 0

    def apply(self, draft: DraftLike) -> None:
        """Puts `count.bad_replays`, cumulative, on the rows that were compared."""
        losses = draft.column("loss.train")
        if losses is None:
            return
        rows = np.flatnonzero(np.isfinite(losses))
        if self._before and len(rows):
            self._compare(draft, losses, rows)
        self._losses.extend(draft.frame.steps[rows], losses[rows])

    def _compare(self, draft: DraftLike, losses: FloatArray, rows: IntArray) -> None:
        column = np.full(len(draft), np.nan)
        if self._old is None:
            first = float(draft.frame.steps[rows[0]])
            # A run that begins at the old one's first step is another run, no replay.
            self._old = self._before.by_step(first) if first > self._before.steps.min() else {}
        if not self._old:
            self._before.clear()
            return
        last = max(self._old)
        for row in rows.tolist():
            step = float(draft.frame.steps[row])
            before = self._old.get(step)
            if before is None and not self._replayed and step <= last:
                continue
            if before is None or self._replayed >= _REPLAYED_STEPS:
                self._before.clear()
                self._old = None
                break
            self._replayed += 1
            now = float(losses[row])
            if abs(now - before) > _REPLAY_TOLERANCE * max(abs(before), abs(now)):
                self._bad += 1
            column[row] = self._bad
        draft.put(SignalKey("count.bad_replays"), column, "losses of steps trained again against the first time (D7)")
