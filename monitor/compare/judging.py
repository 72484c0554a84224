"""``trainmon compare``: runs side by side at the same x, and whether the difference is more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trainmon.monitor.compare.alignment import (
    UNITS,
    Axis,
    Curve,
    best_axis,
    curve_of,
    differ,
    tokens_per_step,
    unplaced,
)
from trainmon.monitor.compare.scaling import batched, extrapolated
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.per_card import is_per_card
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.stats.middle import median, medians
from trainmon.tails.quick_dataclass import dataclass
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
_MOST_ALIKE = 0.9
_FEWEST_SIZES = 8
_SMALLEST = 0.001  # a relative difference below this means nothing whatever its error


@dataclass(frozen=True, slots=True)
class Standing:
    """One run's place. None where the log does not tell.

    `value` at the common x and `best` are of the curve's medians; `steps_lost` were trained again after restarts and
    `time_lost_s` is what they took; `slope` is that of its last fifth, per 1000 steps,
    billion tokens, exaFLOP or hour; `tokens_per_second` and `step_time_s` are medians of the newest 100 values;
    `per_card`: those tokens are one card's.
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
    per_card: bool = False


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
    stretches = [_stretch(curves[0], curve) for curve in curves[1:]]
    common = min((stretch[1] for stretch in stretches if stretch is not None), default=None)
    standings = tuple(_standing(run, curve, common, chosen, signal) for run, curve in zip(runs, curves, strict=True))
    differences = tuple(
        _difference(run.name, curves[0], curve, stretch, signal, UNITS[chosen])
        for run, curve, stretch in zip(runs[1:], curves[1:], stretches, strict=True)
    )
    named = tuple((run.name, curve) for run, curve in zip(runs, curves, strict=True) if curve is not None)
    return Comparison(
        signal,
        chosen,
        common,
        standings,
        differences,
        settings(runs),
        _remarks(runs, curves, chosen, signal),
        named,
        _outlook(named, signal, chosen),
    )


def _stretch(first: Curve | None, second: Curve | None) -> tuple[float, float] | None:
    """Begin and end of the x that both cover; None where there is none."""
    if first is None or second is None:
        return None
    begin, end = max(float(first.x[0]), float(second.x[0])), min(float(first.x[-1]), float(second.x[-1]))
    return (begin, end) if end > begin else None


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
    is_there = curve is not None and x is not None and curve.x[0] <= x <= curve.x[-1]
    value = float(smooth.at(np.array([x]))[0]) if smooth is not None and is_there else None
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
        per_card=_is_per_card(run, "sys.tokens_per_second"),
    )


def smoothed(curve: Curve) -> Curve:
    """Medians of 50 stretches of equal count: what a noisy curve says at a place."""
    width = max(len(curve) // 50, 1)
    kept = len(curve) // width * width
    tail = slice(len(curve) - kept, None)
    return Curve(
        curve.x[tail].reshape(-1, width).mean(axis=1), medians(curve.y[tail].reshape(-1, width))
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
    return median(recent) if len(recent) else None


def _is_per_card(run: RunSnapshot, signal: str) -> bool:
    view = run.series.get(SignalKey(signal))
    return view is not None and is_per_card(view.raw_key, run.facts)


def _difference(
    name: str,
    first: Curve | None,
    second: Curve | None,
    stretch: tuple[float, float] | None,
    signal: str,
    unit: str,
) -> Difference:
    if first is None or second is None:
        return Difference(name, None, None, "cannot tell", f"{signal} is not logged by both over this axis")
    if stretch is None:
        return Difference(name, None, None, "cannot tell", "the runs have no stretch in common")
    begin, end = stretch
    start = end - _TAIL_SHARE * (end - begin)
    x = first.x[(first.x >= start) & (first.x <= end)]
    other = second.x[(second.x >= start) & (second.x <= end)]
    x = x if len(x) <= len(other) else other
    if len(x) < _FEWEST_POINTS:
        return Difference(name, None, None, "cannot tell", f"only {len(x)} values in the last fifth of what both cover")
    where = f"{len(x)} values, {start:.6g} to {end:.6g} {unit}"
    return _judge(name, second.at(x) - first.at(x), median(np.abs(first.at(x))), signal, where)


def _judge(name: str, difference: FloatArray, scale: float, signal: str, where: str) -> Difference:
    batches = np.array([part.mean() for part in np.array_split(difference, _BATCHES)])
    mean, error = float(difference.mean()), _error(batches)
    why = f"{mean:+.4g} ({mean / scale if scale else math.nan:+.2%}), error {error:.2g} over {where}"
    if abs(mean) <= _T_CUT * error or abs(mean) <= _SMALLEST * scale:
        return Difference(name, mean, error, "cannot tell", f"{why}: within the noise")
    better = _better(signal)
    if better not in ("down", "up"):
        return Difference(name, mean, error, "higher" if mean > 0 else "lower", why)
    is_better = (mean < 0) == (better == "down")
    return Difference(name, mean, error, "better" if is_better else "worse", why)


def _error(batches: FloatArray) -> float:
    """The error of the mean of (n,) batch means. Where neighbours still are alike they tell less than n: the spread
    grows by that of an AR(1) series of their correlation, which n values show too small by about 1/n."""
    away = batches - batches.mean()
    squares = float((away**2).sum())
    error = math.sqrt(squares / (len(batches) - 1) / len(batches))
    if not squares > 0:
        return error
    alike = float((away[1:] * away[:-1]).sum()) / squares + 1 / len(batches)
    alike = min(max(alike, 0.0), _MOST_ALIKE)
    return error * math.sqrt((1 + alike) / (1 - alike))


def _remarks(runs: Sequence[RunSnapshot], curves: Sequence[Curve | None], axis: Axis, signal: str) -> tuple[str, ...]:
    said = [
        f"{run.name}: {unplaced(run, signal, axis)}" for run, curve in zip(runs, curves, strict=True) if curve is None
    ]
    said += [
        f"{run.name}: {signal} is no finite number any more after step {last:.15g}; compared until there"
        for run in runs
        if (last := _last_finite(run, signal)) is not None
    ]
    if axis == "step":
        said += _on_batches(runs)
    if len({_text(run.facts.get("vocab_size")) for run in runs}) > 1:
        said.append("vocabularies differ: losses do not compare; compare bits per byte (eval.bits_per_byte)")
    return tuple(said)


def _last_finite(run: RunSnapshot, signal: str) -> float | None:
    """The last step with a number, where later ones hold NaN or Inf only; None where the run ends in numbers."""
    view = run.series.get(SignalKey(signal))
    if view is None or not len(view.bad_steps) or not len(view.steps):
        return None
    last = float(view.steps[-1])
    return last if float(view.bad_steps[-1]) > last else None


def _on_batches(runs: Sequence[RunSnapshot]) -> list[str]:
    """What steps hide: that they are not the same amount of training."""
    differs = "batch sizes differ: a step is not the same amount of training; "
    paces = [pace for pace in map(tokens_per_step, runs) if pace is not None]
    if len(paces) == len(runs):
        return [f"{differs}--by tokens is fair"] if differ(paces) else []
    batches = {_text(run.facts.get("tokens_per_batch", run.facts.get("batch_size"))) for run in runs}
    return [f"{differs}tokens are not known for every run"] if len(batches) > 1 else []
