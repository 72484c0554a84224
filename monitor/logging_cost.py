"""What logging itself costs: the time of steps that scan or log something rare against that of the others.

A signal that is logged at every step cannot be told from the step itself; one that is logged at every K-th step can:
the excess of those steps (and of the step behind each, where a writer may still be busy) over the others is its cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from trainmon.monitor.folded_names import told
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, NoteKind

STEP_TIME: Final = SignalKey("sys.step_time")
DEFAULT_SHARE: Final = 0.01
_FEWEST_SCANS: Final = 5
_FEWEST_OTHERS: Final = 10
_RARE: Final = 0.5  # what is logged at more than this share of the timed steps is logged always
_SURE: Final = 2.0  # standard errors by which a cost must stand out
_MAD_TO_SIGMA: Final = 1.4826
_MEDIAN_ERROR: Final = 1.2533  # standard error of a median over that of a mean, normal noise
_BESIDE: Final = ("eval.", "progress.", "count.")
_MOST_NAMES: Final = 12

Place = tuple[int, float]  # attempt, step


@dataclass(frozen=True, slots=True)
class Cost:
    """What logging `signals` together costs. Seconds; `share`: of all time, now; `error_s`: standard error of `cost_s`.

    `interval_steps`: the smallest K at which ``cost / (K * others + cost)`` is under the share asked for.
    """

    signals: tuple[str, ...]
    every_steps: float
    scans: int
    others_s: float
    cost_s: float
    error_s: float
    share: float
    interval_steps: int

    @property
    def is_certain(self) -> bool:
        """Whether the cost stands out of the noise of the steps."""
        return self.cost_s > _SURE * self.error_s


@dataclass(frozen=True, slots=True)
class LoggingCost:
    """The costs that can be told, dearest first; without any, `reason` says why and what to log."""

    share: float
    costs: tuple[Cost, ...] = ()
    reason: str = ""


def logging_cost(run: RunSnapshot, share: float = DEFAULT_SHARE) -> LoggingCost:
    """What the logging of `run` costs, and the interval K that keeps each part under `share` (0 to 1) of the time."""
    times = run.series.get(STEP_TIME)
    if times is None or not times.count:
        return LoggingCost(share, reason="no step time in the log; log it at every step (step_time, seconds)")
    timed = _raw(times)
    if len(timed) < _FEWEST_OTHERS + _FEWEST_SCANS:
        return LoggingCost(share, reason=f"only {len(timed)} steps are timed; log the step time at every step")
    groups = _groups(run, set(timed))
    busy = {place for places in groups for place in places}
    aside = _aside(run)
    plain = np.array([timed[p] for p in timed if p not in busy and p not in aside and _before(p, timed) not in busy])
    if not groups:
        return LoggingCost(
            share,
            reason="everything is logged at the same steps as the step time: log the step time at every step, and what "
            "is dear to measure (tensor scans, per-layer or per-expert values) at every K-th",
        )
    if len(plain) < _FEWEST_OTHERS:
        return LoggingCost(share, reason="too few timed steps at which nothing rare is logged")
    costs = [_cost(names, places, timed, plain, aside, share) for places, names in groups.items()]
    found = sorted((cost for cost in costs if cost is not None), key=lambda cost: -cost.share)
    return LoggingCost(share, tuple(found), "" if found else "too few steps on which something rare is logged")


def interval_for(cost_s: float, others_s: float, share: float) -> int:
    """The smallest K, in steps, at which ``cost / (K * others + cost) <= share``.

    >>> interval_for(0.3, 3.0, 0.01), interval_for(-0.1, 3.0, 0.01), interval_for(30.0, 3.0, 0.01)
    (10, 1, 990)
    """
    if cost_s <= 0 or others_s <= 0:
        return 1
    return max(1, math.ceil(round(cost_s * (1 - share) / (share * others_s), 9)))


def _raw(view: SeriesView) -> dict[Place, float]:
    """The values that are single logged ones, not levels of several, by place."""
    whole = np.isfinite(view.values) & (view.low == view.values) & (view.high == view.values)
    places = zip(view.attempts[whole].tolist(), view.steps[whole].tolist(), strict=True)
    return dict(zip(places, view.values[whole].tolist(), strict=True))


def _groups(run: RunSnapshot, timed: set[Place]) -> dict[frozenset[Place], list[str]]:
    """Signals that are logged at the same, rare, places among the timed ones."""
    groups: dict[frozenset[Place], list[str]] = {}
    for key, view in run.series.items():
        if key == STEP_TIME or view.derived or key.signal.startswith(_BESIDE) or not len(view.steps):
            continue
        places = frozenset(timed.intersection(zip(view.attempts.tolist(), view.steps.tolist(), strict=True)))
        if _FEWEST_SCANS <= len(places) <= _RARE * len(timed):
            groups.setdefault(places, []).append(str(key))
    return groups


def _aside(run: RunSnapshot) -> set[Place]:
    """Places whose time is not the training's: evaluations, checkpoints, and the first step of each attempt."""
    aside: set[Place] = set()
    for key, view in run.series.items():
        if key.signal.startswith("eval.") and not view.derived:
            aside.update(zip(view.attempts.tolist(), view.steps.tolist(), strict=True))
    saved = [note.step for note in run.notes if note.kind is NoteKind.CHECKPOINT_SAVED and note.step is not None]
    attempts = range(len(run.attempts))
    aside.update((attempt, step + late) for attempt in attempts for step in saved for late in (0.0, 1.0))
    aside.update((attempt, first) for attempt, (first, _) in enumerate(run.attempts))
    return aside


