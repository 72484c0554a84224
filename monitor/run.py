"""One source of a run: its log's keys mapped to signals, its rows given attempt and step, its notes in their place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Final, Protocol

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.mapping import Mapped, map_key
from trainmon.monitor.rows import MOST_CELLS, BoolArray, Rows, join_blocks
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.step_unit import STEP_COUNTS, unit_of
from trainmon.monitor.steps.tracker import Placed, StepTracker
from trainmon.monitor.twin_keys import Twin
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Block, Fact, FloatArray, Mark, Note, NoteKind, Parsed, TimeKind
from trainmon.tails.steps import says_eval

_OF_RANK: Final = {
    "loss.train": "loss.rank",
    "grad.norm": "grad.rank_norm",
    "sys.step_time": "sys.rank_step_time",
    "sys.peak_memory": "sys.rank_memory",
}
_RANKED: Final = ("sys.memory_share", "sys.reserved_memory")  # each rank's own under its label
_PARTS: Final = ("loss.sum", "loss.tokens")  # of the whole's or of a group's, which are added over ranks
# What only a training step logs; rows that hold one move the step counter. Else the best there is does.
_TRAINING = ("loss.", "grad.", "optim.", "reward.", "policy.", "count.")
_NO_METRIC = ("progress.", "device", "host")
_NEVER_ZERO: Final = ("eval.nll", "eval.perplexity")
_BESIDE: Final = 3
_NEVER: Final = 4
_NOT_KEPT: Final = 5


@dataclass(frozen=True, slots=True)
class Rebased:
    """From here on better rows tell the step: what came before were no training steps."""


Event = Placed | Note | Fact | Rebased


class KeyMapper(Protocol):
    """What `monitor.mapping.Mapper` offers."""

    def claim(self, keys: Sequence[str]) -> dict[str, Mapped]:
        """Maps raw keys that were first seen together on one row."""
        ...


class UnscaledMapper:
    """Maps as `Mapper` does but leaves the numbers as they were written (``export --raw-keys``)."""

    def __init__(self, mapper: KeyMapper) -> None:
        self._mapper = mapper

    def claim(self, keys: Sequence[str]) -> dict[str, Mapped]:
        """As `Mapper.claim`, without units."""
        claimed = self._mapper.claim(keys)
        return {raw: replace(mapped, scale=1.0, by_size=()) for raw, mapped in claimed.items()}


def training_tier(key: SignalKey) -> int:
    """How well `key` tells a step: 0 a training metric, 1 another known signal, 2 unknown, 3 evaluation, 4 not at all.

    >>> [training_tier(SignalKey(name)) for name in ("loss.train", "sys.step_time", "my_key", "eval.nll", "host")]
    [0, 1, 2, 3, 4]
    """
    if key.signal.startswith(_NO_METRIC):
        return _NEVER
    if key.signal.startswith("eval."):
        return _BESIDE
    if key.signal not in BY_ID:
        return 2
    return 0 if key.signal.startswith(_TRAINING) else 1


@dataclass(slots=True)
class _Column:
    key: SignalKey
    tier: int
    mapped: Mapped
    scale: float | None = None


@dataclass(slots=True)
class SourceReader:
    """Turns what one source gave into placed rows, notes and facts, in the order of the log.

    `admit` says whether a new series may still be kept. `held_out`: the word by which its place says so, "" where it
    is the training's. `last_line`: line of the last training record.
    """

    source: str
    mapper: KeyMapper
    admit: Callable[[SignalKey], bool]
    rank: str | None = None
    held_out: str = ""
    last_line: int | None = None
    step_key: str = ""
    raw_keys: dict[SignalKey, str] = field(default_factory=dict)
    tracker: StepTracker = field(default_factory=StepTracker)
    _columns: dict[str, _Column] = field(default_factory=dict)
    _tier: int = _NEVER
    _pending: deque[tuple[int, int, int, Note | Fact]] = field(default_factory=deque)
    _order: int = 0
    keys_told: int = 0
    _has_told_unit: bool = False
    _told: dict[str, float | str] = field(default_factory=dict)
    _twins: dict[str, tuple[SignalKey, Twin]] = field(default_factory=dict)  # raw keys that may tell a signal again

    def feed(self, parsed: Parsed, *, restarted: bool = False) -> Iterator[Event]:
        """What `parsed` holds. Notes and facts wait until a row behind them (or `settle`) shows their place."""
        if restarted:
            yield from self.settle()
            yield from self.tracker.restart("file")
        self._queue(parsed.notes, parsed.facts)
        for block in _joined(parsed.blocks):
            yield from self._block(block)

    @property
    def tier(self) -> int:
        """How well its rows tell a training step (`training_tier`)."""
        return self._tier

    def settle(self) -> Iterator[Event]:
        """Gives the notes and facts that wait. Rows that are undecided stay so (see `decide`)."""
        while self._pending:
            yield from self._say(self._pending.popleft()[3])

    def decide(self) -> Iterator[Event]:
        """Gives the rows that only later rows could place for certain, as they look now."""
        yield from self.tracker.settle()

    def _queue(self, notes: Iterable[Note], facts: Iterable[Fact]) -> None:
        fresh: list[tuple[int, int, int, Note | Fact]] = []
        for note in notes:
            self._order += 1
            fresh.append((note.line_no, 1, self._order, note))
        for fact in facts:
            if self._told.get(fact.key) != fact.value:
                self._told[fact.key] = fact.value
                self._order += 1
                fresh.append((fact.line_no, 0, self._order, fact))
        if fresh:
            # A fact holds from its own line on, a note comes after the record of its line.
            self._pending = deque(sorted([*self._pending, *fresh], key=lambda item: item[:3]))

    def _say(self, item: Note | Fact) -> Iterator[Event]:
        if isinstance(item, Note) and item.kind is NoteKind.LAUNCH:
            yield from self.tracker.restart("launch")
        elif isinstance(item, Note) and item.kind is NoteKind.RESUMED:
            yield from self.tracker.restart("resumed")
        yield item

    def _block(self, block: Block) -> Iterator[Event]:
        self.step_key = block.step_key or self.step_key
        self.tracker.by_metric = block.by_metric
        lines = np.maximum.accumulate(block.lines)
        begin = 0
        while begin < len(block):
            while self._pending and self._is_before(self._pending[0], int(lines[begin])):
                yield from self._say(self._pending.popleft()[3])
            end = len(block)
            if self._pending:
                line_no, is_note, _, _ = self._pending[0]
                end = int(np.searchsorted(lines, line_no, "right" if is_note else "left"))
            yield from self._rows(block, begin, max(end, begin + 1))
            begin = max(end, begin + 1)

    @staticmethod
    def _is_before(item: tuple[int, int, int, Note | Fact], line_no: int) -> bool:
        return item[0] < line_no if item[1] else item[0] <= line_no

    def _rows(self, block: Block, begin: int, end: int) -> Iterator[Event]:
        for first, stop, tier in self._claim(block, begin, end):
            if tier < self._tier:
                if self._tier < _NEVER:
                    self.tracker.rebase()
                    yield Rebased()
                self._tier = tier
            if tier == 0 and not self._has_told_unit:
                self._has_told_unit = True
                if (unit := unit_of(self.step_key)) != "steps":
                    yield Fact(self.source, int(block.lines[first]), STEP_COUNTS, unit, block.run)
            rows = self._map(block, slice(first, stop))
            told = np.flatnonzero(rows.primary)
            if len(told):
                self.last_line = int(rows.lines[told[-1]])
            yield from self.tracker.feed(rows)

    def _claim(self, block: Block, begin: int, end: int) -> list[tuple[int, int, int]]:
        """Maps the keys that are new in the rows. Cuts the rows where a better kind of row begins to tell the step.

        Gives (first row, end, tier).
        """
        first_rows: dict[int, list[str]] = {}
        for raw in block.columns:
            if raw not in self._columns:
                logged = np.flatnonzero(_logged(block, raw, slice(begin, end)))
                if len(logged):
                    first_rows.setdefault(begin + int(logged[0]), []).append(raw)
        cuts: list[tuple[int, int, int]] = []
        start, tier = begin, self._tier
        for row in sorted(first_rows):
            best = tier
            for raw, mapped in self.mapper.claim(first_rows[row]).items():
                best = min(best, self._add_column(raw, mapped))
            if best < tier:
                if row > start:
                    cuts.append((start, row, tier))
                start, tier = row, best
        return [*cuts, (start, end, tier)]

    def _add_column(self, raw: str, mapped: Mapped) -> int:
        key = mapped.key
        if self.rank is not None and not key.labels and key.signal in _OF_RANK:
            key = SignalKey(_OF_RANK[key.signal], (("rank", self.rank),))
        elif self.rank is not None and not key.labels and key.signal in _RANKED:
            key = SignalKey(key.signal, (("rank", self.rank),))
        elif self.rank is not None and key.signal in _PARTS and "rank" not in key.label_dict:
            key = SignalKey(key.signal, tuple(sorted((*key.labels, ("rank", self.rank)))))
        tier = training_tier(key)
        if self.rank is None and any(name == "rank" for name, _ in key.labels):
            tier = max(tier, _BESIDE)  # another rank's echo of a step, perhaps a little late
        if self.admit(key):
            is_plain = not self.held_out or says_eval(raw)
            self.raw_keys.setdefault(key, raw if is_plain else f"{self.held_out}/{raw}")
        else:
            tier = _NOT_KEPT
        self._columns[raw] = _Column(key, tier, mapped)
        alone = map_key(raw).key
        if tier != _NOT_KEPT and alone != mapped.key and not alone.labels and training_tier(alone) == 0:
            self._twins[raw] = (alone, Twin())
        return tier

    def _map(self, block: Block, where: slice) -> Rows:
        rows = Rows(block.steps[where], block.times[where], block.lines[where], {}, {}, block.time_kind)
        primary = np.zeros(len(rows), np.bool_)
        for raw, values in block.columns.items():
            column = self._columns.get(raw)
            if column is None or column.tier == _NOT_KEPT:
                continue
            part = values[where]
            logged = _logged(block, raw, where)
            if not logged.any():
                continue
            rows.columns[column.key] = self._scaled(column, part)
            marks = block.marks.get(raw)
            if marks is not None and (marks[where] > Mark.NUMBER).any():
                rows.marks[column.key] = marks[where]
            if column.tier == self._tier and column.tier < _NEVER:
                primary |= logged
        for raw, (key, twin) in self._twins.items():
            owner = self.raw_keys.get(key)
            if owner is not None and not twin.is_other and not block.columns.keys().isdisjoint((raw, owner)):
                primary |= self._by_twin(rows, block, raw, owner, where)
        rows.primary = primary
        _drop_placeholders(rows)
        return rows

    def _by_twin(self, rows: Rows, block: Block, raw: str, owner: str, where: slice) -> BoolArray:
        """Puts what `raw` tells where `owner`, whose signal it may be too, has fallen silent; the rows of that."""
        key, twin = self._twins[raw]
        nothing = np.zeros(len(rows), np.bool_)
        unknown = np.full(len(rows), np.nan)
        has = [_logged(block, one, where) if one in block.columns else nothing for one in (owner, raw)]
        second = self._scaled(self._columns[raw], block.columns[raw][where]) if raw in block.columns else unknown
        own = rows.columns.get(key, unknown)
        taken = twin.take(rows.steps, own, second, *has)
        if taken.any():
            rows.columns[key] = np.where(taken, second, own)
            marks = block.marks.get(raw)
            if marks is not None or key in rows.marks:
                before = rows.marks.get(key, np.where(np.isnan(own), Mark.ABSENT, Mark.NUMBER).astype(np.uint8))
                told = marks[where] if marks is not None else np.full(len(rows), Mark.NUMBER, np.uint8)
                rows.marks[key] = np.where(taken, told, before).astype(np.uint8)
        return taken

    @staticmethod
    def _scaled(column: _Column, values: FloatArray) -> FloatArray:
        if column.scale is None:
            finite = values[np.isfinite(values)]
            if not len(finite):
                return values
            column.scale = column.mapped.scale_for(float(finite[0]))
        scaled = values if column.scale == 1.0 else values * column.scale
        return np.where(scaled < 0, np.nan, scaled) if column.key.signal in _NEVER_NEGATIVE else scaled


_NEVER_NEGATIVE = frozenset(("sys.mfu",))  # nanoGPT and llm.c print -100% while they cannot tell it


def _drop_placeholders(rows: Rows) -> None:
    """A held-out loss of exactly 0 beside a training step's numbers stands for none: something had to be written."""
    for key in [key for key in rows.columns if key.signal in _NEVER_ZERO]:
        zero = rows.primary & (rows.columns[key] == 0.0)
        if zero.any():
            rows.columns[key] = np.where(zero, np.nan, rows.columns[key])
            if key in rows.marks:
                rows.marks[key] = np.where(zero, Mark.ABSENT, rows.marks[key]).astype(np.uint8)


def _logged(block: Block, raw: str, where: slice) -> BoolArray:
    marks = block.marks.get(raw)
    if marks is not None:
        return np.asarray(marks[where] != Mark.ABSENT)
    return ~np.isnan(block.columns[raw][where])


def _shape(block: Block) -> tuple[str, TimeKind, bool]:
    return (block.step_key, block.time_kind, block.by_metric)


def _joined(blocks: Sequence[Block]) -> Iterator[Block]:
    group: list[Block] = []
    keys: set[str] = set()
    rows = 0
    for block in blocks:
        if not len(block):
            continue
        is_other = group and _shape(block) != _shape(group[0])
        if is_other or (group and (rows + len(block)) * len(keys | block.columns.keys()) > MOST_CELLS):
            yield join_blocks(group)
            group, keys, rows = [], set(), 0
        group.append(block)
        keys |= block.columns.keys()
        rows += len(block)
    if group:
        yield join_blocks(group)
