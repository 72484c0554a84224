"""Which rank is the slowest changes in noisy step times: that is no straggler, at any cadence."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy_cases import frame_of, labelled
from tests.monitor.detectors.harness import run
from trainmon.monitor.detectors.straggler import Straggler
from trainmon.monitor.frame import Frame

N = 2000
SLOW = 1200


def step_times(ranks: int, cadence: int, sigma: float, seed: int, slow: float = 1.0) -> Frame:
    """Student's t with 3 degrees of freedom; rank 2 takes `slow` times as long from row SLOW on."""
    rng = np.random.default_rng([seed, ranks, cadence])
    times = {
        labelled("sys.rank_step_time", rank=rank): 0.5 * np.exp(sigma * rng.standard_t(3, N)) for rank in range(ranks)
    }
    times[labelled("sys.rank_step_time", rank=2)][SLOW:] *= slow
    return frame_of(cadence, N, times)


@pytest.mark.parametrize("cadence", [1, 10, 100])
@pytest.mark.parametrize("ranks", [4, 32])
@pytest.mark.parametrize("sigma", [0.02, 0.05])
def test_heavy_tails_make_no_straggler(ranks: int, sigma: float, cadence: int) -> None:
    for seed in range(3):
        assert run(Straggler, [step_times(ranks, cadence, sigma, seed)]).loud == []


@pytest.mark.parametrize("cadence", [1, 10, 100])
@pytest.mark.parametrize("sigma", [0.005, 0.05])
def test_a_slow_rank_in_such_times_is_told(sigma: float, cadence: int) -> None:
    (found,) = run(Straggler, [step_times(8, cadence, sigma, 5, slow=1.25)]).loud
    assert "rank 2" in found.what
    assert abs(found.first_step - SLOW * cadence) <= 15 * cadence
    assert not found.recovered


def test_in_quiet_times_three_values_are_enough() -> None:
    frame = step_times(8, 100, 0.002, 6, slow=1.2)
    told = run(Straggler, [frame_of(100, SLOW + 3, {key: values[: SLOW + 3] for key, values in frame.columns.items()})])
    assert len(told.loud) == 1
