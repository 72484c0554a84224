"""Long series in bins: no extreme is lost at any zoom, and what is kept as it grows is what is made at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui.sample import view
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.growable import Growable
from trainmon.monitor.snapshot import SeriesView
from trainmon.tui.curve import curve_of, draw_curve
from trainmon.tui.levels import MOST_BINS, LevelCache, thinned, window

N = 50_000


def series(seed: int, restarts: int = 0) -> SeriesView:
    rng = np.random.default_rng(seed)
    steps = np.arange(float(N))
    attempts = np.zeros(N, np.int64)
    for place in sorted(rng.integers(100, N - 100, restarts)):
        steps[place:] -= rng.integers(1, 90)
        attempts[place:] += 1
    return view("loss.train", steps, rng.standard_normal(N) ** 3, attempts)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 5), st.floats(0, 1), st.floats(0.0005, 1))
def test_no_extreme_is_lost(seed: int, restarts: int, start: float, size: float) -> None:
    one = series(seed, restarts)
    thin = thinned(one)
    assert thin.steps.size <= MOST_BINS + 2 * restarts + 2
    assert thin.high.max() == one.high.max()
    assert thin.low.min() == one.low.min()
    first, last = start * N * 0.9, min(N - 1.0, (start * 0.9 + size) * N)
    part = window(one, first, last)
    inside = (one.steps >= first) & (one.steps <= last)
    if inside.any():
        assert part.high.max() >= one.values[inside].max()
        assert part.low.min() <= one.values[inside].min()


def test_a_spike_of_one_step_is_drawn_at_its_step_at_every_zoom() -> None:
    values = np.full(N, 2.0)
    values[31_234] = 9.0
    curve = curve_of(view("loss.train", np.arange(float(N)), values))
    for width in (N, 20_000, 2_000, 100, 10):
        start, stop = 31_234 - width / 3, 31_234 + width / 3
        spans = draw_curve(curve.between(start, stop), start, stop, 120).merged()
        at = np.flatnonzero(spans.high == 9.0)
        assert at.size >= 1
        assert abs(at[0] - 60) <= 1


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9000), min_size=1, max_size=8), st.integers(0, 99))
def test_growing_gives_what_is_made_at_once(pieces: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps, values = Growable(np.arange(6000.0)), Growable(rng.standard_normal(6000))
    cache = LevelCache()

    def now() -> SeriesView:
        held = values.view()
        n = len(held)
        attempts = np.broadcast_to(np.int64(0), (n,))
        return SeriesView(SignalKey("x"), "", steps.view(), held, held, held, attempts, np.empty(0), n, 0.0)

    cache.thin(now())
    for piece in pieces:
        steps.append(np.arange(float(len(steps)), len(steps) + piece))
        values.append(rng.standard_normal(piece))
        thin, firsts = cache.thin(now())
        held = values.view()
        assert thin.high.max() == held.max()
        assert thin.low.min() == held.min()
        assert np.array_equal(firsts, np.unique(firsts))
        assert np.allclose(np.diff(np.append(firsts, len(held))) @ thin.values, held.sum())
        assert thin.steps[-1] == len(held) - 1


def test_series_that_are_gone_are_not_taken_for_others() -> None:
    cache = LevelCache(most=4)
    for seed in range(20):
        one = series(seed)
        assert cache.thin(one).view.high.max() == one.high.max()
    assert len(cache) == 4