def _before(place: Place, timed: dict[Place, float]) -> Place | None:
    before = (place[0], place[1] - 1.0)
    return before if before in timed else None


def _cost(
    names: list[str],
    places: Iterable[Place],
    timed: dict[Place, float],
    plain: FloatArray,
    aside: set[Place],
    share: float,
) -> Cost | None:
    scans = sorted(place for place in places if place not in aside)
    if len(scans) < _FEWEST_SCANS:
        return None
    own = np.array([timed[place] for place in scans])
    behind = np.array([timed[after] for a, s in scans if (after := (a, s + 1.0)) in timed and after not in aside])
    others = float(np.median(plain))
    cost, error = float(np.median(own)) - others, math.hypot(_error(own), _error(plain))
    if len(behind) >= _FEWEST_SCANS:
        late, late_error = float(np.median(behind)) - others, math.hypot(_error(behind), _error(plain))
        if late > _SURE * late_error and late > 0:
            cost, error = cost + late, math.hypot(error, late_error)
    rises = np.diff([step for _, step in scans])
    every = float(np.median(rises[rises > 0])) if (rises > 0).any() else math.nan
    now = max(cost, 0.0) / (every * others + max(cost, 0.0)) if every * others > 0 else 0.0
    return Cost(tuple(sorted(names)), every, len(scans), others, cost, error, now, interval_for(cost, others, share))


def _error(values: FloatArray) -> float:
    """Standard error of the median, from the median absolute deviation."""
    deviation = _MAD_TO_SIGMA * float(np.median(np.abs(values - np.median(values))))
    return _MEDIAN_ERROR * deviation / math.sqrt(len(values))


def names_of(cost: Cost) -> str:
    """The signals of `cost` in few words: labels left out, names that differ in numbers as one, the rest counted.

    >>> names_of(Cost(("moe.load{expert=1}", "moe.load{expert=2}", "tensor.rms{layer=3}"), 9, 9, 1, 1, 1, 1, 1))
    'moe.load (2), tensor.rms'
    """
    count: dict[str, int] = {}
    for name in cost.signals:
        signal = name.partition("{")[0]
        count[signal] = count.get(signal, 0) + 1
    return told((name if many == 1 else f"{name} ({many})" for name, many in count.items()), _MOST_NAMES)


def document(found: LoggingCost) -> dict[str, object]:
    """The costs as part of ``trainmon.inventory/1``."""
    return {
        "share": found.share,
        "reason": found.reason or None,
        "costs": [
            {
                "signals": list(cost.signals),
                "every_steps": cost.every_steps,
                "scans": cost.scans,
                "others_s": cost.others_s,
                "cost_s": cost.cost_s,
                "error_s": cost.error_s,
                "share": cost.share,
                "certain": cost.is_certain,
                "interval_steps": cost.interval_steps if cost.is_certain else None,
            }
            for cost in found.costs
        ],
    }


def lines(found: LoggingCost) -> list[str]:
    """The costs for people, a line each; the text of log keys is not yet made printable."""
    allowed = f"{100 * found.share:.3g}% of the time"
    if not found.costs:
        return [f"What logging costs cannot be told: {found.reason}"]
    said = ["What logging costs, beside steps that log less:"]
    for cost in found.costs:
        head = f"  {names_of(cost)}, every {cost.every_steps:g} steps ({cost.scans} seen): "
        if not cost.is_certain:
            bound = max(cost.cost_s, 0.0) + _SURE * cost.error_s
            said.append(
                f"{head}nothing that stands out of the noise (under {bound:.3g} s of {cost.others_s:.3g} s a step)"
            )
            continue
        fits = "which is enough" if cost.every_steps >= cost.interval_steps else f"not every {cost.every_steps:g}"
        said.append(
            f"{head}{cost.cost_s:.3g} s on top of {cost.others_s:.3g} s a step, {100 * cost.share:.2g}% of the time; "
            f"K = {cost.interval_steps} steps keeps it under {allowed}, {fits}"
        )
    return said
