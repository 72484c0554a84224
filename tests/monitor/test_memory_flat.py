"""What a run takes in memory does not grow with its length, once the first day is over: counted in bytes held."""

from __future__ import annotations

import copy
import sys
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.clocks import FakeClock
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.room import MOST_POINTS, budget_of, watched_points
from trainmon.monitor.series import SeriesStore
from trainmon.monitor.tally import MOST_RUNS, DistinctSteps, StepTally
from trainmon.tails.record import Block, Note, NoteKind, Parsed, TimeKind

LOSS = SignalKey("loss.train")
OWN = SignalKey("my own key")


def held_by(thing: object) -> int:
    """Bytes of all that can be reached from `thing`: objects, and arrays by what they hold."""
    seen: set[int] = set()
    todo, total = [thing], 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            base: np.ndarray = one
            while isinstance(base.base, np.ndarray):
                base = base.base
            if base is one or id(base) not in seen:
                seen.add(id(base))
                total += base.nbytes
            continue
        total += sys.getsizeof(one)
        todo.extend(_parts(one))
    return total


def _parts(one: object) -> Iterator[object]:
    if isinstance(one, dict):
        yield from one.keys()
        yield from one.values()
    elif isinstance(one, (list, tuple, set, frozenset)) or type(one).__name__ == "deque":
        yield from one  # type: ignore[misc]
    elif type(one).__module__.startswith("trainmon"):
        yield from getattr(one, "__dict__", {}).values()
        for kind in type(one).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            yield from (
                getattr(one, name) for name in ([slots] if isinstance(slots, str) else slots) if hasattr(one, name)
            )


