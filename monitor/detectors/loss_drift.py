"""Check loss.drift: a slow rise of the loss, and divergence."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    Rl,
    finding,
    in_order,
    result,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.divergence import Divergence
from trainmon.monitor.detectors.early_rise import EarlyRise
from trainmon.monitor.detectors.heldout_trend import HELD_OUT, HeldOutTrend
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.shift_track import (
    BLOCKS,
    Block,
    Blocks,
    BlockSeries,
    mean_of,
    means_of,
    onset,
)
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.rows import BoolArray
from trainmon.monitor.stats.batch_noise import BatchNoise
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray

LOSS = SignalKey("loss.train")
LEVEL_BLOCKS = 20  # the level is the mean of 20 block medians: at least 500 steps and 100 values
ABRUPT = 0.6  # a rise of which one jump between neighbouring segments made this share is a shift, not a drift
LEAST_VALUES = 20  # above the lowest level
SHORT_BLOCKS = 8
SHORT_SIGMAS = 5.0
JUMP_SIGMAS = 3.0
RISEN = 0.15  # of the rise, made before the blocks that are kept: it began at the lowest level


class DriftTrack:
    """The level (mean of 20 blocks) against the lowest level the run has had.

    It must be 5% and 4 sigma above for at least 500 steps and 100 values; a steep rise shows sooner in the mean of the
    last 8 blocks, for which 5 sigma are asked. Sigma is `BatchNoise`: that of short stretches from which the
    curve's slope has dropped out, so that neither learning nor the drift itself counts as noise.
    """

    def __init__(self, key: SignalKey, limits: Thresholds, held_out: HeldOutTrend, meant: MeantChanges) -> None:
        self.key = key
        self.held_out = held_out
        self.meant = meant
        self.minded = -math.inf  # the step up to which changes that were meant have been heard of
        self.change: _Change | None = None
        self.warn = math.log1p(limits["drift.relative"])
        self.fail = math.log1p(limits["drift.fail"])
        self.sigmas = limits["drift.sigmas"]
        self.steps = limits["drift.steps"]
        self.values = limits["drift.values"]
        self.blocks: deque[Block] = deque(maxlen=2 * LEVEL_BLOCKS + BLOCKS)
        self.noise = BatchNoise()
        self.lowest = math.inf
        self.lowest_at: Place | None = None
        self.since_values = 0
        self.steepest = 0.0
        self.calm = math.inf  # the noise of a segment at the lowest level: the jump itself counts as noise later on
        self.judged = 0
        self.highest = 0.0
        self.open: _Rise | None = None
        self.series = BlockSeries(key, self.steps / LEVEL_BLOCKS, math.ceil(self.values / LEVEL_BLOCKS), self)

    def on_restart(self, carries_on: bool, step: float) -> None:
        """What the attempt before has left behind is forgotten."""
        self.blocks.clear()
        self.noise.interrupt()
        self.change = None
        self.minded = math.nextafter(step, -math.inf)
        if self.open is not None and step <= self.open.first.step:
            self.open = None
        if self.open is None and self.lowest_at is not None and step <= self.lowest_at.step:
            carries_on = False  # the lowest level was reached on the branch that a roll-back abandons
        if not carries_on:
            self.noise = BatchNoise()
            self.lowest = math.inf
            self.open = None
            self.steepest = 0.0

    def on_block(self, block: Block, row: int, found: Found) -> None:
        """Compares the newest level with the lowest."""
        self._mind(block, row)
        self.blocks.append(block)
        self.noise.update(block.u)
        if self.change is not None:
            self._step_over(self.change)
            return
        if len(self.blocks) < LEVEL_BLOCKS:
            return
        recent = [b.u for b in list(self.blocks)[-LEVEL_BLOCKS:]]
        level = mean_of(recent)
        if level < self.lowest:
            self.lowest, self.lowest_at = level, block.last
            self.since_values = 0
            self.steepest = 0.0
            self.calm = self.noise.sigma(BLOCKS, BLOCKS)
        else:
            self.since_values += block.size
            now, then = recent[-BLOCKS:], recent[-2 * BLOCKS : -BLOCKS]
            self.steepest = max(self.steepest, mean_of(now) - mean_of(then))
        self._judge(level, recent, block, row, found)

    def pass_over(self, blocks: Blocks, start: int) -> int:
        """Blocks at which neither mean lies 5% above the lowest level need no look at the noise."""
        end = self._next_change(blocks, start)
        if self.open is not None or self.change is not None or len(self.blocks) < LEVEL_BLOCKS or end == start:
            return start
        before = [b.u for b in list(self.blocks)[1 - LEVEL_BLOCKS :]]
        us = np.concatenate([before, blocks.us[start:end]])
        levels = means_of(us, LEVEL_BLOCKS)
        lows = np.minimum.accumulate(np.concatenate([[self.lowest], levels]))
        rises = levels - lows[1:]
        short = means_of(us[LEVEL_BLOCKS - SHORT_BLOCKS :], SHORT_BLOCKS) - lows[1:]
        high = (rises >= self.warn) | (short >= self.warn)
        count = int(np.argmax(high)) if high.any() else len(levels)
        if count:
            self._keep(blocks, start, count, us, levels < lows[:-1], lows)
            self.judged += count
            self.highest = max(self.highest, float(rises[:count].max()))
        return start + count

    def _mind(self, block: Block, row: int) -> None:
        """Hears of what was changed on purpose since the block before: the level is measured again on either side."""
        if not self.meant.known or not self.meant.between(self.minded, block.last.step, row):
            return
        self.minded = block.last.step
        if self.open is None and len(self.blocks) >= BLOCKS:
            self.change = _Change(mean_of([b.u for b in list(self.blocks)[-BLOCKS:]]))

    def _next_change(self, blocks: Blocks, start: int) -> int:
        """The first block from `start` on that holds a change that was meant; all of them when none does."""
        if not self.meant.known:
            return len(blocks)
        known = [change for change in self.meant.known if change.step > self.minded]
        return next(
            (
                i
                for i in range(start, len(blocks) if known else start)
                if any(change.step <= blocks.last_step(i) and change.row <= blocks.row(i) for change in known)
            ),
            len(blocks),
        )

    def _step_over(self, change: _Change) -> None:
        """After a segment on the new level, what it rose by below a FAIL is no drift: all before is lifted by it."""
        change.blocks += 1
        if change.blocks <= BLOCKS:
            return
        self.change = None
        rise = mean_of([b.u for b in list(self.blocks)[-BLOCKS:]]) - change.level
        if 0 < rise < self.fail:
            old = len(self.blocks) - BLOCKS - 1
            lifted = [b._replace(u=b.u + rise) if i < old else b for i, b in enumerate(self.blocks)]
            self.blocks = deque(lifted, self.blocks.maxlen)
            self.lowest += rise
            self.noise.interrupt()

    def _keep(
        self, blocks: Blocks, start: int, count: int, us: FloatArray, is_lower: BoolArray, lows: FloatArray
    ) -> None:
        """Takes in `count` blocks from `start` on; `us` begins with those before them."""
        lower = np.flatnonzero(is_lower[:count])
        since = 0
        if len(lower):
            since = int(lower[-1]) + 1
            self.lowest, self.lowest_at = float(lows[since]), blocks.block(start + since - 1).last
            self.since_values = 0
            self.steepest = 0.0
        if since < count:
            self.since_values += blocks.size * (count - since)
            segments = means_of(us[LEVEL_BLOCKS - 2 * BLOCKS + since : LEVEL_BLOCKS - 1 + count], BLOCKS)
            self.steepest = max(self.steepest, float((segments[BLOCKS:] - segments[:-BLOCKS]).max()))
        fresh = us[LEVEL_BLOCKS - 1 :][:count]
        self.noise.extend(fresh[:since])
        if since:
            self.calm = self.noise.sigma(BLOCKS, BLOCKS)
        self.noise.extend(fresh[since:])
        self.blocks.extend(blocks.tail(start, start + count, 2 * LEVEL_BLOCKS + BLOCKS))

    def _judge(self, level: float, recent: list[float], block: Block, row: int, found: Found) -> None:
        self.judged += 1
        at = self.lowest_at
        if at is None:
            return
        if self.open is not None:
            self._go_on(self.open, level, block, row, found)
            return
        self.highest = max(self.highest, level - self.lowest)
        if block.last.step - at.step < self.steps or self.since_values < LEAST_VALUES:
            return
        rise = level - self.lowest
        short = mean_of(recent[-SHORT_BLOCKS:]) - self.lowest
        lucky = self._luck()
        slow = rise >= max(self.warn, self.sigmas * self.noise.sigma(LEVEL_BLOCKS, LEVEL_BLOCKS) + lucky)
        soon = short >= max(self.warn, SHORT_SIGMAS * self.noise.sigma(SHORT_BLOCKS, LEVEL_BLOCKS) + lucky)
        # What a jump between neighbouring segments made is a shift, which has a check of its own.
        jump = self.steepest - JUMP_SIGMAS * min(self.noise.sigma(BLOCKS, BLOCKS), self.calm)
        if not (slow or soon) or jump > ABRUPT * max(rise, short):
            return
        window = list(self.blocks)[-2 * LEVEL_BLOCKS :]
        first = onset(window)
        begun = at.step - (block.last.step - self.blocks[-LEVEL_BLOCKS].first.step)  # of the lowest level's stretch
        risen = mean_of([b.u for b in window[:BLOCKS]]) - self.lowest
        if first.step < begun or (window[0].first.step > at.step and risen > RISEN * max(rise, short)):
            first = at
        self.open = _Rise(first, self.lowest, max(rise, short), block.last)
        self.open.weigh(max(rise, short), self.fail, self.held_out.no_worse(first.step, block.last.step, row))
        found.append((row, self._said("open", self.open, block.last)))

    def _luck(self) -> float:
        """How far the lowest of so many noisy levels lies below a typical one: sigma of a level, sqrt(2 log n)."""
        levels = max(self.judged / LEVEL_BLOCKS, 1.0)
        return self.noise.sigma(2 * LEVEL_BLOCKS, 2 * LEVEL_BLOCKS) * math.sqrt(2 * math.log(levels))

    def _go_on(self, drift: _Rise, level: float, block: Block, row: int, found: Found) -> None:
        rise = level - drift.base
        if rise < 0.5 * self.warn:
            found.append((row, self._said("grow", drift, drift.last)))
            found.append((row, self._said("recover", drift, block.last)))
            self.open = None
            return
        if rise >= self.warn:
            drift.last = block.last
            softer = self.held_out.no_worse(drift.first.step, block.last.step, row)
            if drift.weigh(rise, self.fail, softer):
                found.append((row, self._said("grow", drift, block.last)))

    def _said(self, action: Action, drift: _Rise, at: Place) -> Finding:
        at = at._replace(value=math.exp(drift.base + drift.worst))
        kind = "drift"
        return finding(action, kind, self.key, drift.severity, at, drift.what, first=drift.first)

    def finish(self) -> list[Finding]:
        """An open drift reaches to its last block."""
        return [self._said("grow", self.open, self.open.last)] if self.open is not None else []


class _Change:
    """Something was changed on purpose: the level before it, and how many blocks it was ago."""

    __slots__ = ("blocks", "level")

    def __init__(self, level: float) -> None:
        self.level = level
        self.blocks = 0


class _Rise:
    """A drift that has not come back."""

    __slots__ = ("base", "first", "last", "severity", "told", "what", "worst")

    def __init__(self, first: Place, base: float, rise: float, last: Place) -> None:
        self.first, self.base, self.worst, self.last = first, base, rise, last
        self.severity = Severity.WARN
        self.told = 0.0
        self.what = ""

    def weigh(self, rise: float, fail: float, softer: str) -> bool:
        """Sets severity and words; whether there is news (a worse severity, or another tenth).

        `softer`: what the held-out loss says against a FAIL.
        """
        before = self.severity
        self.worst = max(self.worst, rise)
        if rise >= fail and not softer:
            self.severity = Severity.FAIL
        kind = "diverged" if self.severity is Severity.FAIL else "drifted up"
        self.what = (
            f"loss {kind} from {math.exp(self.base):.4g} to {math.exp(self.base + self.worst):.4g} "
            f"({100 * math.expm1(self.worst):+.0f}%) since step {self.first.step:.15g}{softer}"
        )
        news = self.severity > before or self.worst > self.told + 0.1
        if news:
            self.told = self.worst
        return news


class LossDrift(Detector):
    """A rise of 5% and 4 sigma over 500 steps is a WARN, +25% a FAIL; a loss that runs away a FAIL.

    A rise below +25% where batch size, sequence length or epoch changed is left out of it.
    """

    id: ClassVar[str] = "loss.drift"
    name: ClassVar[str] = "Loss Drift and Divergence"
    signals: ClassVar[tuple[str, ...]] = ("loss.train", *HELD_OUT)
    about: ClassVar[tuple[str, ...] | None] = ("loss.train",)
    order: ClassVar[int] = 12
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = (
        "rise of the running level over its lowest, over drift.steps steps or more, against drift.relative and "
        "drift.sigmas times the noise of a level"
    )
    source: ClassVar[str] = "METRICS.md, smallest faults: slow drift"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.held_out = HeldOutTrend()
        self.meant = MeantChanges()
        self.track = DriftTrack(LOSS, limits, self.held_out, self.meant)
        self.divergence = Divergence(LOSS)
        self.early = EarlyRise(LOSS, limits["drift.fail"], self.held_out, self.meant)
        self.rl = Rl()

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Drift up to the first row that tells of a policy run; running away always."""
        self.held_out.feed(frame)
        self.meant.feed(frame)
        if LOSS not in frame.columns:
            self.rl.first_row(frame)
            return ()
        until = self.rl.first_row(frame)
        found: Found = []
        if until:
            self.track.series.feed(frame, found, until if until < len(frame) else None)
            self.early.feed(frame, found, until)
        self.divergence.feed(frame, found, until)
        return in_order(found)

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - the hook
        """An open drift reaches to the last value of its attempt."""
        return [*self.track.finish(), *self.early.finish()]

    def finish(self) -> Iterable[Finding]:
        """What the newest value alone tells."""
        return [*self.track.finish(), *self.early.finish(), *self.divergence.finish()]

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("drift.relative", "drift.sigmas", "drift.steps", "drift.fail")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            return result(
                self,
                verdict,
                tell(view.episodes),
                "the level is compared with the lowest the run has had, over at least 500 steps, or with the last "
                "values before it where the log has few",
                "lower the learning rate (halve it) and go back to a checkpoint before the rise; check data order, "
                "precision and the optimiser's state",
                used,
            )
        count = seen(view, "loss.train")
        if not count:
            return result(self, Verdict.NO_DATA, "no training loss in the log; log it every step")
        if self.track.judged:
            highest = 100 * math.expm1(self.track.highest)
            what = f"never more than {highest:.1f}% above its lowest level"
            return result(self, Verdict.PASS, what, f"{self.track.judged:,} levels compared", used=used)
        if count <= 3:
            return result(self, Verdict.NO_DATA, f"{count:,} loss values are too few to see a rise")
        return result(self, Verdict.PASS, f"{count:,} values, none runs away", used=used)
