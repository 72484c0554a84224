"""D8, D9: step time, tokens a second, FLOP/s and MFU from time stamps, facts and each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from trainmon.monitor.capacity import capacity_bytes
from trainmon.monitor.derive.base import DerivationRule, DraftLike, number_fact
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.per_card import is_per_card
from trainmon.monitor.stats.only_rises import OnlyRises
from trainmon.monitor.step_unit import Unit, counted
from trainmon.tails.record import FloatArray, IntArray, TimeKind

STEP_TIME: Final = SignalKey("sys.step_time")
TOKENS: Final = SignalKey("sys.tokens_per_second")
_TOKENS_TEXT: Final = "samples/s * sequence length, or tokens of a step / step time (D8)"
# Stamps of whole seconds are differenced over at least this long, so that rounding stays below 5%.
_COARSE_SPAN_S: Final = 20.0
# Dense bf16/fp16 peak of one card, FLOP/s, from the vendors' data sheets; longest name first where one holds another.
_PEAK_FLOPS: Final = (
    ("b200", 2.25e15),
    ("h200", 9.89e14),
    ("h100 pcie", 7.56e14),
    ("h100", 9.89e14),
    ("h800", 9.89e14),
    ("a100", 3.12e14),
    ("a800", 3.12e14),
    ("l40s", 3.62e14),
    ("mi300x", 1.307e15),
    ("v100", 1.25e14),
)
_HALF_PRECISION: Final = ("bf16", "bfloat16", "fp16", "float16", "half", "16-mixed")


class StepTimeRule(DerivationRule):
    """D8: the inverse of logged steps per second, else differences of time stamps over differences of steps.

    Stamps within an attempt; arrival times are not used. Where the step counts tokens or samples it is the time of a
    record: how many steps those took is not told.
    """

    def __init__(self, facts: Mapping[str, float | str]) -> None:
        self._facts = facts
        self._coarse = True
        self.new_attempt()

    def new_attempt(self) -> None:
        """Time stamps are never differenced across attempts."""
        self._step = -np.inf
        self._time = np.nan
        self._top = -np.inf
        self._records = 0

    def apply(self, draft: DraftLike) -> None:
        """Puts `sys.step_time`, s."""
        frame = draft.frame
        rate = draft.column("sys.steps_per_second")
        has_times = frame.time_kind in (TimeKind.ABSOLUTE, TimeKind.NAIVE)
        if not draft.wants(STEP_TIME) or not (has_times or rate is not None):
            return
        result = self._by_stamps(frame) if has_times else np.full(len(frame), np.nan)
        if rate is None:
            of_record = "" if counted(self._facts) == "steps" else ", of a record"
            draft.put(STEP_TIME, result, f"differences of time stamps{of_record} (D8)")
            return
        told = np.divide(1.0, rate, out=np.full(len(rate), np.nan), where=rate > 0)
        draft.put(STEP_TIME, np.where(np.isnan(told), result, told), "1 / steps per second, or time stamps (D8)")

    def _by_stamps(self, frame: Frame) -> FloatArray:
        known = np.flatnonzero(~np.isnan(frame.times))
        by_record = counted(self._facts) != "steps"
        top = np.maximum.accumulate(np.concatenate(([self._top if by_record else self._step], frame.steps[known])))
        rows = known[frame.steps[known] > top[:-1]]
        steps = frame.steps
        if by_record:
            steps = np.full(len(frame), np.nan)
            steps[rows] = self._records + np.arange(1, len(rows) + 1)
            self._records += len(rows)
            self._top = float(top[-1])
        result = np.full(len(frame), np.nan)
        fine = np.flatnonzero(frame.times[rows] % 1.0 != 0.0)
        if self._coarse:
            edge = int(fine[0]) if len(fine) else len(rows)
            self._coarse = not len(fine)
            self._coarse_rows(steps, frame.times, rows[:edge], result)
            rows = rows[edge:]
        self._fine_rows(steps, frame.times, rows, result)
        return result

    def _fine_rows(self, steps: FloatArray, times: FloatArray, rows: IntArray, result: FloatArray) -> None:
        if not len(rows):
            return
        before_step = self._step if np.isfinite(self._step) else np.nan
        seconds = np.diff(times[rows], prepend=self._time)
        width = np.diff(steps[rows], prepend=before_step)
        result[rows] = np.where(seconds > 0, seconds / width, np.nan)
        self._step, self._time = float(steps[rows[-1]]), float(times[rows[-1]])

    def _coarse_rows(self, steps: FloatArray, times: FloatArray, rows: IntArray, result: FloatArray) -> None:
        if not len(rows):
            return
        if np.isnan(self._time):
            self._step, self._time = float(steps[rows[0]]), float(times[rows[0]])
            rows = rows[1:]
        stamps = np.maximum.accumulate(times[rows]) if len(rows) else times[:0]
        at = 0
        while at < len(rows):
            if times[rows[at]] < self._time:  # the clock was set back
                self._step, self._time = float(steps[rows[at]]), float(times[rows[at]])
                at += 1
                continue
            at = max(at, int(np.searchsorted(stamps, self._time + _COARSE_SPAN_S)))
            if at < len(rows):
                row = rows[at]
                result[row] = (times[row] - self._time) / (steps[row] - self._step)
                self._step, self._time = float(steps[row]), float(times[row])
                at += 1


class TokenRateRule(DerivationRule):
    """D8: TPS = valid tokens / tau; tokens of a step as logged, from the count of tokens seen, or from the facts."""

    def __init__(self, facts: Mapping[str, float | str]) -> None:
        self._facts = facts
        self._clock = OnlyRises()
        self.new_attempt()

    def new_attempt(self) -> None:
        """Token counts are not differenced across attempts."""
        self._clock.new_attempt()
        self._step = np.nan
        self._tokens = np.nan

    def apply(self, draft: DraftLike) -> None:
        """Puts `sys.tokens_per_second`."""
        if not draft.wants(TOKENS):
            return
        step_time = draft.column("sys.step_time")
        grown = self._tokens_seen(draft)
        samples = draft.column("sys.samples_per_second")
        length = number_fact(self._facts, "seq_length")
        by_samples = samples * length if samples is not None and length is not None else None
        if step_time is None:
            if by_samples is not None:
                draft.put(TOKENS, by_samples, _TOKENS_TEXT)
            return
        per_step = draft.column("batch.tokens")
        tokens = np.full(len(draft), np.nan) if per_step is None else per_step
        tokens = np.where(np.isnan(tokens), grown, tokens)
        fixed = self._fixed()
        if fixed is not None:
            tokens = np.where(np.isnan(tokens), fixed, tokens)
        usable = step_time > 0
        known = np.isfinite(step_time)
        usable[known] &= ~self._clock.update(step_time[known])
        rate = np.divide(tokens, step_time, out=np.full(len(draft), np.nan), where=usable)
        if by_samples is not None:
            rate = np.where(np.isnan(by_samples), rate, by_samples)
        draft.put(TOKENS, rate, _TOKENS_TEXT)

    def _fixed(self) -> float | None:
        tokens = number_fact(self._facts, "tokens_per_batch")
        batch, length = number_fact(self._facts, "batch_size"), number_fact(self._facts, "seq_length")
        return tokens if tokens is not None or batch is None or length is None else batch * length

    def _counted(self, unit: Unit, steps: FloatArray) -> FloatArray | None:
        """(n,) the tokens seen, where the `steps` count tokens, or samples of a known length."""
        if unit == "tokens":
            return steps
        length = number_fact(self._facts, "seq_length")
        return None if length is None else steps * length

    def _tokens_seen(self, draft: DraftLike) -> FloatArray:
        result = np.full(len(draft), np.nan)
        unit = counted(self._facts)
        seen = self._counted(unit, draft.frame.steps) if unit != "steps" else draft.column("progress.tokens")
        if seen is None:
            return result
        rows = np.flatnonzero(np.isfinite(seen))
        steps = draft.frame.steps[rows]
        grown = np.diff(seen[rows], prepend=self._tokens)
        width = np.diff(steps, prepend=self._step) if unit == "steps" else np.ones(len(rows))
        result[rows] = np.divide(grown, width, out=np.full(len(rows), np.nan), where=(width > 0) & (grown > 0))
        if len(rows):
            self._step, self._tokens = float(steps[-1]), float(seen[rows[-1]])
        return result


class ComputeRule(DerivationRule):
    """D9: 6 * active parameters * tokens/s a card, and MFU against the card's dense half-precision peak."""

    def __init__(self, facts: Mapping[str, float | str]) -> None:
        self._facts = facts

    def apply(self, draft: DraftLike) -> None:
        """Puts `sys.compute_rate`, FLOP/s a card, and `sys.mfu`."""
        rate = draft.column("sys.compute_rate")
        key = SignalKey("sys.compute_rate")
        tokens = draft.column("sys.tokens_per_second")
        parameters = number_fact(self._facts, "active_parameters", "parameters")
        cards = 1.0 if is_per_card("tps", self._facts) else number_fact(self._facts, "world_size")
        if draft.wants(key) and tokens is not None and parameters is not None and cards is not None:
            draft.put(key, 6.0 * parameters * tokens / cards, "6 * active parameters * tokens/s / cards (D9)")
            rate = draft.columns.get(key)
        peak = peak_flops(str(self._facts.get("gpu", "")), str(self._facts.get("precision", "")))
        if rate is not None and peak is not None:
            draft.put(SignalKey("sys.mfu"), rate / peak, f"FLOP/s over {peak:.3g}, the card's dense peak (D9)")


