"""``trainmon compare``: runs side by side at the same x, and whether the difference is more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainmon.monitor.compare.alignment import Axis, Curve, best_axis, curve_of
from trainmon.monitor.compare.scaling import batched, extrapolated
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.record import FloatArray
from trainmon.tails.text import printable

# The difference is judged on the last fifth of what both runs cover, in ten batches: batch means of a correlated
# noise are nearly independent, and their spread gives the error of the mean without a model of the correlation.
_TAIL_SHARE = 0.2
_BATCHES = 10
_FEWEST_POINTS = 20
_T_CUT = 3.25  # two-sided 1% of Student's t with 9 degrees of freedom
# The slope at the end is told per so much of x.
PER: dict[Axis, tuple[float, str]] = {
    "step": (1e3, "1000 steps"),
    "tokens": (1e9, "billion tokens"),
    "flops": (1e18, "exaFLOP"),
    "time": (3600.0, "hour"),
}
_FEWEST_SIZES = 8
_SMALLEST = 0.001  # a relative difference below this means nothing whatever its error


@dataclass(frozen=True, slots=True)
class Standing:
    """One run's place. None where the log does not tell.

    `value` at the common x and `best` are of the curve's medians; `steps_lost` were trained again after restarts and
    `time_lost_s` is what they took; `slope` is that of its last fifth, per 1000 steps,
    billion tokens, exaFLOP or hour; `tokens_per_second` and `step_time_s` are medians of the newest 100 values.
    """

    name: str
    verdict: str
    x_end: float | None
    value: float | None
    best: float | None
    slope: float | None
    tokens_per_second: float | None
    step_time_s: float | None
    spikes: int
    steps_lost: float
    time_lost_s: float | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """`run` against the first run: mean difference over the judged stretch, its error, and the verdict in words."""

    name: str
    difference: float | None
    error: float | None
    verdict: str
    why: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where a power law puts the signal beyond the data: `what` is a run that goes on, or all runs by their size."""

    what: str
    x: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What ``compare`` says of one signal."""

    signal: str
    axis: Axis
    x: float | None
    standings: tuple[Standing, ...]
    differences: tuple[Difference, ...]
    settings: tuple[tuple[str, tuple[str, ...]], ...]
    remarks: tuple[str, ...]
    curves: tuple[tuple[str, Curve], ...] = ()
    outlook: tuple[Outlook, ...] = ()


def compare(runs: Sequence[RunSnapshot], signal: str = "loss.train", axis: Axis | None = None) -> Comparison:
    """Compares two or more runs by `signal` over `axis` (the doctrine's choice when None)."""
    with np.errstate(over="ignore", invalid="ignore"):  # losses near the largest number: no verdict, no complaint
        return _compared(runs, signal, axis)


def _compared(runs: Sequence[RunSnapshot], signal: str, axis: Axis | None) -> Comparison:
    chosen = axis or best_axis(list(runs))
    curves = [curve_of(run, signal, chosen) for run in runs]
    known = [curve for curve in curves if curve is not None]
    end = min((float(curve.x[-1]) for curve in known), default=math.nan)
    begin = max((float(curve.x[0]) for curve in known), default=math.nan)
    common = end if end > begin else None
    standings = tuple(_standing(run, curve, common, chosen, signal) for run, curve in zip(runs, curves, strict=True))
    differences = tuple(
        _difference(run.name, curves[0], curve, begin, end, signal)
        for run, curve in zip(runs[1:], curves[1:], strict=True)
    )
    named = tuple((run.name, curve) for run, curve in zip(runs, curves, strict=True) if curve is not None)
    return Comparison(
        signal,
        chosen,
        common,
        standings,
        differences,
        settings(runs),
        _remarks(runs, curves, chosen),
        named,
        _outlook(named, signal, chosen),
    )


def _outlook(curves: Sequence[tuple[str, Curve]], signal: str, axis: Axis) -> tuple[Outlook, ...]:
    """Each run at twice its own x, and, from eight runs of different size on, all of them at twice the largest."""
    if axis == "time" or _better(signal) != "down":
        return ()
    found = []
    for name, curve in curves:
        ahead = extrapolated(*batched(curve.x, curve.y), at=2.0 * float(curve.x[-1]))
        if ahead is not None:
            found.append(Outlook(name, ahead.x, ahead.low, ahead.high))
    ends = np.array([float(curve.x[-1]) for _, curve in curves])
    if len(set(ends.tolist())) >= _FEWEST_SIZES:
        lasts = np.array([float(smoothed(curve).y[-1]) for _, curve in curves])
        ahead = extrapolated(ends, lasts, at=2.0 * float(ends.max()))
        if ahead is not None:
            found.append(Outlook("a run of twice the largest", ahead.x, ahead.low, ahead.high))
    return tuple(found)


def _better(signal: str) -> str:
    return BY_ID[signal].better if signal in BY_ID else ""


def settings(runs: Sequence[RunSnapshot]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The facts in which the runs differ: name, and each run's value as text ("-" where it does not say)."""
    names = sorted({name for run in runs for name in run.facts})
    rows = [(name, tuple(_text(run.facts.get(name)) for run in runs)) for name in names]
    return tuple((name, values) for name, values in rows if len(set(values)) > 1)


def _text(value: float | str | None) -> str:
    if value is None:
        return "-"
    return f"{value:.10g}" if isinstance(value, (int, float)) else printable(value, 40)


def _standing(run: RunSnapshot, curve: Curve | None, x: float | None, axis: Axis, signal: str) -> Standing:
    spikes = sum(episode.kind == "spike" and episode.severity >= Severity.WARN for episode in run.episodes)
    lost = sum(
        max(before[1] - after[0] + 1, 0.0) for before, after in zip(run.attempts, run.attempts[1:], strict=False)
    )
    smooth = smoothed(curve) if curve is not None else None
    step_time = _recent(run, "sys.step_time")
    value = None if smooth is None or x is None else float(smooth.at(np.array([x]))[0])
    return Standing(
        name=run.name,
        verdict=run.verdict.value,
        x_end=None if curve is None else float(curve.x[-1]),
        value=value,
        best=None if smooth is None else float(smooth.y.max() if _better(signal) == "up" else smooth.y.min()),
        slope=None if curve is None else _slope(curve) * PER[axis][0],
        tokens_per_second=_recent(run, "sys.tokens_per_second"),
        step_time_s=step_time,
        spikes=spikes,
        steps_lost=lost,
        time_lost_s=None if step_time is None else lost * step_time,
    )


def smoothed(curve: Curve) -> Curve:
    """Medians of 50 stretches of equal count: what a noisy curve says at a place."""
    width = max(len(curve) // 50, 1)
    kept = len(curve) // width * width
    tail = slice(len(curve) - kept, None)
    return Curve(
        curve.x[tail].reshape(-1, width).mean(axis=1), np.median(curve.y[tail].reshape(-1, width), axis=1)
    )  # fmt: skip


def _slope(curve: Curve) -> float:
    last = curve.x >= curve.x[-1] - _TAIL_SHARE * (curve.x[-1] - curve.x[0])
    x, y = curve.x[last], curve.y[last]
    return float(np.polyfit(x - x[0], y, 1)[0]) if len(x) >= 3 and x[-1] > x[0] else math.nan


def _recent(run: RunSnapshot, signal: str) -> float | None:
    view = run.series.get(SignalKey(signal))
    if view is None:
        return None
    recent = view.values[-100:]
    recent = recent[np.isfinite(recent)]
    return float(np.median(recent)) if len(recent) else None


def _difference(
    name: str, first: Curve | None, second: Curve | None, begin: float, end: float, signal: str
) -> Difference:
    if first is None or second is None:
        return Difference(name, None, None, "cannot tell", f"{signal} is not logged by both over this axis")
    if not end > begin:
        return Difference(name, None, None, "cannot tell", "the runs have no stretch in common")
    start = end - _TAIL_SHARE * (end - begin)
    x = first.x[(first.x >= start) & (first.x <= end)]
    other = second.x[(second.x >= start) & (second.x <= end)]
    x = x if len(x) <= len(other) else other
    if len(x) < _FEWEST_POINTS:
        return Difference(name, None, None, "cannot tell", f"only {len(x)} values in the last fifth of what both cover")
    return _judge(name, second.at(x) - first.at(x), float(np.median(np.abs(first.at(x)))), signal)


def _judge(name: str, difference: FloatArray, scale: float, signal: str) -> Difference:
    batches = [float(part.mean()) for part in np.array_split(difference, _BATCHES)]
    mean = float(difference.mean())
    error = float(np.std(batches, ddof=1) / math.sqrt(_BATCHES))
    why = f"{mean:+.4g} ({mean / scale if scale else math.nan:+.2%}), error {error:.2g} over {len(difference)} values"
    if abs(mean) <= _T_CUT * error or abs(mean) <= _SMALLEST * scale:
        return Difference(name, mean, error, "cannot tell", f"{why}: within the noise")
    better = _better(signal)
    if better not in ("down", "up"):
        return Difference(name, mean, error, "higher" if mean > 0 else "lower", why)
    is_better = (mean < 0) == (better == "down")
    return Difference(name, mean, error, "better" if is_better else "worse", why)


def _remarks(runs: Sequence[RunSnapshot], curves: Sequence[Curve | None], axis: Axis) -> tuple[str, ...]:
    said = [
        f"{run.name}: cannot be placed by {axis}; log it, or use --by step"
        for run, curve in zip(runs, curves, strict=True)
        if curve is None
    ]
    if (
        axis == "step"
        and len({_text(run.facts.get("tokens_per_batch", run.facts.get("batch_size"))) for run in runs}) > 1
    ):
        said.append("batch sizes differ: a step is not the same amount of training; tokens are not known for every run")
    if len({_text(run.facts.get("vocab_size")) for run in runs}) > 1:
        said.append("vocabularies differ: losses do not compare; compare bits per byte (eval.bits_per_byte)")
    return tuple(said)
