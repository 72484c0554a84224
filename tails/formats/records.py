"""What a structured record means: a row of numbers at a step, or facts and events of the run.

One `RecordReader` serves one source, whatever it is written in: the order of its records alone decides what becomes
of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainmon.tails.formats.at_the_end import is_summary, told_end
from trainmon.tails.formats.by_metric import Stretches
from trainmon.tails.formats.cells import KeyTable
from trainmon.tails.formats.config_facts import config_facts, fact_of_constant, fact_value, looks_like_config
from trainmon.tails.formats.event_words import judged, message_in
from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS, RecordKind, Role, kind_of
from trainmon.tails.formats.long_form import long_form
from trainmon.tails.formats.ranks import RankVoices
from trainmon.tails.formats.run_keys import names_run
from trainmon.tails.formats.run_split import LOOK_AHEAD, MOST_RUNS, Placement, RunSplit, Words
from trainmon.tails.formats.stamps import stamp_order, time_of
from trainmon.tails.formats.table import Row, Table
from trainmon.tails.record import RUN_IN_FILE, Fact, FloatArray, IntArray, Note, NoteKind, Parsed, TimeKind
from trainmon.tails.steps import StepChooser, StepTrack, is_loss_key, is_training_key, step_rank

Values = dict[str, float | None]
Texts = dict[str, str]
Cells = tuple[Values, Texts]  # of one record
Following = Callable[[int], Sequence[Cells]]

RANK = "rank"  # the key under which records name the process that wrote them
_MOST_RANKS = 1e6
_TEXT_LIMIT = 500


class RunState:
    """Where the records of one run of the file stand. `step`: the newest one."""

    def __init__(self, source: str, label: str) -> None:
        self.label = label
        self.track = StepTrack()
        self.constants = ConstantFacts(source, label)
        self.table = Table(source, label)
        self.voices = RankVoices()
        self.step: float | None = None
        self.ended = False


class RecordReader:
    """Turns records into rows, facts and notes, a table for each run; `parsed` is where notes and facts go.

    `chooser` and `keys` hold for the whole file, `run` is where the run stands whose records are read.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.keys = KeyTable()
        self.chooser = StepChooser()
        self.split = RunSplit()
        self.run = RunState(source, "")
        self.parsed = Parsed()
        self.took_row = False
        self.trusts_steps = False  # rows behind the training's step are of that step, on no counter of their own
        self._stretches = Stretches()
        self._runs = [self.run]
        self._rows_seen = False
        self._rows_since_start = True
        self._has_said_too_many = False

    @property
    def step(self) -> float | None:
        """The newest step seen."""
        return self.run.step

    def take(self) -> Parsed:
        """Everything read since the last call."""
        out, self.parsed = self.parsed, Parsed()
        for run in self._runs:
            blocks = run.table.take()
            out.blocks += blocks
            end = next(filter(None, map(told_end, blocks)), None) if not run.ended else None
            if end is not None:
                run.ended = True
                out.notes.append(end)
        out.records = sum(len(block) for block in out.blocks)
        out.facts.sort(key=lambda fact: fact.line_no)  # rows are read in bulk, run by run
        return out

    def place(
        self,
        words: Words,
        steps: Sequence[float] | FloatArray,
        offsets: Sequence[int] | IntArray,
        lines: Sequence[int] | IntArray,
        *,
        final: bool,
        most: int | None = None,
    ) -> Placement:
        """Which run each record belongs to (see `RunSplit.place`); what that tells of the runs is noted.

        `offsets` and `lines` are those of the first `most` records.
        """
        known = len(self._runs)
        before = self.run.label
        placed = self.split.place(words, steps, final=final, most=most)
        labels = self.split.labels
        for label, at in zip(labels[known:], placed.begun, strict=True):
            self._meet(label, int(lines[at]))
        for at, text in placed.launches:
            runs = placed.runs or ()  # without the record behind them, whose run is not known yet
            run = labels[max(runs[at], 0)] if at < len(runs) else before
            note = Note(self.source, int(lines[at]), int(offsets[at]), NoteKind.LAUNCH, text, None, run=run)
            self.parsed.notes.append(note)
        self._say_too_many()
        return placed

    def begin_run(self, label: str) -> bool:
        """The records that follow are those of another run, which the file itself tells apart; the first one is the
        file's own. False when there are too many: then they are to be left out."""
        run = self.split.begin(label)
        if len(self.split.labels) > len(self._runs):
            self._meet(label, 1)
        self._say_too_many()
        self.enter(run)
        return run >= 0

    def _say_too_many(self) -> None:
        if self.split.left_out and not self._has_said_too_many:
            self._has_said_too_many = True
            self.note_of_place(NoteKind.FILE, f"more than {MOST_RUNS} runs: the rows of the others are left out", 0, 0)

    def _meet(self, label: str, line_no: int) -> None:
        """Makes room for another run."""
        if len(self._runs) == 1:
            self.parsed.facts.append(Fact(self.source, line_no, RUN_IN_FILE, self.split.first_label))
        self._runs.append(RunState(self.source, label))
        self.parsed.facts.append(Fact(self.source, line_no, RUN_IN_FILE, label, label))

    def enter(self, run: int) -> None:
        """The records that follow are those of the run of this number."""
        self.run = self._runs[max(run, 0)]

    def read(
        self,
        record: dict[str, Any],
        offset: int,
        line_no: int,
        following: Following | None = None,
        *,
        final: bool = True,
    ) -> bool:
        """Reads one record. False when what follows it must be seen first: then nothing was taken in.

        `took_row` tells afterwards whether it was a row, not facts.
        `following` gives as many of the records behind it as are asked for, for the choice of the step and the run.
        """
        values, texts = cells = self.keys.row(record)
        if (named := long_form(values, texts)) is not None:
            values = named
        kind = self.kind(values, texts)
        self.took_row = kind.role is Role.ROW
        if kind.role is Role.FACTS:
            self._read_facts(kind, values, texts, offset, line_no)
            return True
        if not self.chooser.decided and self.chooser.offers(values):
            behind = following(self.chooser.LOOK_AHEAD) if following is not None else ()
            if self.chooser.consider(values, [numbers for numbers, _ in behind], final=final) is None:
                return False
        by_metric = named is not None and self._stands_by_metric(cells, offset, following, final=final)
        if by_metric is None:
            return False
        own_texts = {key: text for key, text in texts.items() if key in record}
        # Of a record in long form, other words tell what was measured.
        row = (values, own_texts)
        if named is not None:
            runs = {key: value for key, value in cells[0].items() if names_run(key)}
            row = (values | runs, {key: own_texts[key] for key in own_texts if names_run(key)})
        if not self._enter_run_of(row, offset, line_no, following, final=final):
            return False
        if self.split.newest >= 0:
            self.trusts_steps = by_metric
            self._read_row(kind, values, own_texts, offset, line_no)
            self.trusts_steps = False
        return True

    def _stands_by_metric(self, cells: Cells, offset: int, following: Following | None, *, final: bool) -> bool | None:
        """What `Stretches.take` says of a record in long form."""

        def behind() -> list[str]:
            return list(map(_metric_of, following(Stretches.LOOK_AHEAD))) if following is not None else []

        return self._stretches.take(_metric_of(cells), offset, behind, final=final or following is None)

    def _enter_run_of(self, row: Cells, offset: int, line_no: int, following: Following | None, *, final: bool) -> bool:
        """Goes on with the run that a record belongs to; False when what follows must be seen first."""
        words, steps = self._words_of([row])
        if not words:
            return True
        is_last = final and following is None
        placed = self.place(words, steps, (offset,), (line_no,), final=is_last)
        if not placed.taken:
            behind = following(LOOK_AHEAD) if following is not None else ()
            words, steps = self._words_of([row, *behind])
            placed = self.place(words, steps, (offset,), (line_no,), final=final, most=1)
        if placed.taken:
            self.enter(self.split.newest)
        return bool(placed.taken)

    def _words_of(self, rows: Sequence[Cells]) -> tuple[dict[str, list[str | None]], list[float]]:
        """What may tell the runs of these records apart, and their steps."""
        values, texts = rows[0]
        found: dict[str, list[str | None]] = {}
        for key in texts:
            if self.split.wants(key, is_number=False):
                found[key] = [own.get(key) for _, own in rows]
        for key, value in values.items():
            if value is not None and key != self.chooser.key and self.split.wants(key, is_number=True):
                found[key] = [None if (own := one.get(key)) is None else f"{own:.15g}" for one, _ in rows]
        key = self.chooser.key
        steps = [math.nan if (step := own.get(key)) is None else step for own, _ in rows]
        return found, steps

    def kind(self, values: Mapping[str, float | None], texts: Mapping[str, str]) -> RecordKind:
        """What kind of record it is: by its type, else by what it holds."""
        kind = kind_of(texts, any(map(is_loss_key, values)))
        if kind.role is Role.FACTS:
            return kind
        if is_summary(values):
            return RecordKind(Role.FACTS, note=NoteKind.FINISHED)
        if not self._rows_seen and looks_like_config(values, texts) and not self._could_be_row(values):
            return RecordKind(Role.FACTS, is_start=True)
        return kind

    def note(self, kind: NoteKind, text: str, offset: int, line_no: int, step: float | None = None) -> None:
        """Records an event; without `step` it happened at the last step seen."""
        at = self.step if step is None else step
        self.parsed.notes.append(Note(self.source, line_no, offset, kind, text[:_TEXT_LIMIT], at, run=self.run.label))

    def note_of_place(self, kind: NoteKind, text: str, offset: int, line_no: int) -> None:
        """Records an event of a line alone: no step, no run, where which rows stand before it is not settled yet."""
        self.parsed.notes.append(Note(self.source, line_no, offset, kind, text[:_TEXT_LIMIT], None))

    def echo(self, rank: float | None, step: float) -> str:
        """The label of a record whose `rank` repeats at `step` what the first rank to speak reports; else ""."""
        if rank is None or step != step or rank != rank or rank != rank // 1 or not 0 <= rank < _MOST_RANKS:
            return ""
        return f"{{rank={rank:.0f}}}" if self.run.voices.is_echo(f"{rank:.0f}", step) else ""

    def rows_were_read(self, step: float | None) -> None:
        """Told by whoever adds rows to the table in bulk; `step` is the last one they carried."""
        self._rows_seen = self._rows_since_start = True
        self.run.step = self.run.step if step is None else step

    def _could_be_row(self, values: Mapping[str, float | None]) -> bool:
        return any(
            step_rank(key) is not None or ("loss" in key and is_training_key(key))
            for key, value in values.items()
            if "/" not in key and value is not None
        )

    def _read_row(self, kind: RecordKind, values: Values, texts: Texts, offset: int, line_no: int) -> None:
        step_key = self.chooser.key
        step = values.get(step_key) if step_key else None
        if RANK in values and (label := self.echo(values[RANK], math.nan if step is None else step)):
            kind = kind.labelled(label)
            values = {key: value for key, value in values.items() if key != RANK}
        columns = {
            kind.key(key) if stamp_order(key) is None else key: value
            for key, value in values.items()
            if key != step_key
        }
        if not columns:
            return
        number = math.nan if step is None or not math.isfinite(step) else step
        own = self.run.track.own_step(number, is_training=any(map(is_training_key, columns)))
        number = number if self.trusts_steps else own
        time, time_kind = time_of(values, texts)
        self.run.table.add(Row(columns, number, time, offset, line_no), step_key, time_kind, self.trusts_steps)
        self.rows_were_read(number if number == number else None)
        for key, value in values.items():
            if value is not None and fact_of_constant(key) is not None:
                self.run.constants.see(key, value, number, line_no, self.parsed.facts)

    def _read_facts(self, kind: RecordKind, values: Values, texts: Texts, offset: int, line_no: int) -> None:
        step = self._step_of(values)
        for key, value in config_facts(values, texts):
            if not (kind.note is not None and key in ("peak_lr", "global_step")):
                self.parsed.facts.append(Fact(self.source, line_no, key, value, self.run.label))
        text = message_in(texts) or _type_text(texts)
        time, time_kind = time_of(values, texts)
        note, is_noise = kind.note, False
        if note is NoteKind.ERROR:
            note, text, is_noise = judged(text)
        if kind.is_start and self._rows_since_start:
            note, self._rows_since_start = NoteKind.LAUNCH, False
        if note is not None:
            at = self.step if step is None else step
            self.parsed.notes.append(
                Note(
                    self.source, line_no, offset, note, text[:_TEXT_LIMIT], at,
                    None if time_kind is TimeKind.NONE else time, time_kind, is_noise, run=self.run.label,
                )
            )  # fmt: skip

    def _step_of(self, values: Values) -> float | None:
        if self.chooser.decided:
            step = values.get(self.chooser.key)
        else:
            strong = [key for key in values if (step_rank(key) or math.inf) < 3]
            step = values[strong[0]] if strong else None
        return step if step is not None and math.isfinite(step) else None


