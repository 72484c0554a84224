"""Check grad.dead: gradients that vanish, as a whole, in a part of the model, or in a share of the elements."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from trainmon.monitor.amount import digits, named
from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    Track,
    finding,
    finite,
    place,
    result,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.share_track import ShareRule, ShareTrack
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.resolution import PrintResolution

NORMS = ("grad.norm", "grad.rank_norm")
SHARE = "grad.zero_fraction"
NOTHING = 1e-8
HISTORY = 30  # values above nothing
KEPT = 50
VALUES = 5
STEPS = 20.0
BACK = 3
PRINTED = 20.0  # a level below so many printed units may round to 0 by itself
SHARE_STEPS = 50.0


class VanishTrack:
    """A norm that was there and is 0 (below 1e-8) for 5 values and 20 steps."""

    def __init__(self, key: SignalKey) -> None:
        self.key = key
        self.good = 0
        self.usual: deque[float] = deque(maxlen=KEPT)
        self.first: Place | None = None
        self.last: Place | None = None
        self.values = 0
        self.back = 0
        self.opened = False
        self.what = ""
        self.judged = 0
        self._attempt: int | None = None

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`; where nothing vanishes, all at once."""
        known = finite(frame, self.key)
        if not len(known):
            return
        if frame.attempt != self._attempt:
            self._attempt = frame.attempt
            if self.first is not None and known.steps[0] <= self.first.step:
                self._close()
        at = 0
        if self.first is None:
            tiny = known.values <= NOTHING
            at = int(tiny.argmax()) if tiny.any() else len(known)
            self._learn(known.values[max(at - KEPT, 0) : at].tolist(), at)
        for row, x in zip(known.rows[at:].tolist(), known.values[at:].tolist(), strict=True):
            self._take(frame, row, x, found)

    def _learn(self, newest: list[float], count: int = 1) -> None:
        self.good += count
        self.judged += count
        self.usual.extend(newest)

    def _close(self) -> None:
        self.first = self.last = None
        self.values = self.back = 0
        self.opened = False

    def _take(self, frame: Frame, row: int, x: float, found: Found) -> None:
        if x > NOTHING:
            if self.first is None:
                self._learn([x])
                return
            self.back += 1
            if self.back >= BACK or not self.opened:
                if self.opened and self.last is not None:
                    found.append((row, self._said("grow", self.last)))
                    found.append((row, self._said("recover", place(frame, row, x))))
                self._close()
            self._learn([x])
            return
        if self.first is None and not self._can_tell():
            return
        at = place(frame, row, x)
        self.judged += 1
        self.first = self.first or at
        self.last = at
        self.back = 0
        self.values += 1
        if not self.opened and self.values >= VALUES and at.step - self.first.step >= STEPS:
            self.opened = True
            level = sorted(self.usual)[len(self.usual) // 2]
            self.what = f"{named(self.key)} fell from {digits(level)} to 0 at step {self.first.step:.15g}: "
            self.what += "nothing is learned"
            found.append((row, self._said("open", at)))

    def _can_tell(self) -> bool:
        """Whether there was a gradient, and one that does not print as 0 by itself."""
        if self.good < HISTORY:
            return False
        resolution = PrintResolution()
        for x in self.usual:
            resolution.update(x)
        return sorted(self.usual)[len(self.usual) // 2] > PRINTED * 2 * resolution.half_unit

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, "dead_gradient", self.key, Severity.WARN, at, self.what, first=self.first)

    def finish(self) -> Iterable[Finding]:
        """An open one reaches to its last value."""
        return [self._said("grow", self.last)] if self.opened and self.last is not None else []


class GradDead(WatchingDetector):
    """Norm 0 for 5 values and 20 steps, or 0.3 more of the elements zero than usual for 50 steps: WARN.

    Each part against its own level: most rows of an embedding, and experts without tokens, have no gradient anyway.
    """

    id: ClassVar[str] = "grad.dead"
    name: ClassVar[str] = "Dead Gradients"
    signals: ClassVar[tuple[str, ...]] = (*NORMS, SHARE)
    watched: ClassVar[tuple[str, ...]] = (*NORMS, SHARE)
    order: ClassVar[int] = 18
    triage: ClassVar[str] = "gradients"
    formula: ClassVar[str] = "G_2 <= 1e-8; share of g = 0 against the median of its last 100"
    source: ClassVar[str] = "METRICS.md rows 4, 9 (Z_g)"

    def make_track(self, key: SignalKey) -> Track:
        """A norm, or a share of zeros."""
        if key.signal in NORMS:
            return VanishTrack(key)
        limits = self.limits
        return ShareTrack(key, ShareRule("zero_gradients", limits["share.rise"], SHARE_STEPS, bar=limits["share.bar"]))

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("share.rise", "share.bar")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "see whether the loss mask is all zero, a part was frozen or detached, the loss scale underflows, "
            advice += "or (policy runs) all rewards of a group are alike"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, *self.watched):
            what = "no gradients in the log; log the gradient norm, and the share of zero elements by part"
            return result(self, Verdict.NO_DATA, what)
        judged = sum(t.judged for t in self.tracks.values() if isinstance(t, VanishTrack | ShareTrack))
        if not judged:
            return result(self, Verdict.NO_DATA, "too few values of the gradient to know its level")
        shares = [t.last for t in self.tracks.values() if isinstance(t, ShareTrack) and not math.isnan(t.last)]
        told = f"; largest share of zeros {max(shares):.0%}" if shares else ""
        return result(self, Verdict.PASS, f"{len(self.tracks)} series with gradient{told}", used=used)
