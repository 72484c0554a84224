"""trainmon's own alarms on the rows of a run: derivation, every detector and the alert book, as in the product."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from trainmon.monitor.alerts import wakes_a_person
from trainmon.monitor.core import Core
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.common import Rl
from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.finding import Finding, Severity
from trainmon.monitor.frame import Frame
from trainmon.monitor.rows import Rows
from trainmon.monitor.run import training_tier
from trainmon.monitor.series import SeriesStore
from trainmon.monitor.thresholds import Thresholds

LEVELS = ("told", "warned", "page")  # INFO or worse, WARN or worse, what wakes a person


@dataclass(frozen=True)
class Alarm:
    """`first`: the row where the fault is said to begin, `raised`: the row at which it was said, `level` of LEVELS."""

    first: int
    raised: int
    level: str
    check: str


class Watcher(Core):
    """Judges rows and notes what is said at which row; in `grown`, that an episode which was told before got worse.

    `keep` and `continued` branch off at any row.
    """

    def __init__(self, limits: Thresholds) -> None:
        super().__init__(limits, DETECTORS, {}, SeriesStore())
        self.alarms: list[Alarm] = []
        self.grown: list[Alarm] = []
        self._at: dict[float, int] = {}
        self._known: dict[tuple[str, str, str], dict[str, None]] = {}

    def see(self, frame: Frame, begin: int, end: int) -> None:
        """Judges the rows begin..end of `frame`."""
        self._at.update(
            (float(step), begin + i) for i, step in reversed(list(enumerate(frame.steps[begin:end].tolist())))
        )
        self.rl = self.rl or Rl().first_row(frame) < len(frame)
        self.raw_keys.update((key, key.signal) for key in frame.columns)
        self.judge(_rows(frame, begin, end), frame.attempt, frame.path, None)

    def end(self) -> None:
        """What the end of the log tells."""
        for detector in tuple(self.detectors):
            for finding in detector.finish():
                self._take(detector, finding)

    def _hear(self, detector: Detector, question: Callable[..., Iterable[Finding]], about: object) -> None:
        for finding in self._ask(detector, question, about):
            self._take(detector, finding)

    def _take(self, detector: Detector, finding: Finding) -> None:
        address = (detector.id, finding.kind, str(finding.signal))
        episode = self.book.apply(detector.id, finding)
        if episode is None or finding.action == "withdraw":
            self._known.pop(address, None)
            return
        said = self._known.setdefault(address, {})
        reached = {
            "told": True,
            "warned": episode.severity >= Severity.WARN,
            "page": wakes_a_person(episode, rl=self.rl),
        }
        raised = self._at.get(finding.step, 0)
        for level in LEVELS:
            if reached[level] and level not in said:
                said[level] = None
                self.alarms.append(Alarm(self._at.get(episode.first_step, raised), raised, level, detector.id))
            elif reached[level] and episode.worst_step == finding.step:
                self.grown.append(Alarm(raised, raised, level, detector.id))
        if finding.action == "recover":
            self._known.pop(address, None)

    def keep(self) -> bytes:
        """As it is now, without the alarms so far, for `continued`: far cheaper than a deep copy."""
        alarms, grown = self.alarms, self.grown
        self.alarms, self.grown = [], []
        try:
            return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)
        finally:
            self.alarms, self.grown = alarms, grown

    @property
    def problems_of_checks(self) -> list[str]:
        """Detectors that raised: none should."""
        return [name for name in self.problems if name.startswith("check ")]


def watch(frames: Iterable[Frame], limits: Thresholds) -> Watcher:
    """A healthy run from its first to its last row. Rows are counted within their attempt."""
    watcher = Watcher(limits)
    for frame in frames:
        watcher.see(frame, 0, len(frame))
    watcher.end()
    return watcher


def continued(kept: bytes, faulty: Frame, begin: int, end: int) -> Watcher:
    """What is said on the rows from `begin` on by a watcher that was `Watcher.keep`-ed before them."""
    watcher: Watcher = pickle.loads(kept)
    watcher.see(faulty, begin, min(end, len(faulty)))
    if end >= len(faulty):
        watcher.end()
    return watcher


def _rows(frame: Frame, begin: int, end: int) -> Rows:
    part = slice(begin, end)
    tiers = {key: training_tier(key) for key in frame.columns}
    best = min(tiers.values(), default=0)
    rows = Rows(
        frame.steps[part],
        frame.times[part],
        frame.lines[part],
        {key: column[part] for key, column in frame.columns.items()},
        {key: marks[part] for key, marks in frame.marks.items()},
        frame.time_kind,
    )
    primary = np.zeros(len(rows), np.bool_)
    for key, tier in tiers.items():
        if tier == best:
            primary |= rows.logged(key)
    return replace(rows, primary=primary)