def peak_flops(gpu: str, precision: str) -> float | None:
    """Dense peak of `gpu` for half precision, FLOP/s; None for an unknown card or another precision.

    >>> peak_flops("NVIDIA H100 80GB HBM3", "bf16"), peak_flops("NVIDIA H100 80GB HBM3", "fp8")
    (989000000000000.0, None)
    """
    if precision.lower() not in _HALF_PRECISION:
        return None
    name = gpu.lower().replace("-", " ")
    return next((peak for part, peak in _PEAK_FLOPS if part in name), None)


class MemoryShareRule(DerivationRule):
    """Peak memory over the card's capacity."""

    def __init__(self, facts: Mapping[str, float | str]) -> None:
        self._facts = facts

    def apply(self, draft: DraftLike) -> None:
        """Puts `sys.memory_share`."""
        peak = draft.column("sys.peak_memory")
        capacity = capacity_bytes(self._facts)
        if peak is not None and capacity is not None:
            draft.put(SignalKey("sys.memory_share"), peak / capacity, "peak memory over the card's capacity")


class FragmentationRule(DerivationRule):
    """Fragmentation = reserved - allocated memory, of the same row."""

    def apply(self, draft: DraftLike) -> None:
        """Puts `sys.fragmentation`, bytes."""
        if "sys.reserved_memory" not in draft.families:
            return
        peak = draft.column("sys.peak_memory")
        reserved = draft.column("sys.reserved_memory")
        if peak is not None and reserved is not None:
            idle = reserved - peak
            draft.put(SignalKey("sys.fragmentation"), np.where(idle >= 0, idle, np.nan), "reserved - allocated memory")
