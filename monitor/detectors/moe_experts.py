"""The experts of one layer: which are dead, and which one draws too much."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from trainmon.monitor.detectors.common import Found, Place, finding, place
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray

BoolArray = NDArray[np.bool_]
HOT_STEPS = 50.0
HOT_VALUES = 5
HISTORY = 10
WINDOW = 50
NAMED = 5


class Experts:
    """How long each expert of a layer has been without load, and whether one is far above its own level."""

    def __init__(self, layer: str, limits: Thresholds) -> None:
        labels = (("layer", layer),) if layer else ()
        self.key = SignalKey("moe.load", labels)
        self.where = f" of layer {layer}" if layer else ""
        self.share = limits["moe.dead_share"]
        self.steps = limits["moe.dead_steps"]
        self.fail = limits["moe.dead_fail"]
        self.since: dict[SignalKey, Place] = {}
        self.values: dict[SignalKey, int] = {}
        self.most_dead = 0
        self.opened = False
        self.severity = Severity.WARN
        self.what = ""
        self.last: Place | None = None  # where experts were dead last, while that is open
        self.hot = HotExpert(self.where, limits)
        self.attempt: int | None = None

    def feed(self, frame: Frame, keys: list[SignalKey], found: Found) -> None:
        """Reads the loads of all experts of the layer, row by row."""
        if frame.attempt != self.attempt:
            self.attempt = frame.attempt
            self.hot.restart(float(frame.steps[0]))
            if any(float(frame.steps[0]) <= since.step for since in self.since.values()):
                self.since, self.values, self.opened, self.severity = {}, {}, False, Severity.WARN
        table = np.stack([frame.columns[key] for key in keys])
        finite = np.isfinite(table)
        counts = finite.sum(axis=0)
        rows = np.flatnonzero(counts >= 2)
        if not len(rows):
            return
        mean = np.where(finite, table, 0.0)[:, rows].sum(axis=0) / counts[rows]
        self._hottest(frame, keys, table[:, rows], finite[:, rows], mean, rows.tolist(), found)
        low = finite[:, rows] & (table[:, rows] < self.share * mean)
        if not low.any() and not self.since:
            return
        for column, row in enumerate(rows.tolist()):
            self._row(frame, row, keys, low[:, column], finite[:, row], found)

    def _hottest(
        self,
        frame: Frame,
        keys: list[SignalKey],
        table: FloatArray,
        finite: BoolArray,
        mean: FloatArray,
        rows: list[int],
        found: Found,
    ) -> None:
        known = np.where(finite, table, -np.inf)
        top = known.argmax(axis=0)
        highest = known.max(axis=0)
        ratio = np.divide(highest, mean, out=np.zeros(len(mean)), where=mean > 0)
        for column, row in enumerate(rows):
            if mean[column] > 0:
                expert = dict(keys[int(top[column])].labels).get("expert", "?")
                self.hot.take(frame, row, keys[int(top[column])], expert, float(ratio[column]), found)

    def _row(
        self, frame: Frame, row: int, keys: list[SignalKey], low: BoolArray, finite: BoolArray, found: Found
    ) -> None:
        step = float(frame.steps[row])
        dead: list[str] = []
        first: Place | None = None
        for at, key in enumerate(keys):
            if not finite[at]:
                continue
            if not low[at]:
                self.since.pop(key, None)
                self.values.pop(key, None)
                continue
            since = self.since.setdefault(key, place(frame, row, float(frame.columns[key][row])))
            self.values[key] = self.values.get(key, 0) + 1
            if step - since.step >= self.steps and self.values[key] >= 3:
                dead.append(dict(key.labels).get("expert", "?"))
                first = since if first is None or since.step < first.step else first
        self.most_dead = max(self.most_dead, len(dead))
        self._judge(frame, row, dead, int(finite.sum()), first, found)

    def _judge(self, frame: Frame, row: int, dead: list[str], experts: int, first: Place | None, found: Found) -> None:
        at = place(frame, row, float(len(dead)))
        if not dead:
            if self.opened:
                if self.last is not None:
                    found.append((row, finding("grow", "dead_experts", self.key, self.severity, self.last, "")))
                found.append((row, finding("recover", "dead_experts", self.key, self.severity, at, "")))
            self.opened, self.severity = False, Severity.WARN
            return
        self.last = at
        severity = Severity.FAIL if len(dead) >= self.fail * experts and len(dead) > 1 else Severity.WARN
        if self.opened and severity <= self.severity:
            return
        self.severity = max(severity, self.severity)
        named = ", ".join(sorted(dead, key=lambda name: (len(name), name))[:NAMED])
        more = ", ..." if len(dead) > NAMED else ""
        what = f"{len(dead)} of {experts} experts{self.where} ({named}{more}) under {self.share:.0%} of the mean load "
        self.what = f"{what}for {self.steps:.15g} steps"
        action: Action = "grow" if self.opened else "open"
        self.opened = True
        found.append((row, self._said(action, at, first)))

    def _said(self, action: Action, at: Place, first: Place | None = None) -> Finding:
        return finding(action, "dead_experts", self.key, self.severity, at, self.what, first=first)

    def finish(self) -> Iterable[Finding]:
        """Open faults reach to their last value."""
        dead = [self._said("grow", self.last)] if self.opened and self.last is not None else []
        return [*dead, *self.hot.finish()]


class HotExpert:
    """The fullest expert's load over the mean: the same one at twice the layer's own level and twice the mean.

    For 50 steps and 5 values. The level is the median of the fullest expert's ratio, whichever it was.
    """

    def __init__(self, where: str, limits: Thresholds) -> None:
        self.where = where
        self.ratio = limits["moe.maxvio.ratio"]
        self.least = 1.0 + limits["moe.maxvio.level"]
        self.level = RollingRobust(WINDOW)
        self.key: SignalKey | None = None
        self.expert = ""
        self.first: Place | None = None
        self.last: Place | None = None
        self.values = 0
        self.back = 0
        self.opened = False
        self.what = ""

    def restart(self, step: float) -> None:
        """A roll-back past the fault leaves it behind."""
        if self.first is not None and step <= self.first.step:
            self._close()

    def _close(self) -> None:
        self.key = self.first = self.last = None
        self.values = self.back = 0
        self.opened = False

    def take(self, frame: Frame, row: int, key: SignalKey, expert: str, ratio: float, found: Found) -> None:
        """Judges the fullest expert of one row."""
        if len(self.level) < HISTORY:
            self.level.update(ratio)
            return
        level = self.level.median
        is_hot = ratio > self.least and ratio > self.ratio * level
        if not is_hot:
            self.level.update(ratio)
        if not is_hot or (self.key is not None and key != self.key):
            self._cool(frame, row, ratio, found)
            if not is_hot or self.key is not None:
                return
        at = place(frame, row, ratio)
        if self.key is None:
            self.key, self.expert, self.first = key, expert, at
        self.last, self.back = at, 0
        self.values += 1
        first = self.first or at
        if not self.opened and self.values >= HOT_VALUES and at.step - first.step >= HOT_STEPS:
            self.opened = True
            self.what = f"expert {self.expert}{self.where} draws {ratio:.1f}x the mean load since step "
            self.what += f"{first.step:.15g} (the fullest drew {level:.1f}x before)"
            found.append((row, self._said("open", at)))

    def _cool(self, frame: Frame, row: int, ratio: float, found: Found) -> None:
        if self.key is None:
            return
        self.back += 1
        if self.opened and self.back < HOT_VALUES:
            return
        if self.opened and self.last is not None:
            found.append((row, self._said("grow", self.last)))
            found.append((row, self._said("recover", place(frame, row, ratio))))
        self._close()

    def _said(self, action: Action, at: Place) -> Finding:
        assert self.key is not None
        return finding(action, "hot_expert", self.key, Severity.WARN, at, self.what, first=self.first)

    def finish(self) -> list[Finding]:
        """An open one reaches to its last value."""
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []
