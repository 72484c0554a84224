"""Bounds on medians bound them; and values taken in many at once are judged as one by one."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.detectors import level_track, spike_track
from trainmon.monitor.detectors.level_track import LevelRule, LevelTrack
from trainmon.monitor.detectors.spike_rule import SpikeRule
from trainmon.monitor.detectors.spike_track import SpikeTrack
from trainmon.monitor.finding import Finding
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.sliding import median_bounds
from trainmon.tails.record import FloatArray

LOSS = SignalKey("loss.train")


@given(st.integers(0, 10_000), st.integers(20, 130), st.integers(1, 200), st.booleans())
def test_every_median_lies_within_its_bounds(seed: int, window: int, n: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=window + n).cumsum()
    values = np.round(values) if coarse else values
    low, high = median_bounds(values, window)
    medians = np.array([np.median(values[i : i + window]) for i in range(n)])
    assert (low <= medians).all()
    assert (medians <= high).all()


def losses(seed: int, noise: float, digits: int, n: int = 3000) -> FloatArray:
    """A falling loss with spikes, drops, level shifts, zeros and repeated values."""
    rng = np.random.default_rng(seed)
    values = (2 + 6 * np.exp(-np.arange(n) / 300)) * np.exp(noise * rng.standard_normal(n))
    for at in rng.integers(150, n - 60, rng.integers(0, 6)):
        values[at : at + rng.integers(1, 50)] *= rng.choice([0.3, 1.3, 2.0, 8.0])
    if rng.random() < 0.3:
        values[rng.integers(0, n, 3)] = 0.0
    if rng.random() < 0.2:
        values[rng.integers(n // 2, n)] = -1.0
    return np.round(values, digits)


def judged(values: FloatArray, window: int, cuts: list[int], *, follows_falls: bool = False) -> tuple[object, ...]:
    rule = SpikeRule(window, 6.0, 0.1, min(30, window), 100, 20, follows_falls=follows_falls)
    track = SpikeTrack(LOSS, rule)
    steps = np.arange(len(values), dtype=np.float64)
    steps[1000:1003] = 1000.0
    said: list[object] = []
    for begin, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
        where = slice(begin, end)
        lines = np.arange(begin, end)
        frame = Frame(0, "log", steps[where], steps[where], lines, {LOSS: values[where]})
        found: list[object] = []
        track.feed(frame, found)  # type: ignore[arg-type]
        said += [repr(finding) for _, finding in found]  # type: ignore[misc]
    score = track.score
    state = (score.robust.values(), score.robust._sorted, score.log, score.half_unit, track.judged, track.level)
    return (said, state, track.highest, track.highest_rise, track.highest_step, track.ratio_steps, repr(track.open))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    noise=st.sampled_from([0.005, 0.03, 0.08, 0.3]),
    digits=st.sampled_from([1, 2, 6]),
    window=st.sampled_from([10, 50, 100, 257]),
    cuts=st.lists(st.integers(1, 2999), max_size=4, unique=True),
    follows_falls=st.booleans(),
)
def test_many_values_at_once_are_judged_as_one_by_one(
    seed: int, noise: float, digits: int, window: int, cuts: list[int], follows_falls: bool
) -> None:
    values = losses(seed, noise, digits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spike_track, "_WORTH", 1 << 30)
        alone = judged(values, window, [], follows_falls=follows_falls)
    assert judged(values, window, sorted(cuts), follows_falls=follows_falls) == alone


def levels(values: FloatArray, rule: LevelRule, cuts: list[int]) -> tuple[object, ...]:
    key = SignalKey("sys.step_time")
    track = LevelTrack(key, rule)
    steps = np.arange(len(values), dtype=np.float64)
    steps[1000:1003] = 1000.0
    said: list[str] = []
    for begin, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
        where = slice(begin, end)
        found: list[tuple[int, Finding]] = []
        track.feed(
            Frame(0, "log", steps[where], steps[where], np.arange(begin, end), {key: values[where]}),
            found,
        )
        said += [repr(finding) for _, finding in found]
    state = (track.robust.values(), track.robust._sorted, track.judged, track.levels.medians, track.levels.buffer)
    return (said, state, track.stretch is None, track._last_step, track._last_value)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    noise=st.sampled_from([0.005, 0.08, 0.3]),
    direction=st.sampled_from(["up", "down"]),
    window=st.sampled_from([10, 50, 100]),
    sign=st.booleans(),
    cuts=st.lists(st.integers(1, 2999), max_size=4, unique=True),
)
def test_a_level_is_followed_many_values_at_once_as_one_by_one(
    seed: int, noise: float, direction: Literal["up", "down"], window: int, sign: bool, cuts: list[int]
) -> None:
    values = losses(seed, noise, 6)
    if not sign:
        values = np.abs(values) + 0.01
    rule = LevelRule(
        "level_shift",
        "step time",
        1.3 if direction == "up" else 0.8,
        2.0 if direction == "up" else 0.5,
        steps=20,
        window=window,
        min_history=min(30, window),
        direction=direction,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(level_track, "_WORTH", 1 << 30)
        alone = levels(values, rule, [])
    assert repr(levels(values, rule, sorted(cuts))) == repr(alone)
