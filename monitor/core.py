"""The state of one run and the only order in which it is worked on: derive, detect, gather, keep.

`Core` holds everything that a run's records change; `monitor.engine` feeds it and reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from trainmon.monitor.alerts import AlertBook
from trainmon.monitor.co_series import CoSeries
from trainmon.monitor.derive.derivation import Derivation
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.common import Rl
from trainmon.monitor.detectors.lineage import Lineage
from trainmon.monitor.finding import Finding
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.notes import NoteBook
from trainmon.monitor.room import Points
from trainmon.monitor.rows import Rows
from trainmon.monitor.score_series import ScoreSeries
from trainmon.monitor.series import SeriesStore
from trainmon.monitor.setting_changes import SettingChanges
from trainmon.monitor.tally import StepTally
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.give_way import KEYS
from trainmon.tails.record import Fact, FloatArray, Note

FrameListener = Callable[[Frame], None]
_FEWEST_EXPERTS: Final = 2.0
_TOTAL: Final = "total_steps"


class Attempt:
    """One stretch of the run: its training steps."""

    def __init__(self) -> None:
        self.first = np.nan
        self.last = np.nan
        self.tally = StepTally()

    def add(self, steps: FloatArray) -> None:
        """Takes in the steps of training rows."""
        if not len(steps):
            return
        self.first = float(np.fmin(self.first, steps.min()))
        self.last = float(np.fmax(self.last, steps.max()))
        self.tally.add(steps)

    @property
    def interval(self) -> float:
        """The mean distance between logged steps; 1 where there is none."""
        if self.tally.count < 2 or not self.last > self.first:
            return 1.0
        return (self.last - self.first) / (self.tally.count - 1)


class Core:
    """What one run's records make of it. Deep copies go their own way (see `RunEngine.settle`)."""

    def __init__(
        self,
        limits: Thresholds,
        detectors: Sequence[type[Detector]],
        facts: Mapping[str, float | str],
        store: SeriesStore,
    ) -> None:
        self.limits = limits
        self.given = dict(facts)
        self.told: dict[str, float | str] = dict(facts)
        self.facts: dict[str, float | str] = dict(facts)  # by which is judged: see `number_lines`
        self._is_numbered = False
        self.store = store
        self.book = AlertBook()
        self.notes = NoteBook()
        self.derivation = Derivation(limits, self.facts)
        self.scores = (
            ScoreSeries("loss.train", "loss", int(limits["window"]), limits["spike.z"], 1 + limits["spike.relative"]),
            ScoreSeries("grad.norm", "grad", int(limits["window"]), limits["grad.spike.z"], limits["grad.spike.ratio"]),
        )
        self.detectors = _make(detectors, limits, self.facts)
        self.co_spikes = CoSeries(self.detectors)
        self.lineage = Lineage()
        self.changes = SettingChanges()
        self.attempts: list[Attempt] = []
        self.problems: dict[str, str] = {}
        self.raw_keys: dict[SignalKey, str] = {}
        self.rl = False
        self.events = 0  # findings, notes, facts, attempts and failures so far: what can turn a verdict at once

    @property
    def moe(self) -> bool:
        """Whether the run carries or configures experts."""
        experts = self.facts.get("num_experts", 0)
        configured = isinstance(experts, (int, float)) and experts >= _FEWEST_EXPERTS
        return configured or any(key.signal.startswith("moe.") for key in self.raw_keys)

    def limit_memory(self, budget_bytes: int, points: Points) -> None:
        """From now on all series have so much room, and each so many points; scores are kept of what stays raw."""
        self.store.limit(budget_bytes, points)
        for score in self.scores:
            score.keep(points.raw(0))

    def fact(self, fact: Fact) -> None:
        """A fact that the log tells; what was given beforehand stands."""
        self.events += 1
        if fact.key not in self.given:
            self.changes.fact(fact, self.told.get(fact.key), len(self.attempts) - 1)
            self.told[fact.key] = fact.value
            if not (self._is_numbered and fact.key == _TOTAL):
                self.facts[fact.key] = fact.value

    def number_lines(self, is_numbered: bool) -> None:
        """Whether line numbers stand in for the step: then nothing is a share of the steps that the run is to have."""
        if is_numbered is self._is_numbered:
            return
        self._is_numbered = is_numbered
        if is_numbered:
            self.facts.pop(_TOTAL, None)
        elif _TOTAL in self.told:
            self.facts[_TOTAL] = self.told[_TOTAL]

    def note(self, note: Note) -> None:
        """An event of the log, in its place among the rows."""
        self.events += 1
        self.derivation.note(note)
        for detector in tuple(self.detectors):
            self._hear(detector, detector.note, note)

    def begin_attempt(self, attempt: int) -> None:
        """A (re)start. The first attempt begins by itself, with nothing to forget."""
        while len(self.attempts) <= attempt:
            self.attempts.append(Attempt())
            self.events += 1
            number = len(self.attempts) - 1
            if number:
                self.derivation.new_attempt()
                for detector in tuple(self.detectors):
                    self._hear(detector, detector.new_attempt, number)

    def forget_steps(self) -> None:
        """The rows so far were no training steps: the newest attempt's begin with what comes."""
        if self.attempts:
            self.attempts[-1] = Attempt()
            self.lineage.forget()

    def judge(self, rows: Rows, attempt: int, path: str, listener: FrameListener | None) -> None:
        """Rows of one attempt, in order: shown to `listener`, derived from, judged and kept."""
        self.begin_attempt(attempt)
        first = self._first_step_of(rows, attempt)
        if first is not None and first:
            # What comes before the attempt's first training step is judged before its beginning is known.
            self.judge(rows.take(slice(None, first)), attempt, path, listener)
            rows = rows.take(slice(first, None))
        steps = rows.steps[rows.primary]
        if first is not None:
            restart = self.lineage.enter(attempt, float(steps[0]))
            if restart is not None:
                self.book.begin_attempt(attempt, restart, self.lineage.chain)
        if len(steps):
            self.changes.rows(attempt, float(steps[0]))
            self.lineage.saw(float(steps[0]), float(steps[-1]), len(steps))
        self.attempts[attempt].add(steps)
        frame = rows.frame(attempt, path)
        self.rl = self.rl or Rl().first_row(frame) < len(frame)
        if listener is not None:
            listener(frame)
        frame = self.derivation.apply(frame)
        for detector in tuple(self.detectors):
            KEYS.give()  # all of them together may take longer than a key should wait
            self._hear(detector, detector.update, frame)
        for score in self.scores:
            score.add(frame)
        self.co_spikes.add(frame)
        self.store.append(frame)

    def _first_step_of(self, rows: Rows, attempt: int) -> int | None:
        """The row of the attempt's first training step; None when `rows` has none, or it was before."""
        if not np.isnan(self.attempts[attempt].first):
            return None
        primary = np.flatnonzero(rows.primary)
        return int(primary[0]) if len(primary) else None

    def keep_apart(self, rows: Rows, attempt: int, path: str, writer: int, listener: FrameListener | None) -> None:
        """Rows of another writer: charted under their own keys and a label, never judged."""
        label = (("writer", str(writer)),)
        names = {key: SignalKey(self.raw_keys.get(key, key.signal), label) for key in rows.columns}
        apart = replace(
            rows.frame(attempt, path),
            columns={names[key]: column for key, column in rows.columns.items()},
            marks={names[key]: marks for key, marks in rows.marks.items()},
        )
        if listener is not None:
            listener(apart)
        self.store.append(apart)

    def last_words(self) -> AlertBook:
        """The alert book as the end of the log would leave it; nothing changes."""
        book = self.book
        for detector in tuple(self.detectors):
            findings = self._ask(detector, detector.finish)
            if findings and book is self.book:
                book = book.copy()
            for finding in findings:
                book.apply(detector.id, finding)
        return book

    def fail(self, detector: Detector, error: Exception) -> None:
        """Drops a detector that raised: the others go on."""
        self.events += 1
        self.problems[f"check {detector.id}"] = f"check {detector.id} failed: {type(error).__name__}: {error}"
        if detector in self.detectors:
            self.detectors.remove(detector)

    def _ask(self, detector: Detector, question: Callable[..., Iterable[Finding]], *about: object) -> list[Finding]:
        try:
            return list(question(*about))
        except Exception as error:  # one of the worker tops: a faulty check must not end the monitoring of a run
            self.fail(detector, error)
            return []

    def _hear(self, detector: Detector, question: Callable[..., Iterable[Finding]], about: object) -> None:
        for finding in self._ask(detector, question, about):
            self.events += 1
            episode = self.book.apply(detector.id, finding)
            if episode is not None:
                self.store.pin(episode.attempt, episode.first_step, episode.last_step)


def _make(detectors: Sequence[type[Detector]], limits: Thresholds, facts: Mapping[str, float | str]) -> list[Detector]:
    """The detectors, told of each other when they are those of the registry (they then share their scores)."""
    from trainmon.monitor.detectors.registry import DETECTORS, make_detectors

    if tuple(detectors) == DETECTORS:
        return make_detectors(limits, facts)
    return [detector(limits, facts) for detector in detectors]
