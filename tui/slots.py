"""From a run's snapshot to the charts of its first screen: nine places, each with what it shows or what it lacks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from trainmon.monitor.finding import Episode, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.signals import BY_ID, FIRST_SCREEN, Signal
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.monitor.stats.middle import median
from trainmon.monitor.thresholds import DEFAULTS
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable
from trainmon.tui import numbers
from trainmon.tui.axis import Mapping, mapping
from trainmon.tui.chart import Chart, Shade
from trainmon.tui.curve import Curve, curve_of
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.levels import thinned
from trainmon.tui.rates import unit_of
from trainmon.tui.ticks import ticks_of

RL_SCREEN: tuple[tuple[str, ...], ...] = (
    ("loss.train",),
    ("reward.mean",),
    ("grad.norm", "grad.clip_rate"),
    ("policy.kl",),
    ("sys.step_time", "sys.tokens_per_second"),
    ("sys.peak_memory", "sys.memory_share"),
    ("policy.entropy",),
    ("policy.length",),
    ("policy.zero_variance", "policy.generation_time"),
)
# Where a title has little room.
SHORT_TITLES = {"gradient norm": "grad norm", "loss by source": "by source", "bits per byte": "bits/byte"}
_TITLES = {"spike.score": "spike score", "tensor.abs_max": "output AbsMax"}
_DRAWN_FIRST = {"spike.co_count": "spike.score", "sys.peak_memory": "sys.memory_share"}
_MOST_CURVES = 6
_CHANGE_WINDOW = 100


@dataclass(frozen=True, slots=True)
class Absent:
    """A place without data: why, and what to log. `verdict` is NO DATA or N/A."""

    number: str
    title: str
    reason: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """What the run screen has to draw, in the order of the table. `leads`: signal -> number of the chart it has."""

    charts: tuple[Chart, ...]
    absent: tuple[Absent, ...]
    leads: dict[str, str]


def first_screen(run: RunSnapshot, glyphs: Glyphs, axis: str = "step") -> FirstScreen:
    """The nine places of METRICS.md; for RL runs the rows that do not apply give way to reward, KL and the like."""
    charts: list[Chart] = []
    absent: list[Absent] = []
    leads: dict[str, str] = {}
    for index, slot in enumerate(RL_SCREEN if run.rl else FIRST_SCREEN):
        number = str(index + 1)
        there = [signal for signal in slot if signal not in leads and _family(run, signal)]
        if not there:
            absent.append(_absent(run, number, slot))
            continue
        lead = next((_DRAWN_FIRST[signal] for signal in there if _DRAWN_FIRST.get(signal) in there), there[0])
        leads[lead] = number
        rest = tuple(signal for signal in there if signal != lead)
        charts.append(slot_chart(run, lead, rest, number, glyphs, axis))
    return FirstScreen(tuple(charts), tuple(absent), leads)


def added_charts(run: RunSnapshot, signals: Iterable[str], glyphs: Glyphs, axis: str = "step") -> tuple[Chart, ...]:
    """A chart for each of `signals` that the run logs, numbered +1, +2, ..."""
    charts: list[Chart] = []
    for signal in signals:
        if views := _family(run, signal):
            number = f"+{len(charts) + 1}"
            charts.append(series_chart(run, views, number, glyphs, _title(views[0].key), axis=axis))
    return tuple(charts)


def slot_chart(
    run: RunSnapshot, lead: str, others: tuple[str, ...], number: str, glyphs: Glyphs, axis: str = "step"
) -> Chart:
    """The chart of signal `lead`; `others` of the same unit are drawn with it, the rest are named in its title."""
    drawn = _family(run, lead)
    unit = drawn[0].unit
    beside = []
    for signal in others:
        views = _family(run, signal)
        if views[0].unit == unit and signal.partition(".")[0] == lead.partition(".")[0] and len(views) == 1:
            drawn = [*drawn, views[0]]
            continue
        beside.append(f"{_title(views[0].key)} {numbers.with_unit(views[0].last, unit_of(run, views[0]))}")
    evaluated = run.series.get(SignalKey("eval.nll")) if lead == "loss.train" else None
    points = evaluated if evaluated is not None and evaluated.values.size else None
    if points is not None:
        beside.insert(0, f"{glyphs.point} {_title(points.key)} {numbers.plain(points.last)}")
    title, words = _title(drawn[0].key), ", ".join(beside)
    return series_chart(run, drawn, number, glyphs, title=title, beside=words, axis=axis, points=points)


def series_chart(
    run: RunSnapshot,
    views: list[SeriesView],
    number: str,
    glyphs: Glyphs,
    title: str,
    beside: str = "",
    window: tuple[float, float] | None = None,
    axis: str = "step",
    points: SeriesView | None = None,
) -> Chart:
    """A chart of `views` (at least one) with the run's episodes on their signals, labelled where there are several.

    `window` in steps; `axis` one of `axis.AXES`: a series that cannot be put on it stays by step. `points`: a series
    whose values are marked on the same axes.
    """
    lead = views[0]
    unit = unit_of(run, lead)
    views = views[:_MOST_CURVES]
    along = mapping(run, thinned(lead), axis)
    curves = tuple(_curve(run, view, place, len(views), axis if along else "step") for place, view in enumerate(views))
    names = {view.key.signal for view in views}
    ticks = ticks_of(run, along)
    shades = shades_of(run.episodes, names, glyphs)
    if along is not None:
        shades = tuple(_moved(shade, along) for shade in shades)
        window = None if window is None else _ends(along, window)
    signal = BY_ID.get(lead.key.signal)
    limit = threshold_of(run, lead.key.signal)
    if len(views) > 1:
        legend = ", ".join(_legend(curve, view, lead) for curve, view in zip(curves, views, strict=True))
        beside = f"{legend}{', ' + beside if beside else ''}"
    return Chart(
        title=title,
        curves=curves,
        key=(
            tuple(map(_fingerprint, views)),
            shades,
            limit,
            beside,
            window,
            run.name,
            axis,
            len(run.notes),
            ticks,
            run.preview,
        ),
        number=number,
        value=current(lead, unit),
        change="" if lead.unit in ("z", "steps") else recent_change(lead),
        beside=beside,
        unit=unit,
        x_name=x_name(run) if along is None else axis,
        preview=run.preview,
        ticks=ticks,
        points=() if points is None else (_points(points, along),),
        threshold=limit,
        shades=shades,
        window=window,
        signals=tuple(sorted(names)),
        least_span=0.1 if signal is not None and signal.group == "System" else 0.0,
        floor=0.0 if lead.unit == "z" else None,
        clip_start=signal is not None and signal.better == "down" and signal.group in ("Loss", "Evaluation"),
    )


def _points(view: SeriesView, along: Mapping | None) -> Curve:
    """The values of `view` at their place by step, or along the axis of another series."""
    mapped = None if along is None else Mapping(along.at(view.steps), along.known)
    return curve_of(view, "", "value", mapped)


def _curve(run: RunSnapshot, view: SeriesView, place: int, total: int, axis: str) -> Curve:
    label = "abcdef"[place] if total > 1 else ""
    return curve_of(view, label, f"line{place}", mapping(run, thinned(view), axis))


def _ends(along: Mapping, steps: tuple[float, float]) -> tuple[float, float]:
    first, last = along.at(np.array(steps)).tolist()
    return first, last


def _moved(shade: Shade, along: Mapping) -> Shade:
    first, last = _ends(along, (shade.first, shade.last))
    return Shade(first, last, shade.style, shade.glyph)


def _legend(curve: Curve, view: SeriesView, lead: SeriesView) -> str:
    value = "" if view is lead else f" {numbers.plain(view.last)}"
    return f"{curve.label}={_label_words(view.key)}{value}"


def _fingerprint(view: SeriesView) -> tuple[object, ...]:
    """Changes whenever the picture of the series does, also when the session made new arrays of the same values."""
    edge = (float(view.steps[0]), float(view.steps[-1])) if view.steps.size else ()
    return (view.key, view.count, view.steps.size, view.bad_steps.size, edge, repr(view.last), view.unit)


def shades_of(episodes: tuple[Episode, ...], signals: set[str], glyphs: Glyphs) -> tuple[Shade, ...]:
    """The episodes on `signals` as shades."""
    return tuple(
        Shade(one.first_step, one.last_step, one.severity.name.lower(), glyphs.severities[one.severity])
        for one in episodes
        if one.signal.signal in signals
    )


def threshold_of(run: RunSnapshot, signal: str) -> float | None:
    """The line worth drawing: where a value of this signal begins to matter by itself; None when there is none."""
    limits: dict[str, float | str] = {}
    for check in run.checks:
        limits |= check.thresholds
    clip = run.facts.get("clip_threshold")
    wanted = {
        "spike.score": limits.get("spike.z", DEFAULTS["spike.z"]),
        "sys.memory_share": limits.get("memory.warn", DEFAULTS["memory.warn"]),
        "grad.norm": clip if clip is not None else limits.get("clip"),
        "moe.maxvio": limits.get("moe.maxvio.level", DEFAULTS["moe.maxvio.level"]),
        "sys.straggler": limits.get("straggler.warn", DEFAULTS["straggler.warn"]),
    }.get(signal)
    if signal == "sys.peak_memory":
        wanted = run.facts.get("gpu_memory_bytes")
    return float(wanted) if isinstance(wanted, int | float) and np.isfinite(wanted) else None


def current(view: SeriesView, unit: str) -> str:
    """The newest value in `unit`; where that is no number, also the newest that is one."""
    text = numbers.with_unit(view.last, unit)
    if not np.isfinite(view.last) and view.values.size:
        text += f", last {numbers.axis(float(view.values[-1]), view.unit)}"
    return text


def title_of(key: SignalKey) -> str:
    """What a chart of this series is called."""
    return _title(key)


def recent_change(view: SeriesView) -> str:
    """The last value against the median of the hundred before it; an evaluation against the one before."""
    signal = BY_ID.get(view.key.signal)
    if signal is not None and signal.group == "Evaluation":
        return numbers.change(float(view.values[-2]), view.last) if view.values.size >= 2 else ""
    before = view.values[-_CHANGE_WINDOW - 1 : -1]
    before = before[np.isfinite(before)]
    return numbers.change(median(before), view.last) if before.size >= 3 else ""


def x_name(run: RunSnapshot) -> str:
    """What the x axis counts, in the log's own word."""
    return printable(run.step_key, 20) or "record"


