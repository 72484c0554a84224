"""The sources of one run on their way into its core: one straight through, several merged by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from trainmon.monitor.core import Core, FrameListener
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.held_out_place import HeldOutMapper, held_out_set, set_label
from trainmon.monitor.merge import Merge, Merged
from trainmon.monitor.rows import MOST_CELLS, Rows, stack
from trainmon.monitor.run import Event, KeyMapper, Rebased, SourceReader
from trainmon.monitor.source_ranks import ranks_of
from trainmon.monitor.steps.tracker import Placed
from trainmon.tails.record import Fact, Note, Parsed, TimeKind
from trainmon.tails.starts import starts_of

_LOSS = SignalKey("loss.train")
# A frame costs as much as some thousand rows of it: of a log that is read fast, rows are gathered until so many wait.
_ENOUGH_ROWS = 8192
_ENOUGH_CELLS = 1 << 18


class _Source:
    """One source's place in the run. `base`: the run's attempt at which its first attempt began."""

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader
        self.batch = _Batch()
        self.base = 0
        self.attempt = -1
        self.begun = False
        self.last_time = np.nan

    def learn_time(self, rows: Rows) -> None:
        """Keeps the latest time stamp."""
        if rows.time_kind in (TimeKind.ABSOLUTE, TimeKind.NAIVE) and len(rows):
            self.last_time = float(np.fmax(self.last_time, np.fmax.reduce(rows.times)))


class _Batch:
    """Rows of one source and attempt on their way, the second writer's apart."""

    def __init__(self) -> None:
        self.attempt = -1
        self.time_kind = TimeKind.NONE
        self._rows: dict[int, list[Rows]] = {}
        self._keys: set[SignalKey] = set()
        self._count = 0

    def has_room(self, rows: Rows) -> bool:
        """Whether `rows` may still be put behind the others: few common keys make many empty cells."""
        if not self._count:
            return True
        return (self._count + len(rows)) * len(self._keys | rows.columns.keys()) <= MOST_CELLS

    @property
    def is_empty(self) -> bool:
        """Whether no rows wait."""
        return not self._count

    @property
    def is_enough(self) -> bool:
        """Whether more rows would not make the frame cheaper."""
        return self._count >= _ENOUGH_ROWS or self._count * len(self._keys) >= _ENOUGH_CELLS

    def add(self, placed: Placed) -> None:
        """Puts rows behind the others."""
        if len(placed.rows):
            self._rows.setdefault(placed.writer, []).append(placed.rows)
            self._keys |= placed.rows.columns.keys()
            self._count += len(placed.rows)

    def take(self) -> tuple[Rows | None, Rows | None]:
        """The rows gathered since the last call: the run's own, and another writer's."""
        rows, self._rows = self._rows, {}
        self._keys, self._count = set(), 0
        own, other = (rows.get(writer) for writer in (1, 2))
        return (stack(own) if own else None), (stack(other) if other else None)


