"""How the tokens of each layer spread over its experts: the load of each now, and which are dead or hot since when."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.monitor.stats.middle import median
from trainmon.monitor.thresholds import DEFAULTS
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray
from trainmon.tui.heat import LEVELS
from trainmon.tui.levels import thinned
from trainmon.tui.order import natural

DEAD_SHARE = DEFAULTS["moe.dead_share"]
DEAD_STEPS = DEFAULTS["moe.dead_steps"]
HOT = 1.0 + DEFAULTS["moe.maxvio.level"]  # MaxVio above 1: twice the mean
_NEWEST = 20
_DOUBLINGS = 2.0  # a quarter of the mean and four times the mean are the ends of the colours


@dataclass(frozen=True, slots=True)
class Layer:
    """`share` (experts,): the newest load of each expert against the mean of its layer; NaN where not logged."""

    name: str
    experts: tuple[str, ...]
    views: tuple[SeriesView, ...]
    share: FloatArray

    @property
    def usual_mean(self) -> float | None:
        """The mean load of its experts, as it mostly was; None when nothing was routed."""
        mean = float(np.mean([median(thinned(view).values) for view in self.views]))
        return mean if mean > 0 else None

    @property
    def maxvio(self) -> float:
        """(max - mean) / mean of the newest loads (METRICS.md, D12)."""
        return float(np.nanmax(self.share)) - 1.0 if np.isfinite(self.share).any() else float("nan")


@dataclass(frozen=True, slots=True)
class Odd:
    """An expert off its share: `kind` is "dead" (under 1% of the mean, with `lasted` steps of it) or "hot"."""

    kind: str
    layer: str
    expert: str
    share: float
    since: float
    lasted: float

    @property
    def is_judged(self) -> bool:
        """Whether it has lasted as long as the check asks for."""
        return self.lasted >= DEAD_STEPS


def layers_of(run: RunSnapshot) -> tuple[Layer, ...]:
    """The layers whose experts' loads are logged; without a layer label they are one layer's, called ""."""
    groups: dict[str, dict[str, SeriesView]] = {}
    for key, view in run.series.items():
        labels = dict(key.labels)
        if key.signal == "moe.load" and "expert" in labels and view.values.size:
            groups.setdefault(labels.get("layer", ""), {})[labels["expert"]] = view
    made = []
    for name in sorted(groups, key=natural):
        members = groups[name]
        if len(members) < 2:
            continue
        experts = tuple(sorted(members, key=natural))
        views = tuple(members[expert] for expert in experts)
        made.append(Layer(name, experts, views, newest_share(views)))
    return tuple(made)


def _newest(values: FloatArray) -> float:
    """The median of the newest values: twenty of many, three of few."""
    return median(values[-max(3, min(_NEWEST, values.size // 20)) :]) if values.size else float("nan")


def newest_share(views: tuple[SeriesView, ...]) -> FloatArray:
    """(experts,) median of the newest loads, against their mean."""
    loads = np.array([_newest(view.values) for view in views])
    mean = float(np.nanmean(loads)) if np.isfinite(loads).any() else np.nan
    if not mean > 0:
        return np.full(len(views), np.nan)
    return np.asarray(loads / mean)


def odd_ones(layers: tuple[Layer, ...]) -> tuple[Odd, ...]:
    """Dead and hot experts: the dead ones first, then the hottest."""
    found: list[Odd] = []
    for layer in layers:
        places = np.flatnonzero((layer.share < DEAD_SHARE) | (layer.share > HOT))
        if not places.size:
            continue
        mean = _mean(layer.views)
        for place in places.tolist():
            share = float(layer.share[place])
            kind = "dead" if share < DEAD_SHARE else "hot"
            since, lasted = _since(layer.views[place], mean, kind)
            found.append(Odd(kind, layer.name, layer.experts[place], share, since, lasted))
    return tuple(
        sorted(found, key=lambda one: (one.kind != "dead", -one.share, natural(one.layer), natural(one.expert)))
    )


def _mean(views: tuple[SeriesView, ...]) -> tuple[FloatArray, FloatArray]:
    """(steps, mean load over the experts) of a layer, at the steps of its first expert."""
    thin = [thinned(view) for view in views]
    steps = thin[0].steps
    total = np.zeros(steps.size)
    for one in thin:
        total += one.values if one.steps.size == steps.size else np.interp(steps, one.steps, one.values)
    return steps, total / len(thin)


def _since(view: SeriesView, mean: tuple[FloatArray, FloatArray], kind: str) -> tuple[float, float]:
    """The step from which it is so without a break, and for how many steps."""
    thin = thinned(view)
    level = np.interp(thin.steps, *mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = thin.values / level
    is_odd = share < DEAD_SHARE if kind == "dead" else share > HOT
    # One value back at its place does not end it: what counts are five in a row.
    back = np.convolve(~is_odd, np.ones(min(5, is_odd.size)), "same") >= min(5, is_odd.size) - 0.5
    last = np.flatnonzero(back)
    first = int(last[-1]) + 1 if last.size else 0
    rest = np.flatnonzero(is_odd[first:])
    if not rest.size:
        return float(thin.steps[-1]), 0.0
    since = float(thin.steps[first + int(rest[0])])
    return since, float(thin.steps[-1]) - since


def matrix(layers: tuple[Layer, ...], columns: int) -> tuple[list[list[int]], tuple[tuple[int, int], ...]]:
    """Levels of heat, a row a layer and a column an expert (or several: the one furthest from its share), and which
    experts stand in each column."""
    most = max((len(layer.experts) for layer in layers), default=0)
    count = max(1, min(columns, most))
    groups = tuple((place * most // count, (place + 1) * most // count) for place in range(count))
    rows = []
    for layer in layers:
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.log2(np.maximum(layer.share, 1e-6))
        padded = np.full(most, np.nan)
        padded[: moved.size] = moved
        picked = np.array([_furthest(padded[a:b]) for a, b in groups])
        level = np.clip((np.nan_to_num(picked) / (2 * _DOUBLINGS) + 0.5) * LEVELS, 0, LEVELS - 1).astype(int)
        rows.append(np.where(np.isfinite(picked), level, -1).tolist())
    return rows, groups


def _furthest(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known[np.abs(known).argmax()]) if known.size else float("nan")


def has_balance(run: RunSnapshot) -> bool:
    """Whether anything is known of the balance of experts, if not the load of each."""
    return any(key.signal in ("moe.maxvio", "moe.imbalance", "moe.entropy") for key in run.series)


def of_layer(run: RunSnapshot, signal: str, layer: str) -> SeriesView | None:
    """The series of `signal` of that layer; the run's own where there are no layers."""
    labels = (("layer", layer),) if layer else ()
    return run.series.get(SignalKey(signal, labels))
