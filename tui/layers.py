"""Families of series that differ only in their layer, so that they can be seen as one map: layer by step."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.monitor.stats.middle import median
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable
from trainmon.tui.levels import thinned
from trainmon.tui.order import natural

# What one wants to see first; then any other family that the log has, by name.
FIRST = (
    "update.ratio",
    "tensor.abs_max",
    "tensor.rms",
    "grad.rank_norm",
    "residual.branch_scale",
    "moe.imbalance",
    "moe.entropy",
)
_FEWEST = 2
_FEWEST_UNKNOWN = 3  # two names that differ in a digit (l1_loss, l2_loss) are no layers
_NAME = re.compile(
    r"(?<![A-Za-z])(?:layers?|blocks?|blk|stages?|decoder|encoder|h|l)[._/\-\[ ]{0,2}(\d{1,4})(?!\d)", re.IGNORECASE
)
_TITLES = {
    "tensor.abs_max": "AbsMax",
    "moe.imbalance": "expert load, busiest against the mean",
    "grad.rank_norm": "gradient norm",
}


@dataclass(frozen=True, slots=True)
class Family:
    """`layers` as the log names them, in natural order, one view each. `id` stays while the log goes on."""

    id: str
    title: str
    unit: str
    signal: str
    layers: tuple[str, ...]
    views: tuple[SeriesView, ...]


@lru_cache(maxsize=1 << 14)
def layer_in(name: str) -> tuple[str, str] | None:
    """(the name without its layer's number, that number) of a raw key; None when it names no layer.

    >>> layer_in("sub_norm_L12_S0"), layer_in("model.layers.3.mlp.norm"), layer_in("train/loss_l2")
    (('sub_norm_L*_S0', '12'), ('model.layers.*.mlp.norm', '3'), ('train/loss_l*', '2'))
    >>> layer_in("pearl3/loss")
    """
    found = _NAME.search(name[:300])
    if found is None:
        return None
    return f"{name[: found.start(1)]}*{name[found.end(1) :]}", found.group(1)


def families(run: RunSnapshot) -> tuple[Family, ...]:
    """Every per-layer family of `run`, the doctrine's first."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, SeriesView]] = {}
    for key, view in run.series.items():
        if not view.steps.size or (place := _place_of(key)) is None:
            continue
        signal, rest, layer = place
        groups.setdefault((signal, rest), {})[layer] = view
    made = [_family(signal, rest, members) for (signal, rest), members in groups.items()]
    return tuple(sorted((one for one in made if one is not None), key=_rank))


def _place_of(key: SignalKey) -> tuple[str, tuple[tuple[str, str], ...], str] | None:
    labels = dict(key.labels)
    if "layer" in labels:
        if "expert" in labels:  # the screen of the experts shows these
            return None
        layer = labels.pop("layer")
        return key.signal, tuple(sorted(labels.items())), layer
    if key.signal in BY_ID or labels:
        return None
    named = layer_in(key.signal)
    return None if named is None else (named[0], (), named[1])


def _family(signal: str, rest: tuple[tuple[str, str], ...], members: dict[str, SeriesView]) -> Family | None:
    known = BY_ID.get(signal)
    if len(members) < (_FEWEST if known is not None else _FEWEST_UNKNOWN):
        return None
    layers = tuple(sorted(members, key=natural))
    title = _TITLES.get(signal) or (known.title if known is not None else signal)
    if rest:
        title += f" ({', '.join(value for _, value in rest)})"
    views = tuple(members[layer] for layer in layers)
    return Family(f"{signal}{rest}", printable(title, 80), views[0].unit, signal, layers, views)


def _rank(one: Family) -> tuple[object, ...]:
    known = one.signal in BY_ID
    place = FIRST.index(one.signal) if one.signal in FIRST else len(FIRST)
    return place, not known, natural(one.id)


@dataclass(frozen=True, slots=True)
class Mover:
    """One layer's newest level against its level before. `factor` is NaN where either has no sign of its own."""

    layer: str
    before: float
    now: float
    factor: float
    since: float
    size: float


_NEWEST = 0.05  # of its values (3 at least) are a layer's level now; the median of the others is the level before


def movers(family: Family) -> tuple[Mover, ...]:
    """Every layer, the one that moved most first: by the logarithm of its change where all values are positive,
    else by the change against the spread of the family."""
    found = [_mover(layer, view) for layer, view in zip(family.layers, family.views, strict=True)]
    ratios = [one.factor for one in found if one is not None and one.factor == one.factor]
    use_ratio = len(ratios) == sum(one is not None for one in found)
    there = [one for one in found if one is not None]
    return tuple(sorted(there, key=lambda one: -abs(np.log(one.factor)) if use_ratio else -one.size))


def _mover(layer: str, view: SeriesView) -> Mover | None:
    thin = thinned(view)
    n = thin.values.size
    if n < 4:
        return None
    newest = max(3, int(n * _NEWEST)) if n >= 8 else 1
    before, now = median(thin.values[:-newest]), median(thin.values[-newest:])
    factor = now / before if before > 0 and now > 0 else float("nan")
    spread = median(np.abs(thin.values[:-newest] - before)) + 1e-12
    middle = (before + now) / 2
    beyond = thin.values > middle if now > before else thin.values < middle
    held = np.flatnonzero(~beyond)
    since = int(held[-1]) + 1 if held.size else 0
    return Mover(layer, before, now, factor, float(thin.steps[min(since, n - 1)]), abs(now - before) / spread)
