"""Two or more runs against each other: charts over a common x axis, and a table of where each stands."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from trainmon.monitor.compare import alignment
from trainmon.monitor.compare.judging import Comparison
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.record import FloatArray
from trainmon.tui import numbers
from trainmon.tui.axis import mapping, tokens_at
from trainmon.tui.chart import Chart
from trainmon.tui.columns import VERDICT_STYLES
from trainmon.tui.curve import Curve, curve_of
from trainmon.tui.difference import difference, placed
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.levels import thinned
from trainmon.tui.look import LINE_STYLES
from trainmon.tui.rates import PER_CARD, of_one_card
from trainmon.tui.slots import series_chart
from trainmon.tui.span import Line, Span, clip, fit, fit_middle, wrap

SIGNALS = ("loss.train", "grad.norm", "sys.step_time")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letter(place: int) -> str:
    """The letter of the run at `place`.

    >>> letter(0), letter(26)
    ('A', 'A')
    """
    return LETTERS[place % len(LETTERS)]


def without(runs: list[RunSnapshot], axis: str) -> list[str]:
    """Names of the runs whose loss cannot be put on `axis`."""
    return [] if axis == "step" else [run.name for run in runs if _loss_x(run, axis) is None]


def _loss_x(run: RunSnapshot, axis: str) -> FloatArray | None:
    """The x of each value of the loss; None where the log does not tell."""
    view = run.series.get(SignalKey("loss.train"))
    if view is None or axis == "step":
        return None if view is None else thinned(view).steps
    along = mapping(run, thinned(view), axis)
    return None if along is None else along.x


def best_axis(runs: list[RunSnapshot]) -> str:
    """Tokens where batches differ (METRICS.md), else steps."""
    return "tokens" if alignment.best_axis(runs) == "tokens" and not without(runs, "tokens") else "step"


def overlay_charts(runs: list[RunSnapshot], axis: str, glyphs: Glyphs) -> tuple[Chart, ...]:
    """One chart a signal with the curve of every run, its letter at its end."""
    charts: list[Chart] = []
    for number, signal in enumerate(SIGNALS):
        curves, key = [], []
        for place, run in enumerate(runs):
            made = _curve(run, signal, axis, letter(place), f"line{place % LINE_STYLES}", glyphs)
            if made is not None:
                curves.append(made[0])
                key.append(made[1].key)
        if curves:
            charts.append(_chart(signal, tuple(curves), (axis, *key), str(len(charts) + 1), axis))
        if not number and (gap := _gap_chart(runs, axis, (axis, *key), str(len(charts) + 1))) is not None:
            charts.append(gap)
    return tuple(charts)


def _gap_chart(runs: list[RunSnapshot], axis: str, key: tuple[object, ...], number: str) -> Chart | None:
    """The loss of every other run less that of the first, at the same x."""
    placed_runs = [placed(run, "loss.train", axis) for run in runs]
    first = placed_runs[0] if placed_runs else None
    if first is None or not first[0].size:
        return None
    curves = [
        curve
        for place, other in enumerate(placed_runs[1:], 1)
        if other is not None
        and other[0].size
        and (curve := difference(first, other, letter(place), f"line{place % LINE_STYLES}")) is not None
    ]
    if not curves:
        return None
    newest = "  ".join(f"{curve.label} {_signed(float(curve.values[-1]))}" for curve in curves)
    return Chart(
        "loss minus A's",
        tuple(curves),
        ("gap", *key),
        number=number,
        value=newest,
        unit="nats",
        x_name=axis,
        threshold=0.0,
        log_y=False,
        clip_outliers=True,
    )


def apart_charts(runs: list[RunSnapshot], axis: str, glyphs: Glyphs) -> tuple[Chart, ...]:
    """Signal by signal, one chart a run, all of a signal on the same x axis."""
    charts: list[Chart] = []
    for signal in SIGNALS:
        made = [
            (place, one)
            for place, run in enumerate(runs)
            if (one := _curve(run, signal, axis, letter(place), f"line{place % LINE_STYLES}", glyphs)) is not None
        ]
        ends = [ends for _, (curve, _) in made if (ends := curve.range) is not None]
        if not ends:
            continue
        window = (min(a for a, _ in ends), max(b for _, b in ends))
        known = dict(made)
        for place in range(len(runs)):
            if place not in known:
                charts.append(Chart(f"{_title(signal)}: not logged", (), (signal, window), letter(place), x_name=axis))
                continue
            curve, alone = known[place]
            chart = _chart(signal, (curve,), (axis, window, alone.key), letter(place), axis)
            charts.append(
                replace(chart, window=window, value=alone.value, shades=alone.shades if axis == "step" else ())
            )
    return tuple(charts)


def _curve(
    run: RunSnapshot, signal: str, axis: str, label: str, style: str, glyphs: Glyphs
) -> tuple[Curve, Chart] | None:
    view = run.series.get(SignalKey(signal))
    if view is None or not view.count:
        return None
    along = mapping(run, thinned(view), axis)
    if axis != "step" and along is None:
        return None
    return curve_of(view, label, style, along), series_chart(run, [view], "", glyphs, "")


def _chart(signal: str, curves: tuple[Curve, ...], key: tuple[object, ...], number: str, axis: str) -> Chart:
    known = BY_ID[signal]
    clip_start = signal == "loss.train"
    least = 0.1 if known.group == "System" else 0.0
    return Chart(
        _title(signal),
        curves,
        key,
        number=number,
        unit=known.unit,
        x_name=axis,
        clip_start=clip_start,
        least_span=least,
    )


def _title(signal: str) -> str:
    return BY_ID[signal].title.removeprefix("training ")


_TABLE = (
    ("step", "progress", 8),
    ("loss", "loss.train", 7),
    ("loss at", "same", 14),
    ("to A", "gap", 8),
    ("best", "best", 7),
    ("at", "best_at", 8),
    ("tokens/s", "sys.tokens_per_second", 9),
    ("grad norm", "grad.norm", 9),
    ("step time", "sys.step_time", 9),
    ("tokens", "tokens", 8),
    ("spikes", "spikes", 6),
)


def end_table(runs: list[RunSnapshot], axis: str, width: int, glyphs: Glyphs, found: Comparison) -> list[Line]:
    """End values and bests, a run a line; "loss at" compares all at the furthest x that all of them reached, "to A" is
    the mean difference of `found`."""
    at = common_x(runs, axis)
    shown = x_text(axis, at)
    heads = [f"loss at {shown}" if what == "same" else name for name, what, _ in _TABLE]
    fits, used = [], 3 + 14 + 11
    for place, (_, _, cells) in enumerate(_TABLE):
        if used + cells + 1 <= width:
            fits.append(place)
            used += cells + 1
    name_cells = 14 + max(0, min(30, width - used))
    head = fit("run", name_cells) + "".join(" " + fit(heads[p], _TABLE[p][2], right=True) for p in fits)
    lines: list[Line] = [[Span(f"   {head}  verdict", "heading", "bar"), Span(" " * width, "text", "bar")]]
    for place, run in enumerate(runs):
        line: Line = [Span(f" {letter(place)} ", f"label{place % LINE_STYLES}")]
        line.append(Span(fit_middle(run.name, name_cells, glyphs.ellipsis), "title"))
        for p in fits:
            _, what, cells = _TABLE[p]
            text = _gap(found, place) if what == "gap" else _value(run, what, axis, at)
            line.append(Span(" " + fit(text, cells, right=True), "value" if what == "gap" else "text"))
        verdict = f"  {glyphs.verdicts[run.verdict]} {run.verdict.value}"
        lines.append([*line, Span(verdict, VERDICT_STYLES[run.verdict])])
    return lines


def x_text(axis: str, x: float) -> str:
    """A place on the axis, in short."""
    return numbers.duration(x) if axis == "time" else numbers.count(x)


def _gap(found: Comparison, place: int) -> str:
    """The mean difference that the verdict below the table is about, so that one noisy value does not decide."""
    gap = found.differences[place - 1].difference if 0 < place <= len(found.differences) else None
    if gap is None:
        return numbers.MISSING
    return _signed(gap)


def _signed(gap: float) -> str:
    """A difference of losses: four places, where the number has room for them.

    >>> _signed(-0.01234), _signed(1390.5313), _signed(12.34)
    ('-0.0123', '+1391', '+12.3')
    """
    return f"{gap:+.4f}" if abs(gap) < 10 else f"{gap:+.1f}" if abs(gap) < 100 else f"{gap:+.0f}"


def _value(run: RunSnapshot, what: str, axis: str, at: float) -> str:
    view = run.series.get(SignalKey("loss.train" if what in ("best", "best_at", "same", "tokens") else what))
    if what == "progress":
        return numbers.step(math.nan if run.last_step is None else run.last_step)
    if what == "spikes":
        return str(sum(one.kind == "spike" and one.severity >= Severity.WARN for one in run.episodes))
    if view is None or not view.values.size:
        return numbers.MISSING
    if what in ("best", "best_at"):
        best = int(view.low.argmin())
        return numbers.plain(float(view.low[best])) if what == "best" else numbers.count(float(view.steps[best]))
    if what == "tokens":
        seen = tokens_at(run, thinned(view))
        return numbers.MISSING if seen is None else numbers.count(float(seen.max()))
    if what == "same":
        return numbers.plain(value_at(run, axis, at))
    shown = numbers.with_unit(view.last, view.unit) if what == "sys.step_time" else numbers.plain(view.last)
    return shown + PER_CARD if of_one_card(run, view) else shown


def difference_lines(found: Comparison, width: int, glyphs: Glyphs) -> list[Line]:
    """What the differences amount to, noise considered, and the settings in which the runs differ."""
    lines: list[Line] = []
    for place, one in enumerate(found.differences, 1):
        head = [Span(f" {letter(place)} ", f"label{place % LINE_STYLES}"), Span("against A: ", "muted")]
        text = f"{one.verdict} ({one.why})" if one.why else one.verdict
        lines += [
            [*(head if not row else [Span(" " * 14)]), Span(piece)] for row, piece in enumerate(wrap(text, width - 15))
        ]
    if not found.settings:
        words = " settings: the logs tell of none in which these runs differ"
        return [*lines, [Span(clip(words, width, glyphs.ellipsis), "muted")]]
    names = min(24, max(len(name) for name, _ in found.settings))
    cells = max(8, min(28, (width - names - 4) // max(1, len(found.standings)) - 1))
    head_line: Line = [Span(f" {fit('setting', names)}", "heading", "bar")]
    for place in range(len(found.standings)):
        head_line.append(Span(f" {fit(letter(place), cells)}", f"label{place % LINE_STYLES}", "bar"))
    lines.append([*head_line, Span(" " * width, "text", "bar")])
    for name, values in found.settings:
        line: Line = [Span(f" {fit(name.replace('_', ' '), names, glyphs.ellipsis)}", "muted")]
        lines.append([*line, *(Span(f" {fit(_grouped(value), cells, glyphs.ellipsis)}") for value in values)])
    return lines


def _grouped(value: str) -> str:
    """A long whole number that can be read, and compared to its last digit.

    >>> _grouped("290000000"), _grouped("2048"), _grouped("bf16")
    ('290,000,000', '2048', 'bf16')
    """
    return f"{int(value):,}" if value.isascii() and value.isdigit() and len(value) > 4 else value


def common_x(runs: list[RunSnapshot], axis: str) -> float:
    """The furthest x that every run reached; NaN when one has no loss."""
    ends = [math.nan if (x := _loss_x(run, axis)) is None or not x.size else float(np.nanmax(x)) for run in runs]
    return math.nan if not ends or any(math.isnan(end) for end in ends) else min(ends)


def value_at(run: RunSnapshot, axis: str, at: float) -> float:
    """The loss of `run` where x is `at`: the newest attempt's last value not beyond it; NaN when there is none."""
    view = run.series.get(SignalKey("loss.train"))
    x = _loss_x(run, axis)
    if view is None or x is None or math.isnan(at):
        return math.nan
    reached = np.flatnonzero(x <= at)
    if not reached.size:
        return math.nan
    nearest = x[reached].max()
    return float(thinned(view).values[reached[x[reached] == nearest][-1]])
