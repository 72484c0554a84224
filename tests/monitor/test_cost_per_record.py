"""What one more record costs does not depend on how many came before it: counted, not timed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.monitor.counting import calls_of
from tests.tails.clocks import FakeClock
from trainmon.monitor.assemble import assemble
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.job.state import Pulse
from trainmon.monitor.tally import DistinctSteps, StepTally
from trainmon.tails.record import Block, Parsed

BATCH = 50_000


def block(first: int, count: int) -> Parsed:
    """A healthy stretch of records at `first` and the steps behind it."""
    steps = np.arange(first, first + count, dtype=np.float64)
    rng = np.random.default_rng(first)
    columns = {
        "loss": 2 + 8 * np.exp(-steps / 2000) + 0.01 * rng.standard_normal(count),
        "grad_norm": 0.5 + 0.01 * rng.standard_normal(count),
        "lr": 3e-4 * np.minimum(1.0, (steps + 1) / 2000),
        "tokens_per_sec": 1e5 + 100 * rng.standard_normal(count),
    }
    lines = np.arange(first + 1, first + count + 1)
    return Parsed([Block("log", steps, np.full(count, np.nan), lines * 90, lines, columns, {}, "step")], records=count)


def history(count: int, *, restarted: bool) -> RunEngine:
    engine = RunEngine("run", "log", clock=FakeClock(), sources=["log"], budget_bytes=4 << 20)
    for first in range(0, count, BATCH):
        engine.feed("log", block(first, min(BATCH, count - first)))
    if restarted:
        engine.feed("log", block(count // 2, 100), restarted=True)
    engine.settle()
    return engine


def allocated_by(work: Callable[[], None]) -> int:
    """The most bytes that `work` holds at once beyond what was there: a copy of the history would show."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def append(engine: RunEngine, first: int, count: int) -> None:
    for step in range(first, first + count):
        engine.feed("log", block(step, 1))
        engine.settle()
        assert engine.steps is not None
        engine.episodes()


@pytest.mark.parametrize("restarted", [False, True])
def test_one_more_record_costs_the_same_after_a_long_history(restarted: bool) -> None:
    calls, held = {}, {}
    for count in (20_000, 400_000):
        engine = history(count, restarted=restarted)
        at = count // 2 + 100 if restarted else count
        append(engine, at, 40)  # what is made once, at the first single record
        calls[count] = calls_of(lambda e=engine, a=at: append(e, a + 40, 50)) / 50  # type: ignore[misc]
        held[count] = allocated_by(lambda e=engine, a=at: append(e, a + 90, 10))  # type: ignore[misc]
    assert calls[400_000] < 1.1 * calls[20_000]
    assert held[400_000] < max(2 * held[20_000], 1 << 20)


def test_a_snapshot_copies_no_history() -> None:
    engine = history(400_000, restarted=True)

    def show() -> None:
        assemble(engine, (), (), Pulse(None, None, seen_growing=True), live=True, progress=1.0, with_scores=False)

    show()
    append(engine, 200_100, 1)
    assert allocated_by(show) < 1 << 20


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=30), min_size=1, max_size=4), st.integers(1, 7))
def test_distinct_steps_are_counted_as_they_come(attempts: list[list[int]], batch: int) -> None:
    distinct, tallies, seen = DistinctSteps(), [], set()
    for steps in attempts:
        tally = StepTally()
        ascending = sorted(set(steps))
        for at in range(0, len(ascending), batch):
            tally.add(np.array(ascending[at : at + batch], np.float64))
            seen.update(ascending[at : at + batch])
            assert distinct.count([*tallies, tally]) == len(seen)
        tallies.append(tally)
