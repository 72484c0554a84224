"""The newest values of a series: the same whatever pieces they came in, in few arrays."""

from __future__ import annotations

import random

import numpy as np

from trainmon.monitor.stats.tail import Tail

SIZE = 4096


def test_it_holds_the_newest_values_whatever_pieces_they_came_in() -> None:
    rng = random.Random(3)
    for _ in range(30):
        tail, count = Tail(100), 0
        every: list[float] = []
        for _ in range(rng.randrange(1, 80)):
            part = np.arange(count, count + rng.choice((0, 1, 1, 2, 7, 30, 130)), dtype=float)
            count += len(part)
            tail.extend(part, part * 2)
            every += part.tolist()
        held = every[-100:]
        if rng.random() < 0.5 and every:
            tail.before(every[-1] - 3)
            held = held[:-4]
        assert tail.steps.tolist() == held
        assert tail.values.tolist() == (2 * tail.steps).tolist()
        assert bool(tail) == bool(held)


def test_rows_that_come_one_by_one_lie_in_few_arrays() -> None:
    """An array of one value takes as much room as fifteen: those of a run that is watched would be most of it."""
    tail = Tail(SIZE)
    most = 0
    for row in range(3 * SIZE):
        tail.extend(np.array([float(row)]), np.array([1.0]))
        most = max(most, len(tail._parts))
    assert most <= 24
    assert tail.steps.tolist() == list(range(2 * SIZE, 3 * SIZE))
