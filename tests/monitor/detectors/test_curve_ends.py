"""Points of a curve and its flat ends, many at once, are what one value and one end at a time give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.detectors import loss_plateau, recurrence
from trainmon.monitor.detectors.common import Found, finite
from trainmon.monitor.detectors.curve_points import MOST_POINTS, Curve
from trainmon.monitor.detectors.loss_plateau import MIN_BEFORE, MIN_FLAT, NEAR, PARTS
from trainmon.monitor.detectors.recurrence import Recurrence
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.slope import falling_ends, slope_test
from trainmon.tails.record import FloatArray

LOSS = SignalKey("loss.train")


def frames(values: FloatArray, cuts: list[int]) -> list[Frame]:
    at = np.arange(1.0, len(values) + 1)
    ends = [*sorted(cut for cut in cuts if cut < len(values)), len(values)]
    parts = [slice(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    return [Frame(0, "log", at[part], at[part], at[part].astype(int), {LOSS: values[part]}) for part in parts]


def noisy_fall(seed: int, count: int, noise: float) -> FloatArray:
    rng = np.random.default_rng(seed)
    return np.asarray((2 + 8 * np.exp(-np.arange(count) / (count / 3))) * np.exp(rng.normal(0, noise, count)))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(4, 256),
    slope=st.sampled_from([0.0, -1e-3, -0.3, 0.3]),
    noise=st.sampled_from([0.0, 1e-9, 1e-3, 1.0]),
    level=st.sampled_from([0.0, 2.0, 1e4]),
)
def test_an_end_that_is_told_to_fall_falls(seed: int, count: int, slope: float, noise: float, level: float) -> None:
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.exponential(10.0, count))
    y = level + slope * np.log(x) + noise * rng.normal(size=count)
    tested = np.array([slope_test(x[begin:], y[begin:]).t for begin in range(count)])
    told = falling_ends(x, y, -3.0)
    assert (tested[told] < -3.0).all()
    if noise == 1e-3:
        assert told[tested < -3.1].all()


def plain_flat_from(steps: FloatArray, u: FloatArray, least: float) -> int | None:
    """The rule of `_flat_from`, one start after the other."""
    n = len(steps)
    apart = np.abs(u - np.median(u[-MIN_FLAT:]))
    for start in range(MIN_BEFORE, n - MIN_FLAT, max(1, n // 64)):
        begin = start + int(np.argmax(apart[start:] <= NEAR))
        if steps[-1] - steps[begin] < least:
            return None
        is_level = all(np.median(part) <= NEAR for part in np.array_split(apart[begin:], PARTS))
        if is_level and slope_test(steps[begin:], u[begin:]).t > -3.0:
            return begin
    return None


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(MIN_BEFORE + MIN_FLAT, 256),
    noise=st.sampled_from([0.0, 0.003, 0.02, 0.1]),
    bend=st.sampled_from([0.1, 0.5, 2.0, 30.0]),
    share=st.sampled_from([0.05, 0.3, 0.9]),
)
def test_the_flat_end_is_that_of_one_start_after_the_other(
    seed: int, count: int, noise: float, bend: float, share: float
) -> None:
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.exponential(10.0, count))
    u = np.maximum(-bend * 0.1 * np.log(steps), -0.25 * bend) + noise * rng.normal(size=count)
    least = share * float(steps[-1])
    assert loss_plateau._flat_from(steps, u, least) == plain_flat_from(steps, u, least)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 1500),
    zeros=st.booleans(),
    cuts=st.lists(st.integers(1, 1499), max_size=4, unique=True),
    looks=st.lists(st.integers(1, 1500), max_size=4, unique=True),
)
def test_points_are_those_of_one_value_at_a_time(
    seed: int, count: int, zeros: bool, cuts: list[int], looks: list[int]
) -> None:
    values = noisy_fall(seed, count, 0.05)
    if zeros:
        values[np.random.default_rng(seed).random(count) < 0.1] = 0.0
    curve, looked = Curve(), []
    for frame in frames(values, cuts):
        own, at = finite(frame, LOSS), 0
        while at < len(own):
            look = min((look for look in looks if look > (looked or [0])[-1]), default=math.inf)
            at = curve.feed(frame, own, at, len(own), look)
            if curve.is_whole and own.steps[at - 1] >= look:
                looked.append(float(own.steps[at - 1]))
    points: list[tuple[float, float, float]] = []
    join, held = 1, []
    for step, x in enumerate(values.tolist(), start=1):
        if x > 0:
            held.append((float(step), x))
        if len(held) == join:
            middle = sorted(x for _, x in held)[join // 2]
            points.append((sum(step for step, _ in held) / join, math.log(middle), held[0][0]))
            held = []
        if len(points) == MOST_POINTS:
            pairs = zip(points[::2], points[1::2], strict=True)
            points, join = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, a[2]) for a, b in pairs], 2 * join
    assert [(step, u, begin.step) for step, u, begin in curve.points] == points
    assert curve.is_whole is not bool(held)


@pytest.mark.parametrize("cuts", [[], [100], [37, 500, 501]])
def test_jumps_back_to_the_start_are_those_of_one_value_at_a_time(
    cuts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = noisy_fall(1, 3000, 0.02)
    values[1500::12] = 9.0  # back where the run began, once it has learned
    both = []
    for few in (recurrence._FEW, 10**9):  # the second: one value after the other where any is back
        monkeypatch.setattr(recurrence, "_FEW", few)
        if few == 10**9:
            monkeypatch.setattr(Recurrence, "_before_learning", lambda *_: 0)
        one, found = Recurrence(LOSS), Found()
        for frame in frames(values, cuts):
            one.feed(frame, found, len(frame))
        both.append(([(said.action, said.step, said.what) for _, said in found], one.count, one.level.value, one.total))
    assert both[0] == both[1]
    assert both[0][0]
