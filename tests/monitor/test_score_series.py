"""The spike scores for drawing against the formula worked out value by value."""

from __future__ import annotations

import math

import numpy as np

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.score_series import _BLOCK, _FEWEST_VALUES, ScoreSeries
from trainmon.monitor.stats.robust_score import RobustScore

LOSS = SignalKey("loss.train")
WINDOW, Z, RATIO = 50, 6.0, 1.1


def by_the_formula(values: list[float]) -> list[float]:
    scores: list[float] = []
    for begin in range(0, len(values), _BLOCK):
        stat, block = RobustScore(WINDOW), []
        for value in values[max(begin - 2 * WINDOW, 0) : begin + _BLOCK]:
            score = stat.score(value) if len(stat) >= _FEWEST_VALUES else math.nan
            if not (score > Z and stat.scale(value) - stat.robust.median > math.log(RATIO)):
                stat.update(value)
            block.append(abs(score))
        scores += block[-len(values[begin : begin + _BLOCK]) :]
    return scores


def test_what_only_warms_a_block_up_is_learned_as_all_else() -> None:
    rng = np.random.default_rng(4)
    values = 2.0 + 0.02 * rng.normal(size=3 * _BLOCK + 40)
    values[rng.random(len(values)) < 0.05] *= 3.0  # spikes before each block's first value too
    series = ScoreSeries("loss.train", "loss", WINDOW, Z, RATIO)
    for at in range(0, len(values), 7):
        part = values[at : at + 7]
        steps = np.arange(at, at + len(part), dtype=np.float64)
        series.add(Frame(0, "train.log", steps, steps, steps.astype(int), {LOSS: part}))
        series.view()
    view = series.view()
    assert view is not None
    np.testing.assert_array_equal(view.values, by_the_formula(values.tolist())[_FEWEST_VALUES:])