def stretch(first: int, count: int, *, odd: bool) -> Parsed:
    """Records a second apart; `odd`: at uneven steps, with a note now and then."""
    rng = np.random.default_rng(first)
    steps = np.arange(first, first + count, dtype=np.float64)
    if odd:
        steps = 3 * steps + rng.integers(0, 3, count)
    columns = {
        "loss": 2 + 0.01 * rng.standard_normal(count),
        "grad_norm": 0.5 + 0.01 * rng.standard_normal(count),
        "lr": np.full(count, 1e-4),
        "step_time_s": 1 + 0.01 * rng.standard_normal(count),
        "my_key": rng.random(count),
    }
    lines = np.arange(first + 1, first + count + 1)
    notes = (
        [Note("log", int(line), 0, NoteKind.CHECKPOINT_SAVED, "saved") for line in lines[:: count // 40]] if odd else []
    )
    block = Block("log", steps, 1.7e9 + steps, lines * 100, lines, columns, {}, "step", TimeKind.ABSOLUTE)
    return Parsed([block], notes, lines=count, records=count)


@pytest.mark.parametrize(("odd", "day", "budget"), [(False, 86_400, 256 << 20), (True, 15_000, 1 << 20)])
def test_a_run_takes_as_much_after_four_days_as_after_two(odd: bool, day: int, budget: int) -> None:
    engine = RunEngine("run", "log", clock=FakeClock(), sources=["log"], budget_bytes=budget)
    most: dict[int, int] = {}
    batch = day // 6
    for first in range(0, 4 * day, batch):
        engine.feed("log", stretch(first, batch, odd=odd))
        engine.settle()
        engine.episodes()
        if first >= day:
            half = first // (2 * day)
            most[half] = max(most.get(half, 0), held_by(engine))
    assert len(most) == 2
    assert most[1] < 1.05 * most[0]


def test_one_of_twenty_watched_runs_takes_as_much_after_a_week_as_after_a_day() -> None:
    """A record every 30 s: 2,880 a day. The newest lines and points are there by the end of the first day."""
    engine = RunEngine("run", "log", clock=FakeClock(), sources=["log"])
    engine.limit_memory(budget_of(20), watched_points(20))
    most = [0] * 7
    for first in range(0, 7 * 2880, 120):
        engine.feed("log", stretch(first, 120, odd=False))
        engine.settle()
        engine.episodes()
        engine.series_views()
        if first % 2880 >= 2400:
            most[first // 2880] = max(most[first // 2880], held_by(engine))
    assert max(most) < 1.1 * most[0], most  # what else there is in the process takes more than half as much again


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 99), ends=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_long_series_loses_no_extreme_and_keeps_its_newest_values(seed: int, ends: tuple[float, float]) -> None:
    total = 3 * MOST_POINTS.most[2]
    values = np.random.default_rng(seed).standard_normal(total)
    steps = np.arange(float(total))
    store = SeriesStore()
    for begin in range(0, total, 30_000):
        part = slice(begin, begin + 30_000)
        columns = {LOSS: values[part], OWN: values[part]}
        store.append(Frame(0, "log", steps[part], steps[part], np.arange(total)[part], columns))
    views = store.views()
    assert len(views[OWN].steps) <= MOST_POINTS.most[2]
    assert len(views[LOSS].steps) <= MOST_POINTS.most[0]
    assert len(views[LOSS].steps) > len(views[OWN].steps)
    for view in views.values():
        low, high = sorted(int(end * (len(view.steps) - 1)) for end in ends)
        first, last = int(view.steps[low]), int(view.steps[high + 1]) if high + 1 < len(view.steps) else total
        assert view.low is not None
        assert view.high is not None
        assert view.low[low : high + 1].min() == values[first:last].min()
        assert view.high[low : high + 1].max() == values[first:last].max()
        assert view.values[-30_000:].tolist() == values[-30_000:].tolist()
        assert view.count == total


def test_a_pinned_stretch_of_a_long_series_stays_raw() -> None:
    total = 3 * MOST_POINTS.most[2]
    values = np.random.default_rng(0).standard_normal(total)
    steps = np.arange(float(total))
    store = SeriesStore()
    store.pin(0, 5000.0, 5010.0)
    store.append(Frame(0, "log", steps, steps, np.arange(total), {OWN: values}))
    view = store.views()[OWN]
    inside = (view.steps >= 4900) & (view.steps <= 5110)
    assert view.values[inside].tolist() == values[4900:5111].tolist()
    assert len(view.steps) <= MOST_POINTS.most[2]


def test_a_look_ahead_copies_only_the_series_that_the_waiting_rows_log() -> None:
    engine = RunEngine("run", "log", clock=FakeClock(), sources=["log"])
    rng = np.random.default_rng(0)
    count = 60_000
    steps = np.arange(count, dtype=np.float64)
    columns = {"loss": 2 + 0.01 * rng.standard_normal(count)} | {f"layer/{n}/x": rng.random(count) for n in range(50)}
    lines = np.arange(1, count + 1)
    engine.feed("log", Parsed([Block("log", steps, steps, lines, lines, columns, {}, "step")], records=count))
    engine.settle()
    views = engine.series_views()
    back = Block("log", steps[:1] + 30_000, steps[:1], lines[:1], lines[:1], {"loss": np.array([2.0])}, {}, "step")
    engine.feed("log", Parsed([back], records=1))
    tracemalloc.start()
    engine.settle()
    took = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(engine.attempts) == 2
    assert took < 8 * count * 8  # loss, its axis, and what the detectors hold; not the fifty others
    layer = next(key for key in views if key.signal != "loss.train" and views[key].count == count)
    assert np.shares_memory(engine.series_views()[layer].values, views[layer].values)
    engine.feed(
        "log",
        Parsed([Block("log", steps[-1:] + 1, steps[:1], lines[:1], lines[:1], {"loss": np.array([2.0])}, {}, "step")]),
    )
    assert len(engine.attempts) == 1


def test_uneven_steps_are_counted_exactly_in_bounded_room() -> None:
    rng = np.random.default_rng(0)
    first, second, distinct = StepTally(), StepTally(), DistinctSteps()
    steps = np.cumsum(rng.integers(1, 5, 20 * MOST_RUNS)).astype(np.float64)
    for part in np.array_split(steps, 50):
        first.add(part)
        assert held_by(first) < 400 * MOST_RUNS
    assert first.count == len(steps)
    assert first.steps()[[0, -1]].tolist() == steps[[0, -1]].tolist()
    assert first.newest(500).tolist() == steps[-500:].tolist()
    again = np.concatenate([steps[-400:], steps[-1] + np.arange(1.0, 101.0)])
    second.add(again)
    assert distinct.count([first, second]) == len(steps) + 100


@given(
    attempts=st.lists(
        st.lists(st.integers(0, 60), min_size=1, max_size=40).map(lambda steps: sorted(set(steps))),
        min_size=1,
        max_size=5,
    )
)
def test_tallies_join_as_sets_do(attempts: list[list[int]]) -> None:
    union, seen = StepTally(), set()
    for steps in attempts:
        tally = StepTally()
        tally.add(np.array(steps, np.float64))
        union = union.joined(tally)
        seen.update(steps)
        assert union.count == len(seen)
        assert union.steps().tolist() == sorted(seen)


@given(
    st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=40), min_size=1, max_size=4),
    st.integers(1, 7),
    st.sampled_from([1.0, 0.5, 10.0]),
)
def test_steps_are_counted_as_a_set_in_whatever_order_they_come(
    attempts: list[list[int]], batch: int, width: float
) -> None:
    distinct, tallies, seen = DistinctSteps(), [], set()
    for steps in attempts:
        tally, own = StepTally(), set()
        for at in range(0, len(steps), batch):
            part = (np.array(steps[at : at + batch], np.float64) * width).tolist()
            tally.add(np.array(part))
            own.update(part)
            assert distinct.count([*tallies, tally]) == len(seen | own)
            assert tally.count == len(own)
            assert tally.steps().tolist() == pytest.approx(sorted(own))
        seen |= own
        tallies.append(tally)


def test_a_copy_of_a_tally_keeps_its_own_steps_when_late_ones_come() -> None:
    tally = StepTally()
    tally.add(np.array([1.0, 2.0, 3.0, 10.0, 20.0, 30.0, 31.0]))
    other = copy.deepcopy(tally)
    tally.add(np.array([15.0]))
    tally.add(np.array([32.0, 33.0]))
    assert other.steps().tolist() == [1, 2, 3, 10, 20, 30, 31]
    assert tally.steps().tolist() == [1, 2, 3, 10, 15, 20, 30, 31, 32, 33]


def test_steps_out_of_order_are_counted_exactly_in_bounded_room() -> None:
    rng = np.random.default_rng(0)
    steps = np.arange(40 * MOST_RUNS) + rng.integers(0, 30, 40 * MOST_RUNS)
    shuffled = np.argsort(steps, kind="stable").astype(np.float64)
    tally, whole = StepTally(), StepTally()
    for part in np.array_split(shuffled, 200):
        tally.add(part)
        assert held_by(tally) < 1000 * MOST_RUNS
    whole.add(shuffled)
    assert tally.count == whole.count == len(shuffled)
