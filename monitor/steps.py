"""Which attempt and which step each row of one source belongs to.

A step that goes back begins a new attempt, but a log has other reasons to write a smaller number. They are told
apart by what came before and by the next row or two, never by how the rows were cut into blocks:

- the same record again: dropped;
- rows without a training metric (validation on an epoch counter): they never move the step;
- a step that was skipped and comes a few rows late (ranks that write on their own): the same attempt;
- a step that was seen and is drawn again while the old sequence goes on: another writer, charted apart;
- one quantity's values after another's (a table in long form, sorted by name): each has its own way through the steps;
- a counter that begins anew each epoch while the epoch rises: added up;
- everything else, and any launch banner or new file: a new attempt.

While only the next row can tell, a row is held (`held`); `settle` decides with what is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from trainmon.monitor.counter import StepCounter
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import Rows, stack
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.record import FloatArray

EPOCH: Final = SignalKey("progress.epoch")
# Rows a few intervals back are out of order; farther back they are another place of the run.
_NEAR_INTERVALS: Final = 8.0
_REDRAW_INTERVALS: Final = 3.0
# This many rows without a step and none with one: the log has no step, its rows are numbered.
_STEPLESS_ROWS: Final = 16
_MOST_HELD: Final = 64
# A second writer that is alone for this many rows has become the run.
_ALONE_ROWS: Final = 20
# So many rows drawn again are no accident.
_REDRAWS_SHOWN: Final = 3
_REDRAWS_TO_TELL: Final = 20
# A resume without a step back counts as a restart only when the attempt was really under way.
_ROWS_UNDER_WAY: Final = 10

Evidence = Literal["", "launch", "resumed", "file"]
_STRENGTH: Final[dict[Evidence, int]] = {"": 0, "launch": 1, "resumed": 2, "file": 3}


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows with their effective steps. `new_attempt`: they begin one. `writer`: 1, or 2 for another process's rows."""

    rows: Rows
    new_attempt: bool = False
    writer: int = 1


