"""What to show as evidence of a triage step or an episode: which charts, cut to which window, which log line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from trainmon.monitor.amount import named
from trainmon.monitor.finding import Episode
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import RunSnapshot, SeriesView, TriageStep
from trainmon.monitor.stats.middle import median
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import NoteKind
from trainmon.tui import numbers
from trainmon.tui.chart import Chart
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.slots import family, series_chart, title_of

ERRORS = frozenset(
    {
        NoteKind.TRACEBACK,
        NoteKind.ERROR,
        NoteKind.CUDA_OOM,
        NoteKind.HOST_OOM,
        NoteKind.NCCL_TIMEOUT,
        NoteKind.INIT_TIMEOUT,
        NoteKind.XID,
        NoteKind.SEGFAULT,
        NoteKind.SIGKILL,
        NoteKind.NODE_FAIL,
    }
)
_MARGIN_STEPS = 100.0  # METRICS.md: the 50-100 steps on either side
_MARGIN_VALUES = 20
_BY_STEP = {
    "job": ("loss.train", "sys.step_time"),
    "loss": ("loss.train", "grad.norm"),
    "gradients": ("grad.norm", "spike.score", "loss.train"),
    "step_time": ("sys.step_time", "sys.tokens_per_second"),
    "memory": ("sys.memory_share", "sys.peak_memory"),
    "experts": ("moe.maxvio", "moe.entropy"),
    "layers": ("tensor.abs_max", "update.ratio"),
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """`title` says of what; `place` is the (path, line number) to read; None when no line is known."""

    title: str
    signals: tuple[str, ...]
    window: tuple[float, float] | None
    place: tuple[str, int] | None
    episode: str | None


def of_episode(run: RunSnapshot, episode: Episode) -> Evidence:
    """The episode's signal first, then those that move with it."""
    other = "grad.norm" if episode.signal.signal.startswith("loss") else "loss.train"
    signals = (episode.signal.signal, other, "spike.score")
    place = (episode.path, episode.line) if episode.path and episode.line > 0 else None
    title = f"{named(episode.signal)}: {episode.what or episode.kind.replace('_', ' ')}"
    return Evidence(title, _present(run, signals), window_around(run, [episode]), place, episode.id)


def of_step(run: RunSnapshot, step: TriageStep) -> Evidence:
    """The signals that the step names, around its newest unrecovered episode; the whole run when it has none."""
    named = [one for one in run.episodes if one.id in step.episodes]
    signals = (*(key.signal for key in step.signals), *_BY_STEP.get(step.id, ()))
    if not named:
        return Evidence(f"{step.title}: {step.what}", _present(run, signals), None, _root(run, step), None)
    newest = min(named, key=lambda one: (one.recovered, -one.first_step, one.id))
    whole = of_episode(run, newest)
    together = [one for one in named if one.recovered == newest.recovered] if not newest.recovered else [newest]
    return replace(
        whole,
        title=f"{step.title}: {step.what}",
        signals=_present(run, (*signals, *whole.signals)),
        window=window_around(run, together),
    )


def _root(run: RunSnapshot, step: TriageStep) -> tuple[str, int] | None:
    """Where the log says why the job ended, for the step about the job."""
    errors = [note for note in run.notes if note.kind in ERRORS and not note.teardown]
    return (errors[-1].source, errors[-1].line_no) if step.id == "job" and errors else None


def _present(run: RunSnapshot, signals: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(signal for signal in signals if family(run, signal)))[:3]


def window_around(run: RunSnapshot, episodes: list[Episode]) -> tuple[float, float] | None:
    """The episodes' steps and 100 steps, or 20 logged values, on either side; None when the run has no steps."""
    if run.first_step is None or run.last_step is None or not episodes:
        return None
    first = min(one.first_step for one in episodes)
    last = max(one.last_step for one in episodes)
    margin = max(_MARGIN_STEPS, _MARGIN_VALUES * _interval(run))
    start, stop = max(run.first_step, first - margin), min(run.last_step, last + margin)
    return (start, stop) if stop > start else None


def _interval(run: RunSnapshot) -> float:
    view = run.series.get(SignalKey("loss.train"))
    if view is None or view.steps.size < 3:
        return 1.0
    gaps = np.diff(view.steps[-2000:])
    gaps = gaps[gaps > 0]
    return median(gaps) if gaps.size else 1.0


def charts(run: RunSnapshot, evidence: Evidence, glyphs: Glyphs, axis: str = "step") -> tuple[Chart, ...]:
    """One chart a signal, numbered from 1, cut to the window, with the worst value in it."""
    out = []
    for place, signal in enumerate(evidence.signals):
        views: list[SeriesView] = family(run, signal)
        title, window = title_of(views[0].key), evidence.window
        chart = series_chart(run, views, str(place + 1), glyphs, title, window=window, axis=axis)
        if evidence.window is not None:
            chart = replace(chart, clip_start=False, value=_worst(views[0], evidence.window, chart.unit), change="")
        out.append(chart)
    return tuple(out)


def _worst(view: SeriesView, window: tuple[float, float], unit: str) -> str:
    inside = np.flatnonzero((view.steps >= window[0]) & (view.steps <= window[1]))
    if not inside.size:
        return ""
    signal = BY_ID.get(view.key.signal)
    low = signal is not None and signal.better == "up"
    values = view.low[inside] if low else view.high[inside]
    at = inside[int(np.nanargmin(values) if low else np.nanargmax(values))]
    value = float(view.low[at] if low else view.high[at])
    return f"{'lowest' if low else 'peak'} {numbers.with_unit(value, unit)} at {numbers.step(float(view.steps[at]))}"
