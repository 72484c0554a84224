"""The store of series: exact while there is room, no extreme lost when there is not, P0 thinned last."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.room import MOST_POINTS, Points, watched_points
from trainmon.monitor.series import SeriesStore, priority_of
from trainmon.tails.record import Mark

LOSS = SignalKey("loss.train")
OWN = SignalKey("my own key")
SCORE = SignalKey("grad.zero_fraction")


def frame(steps, columns, attempt=0, marks=None):  # type: ignore[no-untyped-def]
    steps = np.asarray(steps, float)
    whole = np.arange(len(steps))
    return Frame(attempt, "log", steps, steps * 2.0, whole, columns, marks or {})


def filled(  # type: ignore[no-untyped-def]
    total, budget_bytes, keys=(LOSS, SCORE, OWN), block=10_000, seed=0, points=MOST_POINTS, attempt_of=lambda row: 0
):
    """A store with `total` rows of random values, and the values."""
    random = np.random.default_rng(seed)
    store = SeriesStore(budget_bytes)
    store.limit(budget_bytes, points)
    values = {key: random.normal(size=total) for key in keys}
    for begin in range(0, total, block):
        part = slice(begin, min(begin + block, total))
        store.append(frame(np.arange(total)[part], {key: values[key][part] for key in keys}, attempt_of(begin)))
    return store, values


def test_values_are_kept_as_they_are_while_there_is_room() -> None:
    store, values = filled(20_000, 1 << 30)
    view = store.views()[LOSS]
    assert np.array_equal(view.values, values[LOSS])
    assert view.low is not None
    assert np.shares_memory(view.low, view.values)
    assert np.array_equal(view.steps, np.arange(20_000))
    assert np.array_equal(view.times, np.arange(20_000) * 2.0)
    assert set(view.attempts.tolist()) == {0}


def test_a_view_never_changes() -> None:
    store = SeriesStore()
    store.append(frame([1, 2], {LOSS: np.array([3.0, 2.0])}))
    early = store.views()[LOSS]
    store.append(frame(np.arange(3, 5000), {LOSS: np.arange(3.0, 5000)}))
    assert early.values.tolist() == [3.0, 2.0]
    assert early.count == 2
    with pytest.raises(ValueError, match="read-only"):
        early.values[0] = 1.0


def test_series_that_are_logged_on_other_rows_part() -> None:
    store = SeriesStore()
    nan = math.nan
    store.append(frame([1, 2, 3, 4], {LOSS: np.arange(4.0), OWN: np.array([nan, 5.0, nan, 6.0])}))
    store.append(frame([5, 6], {LOSS: np.arange(2.0), OWN: np.array([7.0, 8.0])}))
    store.append(frame([7, 8], {LOSS: np.arange(2.0)}, attempt=1))
    store.append(frame([9], {OWN: np.array([9.0])}, attempt=1))
    views = store.views()
    assert views[LOSS].steps.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert views[LOSS].attempts.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    assert views[OWN].steps.tolist() == [2, 4, 5, 6, 9]
    assert views[OWN].attempts.tolist() == [0, 0, 0, 0, 1]
    assert views[OWN].values.tolist() == [5, 6, 7, 8, 9]


def test_what_is_no_number_is_kept_apart_and_counted() -> None:
    store = SeriesStore()
    nan = math.nan
    marks = {LOSS: np.array([Mark.NUMBER, Mark.NAN, Mark.ABSENT, Mark.NULL, Mark.POS_INF], np.uint8)}
    store.append(frame([1, 2, 3, 4, 5], {LOSS: np.array([3.0, nan, nan, nan, math.inf])}, marks=marks))
    view = store.views()[LOSS]
    assert view.values.tolist() == [3.0]
    assert view.bad_steps.tolist() == [2.0, 4.0, 5.0]
    assert view.count == 4
    assert view.last == math.inf


@settings(max_examples=25, deadline=None)
@given(
    total=st.integers(8192, 60_000),
    budget_kib=st.integers(50, 800),
    seed=st.integers(0, 1000),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_no_extreme_is_lost_at_any_zoom(total: int, budget_kib: int, seed: int, ends: tuple[float, float]) -> None:
    store, values = filled(total, budget_kib << 10, seed=seed)
    for key, raw in values.items():
        view = store.views()[key]
        low, high = sorted(int(end * (len(view.steps) - 1)) for end in ends)
        first = int(view.steps[low])
        last = int(view.steps[high + 1]) if high + 1 < len(view.steps) else total
        assert view.low[low : high + 1].min() == raw[first:last].min()
        assert view.high[low : high + 1].max() == raw[first:last].max()
        assert view.count == total
        assert view.last == raw[-1]
        assert np.array_equal(view.values[-200:], raw[-200:])


@settings(max_examples=15, deadline=None)
@given(
    total=st.integers(3000, 60_000),
    runs=st.sampled_from([5, 20, 400]),
    block=st.sampled_from([1, 7, 1000, 60_000]),
    pinned=st.lists(st.integers(0, 60_000), max_size=30),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_among_many_watched_runs_few_points_hold_every_extreme(
    total: int, runs: int, block: int, pinned: list[int], ends: tuple[float, float]
) -> None:
    points, values = watched_points(runs), np.random.default_rng(0).normal(size=total)
    store = SeriesStore()
    store.limit(1 << 30, points)
    for step in pinned:
        store.pin(0, step, step)
    for begin in range(0, total, max(block, total // 2000)):
        part = slice(begin, begin + max(block, total // 2000))
        store.append(frame(np.arange(total)[part], {LOSS: values[part], OWN: values[part]}))
    for key, view in store.views().items():
        most, raw = points.most[priority_of(key)], points.raw(priority_of(key))
        assert len(view.steps) <= most + most // 4
        assert np.array_equal(view.values[-raw:], values[-raw:])
        low, high = sorted(int(end * (len(view.steps) - 1)) for end in ends)
        first = int(view.steps[low])
        last = int(view.steps[high + 1]) if high + 1 < len(view.steps) else total
        assert view.low[low : high + 1].min() == values[first:last].min()
        assert view.high[low : high + 1].max() == values[first:last].max()


def test_few_points_stay_few_however_long_the_run_and_however_often_it_starts() -> None:
    points = Points((1024, 512, 512), 0.25)
    store, values = filled(1_000_000, 1 << 30, points=points, attempt_of=lambda row: row // 30_000)
    for key, view in store.views().items():
        assert len(view.steps) <= points.most[priority_of(key)] + 256
        assert (view.low.min(), view.high.max()) == (values[key].min(), values[key].max())
        assert set(view.attempts.tolist()) == set(range(34))


def test_fewer_points_are_kept_as_soon_as_there_is_less_room() -> None:
    store, values = filled(20_000, 1 << 30)
    store.limit(1 << 30, watched_points(20))
    view = store.views()[LOSS]
    assert len(view.steps) <= 2048
    assert np.array_equal(view.values[-512:], values[LOSS][-512:])


def test_of_very_many_pins_the_newest_are_kept() -> None:
    total, points = 60_000, watched_points(20)
    store, values = SeriesStore(), np.random.default_rng(0).normal(size=total)
    store.limit(1 << 30, points)
    for begin in range(0, total, 1000):
        store.pin(0, begin, begin + 10)
        part = slice(begin, begin + 1000)
        store.append(frame(np.arange(total)[part], {LOSS: values[part]}))
    view = store.views()[LOSS]
    assert len(view.steps) <= points.most[0]
    alone = view.steps[view.low == view.high]
    assert len(alone[alone < 50_000]) < 10  # long ago: merged, and read again when they are looked at
    newest = [step for step in range(total - 1100, total - 890) if step < total - points.raw(0)]
    assert set(newest) <= set(alone.tolist())


def test_memory_stays_within_the_budget() -> None:
    budget = 1 << 20
    store, _ = filled(400_000, budget)
    assert store.nbytes < 1.5 * budget


def test_means_of_bins_are_the_means_of_their_values() -> None:
    store, values = filled(50_000, 200 << 10, keys=(LOSS,))
    view = store.views()[LOSS]
    assert len(view.steps) < 50_000
    bounds = [*view.steps.astype(int).tolist(), 50_000]
    for index in range(0, len(bounds) - 1, 97):
        part = values[LOSS][bounds[index] : bounds[index + 1]]
        assert view.values[index] == pytest.approx(part.mean())


def test_p0_is_thinned_last() -> None:
    store, _ = filled(100_000, 5 << 20)
    views = store.views()
    assert priority_of(LOSS) == 0
    assert priority_of(SCORE) == 1
    assert priority_of(OWN) == 2
    assert len(views[LOSS].steps) > len(views[SCORE].steps) >= len(views[OWN].steps)
    assert len(views[LOSS].steps) == 100_000


def test_steps_around_episodes_stay_raw() -> None:
    total = 200_000
    store = SeriesStore(600 << 10)
    values = np.random.default_rng(1).normal(size=total)
    for begin in range(0, total, 1000):
        if begin == 51_000:
            store.pin(0, 50_000, 50_010)
        part = slice(begin, begin + 1000)
        store.append(frame(np.arange(total)[part], {LOSS: values[part]}))
    view = store.views()[LOSS]
    inside = (view.steps >= 49_900) & (view.steps <= 50_110)
    assert np.array_equal(view.steps[inside], np.arange(49_900, 50_111))
    assert np.array_equal(view.values[inside], values[49_900:50_111])
    assert len(view.steps) < total / 4


def test_pins_give_way_when_nothing_else_helps() -> None:
    store = SeriesStore(200 << 10)
    store.pin(0, 0, 1e9)
    store.append(frame(np.arange(100_000), {LOSS: np.ones(100_000)}))
    assert store.nbytes < 400 << 10


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 30_000), max_size=6))
def test_the_cut_into_frames_does_not_matter(cuts: list[int]) -> None:
    random = np.random.default_rng(3)
    columns = {LOSS: random.normal(size=30_000), OWN: np.where(random.random(30_000) < 0.3, np.nan, 1.0)}

    def fed(places: list[int]):  # type: ignore[no-untyped-def]
        store = SeriesStore(100 << 10)
        for begin, end in pairwise(places):
            part = slice(begin, end)
            store.append(frame(np.arange(30_000)[part], {key: column[part] for key, column in columns.items()}))
        return {key: (v.steps.tolist(), v.low.tolist(), v.values.tolist()) for key, v in store.views().items()}

    assert fed([0, *sorted(cuts), 30_000]) == fed([0, 30_000])


def test_too_many_series_are_refused_but_p0_is_kept() -> None:
    store = SeriesStore(most_series=10)
    admitted = [store.admit(SignalKey("my key", (("layer", str(number)),))) for number in range(50)]
    assert sum(admitted) == 10
    assert store.refused == 40
    assert store.admit(LOSS)
    assert not store.admit(SignalKey("loss.source", (("source", "code"),)))
