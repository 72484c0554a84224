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
    stopped from outside: it hung before.
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
            gaps[i] = _passed(float(times[i]) - float(gaps[i]), float(times[i]), frame.time_kind)
            before = place(frame, int(known[i - 1]), math.nan) if i else self._last
            if before is not None and frame.steps[known[i]] > before.step and self._is_long(float(gaps[i])):
                is_busy = (self._is_explained and not i) or _evaluated(frame, known[max(i - 1, 0) : i + 1])
                self._tell(before, float(gaps[i]), frame, int(known[i]), is_busy, found)
            else:
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

    def _tell(self, before: Place, gap: float, frame: Frame, row: int, is_busy: bool, found: Found) -> None:
        if self._rhythm.expects(before.step) or is_busy:
            return
        what = f"nothing was logged for {duration(gap)} after step {before.step:.15g}{self._against}"
        at = place(frame, row, gap)
        for action in _BOTH:
            found.append((row, finding(action, "stall", STEP_TIME, Severity.WARN, at, what, first=before)))

    @property
    def _against(self) -> str:
        return f" (usual gap {duration(max(median(self._usual), 1.0))})"

    def note(self, note: Note) -> Iterable[Finding]:
        """A checkpoint takes its time, another process begins anew; a job stopped long after its last record hung."""
        if note.kind not in _ASIDE:
            self._is_explained = True
        if note.kind not in _ENDS or note.time is None or note.time_kind not in _STAMPED or self._last is None:
            return ()
        gap = _passed(self._time, note.time, note.time_kind)
        if not self._is_long(gap):
            return ()
        what = f"nothing was logged for {duration(gap)} after step {self._last.step:.15g}, then the job was stopped"
        return (finding("open", "stall", STEP_TIME, Severity.WARN, self._last, what + self._against),)


def _passed(before: float, after: float, kind: TimeKind) -> float:
    """Seconds between two stamps. Where these have no zone, an hour that clocks skipped is none that passed."""
    return after - before - (skipped_s(before, after) if kind is TimeKind.NAIVE else 0.0)


def _evaluated(frame: Frame, rows: IntArray) -> bool:
    """Whether an evaluation was logged in one of these rows."""
    return any(not np.isnan(frame.columns[key][rows]).all() for key in frame.columns if key.signal.startswith("eval."))