def _metric_of(cells: Cells) -> str:
    """What a record in long form measures, of which run; "" for another one."""
    values, texts = cells
    named = long_form(values, texts)
    if named is None:
        return ""
    whose = [str(value) for key, value in (*values.items(), *texts.items()) if names_run(key)]
    kinds = [texts[key] for key in (*TYPE_KEYS, *SPLIT_KEYS) if key in texts]
    return "\t".join((*whose, *kinds, next(reversed(named))))


def _type_text(texts: Texts) -> str:
    return next((f"{key}: {text}" for key, text in texts.items() if key in ("event", "type", "kind")), "")


class ConstantFacts:
    """Facts that metric records repeat: told once the same value stood in two records one after the other.

    A total of steps must lie beyond the step, or it is only a counter.
    """

    def __init__(self, source: str, run: str = "") -> None:
        self.source = source
        self.run = run
        self._last: dict[str, float] = {}
        self._told: dict[str, float] = {}

    def see(self, key: str, value: float, step: float, line_no: int, facts: list[Fact]) -> None:
        """Takes in what one record said."""
        fact = fact_of_constant(key)
        repeated = self._last.get(key) == value
        self._last[key] = value
        if fact is None or not repeated or self._told.get(key) == value or not math.isfinite(value) or value <= 0:
            return
        if fact == "total_steps" and step == step and value <= step:
            return
        self._told[key] = value
        facts.append(Fact(self.source, line_no, fact, fact_value(fact, key, value), self.run))
