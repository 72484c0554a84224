"""Stretches of a run in which nothing was logged, told afterwards by the time stamps of its lines."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Final

import numpy as np

from trainmon.monitor.detectors.clock_change import skipped_s
from trainmon.monitor.detectors.common import Found, Place, finding, place
from trainmon.monitor.detectors.habits import Rhythm
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.job.state import duration
from trainmon.monitor.stats.middle import median, quantile
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, IntArray, Note, NoteKind, TimeKind

STEP_TIME: Final = SignalKey("sys.step_time")
_GAPS: Final = 100  # the newest ones tell what is usual
_ASIDE: Final = (NoteKind.UNREADABLE, NoteKind.LOSS_SCALE_OVERFLOW, NoteKind.SKIPPED_STEP)  # no reason for a pause
_FEWEST: Final = 30
_BOTH: Final[tuple[Action, ...]] = ("open", "recover")
_STAMPED: Final = (TimeKind.ABSOLUTE, TimeKind.NAIVE)
_ENDS: Final = (NoteKind.TIME_LIMIT, NoteKind.CANCELLED, NoteKind.PREEMPTED, NoteKind.SIGTERM)


class Stalls:
    """METRICS.md's silence, max(10 x p99 gap, 10 min), between two lines of one attempt: it came back, a WARN.

    Not where the log says what happened meanwhile (a checkpoint, an evaluation, an end, another launch), where the step
    does not go on, nor where such pauses come at an even distance. The same behind the last record of a job that was
    stopped from outside: it hung before. Where stamps without a zone leave out an hour in a night in which clocks do,
    nobody can tell which it was: that is an INFO.
    """

    def __init__(self, limits: Thresholds) -> None:
        self.gaps, self.seconds = limits["silence.gaps"], limits["silence.seconds"]
        self._usual: deque[float] = deque(maxlen=_GAPS)  # the newest gaps that were none, s
        self.restart()

    def restart(self) -> None:
        """What lies between two attempts is no stall."""
        self._rhythm = Rhythm()
        self._last: Place | None = None
        self._time = math.nan
        self._source = ""
        self._is_explained = False

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the time stamps of `frame`."""
        if frame.time_kind not in _STAMPED or (len(frame) == 1 and self._is_usual(frame)):
            return
        known = np.flatnonzero(~np.isnan(frame.times))
        if not len(known):
            return
        if frame.path != self._source:
            self.restart()
            self._source = frame.path
        times = frame.times[known]
        gaps = np.diff(times, prepend=self._time)
        at = 0
        for i in np.flatnonzero(gaps > self.seconds).tolist():
            self._learn(gaps[at:i])
            stamp, gap = float(times[i]), float(gaps[i])
            skipped = _skipped(stamp - gap, stamp, frame.time_kind)
            gaps[i] -= skipped
            before = place(frame, int(known[i - 1]), math.nan) if i else self._last
            if before is not None and frame.steps[known[i]] > before.step and self._is_long(gap):
                is_busy = (self._is_explained and not i) or _evaluated(frame, known[max(i - 1, 0) : i + 1])
                self._tell(before, gap, skipped, frame, int(known[i]), is_busy, found)
            if before is None or frame.steps[known[i]] <= before.step or not self._is_long(gap - skipped):
                self._learn(gaps[i : i + 1])
            at = i + 1
        self._learn(gaps[at:])
        self._last, self._time, self._is_explained = place(frame, int(known[-1]), math.nan), float(times[-1]), False

    def _is_usual(self, frame: Frame) -> bool:
        """Takes in the one row of a log that is followed live, unless there is something to look at."""
        time = float(frame.times[0])
        gap = time - self._time
        if not gap <= self.seconds or frame.path != self._source:
            return False
        if gap > 0:
            self._usual.append(gap)
        self._last, self._time, self._is_explained = place(frame, 0, math.nan), time, False
        return True

    def _learn(self, gaps: FloatArray) -> None:
        newest = gaps[-_GAPS:]
        self._usual.extend(newest[newest > 0].tolist())

    def _is_long(self, gap: float) -> bool:
        return len(self._usual) >= _FEWEST and gap > max(self.gaps * quantile(self._usual, 0.99), self.seconds)

    def _tell(
        self, before: Place, gap: float, skipped: float, frame: Frame, row: int, is_busy: bool, found: Found
    ) -> None:
        is_long = self._is_long(gap - skipped)
        if (is_long and self._rhythm.expects(before.step)) or is_busy:
            return
        severity, words = self._words(gap, skipped, before)
        at = place(frame, row, gap - skipped)
        for action in _BOTH:
            found.append((row, finding(action, "stall", STEP_TIME, severity, at, words + self._against, first=before)))

    def _words(self, gap: float, skipped: float, before: Place) -> tuple[Severity, str]:
        """How bad a pause is, and what it is; of `gap` seconds `skipped` are perhaps of the clock only."""
        after = f"after step {before.step:.15g}"
        if self._is_long(gap - skipped):
            at_least = "at least " if skipped else ""
            return Severity.WARN, f"nothing was logged for {at_least}{duration(gap - skipped)} {after}"
        return Severity.INFO, (
            f"the stamps say no zone and go on {duration(gap)} later {after}, in a night in which clocks skip an hour: "
            "a pause or none, that cannot be told"
        )

    @property
    def _against(self) -> str:
        return f" (usual gap {duration(max(median(self._usual), 1.0))})"

    def note(self, note: Note) -> Iterable[Finding]:
        """A checkpoint takes its time, another process begins anew; a job stopped long after its last record hung."""
        if note.kind not in _ASIDE:
            self._is_explained = True
        if note.kind not in _ENDS or note.time is None or note.time_kind not in _STAMPED or self._last is None:
            return ()
        gap = note.time - self._time
        skipped = _skipped(self._time, note.time, note.time_kind)
        if not self._is_long(gap):
            return ()
        severity, words = self._words(gap, skipped, self._last)
        what = f"{words}, then the job was stopped{self._against}"
        return (finding("open", "stall", STEP_TIME, severity, self._last, what),)


def _skipped(before: float, after: float, kind: TimeKind) -> float:
    """Seconds between two stamps of which nobody knows whether they passed: without a zone, clocks may skip an hour."""
    return skipped_s(before, after) if kind is TimeKind.NAIVE else 0.0


def _evaluated(frame: Frame, rows: IntArray) -> bool:
    """Whether an evaluation was logged in one of these rows."""
    return any(not np.isnan(frame.columns[key][rows]).all() for key in frame.columns if key.signal.startswith("eval."))
