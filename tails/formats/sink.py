"""Where the dialects put what they read: one account of steps, ranks, duplicates, times and facts for a file."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from trainmon.tails.formats.alike import Alike
from trainmon.tails.formats.bar import Bar, BarKind
from trainmon.tails.formats.builder import BlockBuilder
from trainmon.tails.formats.epoch_heading import EpochHeading
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.ranks import RankVoices
from trainmon.tails.formats.raw_values import RowValues
from trainmon.tails.formats.said_again import is_fresh, is_same
from trainmon.tails.formats.stretch import Known, Stretch
from trainmon.tails.formats.template import Reading, Template
from trainmon.tails.formats.templates import Templates
from trainmon.tails.formats.wide import LONG, WideShapes
from trainmon.tails.prefix import Prefix
from trainmon.tails.record import Fact, FloatArray, Mark, Note, NoteKind, Parsed, TimeKind
from trainmon.tails.steps import EpochSteps, is_training_key, says_eval

_HELD_SECONDARIES = 20
# What is told of while a program runs on.
_ALONG = frozenset(
    (NoteKind.CHECKPOINT_SAVED, NoteKind.LOSS_SCALE_OVERFLOW, NoteKind.SKIPPED_STEP, NoteKind.UNREADABLE)
)
_MAX_NOTE = 500
_MANY_SHAPES = 24  # as many as are kept
_MOST_MET = 8192
_NUMBERS = re.compile(r"\d[\d.]*")
_HALF_DAY_S = 43200.0
_ASIDE = frozenset(("num_examples",))  # an evaluation says its own too: the first is the run's, and none is shown
_TABLES = frozenset(("table", "boxed table", "headed block"))  # dialects of rows whose gaps are filled with NaN


class Sink:
    """Takes readings in file order. `step` is the newest step seen, None before the first."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.step: float | None = None
        self.step_key = ""
        self.epoch_base: float | None = None
        self.dialects: Counter[str] = Counter()
        self.has_records = False
        self.unreadable = 0
        self.newest_template: Template | None = None  # the shape of the newest line, if it has one
        self.bar_kind = BarKind.NONE  # what the newest line was as a bar
        self.is_telling = False  # whether the newest line, no record itself, tells of one that follows
        self.announced: tuple[float, float | None, int] | None = None  # step, total and line of a heading
        self.turned = -1  # the line of the newest event by which a program ends or starts
        self.held_out = -1  # the last line that the newest heading says to be of held-out data
        self.bar: Bar | None = None  # the newest frame of a training bar
        self.main_bar: Bar | None = None  # the bar that training dictionaries stand beside
        self.rest: Line | None = None  # what a bar was followed by on its line, to be read next
        self.record_line = -1  # number of the line of the newest record
        self.newest_keys: Mapping[str, float | None] = {}  # what that record holds
        self.templates = Templates()
        self.wide = WideShapes()
        self._builder = BlockBuilder(source)
        self._notes: list[Note] = []
        self._facts: list[Fact] = []
        self.known: dict[str, float | str] = {}  # the facts so far
        self._voices = RankVoices()
        self._speakers: dict[str, str] = {}  # key of a record without a step -> rank
        self._last: tuple[float, Mapping[str, float | None]] | None = None
        self._has_primary = False
        self._held: list[tuple[Reading, Line]] = []
        self._has_released = False
        self._newest_total: float | None = None
        self._clock = (math.nan, 0.0)
        self._in_epoch = EpochSteps()
        self.heading = EpochHeading()
        self._shapes = 0
        self._met: set[str] = set()
        self._reads_bars: bool | None = None  # whose clock the records have: the bars', or the lines' prefixes

    def behind_bar(self, line: Line) -> None:
        """Takes what was printed behind a bar on the same line; the reader goes on with it."""
        self.rest = line

    def learn(self, template: Template) -> None:
        """Keeps the shape of a line, so that the next of its kind costs one match."""
        self.templates.add(template)
        self.newest_template = template

    def may_learn(self, text: str) -> bool:
        """Whether an expression may be made of a line like `text`. In a log of ever new shapes that would be most of
        the work, so after `_MANY_SHAPES` only a line that comes again is worth one."""
        self._shapes += 1
        if self._shapes <= _MANY_SHAPES:
            return True
        skeleton = _NUMBERS.sub("0", text)
        if skeleton in self._met:
            return True
        if len(self._met) >= _MOST_MET:
            self._met.clear()
        self._met.add(skeleton)
        return False

    def read_known(self, line: Line) -> bool:
        """Reads a line whose shape was learned before."""
        if len(line.text) > LONG and (reading := self.wide.read(line.text)) is not None:
            self.emit(reading, line)
            return True
        found = self.templates.read(line.text)
        if found is None:
            return False
        self.newest_template, reading = found
        self.emit(reading, line)
        return True

    def emit(self, reading: Reading, line: Line) -> None:
        """Takes one record."""
        if reading.rank and not line.prefix.rank:
            line = replace(line, prefix=replace(line.prefix, rank=reading.rank))
        if reading.secondary:
            self._secondary(reading, line)
            return
        if reading.step is not None and not self._has_primary and any(map(is_training_key, reading.values)):
            self._has_primary = True
            self._take_primary()
        self._add(reading, line)

    def emit_many(self, lines: Sequence[Known], read: Stretch) -> None:
        """Takes the records of `lines`, as `emit` takes them one by one."""
        rows: list[tuple[float, float, int, int, Mapping[str, float | None]]] = []
        shape = (self.step_key, TimeKind.NONE, Mark.SAID_NAN)
        before = self._last
        counts: dict[str, int] = {}
        newest: Known | None = None
        for line, step, total, epoch, epochs, time, prefix, values in zip(
            *(lines, read.steps, read.totals, read.epochs, read.all_epochs, read.times, read.prefixes, read.values),
            strict=True,
        ):
            known, _, offset, line_no, _ = line
            if newest is None or known is not newest[0]:  # what follows from how a line is read is looked up once
                newest = line
                dialect, own_key = known.template.dialect, known.template.shape.step_key
                nan = _nan_of(dialect)
                counts.setdefault(dialect, 0)
                if not self._has_primary and known.bulk is not None and known.bulk.trains:
                    self._has_primary = True
                    self._take_primary()
            if epoch == epoch:
                step = self._step_in(epoch, total, step)
            last, before = before, (step, values)
            if last is not None and last[0] == step and is_same(last[1], values):
                continue
            if prefix.rank and self._voices.is_echo(prefix.rank, step):
                values = values.of_rank(prefix.rank)
            else:
                self.step = step
                if own_key:
                    self.step_key = own_key
            if total == total:
                self._total(total, epoch, epochs, own_key, line_no)
            kind = prefix.time_kind
            if time == time:
                time, kind = self._dated(time, kind, prefix)
            if (self.step_key, kind, nan) != shape:
                self._builder.add_rows(rows, *shape)
                rows, shape = [], (self.step_key, kind, nan)
            rows.append((step, time, offset, line_no, values))
            counts[dialect] += 1
        self._last = before
        if newest is not None:
            self.record_line, self.newest_keys = lines[-1][3], read.values[-1]
        self.dialects.update(counts)
        if rows:
            self._builder.add_rows(rows, *shape)
            self.has_records = True

    def emit_alike(self, alike: Alike, lines: list[bytes], offset: int, line_no: int) -> bool:
        """Takes records of one shape, as `emit_many` does; False, with nothing taken, where one must be read by itself
        or may be another rank's echo. The piece they stand in begins at `offset`, the first is number `line_no`."""
        known, template = alike.known, alike.known.template
        begun = known.bulk.prefixes(lines)
        distinct = dict(zip(map(id, begun[0]), begun[0], strict=True)).values() if begun is not None else ()
        kinds = {(prefix.time_kind, prefix.is_clock) for prefix in distinct}
        if begun is None or len(kinds) != 1 or any(prefix.rank for prefix in distinct):
            return False
        if not self._has_primary and known.bulk.trains:
            self._has_primary = True
            self._take_primary()
        heads = alike.heads()
        steps = heads.steps if heads.epochs is None else np.array([self._step_in(*place) for place in heads.places()])
        rows = alike.rows(steps, np.array(begun[1]), offset, line_no)
        newest = RowValues(template.keys, rows.values, len(rows.steps) - 1)
        fresh = is_fresh(rows, self._last)
        self._last, self.newest_keys, self.record_line = (float(steps[-1]), newest), newest, int(rows.lines[-1])
        if not fresh.all():
            rows, heads = rows.where(fresh), heads.where(fresh)
        if len(rows.steps):
            self.step, self.step_key = float(rows.steps[-1]), template.shape.step_key or self.step_key
            for at, total in heads.new_totals():
                self._total(*total, template.shape.step_key, int(rows.lines[at]))
            [(kind, is_clock)] = kinds
            times, kind = self._all_dated(rows.times, kind, is_clock=is_clock)
            self._builder.add_rows([replace(rows, times=times)], self.step_key, kind, _nan_of(template.dialect))
            self.has_records = True
        self.dialects[template.dialect] += len(rows.steps)
        return True

    def _all_dated(self, times: FloatArray, kind: TimeKind, *, is_clock: bool) -> tuple[FloatArray, TimeKind]:
        """As `_dated` for many lines whose prefixes are of one kind."""
        if not len(times) or times[0] != times[0]:
            return times, kind
        if self._reads_bars is None:
            self._reads_bars = False
        if self._reads_bars:
            return np.full(len(times), math.nan), TimeKind.NONE
        return (np.array([self._of_day(time) for time in times.tolist()]) if is_clock else times), kind

    def _dated(self, time: float, kind: TimeKind, prefix: Prefix) -> tuple[float, TimeKind]:
        """As `_time` for a prefix that tells `time`; NaN where the records have the bars' clock."""
        if self._reads_bars is None:
            self._reads_bars = False
        if self._reads_bars:
            return math.nan, TimeKind.NONE
        return (self._of_day(time), kind) if prefix.is_clock else (time, kind)

    def _of_day(self, time: float) -> float:
        """A clock without a date: it starts again each midnight."""
        before, days = self._clock
        if time + _HALF_DAY_S < before:
            days += 86400.0
        self._clock = (time, days)
        return time + days

    def _secondary(self, reading: Reading, line: Line) -> None:
        """A second account of the steps counts only while the file has no first one; what it says of held-out data
        always does, at the newest step."""
        if self._has_primary:
            values = {key: value for key, value in reading.values.items() if says_eval(key)}
            if values and reading.step_key == "epoch":
                self._add(Reading(values, self.step, dialect=reading.dialect), line)
            return
        self._held.append((reading, line))
        if len(self._held) >= _HELD_SECONDARIES:
            self.release()

    def is_muted(self, template: Template) -> bool:
        """Whether lines of `template` give nothing any more: a second account of what others tell."""
        return template.shape.secondary and self._has_primary and not any(map(says_eval, template.keys))

    def _take_primary(self) -> None:
        """A first account of the steps makes the second one needless, unless that has been given in part."""
        if self._has_released:
            self.release()
        self._held.clear()

    def release(self) -> None:
        """Gives the secondary readings that are held."""
        self._has_released = self._has_released or bool(self._held)
        held, self._held = self._held, []
        for reading, line in held:
            self._add(reading, line)

    def _add(self, reading: Reading, line: Line) -> None:
        values = reading.values
        step = self._step_of(reading)
        if not values and (step is None or not self.has_records):  # of a step whose values are "N/A" there is the step
            return
        if step is not None:
            if self._is_duplicate(step, values):
                return
            before = self.step
            if line.prefix.rank and self._voices.is_echo(line.prefix.rank, step):
                values = {f"{key}{{rank={line.prefix.rank}}}": value for key, value in values.items()}
            else:
                self.step, self.step_key = step, reading.step_key or self.step_key
            if reading.total is not None:
                epoch, epochs = (math.nan if one is None else one for one in (reading.epoch, reading.epochs))
                self._total(reading.total, epoch, epochs, reading.step_key, line.line_no)
            values = self.heading.on_top(values, step, before) if self.heading.is_open else values
        elif line.prefix.rank and self._is_echo(line.prefix.rank, values):
            values = {f"{key}{{rank={line.prefix.rank}}}": value for key, value in values.items()}
        self.dialects[reading.dialect] += 1
        self.has_records = True
        self.record_line, self.newest_keys = line.line_no, values
        time, kind = self._time(reading, line)
        self._builder.add(
            values,
            step=step,
            offset=line.offset,
            line_no=line.line_no,
            step_key=self.step_key,
            time=time,
            time_kind=kind,
            nan=_nan_of(reading.dialect),
        )

    def _is_echo(self, rank: str, values: Mapping[str, float | None]) -> bool:
        """Whether a record without a step is another rank's: the first rank that measured such a thing speaks."""
        return self._speakers.setdefault(next(iter(values)), rank) != rank

    def _step_of(self, reading: Reading) -> float | None:
        step = reading.step
        if step is None or not math.isfinite(step):
            return None
        if reading.epoch is None:
            return step
        return self._step_in(reading.epoch, math.nan if reading.total is None else reading.total, step)

    def _step_in(self, epoch: float, total: float, step: float) -> float:
        """The step at the place `step` of `epoch`; `total` is NaN where it is not told how many an epoch has."""
        if total != total:
            return self._in_epoch.step(epoch, step)
        if self.epoch_base is None:
            self.epoch_base = 0.0 if epoch < 1 else 1.0
        return max(0.0, epoch - self.epoch_base) * total + step

    def _is_duplicate(self, step: float, values: Mapping[str, float | None]) -> bool:
        """Whether the record is word for word the one before it (a log printed by two loggers)."""
        last, self._last = self._last, (step, values)
        return last is not None and last[0] == step and is_same(last[1], values)

    def _total(self, total: float, epoch: float, epochs: float, step_key: str, line_no: int) -> None:
        """Takes the number behind the slash of a step. `epoch`, `epochs`: NaN where the line does not tell them."""
        if epoch == epoch:
            whole = total * (epochs or 1.0) if epochs == epochs else None
        else:
            whole = total if step_key == "epoch" else self.heading.whole(total)
        if whole is None or whole == self._newest_total:
            return
        self._newest_total = whole
        if whole > 0:
            self.fact("total_steps", whole, line_no)

    def _time(self, reading: Reading, line: Line) -> tuple[float | None, TimeKind]:
        """When a record was written, by one clock a file: a bar's seconds and the calendar's are years apart."""
        prefix = line.prefix
        if reading.time is not None or prefix.time is not None:
            is_bar = reading.time is not None
            self._reads_bars = is_bar if self._reads_bars is None else self._reads_bars
            if is_bar is not self._reads_bars:
                return None, TimeKind.NONE
        if reading.time is not None:
            return reading.time, TimeKind.NAIVE
        if prefix.time is None or not prefix.is_clock:
            return prefix.time, prefix.time_kind
        return self._of_day(prefix.time), prefix.time_kind

    def fact(self, key: str, value: float | str, line_no: int) -> None:
        """Takes one fact; it is passed on when it is new or changed."""
        known = self.known.get(key)
        if value != value or known == value:
            return
        if key == "world_size" and isinstance(known, float) and isinstance(value, float) and value < known:
            return  # some part's own small world, such as a data loader's
        if key in _ASIDE:
            self.known.setdefault(key, value)
            return
        self.known[key] = value
        self._facts.append(Fact(self.source, line_no, key, value))

    def note(self, note: Note) -> None:
        """Takes one event."""
        self._notes.append(note)
        if note.kind not in _ALONG:
            self.turned = note.line_no

    def cannot_read(self, line: Line) -> None:
        """Counts a line that cannot be read, and notes where it is."""
        self.unreadable += 1
        self.note(Note(self.source, line.line_no, line.offset, NoteKind.UNREADABLE, line.text[:_MAX_NOTE], self.step))

    def take(self) -> Parsed:
        """All that came since the last call."""
        parsed = Parsed(blocks=self._builder.take(), notes=self._notes, facts=self._facts)
        parsed.records = sum(len(block) for block in parsed.blocks)
        parsed.unreadable, self.unreadable = self.unreadable, 0
        self._notes, self._facts = [], []
        return parsed


def _nan_of(dialect: str) -> Mark:
    """What a NaN of this dialect is."""
    return Mark.NAN if dialect in _TABLES else Mark.SAID_NAN
