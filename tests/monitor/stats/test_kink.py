"""A fall that stops at once against curves that flatten smoothly."""

from __future__ import annotations

import numpy as np
import pytest

from trainmon.monitor.stats.kink import kink

S = np.arange(100.0, 20_100.0, 100.0)
SMOOTH = {
    "power law": -0.3 * np.log(S),
    "floor": np.log(2.0 + 8.0 * (1 + S / 40.0) ** -0.8),
    "exponential": np.log(1.6 + 1.5 * np.exp(-S / 1700.0)),
    "level": np.zeros(len(S)),
}


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_it_finds_where_the_fall_stops_and_what_was_promised(share: float) -> None:
    rng = np.random.default_rng(1)
    u = -0.3 * np.log(np.minimum(S, share * S[-1])) + rng.normal(0, 0.002, len(S))
    found = kink(S, u)
    assert found is not None
    assert abs(S[found.begin] / S[-1] - share) < 0.05
    assert found.promised == pytest.approx(-0.3 * np.log(share), rel=0.2)
    assert found.evidence > 50


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_curves_are_no_stop(name: str) -> None:
    for seed in range(20):
        u = SMOOTH[name] + np.random.default_rng(seed).normal(0, 0.01, len(S))
        found = kink(S, u)
        assert found is not None
        assert found.evidence < 10


def test_the_evidence_does_not_grow_with_values_that_say_the_same_twice() -> None:
    rng = np.random.default_rng(3)
    white = rng.normal(0, 0.01, len(S))
    slow = np.convolve(white, np.ones(12) / 12**0.5, mode="same")
    stop = -0.3 * np.log(np.minimum(S, 0.7 * S[-1]))
    alone, correlated = kink(S, stop + white), kink(S, stop + slow)
    assert alone is not None
    assert correlated is not None
    assert correlated.evidence < alone.evidence


def test_too_few_points_say_nothing() -> None:
    assert kink(S[:12], -np.log(S[:12])) is None
