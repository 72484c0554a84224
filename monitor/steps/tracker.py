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

While only the next row can tell, a row is held (`undecided`); `settle` decides with what is known. Where the attempt
stands is kept by `Attempt`, what is known of other writers by `Writers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np

from trainmon.monitor.rows import Rows, stack
from trainmon.monitor.steps.attempt import Attempt
from trainmon.monitor.steps.doubt import Doubt, Why
from trainmon.monitor.steps.writers import Turn, Writers
from trainmon.tails.quick_dataclass import dataclass

# This many rows without a step and none with one: the log has no step, its rows are numbered.
_STEPLESS_ROWS: Final = 16
_MOST_HELD: Final = 64
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

    `stepless` tells whether line numbers stand in for the step; `problems` what was found odd. `began_anew`: the steps
    went back to where they began and nothing says why: another run looks the same as a restart from scratch.
    `by_metric`: of the rows that come next, as `Block.by_metric`.
    """

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self.began_anew = False
        self.by_metric = False
        self._attempt = Attempt()
        self._writers = Writers()
        self._prelude: list[Rows] = []
        self._held: list[Rows] = []
        self._doubt: Doubt | None = None  # of what is held, once a row behind the step back was heard
        self._evidence: Evidence = ""

    @property
    def stepless(self) -> bool:
        """Whether the rows have no step and are numbered."""
        return self._attempt.stepless

    def rebase(self) -> None:
        """From here on better rows tell the step (the first with a training metric): forgets where it stood."""
        self._attempt.rebase()

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
            is_plain = not (self._held or self._prelude or self._evidence or self._writers.in_turn)
            plain = self._attempt.plain(ahead) if is_plain else 0
            if plain:
                yield from self._accept(ahead if plain == len(ahead) else ahead.take(slice(0, plain)))
                start += plain
                look = 1 << 20 if plain == len(ahead) else 64
            else:
                yield from self._single(rows.take(slice(start, start + 1)))
                start += 1

    def settle(self) -> Iterator[Placed]:
        """Decides what is held with what is known now: a step back is a restart, rows without a step are numbered."""
        while self._held:  # rows behind a restart may themselves go back
            yield from self._restart_held()
        if self._prelude:
            yield from self._number_prelude()

    def _accept(self, rows: Rows) -> Iterator[Placed]:
        """Gives rows that go on in the plain way."""
        kept = self._attempt.take(rows)
        if self._attempt.is_shared:
            self.problems.setdefault("writers", "several writers report the same steps; each record is kept")
        if len(kept):
            yield Placed(kept)

    # One row at a time: something is odd.

    def _single(self, row: Rows) -> Iterator[Placed]:
        if np.isnan(row.steps[0]):
            yield from self._without_step(row)
            return
        if self._prelude:
            yield from self._release_prelude(row)
        if self._attempt.stepless:
            self._attempt.leave_stepless()
        if self._held:
            yield from self._with_held(row)
        elif row.primary[0]:
            yield from self._training_row(row)
        else:
            yield from self._other_row(row)

    def _training_row(self, row: Rows) -> Iterator[Placed]:
        attempt = self._attempt
        step = attempt.effective(row)
        if self._evidence:
            yield from self._after_evidence(row, step)
        elif self._writers.in_turn:
            yield from self._two_writers(row, step)
        elif step >= attempt.counter.top:
            yield from self._accept(row)
        elif attempt.is_other_quantity(row):
            yield Placed(_at(row, step))
        elif attempt.is_new_epoch(row):
            attempt.add_up(row)
            yield from self._accept(row)
        elif attempt.is_late(step):
            attempt.take_late(step)
            yield Placed(_at(row, step))
        elif self._writers.is_redraw(step, attempt.counter, attempt.repeats):
            yield self._other_writer(row, step)
        else:
            self._held.append(row)

    def _after_evidence(self, row: Rows, step: float) -> Iterator[Placed]:
        evidence, self._evidence = self._evidence, ""
        counter = self._attempt.counter
        if evidence == "resumed" and not self._attempt.rows:
            self._attempt.origin = 0.0
        if evidence == "launch" and self._writers.fits(step, counter):
            yield from self._single(row)  # several processes write here: another one was launched
            return
        back = step <= counter.top
        # A launch line while the steps go on by one: another process of the same log was launched.
        goes_on = evidence == "launch" and step <= counter.top + 1.5 * counter.interval
        under_way = evidence == "file" or self._attempt.rows >= _ROWS_UNDER_WAY
        if self._attempt.rows and (back or (under_way and not goes_on)):
            yield from self._new_attempt([row], is_told=True, is_resumed=evidence == "resumed")
        else:
            yield from self._single(row)

    def _other_row(self, row: Rows) -> Iterator[Placed]:
        """A row without a training metric: its step may be another counter's."""
        attempt = self._attempt
        step, top = attempt.effective(row), attempt.counter.top
        if self._evidence and attempt.rows and step <= top:
            is_resumed, self._evidence = self._evidence == "resumed", ""
            yield from self._new_attempt([row], is_told=True, is_resumed=is_resumed)
        elif not attempt.counter.begun or attempt.aux_apart or step >= top:
            yield from self._accept(row)
        elif not self._evidence and attempt.is_other_quantity(row, by_metric=self.by_metric):
            yield Placed(_at(row, step))
        elif step < attempt.counter.first or (not attempt.is_near(step) and not attempt.aux_begun):
            attempt.aux_apart = True
            yield from self._accept(row)
        elif attempt.is_near(step):
            yield Placed(_at(row, step))
        else:
            self._held.append(row)

    # Held rows: the next training row tells.

    def _with_held(self, row: Rows) -> Iterator[Placed]:
        first = next((held for held in self._held if held.primary[0]), None)
        if not row.primary[0]:
            yield from self._hold(row)
        elif first is None:  # rows of another counter went back; this row tells whether the run did
            held, self._held = self._held, []
            if self._attempt.effective(row) >= self._attempt.counter.top:
                for other in held:
                    yield Placed(_at(other, self._attempt.effective(other)))
                yield from self._single(row)
            else:
                self._held = [*held, row]
        else:
            yield from self._behind_step_back(row)

    def _behind_step_back(self, row: Rows) -> Iterator[Placed]:
        doubt = self._doubt or self._doubt_of(next(held for held in self._held if held.primary[0]))
        self._doubt = doubt
        if self._repeats_held(row):
            yield from self._hold(row)
            return
        step = self._attempt.effective(row)
        if step < doubt.last and self._attempt.is_early and self._is_unheard(step):
            yield from self._hold(row)  # the first rows may be out of order: 3, 2, 1, 4
            return
        why = doubt.hear(step)
        if why is Why.WRITERS:
            self._attempt.counter.expect(step)
            yield from self._let_go(doubt.last)
            yield from self._single(row)
        elif why is Why.RESTART:
            yield from self._restart_held()
            yield from self._single(row)
        else:
            yield from self._hold(row)

    def _doubt_of(self, row: Rows) -> Doubt:
        counter, step = self._attempt.counter, self._attempt.effective(row)
        interval = counter.interval if counter.widths else counter.top - step if self._attempt.is_near(step) else np.nan
        is_near = self._attempt.is_near(step)
        return Doubt(step, top=counter.top, interval=interval, is_near=is_near, is_sure=counter.widths > 1)

    def _is_unheard(self, step: float) -> bool:
        return self._attempt.may_be_late(step) and all(self._attempt.effective(row) != step for row in self._held)

    def _repeats_held(self, row: Rows) -> bool:
        """Whether `row` is the same record as the last of those that are held."""
        last = self._held[-1]
        return bool(last.steps[0] == row.steps[0] and stack([last, row]).repeats()[0][0])

    def _hold(self, row: Rows) -> Iterator[Placed]:
        self._held.append(row)
        if len(self._held) >= _MOST_HELD:
            yield from self._restart_held()

    def _let_go(self, step: float) -> Iterator[Placed]:
        """The held rows were no restart: a redraw nearby, or a second writer far behind."""
        held, self._held, self._doubt = self._held, [], None
        attempt = self._attempt
        if not attempt.is_near(step):
            self._writers.begin_second(step, attempt.counter)
            self.problems["writers"] = (
                f"two writers: steps {attempt.counter.top:g} and {step:g} are written in turn; "
                "the second is charted apart and not judged"
            )
        for row in held:
            own = attempt.effective(row)
            if own >= attempt.counter.top:
                yield from self._accept(row)
            elif row.primary[0] and attempt.may_be_late(own):
                attempt.take_late(own)
                yield Placed(_at(row, own))
            else:
                yield self._other_writer(row, step if np.isnan(own) else own)

    def _restart_held(self) -> Iterator[Placed]:
        held, self._held, self._doubt = self._held, [], None
        yield from self._new_attempt(held)

    def _new_attempt(self, rows: list[Rows], *, is_told: bool = False, is_resumed: bool = False) -> Iterator[Placed]:
        """Begins an attempt with `rows`; rows without a step wait for the first that has one. `is_told`: the log, or a
        new file, says that one begins; `is_resumed`: from a checkpoint."""
        step = next((float(row.steps[0]) for row in rows if not np.isnan(row.steps[0])), np.nan)
        begins_anew = self._attempt.begins_anew(step)
        if begins_anew and not is_told:
            self._tell_begun_anew(step)
        # From a checkpoint: that other attempts begin there too is a crash loop.
        origin = self._attempt.begun if not begins_anew else 0.0 if is_resumed else np.nan
        self._attempt = self._attempt.follow()
        self._attempt.origin = origin
        self._writers.begin_attempt()
        self._evidence = ""
        begun = False
        for row in rows:
            for placed in self._single(row):
                yield placed if begun else Placed(placed.rows, new_attempt=True, writer=placed.writer)
                begun = True
        if not begun:
            yield Placed(rows[0].take(slice(0, 0)), new_attempt=True)

    def _tell_begun_anew(self, step: float) -> None:
        if self._attempt.rows < _ROWS_UNDER_WAY:
            return
        self.began_anew = True
        self.problems.setdefault(
            "anew",
            f"the steps begin anew ({step:.15g} after {self._attempt.counter.top:.15g}) and nothing says why: a restart"
            " from scratch and another run in the same file look alike; log a run name, or give each run a file of its"
            " own",
        )

    # Other writers.

    def _other_writer(self, row: Rows, step: float) -> Placed:
        if self._writers.count_redraw(step, self._attempt.rows) and "writers" not in self.problems:
            self.problems["writers"] = "several writers report the same steps; the first record of a step is judged"
        return Placed(_at(row, step), writer=2)

    def _two_writers(self, row: Rows, step: float) -> Iterator[Placed]:
        turn = self._writers.turn(step, self._attempt.counter)
        if turn is Turn.FIRST:
            yield from self._accept(row)
        elif turn is Turn.SECOND:
            yield self._other_writer(row, step)
        else:
            yield from self._new_attempt([row])

    # Rows without a step.

    def _without_step(self, row: Rows) -> Iterator[Placed]:
        if self._held:
            yield from self._hold(row)
        elif self._evidence and self._attempt.rows:
            yield from self._stepless_after_evidence(row)
        elif not np.isnan(self._attempt.last) or self._attempt.stepless:
            yield from self._accept(row)
        else:
            self._prelude.append(row)
            if len(self._prelude) >= (_MOST_HELD if self._attempt.any_step else _STEPLESS_ROWS):
                yield from self._number_prelude()

    def _stepless_after_evidence(self, row: Rows) -> Iterator[Placed]:
        evidence, self._evidence = self._evidence, ""
        if evidence == "resumed" and not self._attempt.stepless:
            yield from self._accept(row)  # a validation line right after a resume: the step comes with the next row
            self._evidence = evidence
        elif evidence == "resumed" and self._attempt.rows < _ROWS_UNDER_WAY:
            yield from self._accept(row)
        else:
            yield from self._new_attempt([row], is_told=True)

    def _number_prelude(self) -> Iterator[Placed]:
        rows, self._prelude = stack(self._prelude), []
        if self._attempt.any_step:
            self._attempt.last = 0.0
        else:
            self._attempt.stepless = True
        yield from self._accept(rows)

    def _release_prelude(self, row: Rows) -> Iterator[Placed]:
        """The first step is known: the rows before it stand there too."""
        rows, self._prelude = stack(self._prelude), []
        self._attempt.any_step = True
        self._attempt.last = self._attempt.effective(row)
        yield from self._accept(rows)


def _at(row: Rows, step: float) -> Rows:
    return Rows(np.array([step]), row.times, row.lines, row.columns, row.marks, row.time_kind, row.primary)
