"""What the x axis of charts counts: steps, tokens seen, or wall time since the run began."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.tails.record import FloatArray

AXES = ("step", "tokens", "time")
_PACE_OVER = 100


@dataclass(frozen=True, slots=True)
class Mapping:
    """Steps to x for one series: `x` (n,) stands beside the series' values; `steps` and `x` rise in `known`."""

    x: FloatArray
    known: tuple[FloatArray, FloatArray]

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
    x = tokens_at(run, view) if axis == "tokens" else elapsed_s(view) if axis == "time" else None
    if x is None or not x.size:
        return None
    keep = np.flatnonzero(np.isfinite(x))
    order = keep[np.argsort(view.steps[keep], kind="stable")]
    return Mapping(x, (view.steps[order], np.maximum.accumulate(x[order])))


def available(run: RunSnapshot, axis: str) -> bool:
    """Whether the loss, or whatever the run logs most of, can be put on `axis`."""
    if axis == "step":
        return True
    views = sorted(run.series.values(), key=lambda view: (view.key.signal != "loss.train", -view.count))
    return bool(views) and mapping(run, views[0], axis) is not None


def next_axis(run: RunSnapshot, axis: str) -> str:
    """The next of `AXES` that the log can fill, round and round."""
    after = AXES[AXES.index(axis) + 1 :] + AXES[: AXES.index(axis) + 1]
    return next(one for one in after if available(run, one))


def tokens_at(run: RunSnapshot, view: SeriesView) -> FloatArray | None:
    """Tokens seen at each step of `view`: logged, or steps times a fixed batch; None when neither is known."""
    seen = run.series.get(SignalKey("progress.tokens"))
    if seen is not None and seen.steps.size >= 2:
        order = np.argsort(seen.steps, kind="stable")
        return np.interp(view.steps, seen.steps[order], seen.values[order])
    batch = run.facts.get("tokens_per_batch")
    if isinstance(batch, int | float) and batch > 0:
        return view.steps * float(batch)
    return None


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
