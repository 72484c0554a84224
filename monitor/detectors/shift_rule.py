"""When the level of a noisy loss has shifted, and when it drifts."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable

import numpy as np

from trainmon.monitor.detectors.common import Found, Place, finding
from trainmon.monitor.detectors.heldout_trend import HeldOutTrend, fell
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.settled import Settled
from trainmon.monitor.detectors.shift_track import (
    BLOCKS,
    Block,
    Blocks,
    BlockSeries,
    change_point,
    mean_of,
    means_of,
    robust_sigma,
)
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

REFERENCE = 8  # blocks before the segment that make the level before
GAPS = 60  # gaps between segment and reference that make the noise of a gap
MIN_GAPS = 6
SIGMAS = 4.0
FAIL_NOISE = 1.5  # a FAIL is +25%, 6 sigma, and lasts twice as long
ACCEPT_AFTER = 40  # blocks (ten segments) after which the new level is the level
ACCEPT_MEANT = 12  # the same where batch, context or epoch changed


class ShiftTrack:
    """A level shift: the last four blocks (100 steps, 20 values) all lie above the level before them.

    The level before is the median of the eight blocks in front of the segment, the gap the segment's mean minus it.
    It must exceed the +5% of METRICS.md and 4 sigma of the gaps that the run had so far, which minds noise, its
    autocorrelation and the falling curve at once.
    """

    def __init__(
        self,
        key: SignalKey,
        limits: Thresholds,
        noun: str = "loss",
        kind: str = "level_shift",
        held_out: HeldOutTrend | None = None,
        meant: MeantChanges | None = None,
    ) -> None:
        self.key = key
        self.meant = meant
        self.held_out = held_out
        self.noun = noun
        self.kind = kind
        self.warn = math.log1p(limits["shift.warn"])
        self.fail = math.log1p(limits["shift.fail"])
        self.blocks: deque[Block] = deque(maxlen=REFERENCE + BLOCKS)
        self.gaps: deque[float] = deque(maxlen=GAPS)
        self.judged = 0
        self.highest = -math.inf
        self.open: _OpenShift | None = None
        self.settled = Settled()
        self._gaps_before: list[float] = []  # before the first level that settled
        self.series = BlockSeries(
            key, limits["shift.steps"] / BLOCKS, max(1, math.ceil(limits["shift.values"] / BLOCKS)), self
        )

    def feed(self, frame: Frame, found: Found, until: int | None = None) -> None:
        """Reads the rows of `frame`."""
        self.series.feed(frame, found, until)

    def on_restart(self, carries_on: bool, step: float) -> None:
        """What the attempt before has left behind is forgotten."""
        while self.blocks and self.blocks[-1].last.step >= step:
            self.blocks.pop()  # the branch that a roll-back abandons is not the level before
        self.settled.restart(carries_on=carries_on, step=step)
        if self.open is not None and step <= self.open.first.step:
            self.open = None
        if not carries_on:
            self.blocks.clear()
            self.gaps.clear()
            self.open = None
            self._gaps_before = []

    def on_block(self, block: Block, row: int, found: Found) -> None:
        """Compares the newest four blocks with the level before them."""
        self.blocks.append(block)
        if self.settled:
            ended = self.settled.take(block.u, block.last._replace(value=math.nan), row, found)
            if ended and not self.settled and self.open is None:
                self._go_back()
        if self.open is not None:
            self._go_on(self.open, block, row, found)
            return
        if len(self.blocks) < REFERENCE + BLOCKS:
            return
        recent = list(self.blocks)
        reference = sorted(b.u for b in recent[:REFERENCE])
        level = (reference[REFERENCE // 2 - 1] + reference[REFERENCE // 2]) / 2
        segment = [b.u for b in recent[REFERENCE:]]
        gap = mean_of(segment) - level
        if len(self.gaps) >= MIN_GAPS:
            self.judged += 1
            self.highest = max(self.highest, gap)
            bar = self._bar() if gap > self.warn else math.inf
            if gap > bar and min(segment) - level > 0.6 * bar:
                first = change_point(recent[REFERENCE - 1 :])
                span = block.last.step - block.first.step
                change = self.meant.about(first.step, span, row) if self.meant is not None else ""
                self.open = _OpenShift(first, level, bar, gap, block.last, change)
                self.open.weigh(self, [b.u for b in recent[REFERENCE:]], row)
                found.append((row, self._said("open", self.open, block.last)))
                return
        self.gaps.append(gap)

    def _go_back(self) -> None:
        """It is back: what follows is held against the newest blocks and the noise before it, not against the fault."""
        back = list(self.blocks)[-BLOCKS:]
        self.blocks.extend(back * (REFERENCE // BLOCKS + 1))
        self.gaps.clear()
        self.gaps.extend(self._gaps_before)

    def pass_over(self, blocks: Blocks, start: int) -> int:
        """Blocks whose gap is below +5% need no look at the noise."""
        if self.open is not None or len(self.blocks) < REFERENCE + BLOCKS or len(self.gaps) < MIN_GAPS:
            return start
        before = list(self.blocks)[1:]
        us = np.concatenate([[b.u for b in before], blocks.us[start:]])
        windows = np.lib.stride_tricks.sliding_window_view(us, REFERENCE + BLOCKS)
        reference = np.sort(windows[:, :REFERENCE], axis=1)
        level = (reference[:, REFERENCE // 2 - 1] + reference[:, REFERENCE // 2]) / 2
        gaps = means_of(us[REFERENCE:], BLOCKS) - level
        high = gaps > self.warn
        count = int(np.argmax(high)) if high.any() else len(gaps)
        if self.settled:
            count = min(count, self.settled.all_out(blocks.us[start : start + count]))
        if count:
            if self.settled:
                self.settled.pass_over(blocks.block(start + count - 1).last._replace(value=math.nan))
            self.judged += count
            self.highest = max(self.highest, float(gaps[:count].max()))
            self.gaps.extend(gaps[max(0, count - GAPS) : count].tolist())
            self.blocks.extend(blocks.tail(start, start + count, REFERENCE + BLOCKS))
        return start + count

    def _bar(self) -> float:
        """What a gap must exceed: +5%, and the noise of the gaps so far.

        The noise is that of the differences of gaps a segment apart, from which the falling curve drops out; with
        few of them that of the gaps themselves.
        """
        gaps = list(self.gaps)
        middle = sorted(gaps)[len(gaps) // 2]
        if len(gaps) >= MIN_GAPS + BLOCKS:
            noise = robust_sigma([b - a for a, b in zip(gaps, gaps[BLOCKS:], strict=False)]) / math.sqrt(2)
        else:
            noise = robust_sigma(gaps)
        return max(self.warn, SIGMAS * noise + max(middle, 0.0))

    def _go_on(self, shift: _OpenShift, block: Block, row: int, found: Found) -> None:
        shift.count += 1
        inside = max(self.warn, 0.5 * shift.gap if shift.gap < 2 * self.warn else self.warn)
        back = block.u - shift.level <= inside
        shift.back = shift.back + 1 if back else 0
        if shift.back >= 2:
            found.append((row, self._said("grow", shift, shift.last)))
            found.append((row, self._said("recover", shift, block.last)))
            self.open = None
            return
        if back:
            return
        shift.last = block.last
        before = shift.severity
        news = shift.weigh(self, [b.u for b in list(self.blocks)[-BLOCKS:]], row)
        if shift.severity < before:
            found.extend((row, said) for said in self._again(shift))
        elif news:
            found.append((row, self._said("grow", shift, block.last)))
        if shift.severity is Severity.INFO and shift.count >= ACCEPT_MEANT:
            found.append((row, self._said("grow", shift, block.last)))
            found.append((row, self._said("recover", shift, block.last)))
            self.open = None
            self.gaps.clear()
        elif shift.count >= ACCEPT_AFTER:
            said = self._said("settle", shift, block.last)
            found.append((row, said))
            if not self.settled:
                self._gaps_before = list(self.gaps)
            self.settled.add(said, high=shift.level + inside, need=BLOCKS)
            self.open = None
            self.gaps.clear()

    def _said(self, action: Action, shift: _OpenShift, at: Place) -> Finding:
        at = at._replace(value=math.exp(shift.level + shift.gap))
        return finding(action, self.kind, self.key, shift.severity, at, shift.what, first=shift.first)

    def _again(self, shift: _OpenShift) -> list[Finding]:
        """A FAIL taken back: the held-out loss has shown since that the model is no worse."""
        return [
            self._said("withdraw", shift, shift.last),
            self._said("open", shift, shift.first),
            self._said("grow", shift, shift.last),
        ]

    def finish(self) -> Iterable[Finding]:
        """An open shift reaches to its last block, and the newest evaluations count."""
        settled = self.settled.finish()
        if self.open is None:
            return settled
        now = copy.copy(self.open)
        now.consult(self)
        if now.severity < self.open.severity:
            return [*settled, *self._again(now)]
        return [*settled, self._said("grow", now, now.last)]


class _OpenShift:
    """A shift that has not gone back."""

    __slots__ = ("back", "change", "count", "first", "gap", "last", "level", "severity", "threshold", "what")

    def __init__(self, first: Place, level: float, threshold: float, gap: float, last: Place, change: str) -> None:
        self.change = change  # what was changed there on purpose
        self.first, self.level, self.threshold, self.gap, self.last = first, level, threshold, gap, last
        self.count = BLOCKS
        self.back = 0
        self.severity = Severity.WARN
        self.what = ""

    def weigh(self, track: ShiftTrack, segment: list[float], row: int) -> bool:
        """Sets gap, severity and words from the latest four blocks; whether there is news."""
        gap = mean_of(segment) - self.level
        self.gap = max(self.gap, gap)
        before = self.severity
        bar = max(track.fail, FAIL_NOISE * self.threshold)
        if self.count >= 2 * BLOCKS and gap >= bar and min(segment) - self.level >= 0.6 * bar:
            self.severity = Severity.FAIL
        elif self.change and self.severity < Severity.FAIL:
            self.severity = Severity.INFO if self.gap < track.fail else Severity.WARN
        self.what = (
            f"{track.noun} rose from {math.exp(self.level):.4g} to {math.exp(self.level + self.gap):.4g} "
            f"({100 * math.expm1(self.gap):+.0f}%) at step {self.first.step:.15g} and stayed there"
        )
        if self.change:
            self.what += f", where {self.change}"
        self.consult(track, row)
        return self.severity > before or not self.count % BLOCKS

    def consult(self, track: ShiftTrack, row: int | None = None) -> None:
        """Held-out loss that falls on makes this a note, or a WARN where it would be a FAIL; words for what it did."""
        pair = track.held_out.since(self.first.step, row) if track.held_out is not None else None
        if pair is None:
            return
        self.what = self.what.partition(";")[0]
        if fell(pair):
            self.severity = min(self.severity, Severity.WARN if self.gap >= track.fail else Severity.INFO)
            self.what += f"; held-out loss fell meanwhile ({pair[0]:.4g} to {pair[1]:.4g}), so the model is no worse"
            return
        if self.severity is Severity.INFO and not self.change:
            self.severity = Severity.WARN
        if fell((pair[1], pair[0])):
            self.what += f"; held-out loss rose too ({pair[0]:.4g} to {pair[1]:.4g})"