def family(run: RunSnapshot, signal: str) -> list[SeriesView]:
    """The series of one signal that hold anything; by last value, worst first, where there are several."""
    return _family(run, signal)


def _family(run: RunSnapshot, signal: str) -> list[SeriesView]:
    views = [view for key, view in run.series.items() if key.signal == signal and (view.count or view.bad_steps.size)]
    if len(views) > 1:
        views.sort(key=lambda view: (-view.last if np.isfinite(view.last) else -np.inf, str(view.key)))
    return views


def _title(key: SignalKey) -> str:
    signal = BY_ID.get(key.signal)
    title = _TITLES.get(key.signal) or (signal.title if signal else printable(key.signal, 60))
    return title.removeprefix("training ")


def _label_words(key: SignalKey) -> str:
    if key.labels:
        return printable(" ".join(f"{name} {value}" if value.isdigit() else value for name, value in key.labels), 24)
    return _title(key)


def _absent(run: RunSnapshot, number: str, slot: tuple[str, ...]) -> Absent:
    signal = BY_ID[slot[0]]
    title = _TITLES.get(signal.id, signal.title).removeprefix("training ")
    if run.progress < 1:
        return Absent(number, title, "none in what was read so far", Verdict.NO_DATA)
    if not applies(run, signal):
        return Absent(number, title, "not applicable", Verdict.NOT_APPLICABLE)
    return Absent(number, title, signal.to_get_it or f"log {signal.id}", Verdict.NO_DATA)


def applies(run: RunSnapshot, signal: Signal) -> bool:
    """Whether a run like this has the signal at all: a dense model has no experts."""
    prefixes = {
        "moe": ("moe.",),
        "modality": ("modality.", "loss.modality"),
        "sources": ("loss.source", "source."),
        "residual_gates": ("residual.gate",),
    }.get(signal.condition)
    if prefixes is None:
        return True
    if signal.condition == "moe":
        experts = run.facts.get("num_experts")
        if isinstance(experts, int | float) and experts > 1:
            return True
    return any(key.signal.startswith(prefixes) for key in run.series)
