"""What a structured record means: a row of numbers at a step, or facts and events of the run.

One `RecordReader` serves one source, whatever it is written in: the order of its records alone decides what becomes
of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainmon.tails.formats.at_the_end import is_summary, told_end
from trainmon.tails.formats.cells import KeyTable
from trainmon.tails.formats.config_facts import config_facts, fact_of_constant, looks_like_config
from trainmon.tails.formats.kinds import RecordKind, Role, kind_of
from trainmon.tails.formats.long_form import long_form
from trainmon.tails.formats.ranks import RankVoices
from trainmon.tails.formats.stamps import stamp_order, time_of
from trainmon.tails.formats.table import Row, Table
from trainmon.tails.record import Fact, Note, NoteKind, Parsed, TimeKind
from trainmon.tails.steps import StepChooser, StepTrack, is_loss_key, is_training_key, step_rank

Values = dict[str, float | None]
Texts = dict[str, str]

RANK = "rank"  # the key under which records name the process that wrote them
_MOST_RANKS = 1e6
_TEXT_LIMIT = 500
_MESSAGE_KEYS = ("error", "exception", "message", "msg", "reason", "text", "traceback", "path", "checkpoint")


class RecordReader:
    """Turns records into rows of `table`, facts and notes; `parsed` is where notes and facts go."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.keys = KeyTable()
        self.chooser = StepChooser()
        self.track = StepTrack()
        self.constants = ConstantFacts(source)
        self.table = Table(source)
        self.parsed = Parsed()
        self.took_row = False
        self._rows_seen = False
        self._rows_since_start = True
        self._step: float | None = None
        self._ended = False
        self._voices = RankVoices()

    @property
    def step(self) -> float | None:
        """The newest step seen."""
        return self._step

    def take(self) -> Parsed:
        """Everything read since the last call."""
        out, self.parsed = self.parsed, Parsed()
        out.blocks = self.table.take()
        out.records = sum(len(block) for block in out.blocks)
        end = next(filter(None, map(told_end, out.blocks)), None) if not self._ended else None
        if end is not None:
            self._ended = True
            out.notes.append(end)
        return out

    def read(
        self,
        record: dict[str, Any],
        offset: int,
        line_no: int,
        following: Callable[[], Sequence[Values]] | None = None,
        *,
        final: bool = True,
    ) -> bool:
        """Reads one record. False when what follows it must be seen first: then nothing was taken in.

        `took_row` tells afterwards whether it was a row, not facts.
        `following` gives the numbers of the records behind it, for the choice of the step.
        """
        values, texts = self.keys.row(record)
        if (named := long_form(values, texts)) is not None:
            values = named
        kind = self.kind(values, texts)
        self.took_row = kind.role is Role.ROW
        if kind.role is Role.FACTS:
            self._read_facts(kind, values, texts, offset, line_no)
            return True
        if not self.chooser.decided and self.chooser.offers(values):
            behind = following() if following is not None else ()
            if self.chooser.consider(values, behind, final=final) is None:
                return False
        own_texts = {key: text for key, text in texts.items() if key in record}
        self._read_row(kind, values, own_texts, offset, line_no)
        return True

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
        at = self._step if step is None else step
        self.parsed.notes.append(Note(self.source, line_no, offset, kind, text[:_TEXT_LIMIT], at))

    def echo(self, rank: float | None, step: float) -> str:
        """The label of a record whose `rank` repeats at `step` what the first rank to speak reports; else ""."""
        if rank is None or step != step or rank != rank or rank != rank // 1 or not 0 <= rank < _MOST_RANKS:
            return ""
        return f"{{rank={rank:.0f}}}" if self._voices.is_echo(f"{rank:.0f}", step) else ""

    def rows_were_read(self, step: float | None) -> None:
        """Told by whoever adds rows to the table in bulk; `step` is the last one they carried."""
        self._rows_seen = self._rows_since_start = True
        self._step = self._step if step is None else step

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
        number = self.track.own_step(number, is_training=any(map(is_training_key, columns)))
        time, time_kind = time_of(values, texts)
        self.table.add(Row(columns, number, time, offset, line_no), step_key, time_kind)
        self.rows_were_read(number if number == number else None)
        for key, value in values.items():
            if value is not None and fact_of_constant(key) is not None:
                self.constants.see(key, value, number, line_no, self.parsed.facts)

    def _read_facts(self, kind: RecordKind, values: Values, texts: Texts, offset: int, line_no: int) -> None:
        step = self._step_of(values)
        for key, value in config_facts(values, texts):
            if not (kind.note is not None and key in ("peak_lr", "global_step")):
                self.parsed.facts.append(Fact(self.source, line_no, key, value))
        text = next((texts[key] for key in _MESSAGE_KEYS if key in texts), "") or _type_text(texts)
        time, time_kind = time_of(values, texts)
        note = kind.note
        if kind.is_start and self._rows_since_start:
            note, self._rows_since_start = NoteKind.LAUNCH, False
        if note is not None:
            at = self._step if step is None else step
            self.parsed.notes.append(
                Note(
                    self.source, line_no, offset, note, text[:_TEXT_LIMIT], at,
                    None if time_kind is TimeKind.NONE else time, time_kind,
                )
            )  # fmt: skip

    def _step_of(self, values: Values) -> float | None:
        if self.chooser.decided:
            step = values.get(self.chooser.key)
        else:
            strong = [key for key in values if (step_rank(key) or math.inf) < 3]
            step = values[strong[0]] if strong else None
        return step if step is not None and math.isfinite(step) else None


def _type_text(texts: Texts) -> str:
    return next((f"{key}: {text}" for key, text in texts.items() if key in ("event", "type", "kind")), "")


class ConstantFacts:
    """Facts that metric records repeat: told once the same value stood in two records one after the other.

    A total of steps must lie beyond the step, or it is only a counter.
    """

    def __init__(self, source: str) -> None:
        self.source = source
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
        facts.append(Fact(self.source, line_no, fact, value))
