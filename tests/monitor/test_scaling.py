"""A power law with an offset: the range holds the truth, and what does not tell is not told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.compare.scaling import MOST_POINTS, batched, extrapolated


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("offset", "exponent", "noise"), [(1.7, 0.3, 0.01), (0.0, 0.1, 0.02), (2.5, 0.6, 0.005)])
def test_the_range_holds_the_truth(seed: int, offset: float, exponent: float, noise: float) -> None:
    x = np.arange(100.0, 5000.0)
    y = offset + 20 * x**-exponent + np.random.default_rng(seed).normal(0, noise, x.size)
    found = extrapolated(*batched(x, y), at=10_000.0)
    assert found is not None
    truth = offset + 20 * 10_000.0**-exponent
    slack = 0.25 * (found.high - found.low)  # a 95% range may miss by a little
    assert found.low - slack <= truth <= found.high + slack
    assert found.high - found.low < 0.2


@pytest.mark.parametrize(
    "y",
    [
        np.full(50, 2.0),
        np.linspace(2.0, 3.0, 50),
        np.full(50, np.nan),
        np.linspace(1.0, -1.0, 50),
        np.zeros(50),
        np.array([3.0, 2.0, 1.0]),
        np.array([]),
    ],
)
def test_what_does_not_fall_as_a_power_law_is_not_told(y: np.ndarray) -> None:
    assert extrapolated(np.arange(1.0, y.size + 1), y, at=1e3) is None


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=300),
    st.floats(0, 1e9),
)
@settings(max_examples=50)
def test_any_curve_gives_an_ordered_range_or_none(values: list[float], at: float) -> None:
    y = np.array(values)
    found = extrapolated(*batched(np.arange(y.size, dtype=float), y), at=at)
    assert found is None or found.low <= found.high


def test_batches_are_few_and_ordered() -> None:
    x, y = batched(np.arange(10_000.0), np.ones(10_000))
    assert x.size <= MOST_POINTS
    assert (np.diff(x) > 0).all()
    assert (y == 1).all()


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_the_size_of_the_numbers_changes_nothing(unit: float) -> None:
    x = np.geomspace(1.0, 100.0, 30)
    found = extrapolated(x, unit * (1.7 + 2.0 * x**-0.3), 200.0)
    assert found is not None
    assert found.low / unit == pytest.approx(1.7 + 2.0 * 200**-0.3, rel=1e-3)
    assert extrapolated(x, unit * x, 200.0) is None