class StepTracker:
    """Gives rows their attempt and effective step, in order; see the module's text for the rules.

    `step_key` and `stepless` tell what stands for the step; `problems` what was found odd.
    """

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self.stepless = False
        self._any_step = False
        self._ordinal = 0
        self._prelude: list[Rows] = []
        self._held: list[Rows] = []
        self._evidence: Evidence = ""
        self._redraws = 0
        self._begin()

    def _begin(self) -> None:
        self._counter = StepCounter()
        self._offset = 0.0
        self._raw_first = np.nan
        self._last = np.nan  # effective step of the last training row
        self._epoch = np.nan
        self._rows = 0
        self._aux_apart = False
        self._aux_begun = False
        self._second: _Writer | None = None
        self._alone = 0
        self._repeats = 0
        self._tail: Rows | None = None
        self._is_wide = False  # some row holds more than one number
        self._keys: set[SignalKey] = set()  # while none does: what was logged
        self._apart: set[SignalKey] = set()  # and what is listed behind the rest, from an earlier step on
        self._ordinal = 0

    def rebase(self) -> None:
        """From here on better rows tell the step (the first with a training metric): forgets where it stood."""
        self._rows = self._repeats = 0
        if not self.stepless:
            self._counter = StepCounter()

    @property
    def undecided(self) -> bool:
        """Whether rows are held back until later ones tell what they are."""
        return bool(self._held or self._prelude)

    def restart(self, evidence: Evidence) -> Iterator[Placed]:
        """The log said that the job (re)started, or the file is a new one; what was held is decided first."""
        if evidence in ("launch", "file"):
            yield from self.settle()
        if _STRENGTH[evidence] > _STRENGTH[self._evidence]:
            self._evidence = evidence

    def feed(self, rows: Rows) -> Iterator[Placed]:
        """Places `rows`; some may be held back."""
        start, look = 0, 4096
        while start < len(rows):
            ahead = rows.take(slice(start, start + look))
            plain = 0 if self._held or self._prelude else self._plain(ahead)
            if plain:
                yield from self._accept(ahead if plain == len(ahead) else ahead.take(slice(0, plain)))
                start += plain
                look = 1 << 20 if plain == len(ahead) else 64
            else:
                yield from self._single(rows.take(slice(start, start + 1)))
                start += 1

    def settle(self) -> Iterator[Placed]:
        """Decides what is held with what is known now: a step back is a restart, rows without a step are numbered."""
        if self._held:
            yield from self._restart_held()
        if self._prelude:
            yield from self._number_prelude()

    # Plain rows: the step does not go back.

    def _plain(self, rows: Rows) -> int:
        """How many leading rows go on in the plain way."""
        if self._evidence or self._second is not None:
            return 0
        has = ~np.isnan(rows.steps)
        if self.stepless:
            return int(np.argmax(has)) if has.any() else len(rows)
        moves = has & rows.primary
        effective = rows.steps + self._offset
        top = np.maximum.accumulate(np.concatenate(([self._counter.top], np.where(moves, effective, -np.inf))))
        odd = moves & (effective < top[:-1])
        if not self._aux_apart:
            odd |= has & ~rows.primary & (effective < top[:-1])
        odd |= ~has & np.isneginf(top[1:])
        return int(np.argmax(odd)) if odd.any() else len(rows)

    def _accept(self, rows: Rows, *, new_attempt: bool = False) -> Iterator[Placed]:
        """Takes in rows that go on in the plain way: fills their steps, drops records that repeat."""
        if self.stepless:
            effective = self._ordinal + np.cumsum(rows.primary, dtype=np.float64)
            self._ordinal = int(effective[-1])
        else:
            effective = self._effective(rows)
        self._learn_width(rows)
        moving = rows.primary & ~np.isnan(rows.steps)
        if moving.any() and not self._counter.begun:
            self._raw_first = float(rows.steps[moving][0])
        shown = Rows(effective, rows.times, rows.lines, rows.columns, rows.marks, rows.time_kind, rows.primary)
        kept = self._drop_repeats(shown)
        primary = effective[moving] if not self.stepless else effective[rows.primary]
        self._aux_begun |= bool((~rows.primary & ~np.isnan(rows.steps)).any())
        self._counter.advance(primary)
        if len(primary):
            self._last = float(primary[-1])
        self._rows += int(rows.primary.sum())
        self._any_step |= bool(moving.any())
        self._learn_epoch(rows)
        if len(kept) or new_attempt:
            yield Placed(kept, new_attempt)

    def _effective(self, rows: Rows) -> FloatArray:
        has = ~np.isnan(rows.steps)
        moves = has & rows.primary
        effective = rows.steps + self._offset
        top = np.maximum.accumulate(np.where(moves, effective, -np.inf))
        carried = np.maximum(top, self._last if not np.isnan(self._last) else -np.inf)
        use_carried = ~has
        if self._aux_apart:
            use_carried |= ~rows.primary
        return np.where(use_carried, carried, effective)

    def _drop_repeats(self, rows: Rows) -> Rows:
        # A copy: a slice would keep all the rows that it is of.
        before, self._tail = self._tail, rows.take(np.array([len(rows) - 1]))
        drop = np.zeros(len(rows), np.bool_)
        if (rows.steps[1:] == rows.steps[:-1]).any():
            same, again = rows.repeats()
            self._repeats += int((again & ~same).sum())
            drop[1:] = same
        if before is not None and before.steps[0] == rows.steps[0]:
            (same,), (again,) = stack([before, rows.take(slice(0, 1))]).repeats()
            self._repeats += int(again and not same)
            drop[0] = same
        if self._repeats >= _REDRAWS_TO_TELL and self._repeats * 4 > self._rows:
            self.problems.setdefault("writers", "several writers report the same steps; each record is kept")
        return rows.take(~drop) if drop.any() else rows

    def _learn_width(self, rows: Rows) -> None:
        if self._is_wide:
            return
        logged = {key: rows.logged(key) for key in rows.columns if _is_number(key)}
        counts = np.sum(list(logged.values()), axis=0) if logged else np.zeros(len(rows))
        self._is_wide = bool((counts > 1).any())
        self._keys |= {key for key, where in logged.items() if where.any()}

    def _is_other_quantity(self, row: Rows) -> bool:
        """Whether `row` goes on, or begins, with a quantity that is listed behind others, all by themselves."""
        if self._is_wide or self._evidence:
            return False
        keys = [key for key in row.columns if _is_number(key) and row.logged(key).any()]
        if len(keys) != 1 or (keys[0] in self._keys and keys[0] not in self._apart):
            return False
        if keys[0].signal.startswith("eval.") and not self._apart:
            return False  # held-out data may have a counter of their own
        self._keys.add(keys[0])
        self._apart.add(keys[0])
        return True

    def _learn_epoch(self, rows: Rows) -> None:
        column = rows.columns.get(EPOCH)
        if column is not None:
            known = column[rows.primary & ~np.isnan(column)]
            if len(known):
                self._epoch = float(known[-1])

    # One row at a time: something is odd.

    def _single(self, row: Rows) -> Iterator[Placed]:
        step = float(row.steps[0])
        if np.isnan(step):
            yield from self._without_step(row)
            return
        if self._prelude:
            yield from self._release_prelude(row)
        if self.stepless:
            self._leave_stepless()
        if self._held:
            yield from self._with_held(row)
        elif row.primary[0]:
            yield from self._training_row(row)
        else:
            yield from self._other_row(row)

    def _training_row(self, row: Rows) -> Iterator[Placed]:
        step = float(row.steps[0]) + self._offset
        if self._evidence:
            yield from self._after_evidence(row, step)
        elif step >= self._counter.top and self._second is None:
            yield from self._accept(row)
        elif self._second is not None:
            yield from self._two_writers(row, step)
        elif self._is_other_quantity(row):
            yield self._late(row, step, moves=False)
        elif self._is_new_epoch(row):
            self._add_up(float(row.steps[0]))
            yield from self._accept(row)
        elif self._is_late(step):
            yield self._late(row, step)
        elif self._is_redraw(step):
            yield self._other_writer(row, step)
        else:
            self._held.append(row)

    def _after_evidence(self, row: Rows, step: float) -> Iterator[Placed]:
        evidence, self._evidence = self._evidence, ""
        if evidence == "launch" and self._fits_a_writer(step):
            yield from self._single(row)  # several processes write here: another one was launched
            return
        back = step <= self._counter.top
        # A launch line while the steps go on by one: another process of the same log was launched.
        goes_on = evidence == "launch" and step <= self._counter.top + 1.5 * self._counter.interval
        under_way = evidence == "file" or self._rows >= _ROWS_UNDER_WAY
        if self._rows and (back or (under_way and not goes_on)):
            yield from self._new_attempt([row])
        else:
            yield from self._single(row)

    def _fits_a_writer(self, step: float) -> bool:
        """Whether several processes write and `step` is where one of them is."""
        reach = _REDRAW_INTERVALS * self._counter.interval
        if self._second is not None and 0 < step - self._second.last <= reach:
            return True
        shown = self._second is not None or self._redraws >= _REDRAWS_SHOWN
        return shown and abs(step - self._counter.top) <= reach

    def _other_row(self, row: Rows) -> Iterator[Placed]:
        """A row without a training metric: its step may be another counter's."""
        step = float(row.steps[0]) + self._offset
        if self._evidence and self._rows and step <= self._counter.top:
            self._evidence = ""
            yield from self._new_attempt([row])
            return
        if not self._counter.begun or self._aux_apart or step >= self._counter.top:
            yield from self._accept(row)
            return
        if self._is_other_quantity(row):
            yield self._late(row, step, moves=False)
            return
        far = step < self._counter.top - _NEAR_INTERVALS * self._counter.interval
        if step < self._counter.first or (far and not self._aux_begun):
            self._aux_apart = True
            yield from self._accept(row)
        elif far:
            self._held.append(row)
        else:
            yield self._late(row, step, moves=False)

    def _is_new_epoch(self, row: Rows) -> bool:
        epoch, _ = row.cell(EPOCH, 0)
        at_start = float(row.steps[0]) <= self._raw_first + 2 * self._counter.interval
        return at_start and not np.isnan(epoch) and not np.isnan(self._epoch) and epoch > self._epoch

    def _add_up(self, raw: float) -> None:
        width = self._counter.interval
        effective = self._counter.top + (raw if raw > width else width)
        self._offset = effective - raw

    def _is_late(self, step: float) -> bool:
        near = step > self._counter.top - _NEAR_INTERVALS * self._counter.interval
        return near and step > self._counter.first and not self._counter.has_seen(step)

    def _is_redraw(self, step: float) -> bool:
        shown_before = self._repeats >= _REDRAWS_SHOWN or self._redraws >= _REDRAWS_SHOWN
        reach = _NEAR_INTERVALS if self._redraws >= _REDRAWS_TO_TELL else _REDRAW_INTERVALS
        near = step >= self._counter.top - reach * self._counter.interval
        return shown_before and near and self._counter.has_seen(step)

    def _late(self, row: Rows, step: float, *, moves: bool = True) -> Placed:
        if moves:
            self._counter.note_late(step)
            self._rows += 1
        return Placed(_at(row, step))

    def _other_writer(self, row: Rows, step: float) -> Placed:
        self._redraws += self._second is None
        if self._redraws == _REDRAWS_TO_TELL and "writers" not in self.problems:
            self.problems["writers"] = "several writers report the same steps; the first record of a step is judged"
        return Placed(_at(row, step), writer=2)

    # Held rows: the next training row tells.

    def _with_held(self, row: Rows) -> Iterator[Placed]:
        first = next((held for held in self._held if held.primary[0]), None)
        if not row.primary[0]:
            self._held.append(row)
            if len(self._held) >= _MOST_HELD:
                yield from self._restart_held()
            return
        if first is None:  # rows of another counter went back; this row tells whether the run did
            held, self._held = self._held, []
            if float(row.steps[0]) + self._offset >= self._counter.top:
                for other in held:
                    yield self._late(other, float(other.steps[0]) + self._offset, moves=False)
                yield from self._single(row)
            else:
                self._held = [*held, row]
            return
        step = float(first.steps[0]) + self._offset
        next_step = float(row.steps[0]) + self._offset
        if self._goes_on(step, next_step):
            yield from self._let_go(step)
            yield from self._single(row)
        else:
            yield from self._restart_held()
            yield from self._single(row)

    def _goes_on(self, step: float, next_step: float) -> bool:
        """Whether `next_step` continues the sequence that `step` seemed to break."""
        near = step >= self._counter.top - _NEAR_INTERVALS * self._counter.interval
        reach = self._counter.top + (3.0 if near else 1.5) * self._counter.interval
        return self._counter.top < next_step <= reach

    def _let_go(self, step: float) -> Iterator[Placed]:
        """The held rows were no restart: a redraw nearby, or a second writer far behind."""
        held, self._held = self._held, []
        near = step >= self._counter.top - _NEAR_INTERVALS * self._counter.interval
        if not near:
            self._second = _Writer(step, self._counter.interval)
            self._alone = 0
            self.problems["writers"] = (
                f"two writers: steps {self._counter.top:g} and {step:g} are written in turn; "
                "the second is charted apart and not judged"
            )
        for row in held:
            yield self._other_writer(row, float(np.nan_to_num(row.steps[0], nan=step - self._offset)) + self._offset)

    def _restart_held(self) -> Iterator[Placed]:
        held, self._held = self._held, []
        yield from self._new_attempt(held)

    def _new_attempt(self, rows: list[Rows]) -> Iterator[Placed]:
        """Begins an attempt with `rows`; rows without a step wait for the first that has one."""
        self._begin()
        self._evidence = ""
        begun = False
        for row in rows:
            for placed in self._single(row):
                yield placed if begun else Placed(placed.rows, new_attempt=True, writer=placed.writer)
                begun = True
        if not begun:
            yield Placed(rows[0].take(slice(0, 0)), new_attempt=True)

    def _two_writers(self, row: Rows, step: float) -> Iterator[Placed]:
        second = self._second
        if second is None:
            return
        to_first = step - (self._counter.top + self._counter.interval)
        to_second = step - (second.last + second.interval)
        if step >= self._counter.top and abs(to_first) <= abs(to_second):
            self._alone = min(self._alone, 0) - 1
            if self._alone <= -_ALONE_ROWS:
                self._second = None
            yield from self._accept(row)
            return
        self._alone = max(self._alone, 0) + 1
        if self._alone >= _ALONE_ROWS:
            yield from self._new_attempt([row])
            return
        second.last = step
        yield self._other_writer(row, step)

    # Rows without a step.

    def _without_step(self, row: Rows) -> Iterator[Placed]:
        if self._held:
            self._held.append(row)
            if len(self._held) >= _MOST_HELD:
                yield from self._restart_held()
            return
        if self._evidence and self._rows:
            yield from self._stepless_after_evidence(row)
            return
        if not np.isnan(self._last) or self.stepless:
            yield from self._accept(row)
            return
        self._prelude.append(row)
        if len(self._prelude) >= (_MOST_HELD if self._any_step else _STEPLESS_ROWS):
            yield from self._number_prelude()

    def _stepless_after_evidence(self, row: Rows) -> Iterator[Placed]:
        evidence = self._evidence
        self._evidence = ""
        if evidence == "resumed" and not self.stepless:
            yield from self._accept(row)  # a validation line right after a resume: the step comes with the next row
            self._evidence = evidence
            return
        if evidence == "resumed" and self._rows < _ROWS_UNDER_WAY:
            yield from self._accept(row)
            return
        yield from self._new_attempt([row])

    def _number_prelude(self) -> Iterator[Placed]:
        rows, self._prelude = stack(self._prelude), []
        if self._any_step:
            self._last = 0.0
        else:
            self.stepless = True
        yield from self._accept(rows)

    def _release_prelude(self, row: Rows) -> Iterator[Placed]:
        """The first step is known: the rows before it stand there too."""
        rows, self._prelude = stack(self._prelude), []
        self._any_step = True
        self._last = float(row.steps[0]) + self._offset
        yield from self._accept(rows)

    def _leave_stepless(self) -> None:
        """A step at last: the numbers that stood in are another counter."""
        self.stepless = False
        self._counter = StepCounter()
        self._last = np.nan


def _is_number(key: SignalKey) -> bool:
    """Whether `key` is measured, not a clock or a count of progress."""
    return not key.signal.startswith("progress.") and stamp_order(key.signal) is None


@dataclass(slots=True)
class _Writer:
    last: float
    interval: float


def _at(row: Rows, step: float) -> Rows:
    return Rows(np.array([step]), row.times, row.lines, row.columns, row.marks, row.time_kind, row.primary)
