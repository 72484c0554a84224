"""Check sys.memory: head-room of the fullest device, and memory that creeps towards its end."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.capacity import capacity_bytes
from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    finding,
    in_order,
    number_fact,
    numbers,
    place,
    result,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.families import keys_of
from trainmon.monitor.detectors.meant import MeantChanges
from trainmon.monitor.detectors.memory_allocator import Fragments, Retries
from trainmon.monitor.detectors.memory_creep import FAST, SLOW, WARMING, RisingBlocks
from trainmon.monitor.detectors.memory_level import MemoryLevel
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

MEMORY = ("sys.peak_memory", "sys.memory_share")
_SMALLER = "lower the micro-batch size, recompute activations or shard more"
ADVICE = {
    "memory_high": _SMALLER,
    "memory_creep": "look for tensors kept across steps (losses not detached, growing caches, evaluation); save a "
    "checkpoint before memory runs out, and restart from it",
    "fragmentation": "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and keep shapes alike from step to step",
    "alloc_retries": _SMALLER,
}


class _Series:
    """One memory series: block maxima for the slope."""

    def __init__(self, key: SignalKey, limits: Thresholds) -> None:
        self.key = key
        self.level = MemoryLevel(key, limits)
        self.values = 0
        self.slow, self.fast = RisingBlocks(SLOW), RisingBlocks(FAST)
        self.highest = 0.0
        self.last_step = math.nan
        self.last: Place | None = None
        self.top: Place | None = None
        self.creep: Severity | None = None
        self.creep_words = ""
        self.creep_detail: dict[str, float | str] = {}
        self.attempt: int | None = None

    def restart(self, attempt: int) -> None:
        """Memory begins anew with the process."""
        self.attempt = attempt
        self.rebase()
        self.level.restart()
        self.last = self.top = self.creep = None

    def rebase(self) -> None:
        """The work of a step has changed, and what it needs with it: the slope begins anew."""
        self.values = 0
        self.slow.clear()
        self.fast.clear()

    def take(self, at: Place, x: float, capacity: float | None) -> bool:
        """One more value; whether the slope may be another now."""
        self.values += 1
        completed = self.slow.take(at, x, capacity)
        if self.values > WARMING:
            return self.fast.take(at, x, capacity) or completed
        self.fast.pass_over(x)
        return completed

    def rising(self) -> RisingBlocks:
        """What tells the slope: the long window, or the short one where only that rises."""
        return self.fast if self.fast.slope > 0 and not self.slow.slope > 0 else self.slow


class Memory(Detector):
    """90% of the capacity is a WARN, 97% a FAIL, for 10 values in a row; a lone value of 97% is a WARN.

    At the present slope the capacity is reached before the end: WARN; within 5% of the steps left: FAIL. The slope
    is that of the maxima of 10 values each (of 5, where it gains 5% of the device within 50), and must be steady.
    Growing allocator retries are a WARN: the device is full, and every step pays for it.
    """

    id: ClassVar[str] = "sys.memory"
    name: ClassVar[str] = "Memory"
    signals: ClassVar[tuple[str, ...]] = (*MEMORY, "sys.fragmentation", "count.alloc_retries")
    order: ClassVar[int] = 22
    triage: ClassVar[str] = "memory"
    formula: ClassVar[str] = "peak / capacity; steps until full = (capacity - peak) / slope"
    source: ClassVar[str] = "METRICS.md D2 and METRICS.md, smallest faults: memory"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.series: dict[SignalKey, _Series] = {}
        self.fragments = Fragments(self.capacity)
        self.retries = Retries()
        self.meant = MeantChanges()

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads peak memory (bytes, or a share of the device) and allocator retries."""
        self.meant.feed(frame)
        found: Found = []
        for key in keys_of(frame, MEMORY):
            until = self._told_from(key, frame) if key.signal == "sys.memory_share" else len(frame)
            if until:
                self._feed(self.series.setdefault(key, _Series(key, self.limits)), frame, until, found)
        self.fragments.feed(frame, found)
        self.retries.feed(frame, found)
        return in_order(found)

    def _told_from(self, share: SignalKey, frame: Frame) -> int:
        """The row from which on the bytes themselves are logged: they are not judged a second time as a share."""
        peak = SignalKey("sys.peak_memory", share.labels)
        if self.capacity(peak) is None:
            return len(frame)
        if peak in self.series:
            return 0
        logged = frame.logged(peak)
        return int(logged[0]) if len(logged) else len(frame)

    def capacity(self, key: SignalKey) -> float | None:
        """In the series' unit; None where it is unknown."""
        if key.signal == "sys.memory_share":
            return 1.0
        return capacity_bytes(self.facts)

    def _feed(self, series: _Series, frame: Frame, until: int, found: Found) -> None:
        rows, steps, values = numbers(frame, series.key)
        if frame.attempt != series.attempt and rows:
            series.restart(frame.attempt)
        capacity = self.capacity(series.key)
        changes = self.meant.rows
        for i, x in enumerate(values):
            if rows[i] >= until:
                break
            if changes and rows[i] >= changes[0]:
                changes = changes[bisect_right(changes, rows[i]) :]
                series.rebase()
            if steps[i] == series.last_step:
                continue
            series.last_step = steps[i]
            series.last = place(frame, rows[i], x)
            if series.top is None or x > series.top.value:
                series.top = series.last
            series.highest = max(series.highest, x)
            if capacity is not None:
                series.level.take(series.last, x / capacity, rows[i], found)
            if series.take(series.last, x, capacity) and capacity is not None:
                self._creep(series, frame, rows[i], x, capacity, found)
        if changes:
            series.rebase()

    def _creep(self, series: _Series, frame: Frame, row: int, x: float, capacity: float, found: Found) -> None:
        rising = series.rising()
        slope = rising.slope
        at = place(frame, row, x)
        total = number_fact(self.facts, "total_steps")
        left = capacity - rising.tops[-1]
        known = series.creep
        until = left / slope if slope > 0 else math.inf
        steps_left = total - at.step if total is not None else math.inf
        reaches = slope > 0 and until < steps_left and (total is not None or until < at.step - rising.steps[0])
        if not reaches:
            if known is not None and slope == 0 and not series.fast.still_gains(capacity):
                series.creep = None
                found.append((row, finding("recover", "memory_creep", series.key, known, at, series.creep_words)))
            return
        series.creep_words = _creep_words(slope, until, at.step, capacity)
        series.creep_detail = {"full_at_step": at.step + until, "slope_per_step": slope}
        soon = total is not None and until <= self.limits["memory.fail_share"] * steps_left
        severity = Severity.FAIL if soon else Severity.WARN
        if known is not None and severity <= known:
            return
        series.creep = severity
        action: Action = "open" if known is None else "grow"
        words, detail = series.creep_words, series.creep_detail
        first = rising.onset() if known is None else None
        found.append((row, finding(action, "memory_creep", series.key, severity, at, words, first, detail)))

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - the hook
        """Open faults reach to the last value of the process that ends."""
        return self.finish()

    def finish(self) -> Iterable[Finding]:
        """Open faults reach to the highest and to the newest value."""
        said = self.fragments.finish()
        for key, series in sorted(self.series.items()):
            said += series.level.finish(series.top, series.last)
            for at in (series.top, series.last) if series.creep is not None else ():
                if at is not None:
                    words, detail = series.creep_words, series.creep_detail
                    severity = series.creep or Severity.WARN
                    said.append(finding("grow", "memory_creep", key, severity, at, words, detail=detail))
        return said

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("memory.warn", "memory.fail", "memory.fail_share")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            return result(
                self,
                verdict,
                tell(view.episodes),
                f"highest {self._highest()}",
                ADVICE[max(view.episodes, key=lambda e: e.severity).kind],
                used,
            )
        if not seen(view, *MEMORY):
            return result(self, Verdict.NO_DATA, "no memory in the log; log peak allocated memory")
        if all(self.capacity(key) is None for key in self.series):
            what = (
                f"highest {self._highest()}; the device's capacity is not known; log the share of it in use, or give "
            )
            what += "the GPU's name or gpu_memory_gb in the run's config"
            return result(self, Verdict.NO_DATA, what)
        return result(self, Verdict.PASS, f"highest {self._highest()}, no creep", used=used)

    def _highest(self) -> str:
        parts = []
        for key, series in sorted(self.series.items()):
            if key.signal == "sys.memory_share":
                parts.append(f"{series.highest:.0%} of the device")
            else:
                parts.append(f"{series.highest / 2**30:.1f} GiB")
        return ", ".join(dict.fromkeys(parts))


def _creep_words(slope: float, until: float, step: float, capacity: float) -> str:
    unit = "of the device" if capacity == 1.0 else "GiB"
    size = 100 * slope * 1000 if capacity == 1.0 else slope * 1000 / 2**30
    rate = f"{size:.2g}{'%' if capacity == 1.0 else ''} {unit} per 1,000 steps"
    if until <= 0:  # the capacity is that of the label, or what was counted need not fit at once
        return f"memory grows by {rate} and stands above the device's capacity at step {step:,.0f}"
    return f"memory grows by {rate}: out of memory in about {_round(until)} steps, near step {_round(step + until)}"


def _round(steps: float) -> str:
    """Two digits: a forecast is no measurement."""
    size = 10.0 ** max(math.floor(math.log10(steps)) - 1, 0) if steps >= 1 else 1.0
    return f"{round(steps / size) * size:,.0f}"
