"""From "so many alarms at each scale" to the scale that keeps a budget, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmon.monitor.stats.poisson import upper_bound
from trainmon.tails.quick_dataclass import dataclass

FEW = 3.0  # alarms that the budget allows over the steps there are: from so many on it can be read off
_TAIL = 10  # alarms that make a tail
_STEEPEST = 12.0  # of the power law: all alarms within one level say no more than "steep"


@dataclass(frozen=True, slots=True)
class Fit:
    """`alarms`: at the nearest level that was tried at or below `scale`. `how`: one clause for the file."""

    scale: float
    how: str
    alarms: int


def fit(scales: Sequence[float], counts: Sequence[int], steps: float, rate: float) -> Fit:
    """The smallest scale that keeps `rate` alarms a step on healthy runs of `steps` steps.

    `counts`: alarms at each of `scales`, ascending. Where the steps are many enough for the budget to allow `FEW`
    alarms, their order statistics decide. Where they are not, a power law is fitted to how far out the alarms of the
    outer levels lie (`_exponent`) and drawn out to the budget, never inside the first level that keeps it. Without
    enough alarms for that, the default stays, or the first quiet level beyond it. Below the default only goes what the
    steps can bear out.
    """
    falling = [max(counts[i:]) for i in range(len(counts))]
    allowed = rate * steps
    if falling[-1] > max(allowed, 0):
        return Fit(
            scales[-1],
            f"{falling[-1]} alarms even at {scales[-1]:.3g} times the default: as far as it goes",
            falling[-1],
        )
    quiet = next(i for i, count in enumerate(falling) if count <= allowed)
    if allowed >= FEW or falling[0] == 0:
        if falling[0] == 0 and allowed < FEW:
            return _kept(scales, falling, quiet)
        return _read_off(scales, falling, quiet, allowed)
    base = next((i for i in reversed(range(len(falling))) if falling[i] >= _TAIL), 0)
    if falling[base] < _TAIL:
        return _kept(scales, falling, quiet)
    exponent = _exponent(scales[base:], falling[base:])
    drawn = scales[base] * (falling[base] / allowed) ** (1 / exponent)
    scale = min(max(drawn, scales[quiet]), scales[-1])
    if scale <= 1.0:
        return _kept(scales, falling, quiet)
    told = ", ".join(f"{count} at {level:.3g}x" for level, count in zip(scales[base:], falling[base:], strict=True))
    how = f"tail fit, exponent {exponent:.2g}, drawn out from alarms at lower cut-offs ({told})"
    return Fit(scale, how, _at(scales, falling, scale))


def bound_per_100k(alarms: int, steps: float) -> float:
    """The 95% upper bound of alarms per 100,000 steps that `alarms` in `steps` steps leave."""
    return 1e5 * upper_bound(alarms) / steps if steps > 0 else math.inf


def _read_off(scales: Sequence[float], counts: Sequence[int], quiet: int, allowed: float) -> Fit:
    """Between the last level that is too loud and the first that is not, by the logarithms."""
    if quiet == 0:
        return Fit(scales[0], f"{counts[0]} alarms at the lowest cut-off that is tried", counts[0])
    low, high = scales[quiet - 1], scales[quiet]
    loud, calm = counts[quiet - 1], max(counts[quiet], 0.5)
    share = (math.log(loud) - math.log(allowed)) / (math.log(loud) - math.log(min(calm, loud - 0.5)))
    scale = low * (high / low) ** min(max(share, 0.0), 1.0)
    how = f"order statistics: {counts[quiet - 1]} alarms at {low:.3g}x, {counts[quiet]} at {high:.3g}x"
    return Fit(scale, how, _at(scales, counts, scale))


def _kept(scales: Sequence[float], counts: Sequence[int], quiet: int) -> Fit:
    scale = max(1.0, scales[quiet])
    alarms = _at(scales, counts, scale)
    how = "default kept: too few steps to go below it" if scale == 1.0 else "the first cut-off without an alarm"
    return Fit(scale, how, alarms)


def _exponent(scales: Sequence[float], counts: Sequence[int]) -> float:
    """Of the power law that alarms beyond scales[0] fall by: the likeliest for the counts between the levels, less one
    standard error (Hill: the exponent over the root of the count), so that it errs on the side of fewer alarms."""
    between = [count - beyond for count, beyond in zip(counts, [*counts[1:], 0], strict=True)]
    logs = [math.log(scale / scales[0]) for scale in scales]

    def likelihood(exponent: float) -> float:
        total = 0.0
        for i, count in enumerate(between):
            if count:
                beyond = math.exp(-exponent * logs[i + 1]) if i + 1 < len(logs) else 0.0
                total += count * math.log(max(math.exp(-exponent * logs[i]) - beyond, 1e-300))
        return total

    grid = [0.25 * 1.02**i for i in range(200)]
    best = max((exponent for exponent in grid if exponent <= _STEEPEST), key=likelihood)
    return best * (1 - 1 / math.sqrt(counts[0]))


def _at(scales: Sequence[float], counts: Sequence[int], scale: float) -> int:
    """Alarms at the largest tried level that is not beyond `scale`."""
    return [count for level, count in zip(scales, counts, strict=True) if level <= scale * (1 + 1e-9)][-1]
