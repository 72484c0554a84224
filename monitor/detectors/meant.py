"""Where the work of a step was changed on purpose: batch size, sequence length, a new epoch.

A loss that moves there by less than a FAIL does what was to be expected: a note, and the level begins anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from trainmon.monitor.amount import digits
from trainmon.monitor.detectors.common import finite, resumed
from trainmon.monitor.frame import Frame, SignalKey

SIZES = {SignalKey("batch.size"): "batch size", SignalKey("batch.seq_length"): "sequence length"}
EPOCH = SignalKey("progress.epoch")
CHANGED = 0.05
STEADY = 5  # values at one size before a change of it means anything: packed batches differ from step to step
LONG_EPOCH = 100  # values; with shorter epochs everything lies near a boundary
NEAR = 5  # so many values behind a change, what begins is of it
_KEPT = 64  # changes of earlier frames: more than lie in the blocks that are compared


class Change(NamedTuple):
    """One change. `row`: in the newest frame, -1 in an earlier one; `gap`: steps to the value before it."""

    step: float
    row: int
    gap: float
    words: str
    key: SignalKey


class Rebased(Protocol):
    """The track of a series whose level begins anew where the work of a step was changed."""

    key: SignalKey
    rebase_rows: list[int]
    epoch_rows: frozenset[int]

    def rebase(self) -> None:
        """Forgets the level."""
        ...

    def new_epoch(self) -> None:
        """Forgets the level, unless a fault is under way: a new epoch does not explain what began before it."""
        ...


class MeantChanges:
    """Keeps the latest changes of one run. Every frame must be fed, before anything is asked about its rows."""

    def __init__(self) -> None:
        self.known: list[Change] = []
        self._last: dict[SignalKey, tuple[float, float]] = {}
        self._steady: dict[SignalKey, int] = {}
        self._attempt: int | None = None
        self._last_step = math.nan

    def feed(self, frame: Frame) -> None:
        """Reads batch size, sequence length and epoch of `frame`."""
        if not len(frame):
            return
        if self.known:
            self.known = [change._replace(row=-1) for change in self.known[-_KEPT:]]
        if frame.attempt != self._attempt:
            self._restart(frame)
        self._last_step = float(frame.steps[-1])
        for key, noun in SIZES.items():
            if key in frame.columns and not self._is_same(frame, key, CHANGED):
                self._sizes(frame, key, noun)
        if EPOCH in frame.columns and not self._is_same(frame, EPOCH, 0.0):
            self._epochs(frame)

    def _is_same(self, frame: Frame, key: SignalKey, share: float) -> bool:
        """Whether the frame holds one value, the one before: the usual row of a run that is followed live."""
        own = finite(frame, key)
        if len(own) != 1 or key not in self._last:
            return not len(own)
        x, before = float(own.values[0]), self._last[key][0]
        is_same = (
            math.floor(x + 1e-9) == math.floor(before + 1e-9)
            if key == EPOCH
            else (abs(x - before) <= share * abs(before))
        )
        if is_same:
            self._advance(frame, key, 1)
        return is_same

    def _restart(self, frame: Frame) -> None:
        first = float(frame.steps[0])
        if self._attempt is not None and not resumed(self._last_step, first):
            self.known.clear()
            self._last.clear()
            self._steady.clear()
        self.known = [change for change in self.known if change.step < first]
        self._last.pop(EPOCH, None)
        self._steady.pop(EPOCH, None)
        self._attempt = frame.attempt

    def _sizes(self, frame: Frame, key: SignalKey, noun: str) -> None:
        own = finite(frame, key)
        x = own.values
        before = np.concatenate([[self._last.get(key, (math.nan, math.nan))[0]], x[:-1]])[: len(x)]
        at = 0
        for i in np.flatnonzero(np.abs(x - before) > CHANGED * np.abs(before)).tolist():
            steady = self._steady.get(key, 0) + i - at
            self._steady[key], at = 0, i
            if steady >= STEADY:
                words = f"{noun} went from {digits(before[i])} to {digits(float(x[i]))}"
                self._keep(frame, key, i, words)
        self._advance(frame, key, len(x) - at)

    def _epochs(self, frame: Frame) -> None:
        own = finite(frame, EPOCH)
        x = np.floor(own.values + 1e-9)
        before = np.concatenate([[self._last.get(EPOCH, (math.nan, math.nan))[0]], own.values[:-1]])[: len(x)]
        at = 0
        for i in np.flatnonzero(x > np.floor(before + 1e-9)).tolist():
            lasted = self._steady.get(EPOCH, 0) + i - at
            self._steady[EPOCH], at = 0, i
            if lasted >= LONG_EPOCH:
                self._keep(frame, EPOCH, i, f"epoch {x[i]:.15g} began")
        self._advance(frame, EPOCH, len(x) - at)

    def _keep(self, frame: Frame, key: SignalKey, i: int, words: str) -> None:
        own = finite(frame, key)
        step = float(own.steps[i])
        before = float(own.steps[i - 1]) if i else self._last.get(key, (math.nan, math.nan))[1]
        gap = max(step - before, 1.0) if step > before else 1.0
        self.known.append(Change(step, int(own.rows[i]), gap, words, key))

    def _advance(self, frame: Frame, key: SignalKey, more: int) -> None:
        own = finite(frame, key)
        self._steady[key] = self._steady.get(key, 0) + more
        if len(own):
            self._last[key] = float(own.values[-1]), float(own.steps[-1])

    @property
    def rows(self) -> list[int]:
        """The rows of the newest frame at which something was changed, in order."""
        return sorted({change.row for change in self.known if change.row >= 0})

    def rebase(self, frame: Frame, tracks: Sequence[Rebased]) -> None:
        """Reads `frame`, and tells `tracks`, which are fed it next, at which of its rows to begin anew."""
        self.feed(frame)
        changes = self.rows
        epochs = frozenset(changes) - {change.row for change in self.known if change.key != EPOCH}
        for track in tracks if changes else ():
            if track.key in frame.columns:
                track.rebase_rows, track.epoch_rows = changes, epochs
            elif epochs.issuperset(changes):
                track.new_epoch()
            else:
                track.rebase()

    def between(self, after: float, upto: float, row: int) -> bool:
        """Whether something was changed at a step in (after, upto], known at `row` of the newest frame."""
        return any(after < change.step <= upto and change.row <= row for change in self.known)

    def just_before(self, step: float, row: int, key: SignalKey | None = None) -> str:
        """What was changed (`key` alone) at most 5 values before `step`, known at `row` of the newest frame; or ''."""
        return self._newest(
            row, lambda one: one.step <= step <= one.step + NEAR * one.gap and (key is None or one.key == key)
        )

    def about(self, step: float, span: float, row: int) -> str:
        """What was changed within `span` steps of `step`, known at row `row` of the newest frame; or ''."""
        return self._newest(row, lambda change: abs(change.step - step) <= max(span, NEAR * change.gap))

    def _newest(self, row: int, is_it: Callable[[Change], bool]) -> str:
        return next((change.words for change in reversed(self.known) if change.row <= row and is_it(change)), "")
