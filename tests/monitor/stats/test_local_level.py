"""The level by its trend: of straight falls, of noise, and bounds that never miss a steep one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.stats.local_level import FEWEST, SHORT, local_level, may_be_steep
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.tails.record import FloatArray


def window(values: FloatArray) -> RollingRobust:
    held = RollingRobust(len(values))
    held.load(values.tolist())
    return held


@pytest.mark.parametrize("slope", [-0.004, -0.01, -0.1])
def test_the_next_value_of_a_straight_fall(slope: float) -> None:
    values = 3.0 + slope * np.arange(100)
    told = local_level(window(values), floor=1e-9)
    assert told is not None
    assert told.expected == pytest.approx(3.0 + slope * 100)
    assert told.spread == pytest.approx(1e-9)
    assert told.score(told.expected + 1e-8) == pytest.approx(0.6745 * 10)


def test_the_spread_is_that_of_the_noise_and_not_of_the_fall() -> None:
    rng = np.random.default_rng(3)
    values = 3.0 - 0.01 * np.arange(100) + rng.normal(0, 0.02, 100)
    told = local_level(window(values), floor=0.0)
    assert told is not None
    assert told.expected == pytest.approx(2.0, abs=0.03)
    assert 0.008 < told.spread < 0.025
    assert window(values).mad > 0.2


def test_level_and_rising_values_have_no_trend_to_follow() -> None:
    for slope in (0.0, 0.01, -0.0001):
        values = 3.0 + slope * np.arange(100)
        assert local_level(window(values), floor=0.0) is None


def test_too_few_values_have_none() -> None:
    values = 3.0 - 0.05 * np.arange(SHORT + FEWEST)
    assert local_level(window(values), floor=0.0) is not None
    assert local_level(window(values[1:]), floor=0.0) is None


@given(st.integers(0, 10_000), st.sampled_from([30, 60, 100]), st.sampled_from([0.0, 0.01, 0.1]))
def test_no_steep_fall_is_passed_over(seed: int, size: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    fall = rng.uniform(0.5, 3) * np.exp(-np.arange(size + 80) / rng.uniform(20, 400))
    values = fall + rng.normal(0, noise, size + 80)
    held = [window(values[row : row + size]) for row in range(80)]
    high, spread = np.array([one.median for one in held]), np.array([one.mad for one in held])
    may = may_be_steep(values, size, np.arange(80), high, spread)
    for row, one in enumerate(held):
        if local_level(one, floor=0.0) is not None:
            assert may[row]
