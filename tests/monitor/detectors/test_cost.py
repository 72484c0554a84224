"""What a value costs: comparisons grow with the logarithm of the window, and nothing is recomputed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trainmon.monitor.stats.robust_score import RobustScore
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.stats.rolling_share import RollingShare


class Counted(float):
    """A number that counts how often it is compared or calculated with."""

    operations = 0

    def __lt__(self, other: float) -> bool:
        Counted.operations += 1
        return float(self) < float(other)

    def __gt__(self, other: float) -> bool:
        Counted.operations += 1
        return float(self) > float(other)

    def __le__(self, other: float) -> bool:
        Counted.operations += 1
        return float(self) <= float(other)

    def __add__(self, other: float) -> float:
        Counted.operations += 1
        return float(self) + float(other)

    def __sub__(self, other: float) -> float:
        Counted.operations += 1
        return float(self) - float(other)

    __hash__ = float.__hash__


def cost(window: int, values: int = 300) -> float:
    """Operations a value on a full window: update, median, MAD."""
    rng = np.random.default_rng(0)
    stat = RollingRobust(window)
    for x in rng.normal(size=window):
        stat.update(Counted(x))
    Counted.operations = 0
    for x in rng.normal(size=values):
        stat.update(Counted(x))
        assert stat.mad >= 0
        assert math.isfinite(stat.median)
    return Counted.operations / values


@pytest.mark.parametrize("window", [64, 256, 1024, 4096])
def test_the_robust_window_costs_a_logarithm(window: int) -> None:
    # Two bisections to leave and enter, one for the median's place, two or three for the middle deviations.
    assert cost(window) <= 8 * (math.log2(window) + 2)


def test_the_cost_grows_by_a_constant_when_the_window_doubles() -> None:
    steps = [cost(window) for window in (128, 256, 512, 1024, 2048)]
    growth = np.diff(steps)
    assert growth.max() <= 8
    assert steps[-1] < 2 * steps[0]


def test_a_share_costs_the_same_whatever_its_window() -> None:
    stat = RollingShare(100_000)
    for index in range(1000):
        stat.update(index % 3 == 0)
    assert stat.value == pytest.approx(334 / 1000)


def test_a_decision_needs_no_deviation_of_every_value() -> None:
    stat = RobustScore(window=1024, log=False)
    for x in np.random.default_rng(1).normal(size=1024):
        stat.update(Counted(x))
    Counted.operations = 0
    assert stat.above(100.0, 6.0)
    assert Counted.operations <= 6 * (math.log2(1024) + 2)