class Sources:
    """Feeds what sources gave to the core, in the order of the log, or of the steps when there are several."""

    def __init__(self, core: Core, paths: Sequence[str], attempts: Mapping[str, int] | None = None) -> None:
        self._core = core
        self._expected = tuple(paths)
        self._told: dict[str, int] = dict(attempts or {})
        self._sources: dict[str, _Source] = {}
        self._merge: Merge | None = None

    @property
    def undecided(self) -> bool:
        """Whether rows wait for later ones to tell what they are."""
        return any(source.reader.tracker.undecided for source in self._sources.values())

    @property
    def has_stand_ins(self) -> bool:
        """Whether values wait that may stand in for those of a file that has ended."""
        return self._merge is not None and self._merge.has_stand_ins

    @property
    def step_key(self) -> str:
        """The log's own name of the step; "line" where records are numbered."""
        readers = [source.reader for source in self._in_order() if source.begun]
        best = min(readers, key=lambda reader: (reader.tier, reader.tracker.stepless), default=None)
        if best is None:
            return ""
        return "line" if best.tracker.stepless else best.step_key

    @property
    def left(self) -> frozenset[str]:
        """The sources that starts before the newest one wrote, where their directories tell."""
        starts = starts_of(dict.fromkeys([*self._expected, *self._sources]))
        newest = max(starts.values(), default=0)
        return frozenset(path for path, start in starts.items() if start < newest)

    @property
    def last_lines(self) -> dict[str, int]:
        """Source -> line of its last training record."""
        lines = {path: source.reader.last_line for path, source in self._sources.items()}
        return {path: line for path, line in lines.items() if line is not None}

    @property
    def began_anew(self) -> bool:
        """Whether steps of a source began anew and nothing says why."""
        return any(source.reader.tracker.began_anew for source in self._sources.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """What is odd about the sources."""
        several = len(self._sources) > 1
        told = tuple(
            f"{source.reader.source}: {problem}" if several else problem
            for source in self._in_order()
            for problem in source.reader.tracker.problems.values()
        )
        return told if self._merge is None else (*self._merge.contradictions, *told)

    def feed(
        self,
        path: str,
        parsed: Parsed,
        make_mapper: Callable[[], KeyMapper],
        listener: FrameListener | None,
        *,
        restarted: bool,
    ) -> None:
        """Takes in what one reading of `path` gave. Rows of a run's only source may wait for more (see `pass_rows`)."""
        source = self._sources.get(path)
        if source is None:
            self.pass_rows(listener)
            source = self._meet(path, make_mapper)
        for note in parsed.notes:
            self._core.notes.add(note)
        self._take(path, source, source.reader.feed(parsed, restarted=restarted), listener)
        if self._merge is not None or listener is not None or source.batch.is_enough:
            self._pass_batch(path, source.batch, listener)
        if self._merge is not None:
            self._pass_on(self._merge.release(), listener)

    def pass_rows(self, listener: FrameListener | None) -> None:
        """Passes on the rows that wait only for more."""
        for path, source in self._sources.items():
            self._pass_batch(path, source.batch, listener)

    def settle(self, listener: FrameListener | None, *, is_final: bool = False) -> None:
        """Passes on what waits only for its place; rows that are undecided stay. `is_final`: no more is expected."""
        for source in self._in_order():
            self._take(source.reader.source, source, source.reader.settle(), listener)
            self._pass_batch(source.reader.source, source.batch, listener)
        if self._merge is not None:
            self._pass_on(self._merge.release_all(is_final=is_final), listener)

    def decide(self, listener: FrameListener | None) -> None:
        """Decides the rows that wait for later ones, and passes everything on."""
        for source in self._in_order():
            self._take(source.reader.source, source, source.reader.decide(), listener)
            self._pass_batch(source.reader.source, source.batch, listener)
        if self._merge is not None:
            self._pass_on(self._merge.release_all(), listener)

    def _in_order(self) -> list[_Source]:
        """The sources as they were announced, then as they came."""
        paths = dict.fromkeys([*self._expected, *self._sources])
        return [self._sources[path] for path in paths if path in self._sources]

    def _meet(self, path: str, make_mapper: Callable[[], KeyMapper]) -> _Source:
        known = dict.fromkeys([*self._expected, *self._sources, path])
        rank = ranks_of(known).get(path)
        mapper = make_mapper()
        held_out = held_out_set(path, [other for other in known if other != path])
        if held_out:
            mapper = HeldOutMapper(mapper, set_label(path, tuple(known)))
        source = _Source(SourceReader(path, mapper, self._core.store.admit, rank, held_out))
        self._sources[path] = source
        if self._merge is None and len(known) > 1:
            self._merge = Merge()
            for other in known:
                self._merge.join(other, 0)
        elif self._merge is not None:
            self._merge.join(path, 0)
        if self._merge is not None and self._told.get(path):
            source.base = self._told[path]
            self._merge.join(path, source.base)
        return source

    def tell_attempt(self, path: str, attempt: int) -> None:
        """Says which start of the run wrote `path`, before anything of it is fed."""
        if path not in self._sources:
            self._told[path] = attempt

    def _take(self, path: str, source: _Source, events: Iterable[Event], listener: FrameListener | None) -> None:
        batch = source.batch
        for event in events:
            if isinstance(event, Rebased):
                self._pass_batch(path, batch, listener)
                if self._merge is None:
                    self._core.forget_steps()
                continue
            if not isinstance(event, Placed):
                self._pass_batch(path, batch, listener)
                self._say(path, source, event)
                continue
            self._learn_keys(source.reader)
            if not source.begun and len(event.rows):
                self._place(source, event.rows)
            source.learn_time(event.rows)
            if event.new_attempt or source.attempt < 0:
                self._pass_batch(path, batch, listener)
                source.attempt += 1
            elif event.rows.time_kind is not batch.time_kind or not batch.has_room(event.rows):
                self._pass_batch(path, batch, listener)
            batch.time_kind = event.rows.time_kind
            batch.attempt = source.base + source.attempt
            batch.add(event)

    def _pass_batch(self, path: str, batch: _Batch, listener: FrameListener | None) -> None:
        """Passes on rows of one attempt that came one after the other; one frame costs more than its rows."""
        if batch.is_empty:  # as at nearly every question that the engine is asked
            return
        own, other = batch.take()
        if other is not None:
            self._core.begin_attempt(batch.attempt)
            self._core.keep_apart(other, batch.attempt, path, 2, listener)
        if own is None:
            return
        if self._merge is not None:
            stepless = self._sources[path].reader.tracker.stepless
            self._merge.add(path, batch.attempt, own, is_numbered=stepless)
        else:
            self._core.number_lines(self.step_key == "line")
            self._core.judge(own, batch.attempt, path, listener)

    def _say(self, path: str, source: _Source, item: Note | Fact) -> None:
        if self._merge is not None:
            self._merge.add(path, source.base + max(source.attempt, 0), item)
        elif isinstance(item, Note):
            self._core.note(item)
        else:
            self._core.fact(item)

    def _pass_on(self, merged: Iterable[Merged], listener: FrameListener | None) -> None:
        for piece in merged:
            if isinstance(piece.item, Note):
                self._core.note(piece.item)
            elif isinstance(piece.item, Fact):
                self._core.fact(piece.item)
            else:
                self._core.number_lines(self.step_key == "line")
                self._core.judge(piece.item, piece.attempt, piece.path, listener)

    def _learn_keys(self, reader: SourceReader) -> None:
        if len(reader.raw_keys) == reader.keys_told:
            return
        reader.keys_told = len(reader.raw_keys)
        for key, raw in reader.raw_keys.items():
            self._core.raw_keys.setdefault(key, raw)

    def _place(self, source: _Source, rows: Rows) -> None:
        """A source's first rows: they begin a later attempt when they come after all that the others trained."""
        source.begun = True
        if self._merge is None or _LOSS not in source.reader.raw_keys:
            return
        if source.base:
            earlier = [
                other.base + other.attempt
                for other in self._sources.values()
                if other is not source and other.begun and other.base < source.base
            ]
            source.base = max([source.base, *(last + 1 for last in earlier)])
            self._merge.join(source.reader.source, source.base)
            return
        known = rows.times[~np.isnan(rows.times)]
        others = [
            other
            for other in self._sources.values()
            if other is not source and other.begun and _LOSS in other.reader.raw_keys
        ]
        if len(known) and others and all(other.last_time < known[0] for other in others):
            source.base = max(other.base + other.attempt for other in others) + 1
            self._merge.join(source.reader.source, source.base)
