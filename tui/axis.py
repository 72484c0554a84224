"""What the x axis of charts counts: steps, tokens seen, FLOPs spent, or wall time since the run began."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from trainmon.monitor.compare.alignment import tokens_per_batch
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray
from trainmon.tui.levels import thinned

AXES = ("step", "tokens", "flops", "time")
_PACE_OVER = 100


@dataclass(frozen=True, slots=True)
class Mapping:
    """Steps to x for one series: `x` (n,) stands beside the series' values; `steps` and `x` rise in `known`."""

    x: FloatArray
    known: tuple[FloatArray, FloatArray]

    def steps_at(self, x: FloatArray) -> FloatArray:
        """The steps at any `x` between the first and the last known one."""
        known, places = self.known
        return np.interp(x, places, known) if known.size else np.full(len(x), np.nan)

    def at(self, steps: FloatArray) -> FloatArray:
        """The x of any `steps`; beyond the last at the pace of the hundred before it: NaN losses have steps too."""
        known, x = self.known
        if not known.size:
            return np.full(len(steps), np.nan)
        back = max(0, known.size - _PACE_OVER)
        passed = known[-1] - known[back]
        pace = (x[-1] - x[back]) / passed if passed > 0 else 0.0
        placed: FloatArray = np.interp(steps, known, x) + pace * np.maximum(steps - known[-1], 0.0)
        return placed


def mapping(run: RunSnapshot, view: SeriesView, axis: str) -> Mapping | None:
    """How `view` lies on `axis`; None for steps, and where the log does not say."""
    x = None
    if axis in ("tokens", "flops"):
        x = tokens_at(run, view) if axis == "tokens" else flops_at(run, view)
    elif axis == "time":
        x = elapsed_s(view)
    if x is None or not x.size:
        return None
    keep = np.flatnonzero(np.isfinite(x))
    order = keep[np.argsort(view.steps[keep], kind="stable")]
    return Mapping(x, (view.steps[order], np.maximum.accumulate(x[order])))


def available(run: RunSnapshot, axis: str) -> bool:
    """Whether the loss, or whatever the run logs most of, can be put on `axis`."""
    if axis == "step":
        return True
    lead = run.series.get(SignalKey("loss.train"))
    if lead is None or not lead.steps.size:
        lead = max(run.series.values(), key=lambda view: view.count, default=None)
    return lead is not None and mapping(run, thinned(lead), axis) is not None


def next_axis(run: RunSnapshot, axis: str) -> str:
    """The next of `AXES` that the log can fill, round and round."""
    after = AXES[AXES.index(axis) + 1 :] + AXES[: AXES.index(axis) + 1]
    return next(one for one in after if available(run, one))


def why_not(run: RunSnapshot, axis: str) -> str:
    """What the log would have to tell for `axis`, in one clause; "" where it can be drawn."""
    if available(run, axis):
        return ""
    if axis == "time":
        return "time: no line of this log has a time stamp"
    tokens = "log the tokens seen, or tokens per batch (batch size and sequence length)"
    if axis == "tokens" or not available(run, "tokens"):
        return f"{axis}: {tokens}"
    return "flops: the parameter count is not known; log it, or set facts.parameters in trainmon.toml"


def tokens_at(run: RunSnapshot, view: SeriesView) -> FloatArray | None:
    """Tokens seen at each step of `view`: logged, or steps times a fixed batch; None when neither is known."""
    logged = _logged_at(run, "progress.tokens", view)
    if logged is not None:
        return logged
    batch = tokens_per_batch(run)
    return view.steps * batch if batch is not None and batch > 0 else None


def flops_at(run: RunSnapshot, view: SeriesView) -> FloatArray | None:
    """FLOPs spent at each step of `view`: logged, or 6 x active parameters x tokens (METRICS.md, D9)."""
    logged = _logged_at(run, "progress.flops", view)
    if logged is not None:
        return logged
    tokens = tokens_at(run, view)
    parameters = run.facts.get("active_parameters", run.facts.get("parameters"))
    if tokens is None or not isinstance(parameters, int | float) or not parameters > 0:
        return None
    return 6.0 * float(parameters) * tokens


def _logged_at(run: RunSnapshot, signal: str, view: SeriesView) -> FloatArray | None:
    seen = run.series.get(SignalKey(signal))
    if seen is None or seen.steps.size < 2:
        return None
    seen = thinned(seen)
    order = np.argsort(seen.steps, kind="stable")
    return np.interp(view.steps, seen.steps[order], seen.values[order])


def elapsed_s(view: SeriesView) -> FloatArray | None:
    """Seconds since the first value of `view`; an attempt whose clock began anew goes on where the last one ended.

    None when fewer than two values have a time.
    """
    times = view.times
    if times is None or np.isfinite(times).sum() < 2:
        return None
    out = np.array(times, dtype=np.float64)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(view.attempts)) + 1, [out.size]))
    end = np.nan
    for first, stop in pairwise(starts):
        part = out[first:stop]
        good = part[np.isfinite(part)]
        if not good.size:
            continue
        if np.isfinite(end) and good[0] < end:
            part += end - good[0]
        end = float(np.nanmax(part))
    first = out[np.isfinite(out)][0]
    elapsed: FloatArray = out - first
    return elapsed
