from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.stats.resolution import PrintResolution, decimals_of
from trainmon.monitor.stats.robust_score import EPS, NORMAL, RobustScore
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.stats.slope import slope_test, theil_sen

values = st.lists(
    st.one_of(st.floats(0.01, 100.0), st.integers(1, 500).map(lambda n: n / 100)), min_size=1, max_size=130
)


@settings(max_examples=150, deadline=None)
@given(values, st.integers(1, 60), st.floats(0.0, 5.0))
def test_within_answers_as_the_mad_itself(xs: list[float], window: int, limit: float) -> None:
    stat = RollingRobust(window)
    for x in xs:
        stat.update(x)
        assert stat.within(limit) == (stat.mad < limit)
        assert not stat.within(stat.mad)


@settings(max_examples=150, deadline=None)
@given(values, st.floats(0.01, 100.0), st.floats(0.5, 20.0), st.sampled_from([0.0, 0.005]))
def test_decision_without_the_mad_is_the_formula_of_d6(xs: list[float], x: float, cut: float, half_unit: float) -> None:
    score = RobustScore(50)
    score.half_unit = half_unit
    for value in xs:
        score.update(value)
    u = np.log(np.array(xs[-50:]) + EPS)
    q = float(np.median(u))
    spread = max(float(np.median(np.abs(u - q))), half_unit / (np.exp(q) + EPS))
    rise = float(np.log(x + EPS)) - q
    z = NORMAL * rise / (spread + EPS)
    assert score.score(x) == pytest.approx(z, rel=1e-9, abs=1e-9)
    if abs(z - cut) > 1e-9 * max(1.0, abs(z)):
        assert score.above(score.scale(x) - score.robust.median, cut) == (z > cut)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 8)), min_size=1, max_size=60), st.data())
def test_resolution_is_the_same_however_the_values_are_cut(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    xs = np.array([round(n * 10.0**-places, places) for n, places in pairs])
    one_by_one = PrintResolution()
    expected = []
    for x in xs.tolist():
        one_by_one.update(x)
        expected.append(one_by_one.half_unit)
    assert one_by_one.decimals == max(decimals_of(x) for x in xs.tolist())
    cut = data.draw(st.integers(0, len(xs)))
    in_two, got = PrintResolution(), np.zeros(len(xs))
    for first, part in ((0, xs[:cut]), (cut, xs[cut:])):
        for start, half_unit in in_two.extend(part):
            got[first + start : first + len(part)] = half_unit
    assert got.tolist() == expected


def test_full_precision_has_no_floor() -> None:
    stat = PrintResolution()
    stat.update(2.7182818284590451)
    assert stat.half_unit == 0.0


def test_theil_sen_shrugs_off_outliers() -> None:
    x = np.arange(50.0)
    y = 0.5 * x
    y[::7] += 100
    assert theil_sen(x, y) == pytest.approx(0.5, abs=0.02)


def test_slope_test_keeps_its_size_under_autocorrelation() -> None:
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(400):
        noise = rng.normal(size=200)
        for i in range(1, 200):
            noise[i] += 0.6 * noise[i - 1]
        alarms += abs(slope_test(np.arange(200.0), noise).t) > 3
    assert alarms <= 12  # plain least squares gives about 60
