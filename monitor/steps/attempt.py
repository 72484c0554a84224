"""Where one attempt of one source stands: its steps, epoch and quantities, and what a row means against them.

An attempt takes rows that go on in the plain way, fills in the steps of those without one, and drops records that
repeat. What a row that does *not* go on is, `StepTracker` decides; the questions it asks are answered here.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trainmon.monitor.counter import StepCounter
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import Rows, stack
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.record import FloatArray
from trainmon.tails.steps import step_rank

EPOCH: Final = SignalKey("progress.epoch")
# Rows a few intervals back are out of order; farther back they are another place of the run.
_NEAR_INTERVALS: Final = 8.0
_REPEATS_TO_TELL: Final = 20
_EARLY_ROWS: Final = 8
# So many rows came late: it is how this log is written.
_LATE_TO_TELL: Final = 3
# A step within this share of the run is where it began, not a checkpoint of it.
_BEGINNING: Final = 0.02


class Attempt:
    """The state of one attempt; `follow` begins the next one.

    `stepless`: its rows have no step and are numbered; `any_step`: some row of this or an earlier attempt had one.
    `last`: effective step of the last training row, NaN before. `rows`: training rows taken in. `repeats`: records of a
    step that was there already and that differ from it. `is_shared`: so many of them that several writers report.
    `origin`: the step at which the run began that this attempt goes on with from a checkpoint (0 where only the log's
    word tells of one); NaN when it began the run itself, as far as is known.
    """

    def __init__(self, *, stepless: bool = False, any_step: bool = False) -> None:
        self.stepless = stepless
        self.any_step = any_step
        self.counter = StepCounter()
        self.last = np.nan
        self.rows = 0
        self.repeats = 0
        self.is_shared = False
        self.origin = np.nan
        self.aux_apart = False  # rows without a training metric have a counter of their own
        self.aux_begun = False
        self._late = 0
        self._offset = 0.0
        self._raw_first = np.nan
        self._epoch = np.nan
        self._tail: Rows | None = None
        self._is_wide = False  # some row holds more than one number
        self._keys: set[SignalKey] = set()  # while none does: what was logged
        self._apart: set[SignalKey] = set()  # and what is listed behind the rest, from an earlier step on
        self._ordinal = 0

    def follow(self) -> Attempt:
        """A new attempt after this one."""
        return Attempt(stepless=self.stepless, any_step=self.any_step)

    def rebase(self) -> None:
        """From here on better rows tell the step: forgets where it stood."""
        self.rows = self.repeats = 0
        if not self.stepless:
            self.counter = StepCounter()

    def leave_stepless(self) -> None:
        """A step at last: the numbers that stood in are another counter."""
        self.stepless = False
        self.counter = StepCounter()
        self.last = np.nan

    def effective(self, row: Rows) -> float:
        """The step of the first row of `row` in this attempt's count, NaN without one."""
        return float(row.steps[0]) + self._offset

    def plain(self, rows: Rows) -> int:
        """How many leading rows go on in the plain way: the step does not go back."""
        has = ~np.isnan(rows.steps)
        if self.stepless:
            return int(np.argmax(has)) if has.any() else len(rows)
        moves = has & rows.primary
        effective = rows.steps + self._offset
        top = np.maximum.accumulate(np.concatenate(([self.counter.top], np.where(moves, effective, -np.inf))))
        odd = moves & (effective < top[:-1])
        if not self.aux_apart:
            odd |= has & ~rows.primary & (effective < top[:-1])
        odd |= ~has & np.isneginf(top[1:])
        return int(np.argmax(odd)) if odd.any() else len(rows)

    def take(self, rows: Rows) -> Rows:
        """Takes in rows that go on in the plain way; gives them with effective steps, repeated records left out."""
        if self.stepless:
            effective = self._ordinal + np.cumsum(rows.primary, dtype=np.float64)
            self._ordinal = int(effective[-1])
        else:
            effective = self._effective(rows)
        self._learn_width(rows)
        moving = rows.primary & ~np.isnan(rows.steps)
        if moving.any() and not self.counter.begun:
            self._raw_first = float(rows.steps[moving][0])
        kept = self._drop_repeats(
            Rows(effective, rows.times, rows.lines, rows.columns, rows.marks, rows.time_kind, rows.primary)
        )
        primary = effective[moving] if not self.stepless else effective[rows.primary]
        self.aux_begun |= bool((~rows.primary & ~np.isnan(rows.steps)).any())
        self.counter.advance(primary)
        if len(primary):
            self.last = float(primary[-1])
        self.rows += int(rows.primary.sum())
        self.any_step |= bool(moving.any())
        self._learn_epoch(rows)
        return kept

    def take_late(self, step: float) -> None:
        """Takes in one training row below the highest step."""
        self._late += 1
        self.counter.note_late(step)
        self.rows += 1

    def is_near(self, step: float) -> bool:
        """Whether `step` is no farther back than rows out of order are."""
        # While no interval is known, a first step is taken for one.
        interval = self.counter.interval if self.counter.widths else max(step, 1.0)
        return step >= self.counter.top - _NEAR_INTERVALS * interval

    @property
    def begun(self) -> float:
        """The step at which the run began that this attempt is of; NaN before there was any."""
        return self.counter.first if np.isnan(self.origin) else self.origin

    def begins_anew(self, step: float) -> bool:
        """Whether `step` is where the run began, so that no checkpoint explains the step back."""
        return step <= self.begun + _BEGINNING * (self.counter.top - self.begun)

    def is_late(self, step: float) -> bool:
        """Whether `step` was skipped and comes now: a little back, and not seen before, where one is missing."""
        return self.may_be_late(step) and (self._late >= _LATE_TO_TELL or self.counter.is_skipped(step))

    def may_be_late(self, step: float) -> bool:
        """Whether `step` lies a little back and was not seen; a restart that logs oftener looks the same at first."""
        is_within = step > self.counter.first or self.is_early
        return is_within and self.is_near(step) and not self.counter.has_seen(step)

    @property
    def is_early(self) -> bool:
        """Whether so few rows were taken in that a lower step may be where the run began: 3, 2, 1, 4."""
        return self.rows <= _EARLY_ROWS

    def is_new_epoch(self, row: Rows) -> bool:
        """Whether `row` begins an epoch, and with it the steps anew."""
        epoch, _ = row.cell(EPOCH, 0)
        at_start = float(row.steps[0]) <= self._raw_first + 2 * self.counter.interval
        return at_start and not np.isnan(epoch) and not np.isnan(self._epoch) and epoch > self._epoch

    def add_up(self, row: Rows) -> None:
        """From `row` on steps are counted behind the epochs before."""
        raw, width = float(row.steps[0]), self.counter.interval
        self._offset = self.counter.top + (raw if raw > width else width) - raw

    def is_other_quantity(self, row: Rows, *, by_metric: bool = False) -> bool:
        """Whether `row` goes on, or begins, with a quantity that is listed behind others, all by themselves.

        `by_metric`: it is known of the rows that they stand so."""
        if self._is_wide:
            return False
        keys = [key for key in row.columns if _is_number(key) and row.logged(key).any()]
        if len(keys) != 1 or (keys[0] in self._keys and keys[0] not in self._apart):
            return False
        if keys[0].signal.startswith("eval.") and not (self._apart or by_metric):
            return False  # held-out data may have a counter of their own
        self._keys.add(keys[0])
        self._apart.add(keys[0])
        return True

    def _effective(self, rows: Rows) -> FloatArray:
        has = ~np.isnan(rows.steps)
        moves = has & rows.primary
        effective = rows.steps + self._offset
        top = np.maximum.accumulate(np.where(moves, effective, -np.inf))
        carried = np.maximum(top, self.last if not np.isnan(self.last) else -np.inf)
        use_carried = ~has
        if self.aux_apart:
            use_carried |= ~rows.primary
        return np.where(use_carried, carried, effective)

    def _drop_repeats(self, rows: Rows) -> Rows:
        # A copy: a slice would keep all the rows that it is of.
        before, self._tail = self._tail, rows.take(np.array([len(rows) - 1]))
        drop = np.zeros(len(rows), np.bool_)
        if (rows.steps[1:] == rows.steps[:-1]).any():
            same, again = rows.repeats()
            self.repeats += int((again & ~same).sum())
            drop[1:] = same
        if before is not None and before.steps[0] == rows.steps[0]:
            (same,), (again,) = stack([before, rows.take(slice(0, 1))]).repeats()
            self.repeats += int(again and not same)
            drop[0] = same
        self.is_shared |= self.repeats >= _REPEATS_TO_TELL and self.repeats * 4 > self.rows
        return rows.take(~drop) if drop.any() else rows

    def _learn_width(self, rows: Rows) -> None:
        if self._is_wide:
            return
        logged = {key: rows.logged(key) for key in rows.columns if _is_number(key)}
        counts = np.sum(list(logged.values()), axis=0) if logged else np.zeros(len(rows))
        self._is_wide = bool((counts > 1).any())
        self._keys |= {key for key, where in logged.items() if where.any()}

    def _learn_epoch(self, rows: Rows) -> None:
        column = rows.columns.get(EPOCH)
        if column is not None:
            known = column[rows.primary & ~np.isnan(column)]
            if len(known):
                self._epoch = float(known[-1])


def _is_number(key: SignalKey) -> bool:
    """Whether `key` is measured, not a clock, a count of progress or a number of the rows."""
    is_place = stamp_order(key.signal) is not None or step_rank(key.signal) is not None
    return not key.signal.startswith("progress.") and not is_place
