"""A run's signal against what it cost: steps, tokens, FLOPs or time. The branch that counts, aligned for comparison."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.monitor.step_unit import counted
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

Axis = Literal["tokens", "flops", "step", "time"]
AXES: tuple[Axis, ...] = get_args(Axis)
UNITS: dict[Axis, str] = {"tokens": "tokens", "flops": "FLOPs", "step": "steps", "time": "s"}
_NEEDS: dict[Axis, str] = {
    "tokens": "which needs tokens, or batch size and sequence length, in its log or config",
    "flops": "which needs its tokens and its number of parameters in its log or config",
    "step": "which needs steps",
    "time": "which needs step times in its log",
}
_SAME_PACE = 1.01


@dataclass(frozen=True, slots=True)
class Curve:
    """Finite values over a rising x: two (n,) arrays."""

    x: FloatArray
    y: FloatArray

    def __len__(self) -> int:
        return len(self.x)

    def at(self, x: FloatArray) -> FloatArray:
        """Values at (m,) places inside the curve's range, on straight lines between its points."""
        return np.interp(x, self.x, self.y)


def effective(view: SeriesView) -> tuple[FloatArray, FloatArray]:
    """Steps and values of the branch that counts: what later attempts trained again is left out.

    >>> from trainmon.monitor.frame import SignalKey
    >>> steps, values = np.array([1.0, 2.0, 3.0, 2.0]), np.array([9.0, 8.0, 7.0, 6.0])
    >>> none = np.array([])
    >>> key = SignalKey("loss.train")
    >>> view = SeriesView(key, "", steps, values, values, values, np.array([0, 0, 0, 1]), none, 4, 6.0)
    >>> [part.tolist() for part in effective(view)]
    [[1.0, 2.0], [9.0, 6.0]]
    """
    if not len(view.steps):
        return view.steps, view.values
    # Walking back from the newest point, a point counts when it lies before all that came after it.
    later = np.minimum.accumulate(view.steps[::-1])[::-1]
    kept = np.ones(len(view.steps), bool)
    kept[:-1] = view.steps[:-1] < later[1:]
    kept &= np.isfinite(view.values)
    return view.steps[kept], view.values[kept]


def curve_of(run: RunSnapshot, signal: str, axis: Axis) -> Curve | None:
    """`signal` of `run` over `axis`; None when either is not known."""
    view = run.series.get(SignalKey(signal))
    if view is None:
        return None
    steps, values = effective(view)
    x = places(run, steps, axis)
    if x is None or not len(steps):
        return None
    known = np.isfinite(x)
    return Curve(x[known], values[known]) if known.any() else None


def places(run: RunSnapshot, steps: FloatArray, axis: Axis) -> FloatArray | None:
    """(n,) places on `axis` of (n,) steps; None when the log does not tell.

    Tokens are logged or tokens per batch times steps; FLOPs are 6 x active parameters x tokens (METRICS.md, D9);
    time is the sum of the run's own step times.
    """
    if axis == "step":
        return steps
    if axis == "time":
        return _seconds(run, steps)
    tokens = _tokens(run, steps)
    if axis == "tokens" or tokens is None:
        return tokens
    parameters = run.facts.get("active_parameters", run.facts.get("parameters"))
    return 6.0 * parameters * tokens if isinstance(parameters, (int, float)) else None


def _tokens(run: RunSnapshot, steps: FloatArray) -> FloatArray | None:
    if counted(run.facts) == "tokens":
        return steps
    seen = run.series.get(SignalKey("progress.tokens"))
    if seen is not None and len(seen.steps) >= 2:
        at, tokens = effective(seen)
        if len(at) >= 2:
            return np.interp(steps, at, tokens, left=np.nan, right=np.nan)
    batch = tokens_per_batch(run)
    return None if batch is None else steps * batch


def tokens_per_batch(run: RunSnapshot) -> float | None:
    """From the facts: tokens a batch, or samples a batch times sequence length."""
    batch, size, length = (run.facts.get(name) for name in ("tokens_per_batch", "batch_size", "seq_length"))
    if isinstance(batch, (int, float)):
        return float(batch)
    if isinstance(size, (int, float)) and isinstance(length, (int, float)):
        return float(size) * float(length)
    return None


def _seconds(run: RunSnapshot, steps: FloatArray) -> FloatArray | None:
    view = run.series.get(SignalKey("sys.step_time"))
    if view is None:
        return None
    at, seconds = effective(view)
    if len(at) < 2:
        return None
    spans = np.diff(at, prepend=at[0] - float(np.median(np.diff(at))))
    if counted(run.facts) != "steps":  # each is the time of a record
        spans = np.ones(len(at))
    return np.interp(steps, at, np.cumsum(spans * seconds), left=np.nan, right=np.nan)


def best_axis(runs: list[RunSnapshot]) -> Axis:
    """Tokens where batches differ and every run tells its tokens (METRICS.md, "Comparing runs"); else steps."""
    paces = [tokens_per_step(run) for run in runs]
    known = [pace for pace in paces if pace is not None]
    return "tokens" if len(known) == len(paces) and differ(known) else "step"


def differ(paces: list[float]) -> bool:
    """Whether amounts a step differ by more than what counting from one step more or less makes of them.

    >>> differ([1000.0, 1001.0]), differ([1000.0, 2000.0]), differ([])
    (False, True, False)
    """
    return bool(paces) and max(paces) > _SAME_PACE * min(paces)


def tokens_per_step(run: RunSnapshot) -> float | None:
    """Over the whole run: the tokens that it logged by its steps, else those of a batch; None: neither is known."""
    seen = run.series.get(SignalKey("progress.tokens"))
    if seen is not None:
        at, tokens = effective(seen)
        if len(at) >= 2 and at[-1] > at[0]:
            return float((tokens[-1] - tokens[0]) / (at[-1] - at[0]))
    return tokens_per_batch(run)


def unplaced(run: RunSnapshot, signal: str, axis: Axis) -> str:
    """Why `curve_of` has nothing, for people: the signal, its values, or what the axis needs is missing."""
    view = run.series.get(SignalKey(signal))
    if view is None:
        return f"{signal} is not in its log"
    if not len(effective(view)[0]):
        return f"{signal} is never a finite number"
    return f"cannot be placed by {axis}, {_NEEDS[axis]}; use --by step"
