"""``trainmon compare``: runs side by side at the same x, and whether the difference is more than noise."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainmon import version
from trainmon.monitor.alignment import UNITS, Axis, Curve, best_axis, curve_of
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
_PER: dict[Axis, tuple[float, str]] = {
    "step": (1e3, "1000 steps"),
    "tokens": (1e9, "billion tokens"),
    "flops": (1e18, "exaFLOP"),
    "time": (3600.0, "hour"),
}
_SMALLEST = 0.001  # a relative difference below this means nothing whatever its error


@dataclass(frozen=True, slots=True)
class Standing:
    """One run's place. None where the log does not tell.

    `value` at the common x and `best` are of the curve's medians; `slope` is that of its last fifth, per 1000 steps,
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


@dataclass(frozen=True, slots=True)
class Difference:
    """`run` against the first run: mean difference over the judged stretch, its error, and the verdict in words."""

    name: str
    difference: float | None
    error: float | None
    verdict: str
    why: str


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


def compare(runs: Sequence[RunSnapshot], signal: str = "loss.train", axis: Axis | None = None) -> Comparison:
    """Compares two or more runs by `signal` over `axis` (the doctrine's choice when None)."""
    chosen = axis or best_axis(list(runs))
    curves = [curve_of(run, signal, chosen) for run in runs]
    known = [curve for curve in curves if curve is not None]
    end = min((float(curve.x[-1]) for curve in known), default=math.nan)
    begin = max((float(curve.x[0]) for curve in known), default=math.nan)
    common = end if end > begin else None
    standings = tuple(_standing(run, curve, common, chosen) for run, curve in zip(runs, curves, strict=True))
    differences = tuple(
        _difference(run.name, curves[0], curve, begin, end, signal)
        for run, curve in zip(runs[1:], curves[1:], strict=True)
    )
    return Comparison(signal, chosen, common, standings, differences, settings(runs), _remarks(runs, curves, chosen))


def settings(runs: Sequence[RunSnapshot]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The facts in which the runs differ: name, and each run's value as text ("-" where it does not say)."""
    names = sorted({name for run in runs for name in run.facts})
    rows = [(name, tuple(_text(run.facts.get(name)) for run in runs)) for name in names]
    return tuple((name, values) for name, values in rows if len(set(values)) > 1)


def _text(value: float | str | None) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, (int, float)) else printable(value, 40)


def _standing(run: RunSnapshot, curve: Curve | None, x: float | None, axis: Axis) -> Standing:
    spikes = sum(episode.kind == "spike" and episode.severity >= Severity.WARN for episode in run.episodes)
    lost = sum(
        max(before[1] - after[0] + 1, 0.0) for before, after in zip(run.attempts, run.attempts[1:], strict=False)
    )
    smooth = _smooth(curve) if curve is not None else None
    value = None if smooth is None or x is None else float(smooth.at(np.array([x]))[0])
    return Standing(
        name=run.name,
        verdict=run.verdict.value,
        x_end=None if curve is None else float(curve.x[-1]),
        value=value,
        best=None if smooth is None else float(smooth.y.min()),
        slope=None if curve is None else _slope(curve) * _PER[axis][0],
        tokens_per_second=_recent(run, "sys.tokens_per_second"),
        step_time_s=_recent(run, "sys.step_time"),
        spikes=spikes,
        steps_lost=lost,
    )


def _smooth(curve: Curve) -> Curve:
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
    better = BY_ID[signal].better if signal in BY_ID else ""
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


# -- what is printed ---------------------------------------------------------------------------------------------

_COLUMNS = ("run", "verdict", "value", "best", "slope", "tokens/s", "step s", "spikes", "steps lost", "x end")


def _short(name: str) -> str:
    """A long name cut in its middle: runs of a sweep differ at their ends.

    >>> len(_short("a" * 60)), _short("run-1")
    (40, 'run-1')
    """
    shown = printable(name)
    return shown if len(shown) <= 40 else f"{shown[:14]}…{shown[-25:]}"


def _cells(standing: Standing) -> tuple[str, ...]:
    numbers = (
        standing.value,
        standing.best,
        standing.slope,
        standing.tokens_per_second,
        standing.step_time_s,
    )
    shown = tuple("-" if number is None or math.isnan(number) else f"{number:.4g}" for number in numbers)
    end = "-" if standing.x_end is None else f"{standing.x_end:.4g}"
    return (
        _short(standing.name),
        standing.verdict,
        *shown,
        str(standing.spikes),
        f"{standing.steps_lost:g}",
        end,
    )


def text(result: Comparison, *, markdown: bool = False) -> str:
    """For people: the table, the differences, and the settings that differ."""
    where = "no common stretch" if result.x is None else f"values at {result.x:.6g} {UNITS[result.axis]}"
    lines = [f"{result.signal} by {result.axis}: {where}; slope per {_PER[result.axis][1]}", ""]
    lines += _table([_COLUMNS, *(_cells(standing) for standing in result.standings)], markdown=markdown)
    if result.differences:
        lines.append("")
        first = _short(result.standings[0].name)
        lines += [f"{_short(each.name)} against {first}: {each.verdict} ({each.why})" for each in result.differences]
    if result.settings:
        names = ("setting", *(_short(standing.name) for standing in result.standings))
        lines += ["", *_table([names, *((name, *values) for name, values in result.settings)], markdown=markdown)]
    lines += [printable(remark, 200) for remark in result.remarks]
    return "\n".join(lines)


def _table(rows: Sequence[Sequence[str]], *, markdown: bool) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if markdown:
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        return [lines[0], "| " + " | ".join("---" for _ in widths) + " |", *lines[1:]]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def table_csv(result: Comparison) -> str:
    """The table of standings as CSV, numbers as they are."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = list(Standing.__dataclass_fields__)
    writer.writerow([*fields, "x"])
    for standing in result.standings:
        values = [getattr(standing, name) for name in fields]
        writer.writerow(["" if value is None else value for value in (*values, result.x)])
    return out.getvalue()


def document(results: Sequence[Comparison]) -> dict[str, object]:
    """``trainmon.compare/1``."""
    return {
        "schema": "trainmon.compare/1",
        "version": version(),
        "comparisons": [
            {
                "signal": result.signal,
                "by": result.axis,
                "x": result.x,
                "runs": [
                    {name: getattr(one, name) for name in Standing.__dataclass_fields__} for one in result.standings
                ],
                "differences": [
                    {name: getattr(one, name) for name in Difference.__dataclass_fields__} for one in result.differences
                ],
                "settings": {name: list(values) for name, values in result.settings},
                "remarks": list(result.remarks),
            }
            for result in results
        ],
    }
