"""The statistics, each with its batch oracle. Tests sweep this table: after every update both must agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from trainmon.monitor.stats.batch_noise import CAUTION, FEWEST, KEPT, BatchNoise
from trainmon.monitor.stats.ewma import Ewma
from trainmon.monitor.stats.resolution import FULL_PRECISION, PrintResolution, decimals_of
from trainmon.monitor.stats.robust_score import EPS, NORMAL, RobustScore
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.monitor.stats.rolling_share import RollingShare


class Statistic(Protocol):
    """What all have in common."""

    def update(self, x: float) -> None:
        """Takes one value in."""
        ...


class Entry(NamedTuple):
    """`make` gives a new statistic, `read` its value, `oracle` the same from all values so far, in plain numpy."""

    name: str
    make: Callable[[], Statistic]
    read: Callable[[Statistic], float]
    oracle: Callable[[Sequence[float]], float]


def _attribute(name: str) -> Callable[[Statistic], float]:
    return lambda statistic: float(getattr(statistic, name))


def _mad(values: Sequence[float]) -> float:
    window = np.array(values)
    return float(np.median(np.abs(window - np.median(window))))


def _ewma(values: Sequence[float]) -> float:
    weights = 0.9 ** np.arange(len(values))[::-1]
    return float(np.sum(weights * np.array(values)) / np.sum(weights))


def _score_of_one(statistic: Statistic) -> float:
    return statistic.score(1.0) if isinstance(statistic, RobustScore) else float("nan")


def _d6(values: Sequence[float]) -> float:
    u = np.log(np.abs(np.array(values[-20:])) + 1.0 + EPS)
    q = np.median(u)
    return float(NORMAL * (np.log(1.0 + EPS) - q) / (np.median(np.abs(u - q)) + EPS))


class _PositiveScore(RobustScore):
    def update(self, x: float) -> None:
        super().update(abs(x) + 1.0)


def _batch_noise(values: Sequence[float]) -> float:
    x = np.array(values)
    variances = []
    for size, fewest in FEWEST.items():
        means = x[: len(x) // size * size].reshape(-1, size).mean(axis=1)
        thirds = np.sort(np.abs(np.diff(means, 3))[-KEPT:])
        if len(thirds) >= fewest:
            variances.append(size * (1.4826 * thirds[len(thirds) // 2]) ** 2 / 20)
    if not variances:
        return float("inf")
    return float((CAUTION if len(variances) == 1 else 1.0) * np.sqrt(max(variances) * (1 / 8 + 1 / 20)))


class _Positive(RollingShare):
    def update(self, x: float) -> None:
        super().update(x > 0)


STATISTICS: tuple[Entry, ...] = (
    Entry("median of 5", lambda: RollingRobust(5), _attribute("median"), lambda v: float(np.median(v[-5:]))),
    Entry("median of 100", lambda: RollingRobust(100), _attribute("median"), lambda v: float(np.median(v[-100:]))),
    Entry("MAD of 1", lambda: RollingRobust(1), _attribute("mad"), lambda v: _mad(v[-1:])),
    Entry("MAD of 6", lambda: RollingRobust(6), _attribute("mad"), lambda v: _mad(v[-6:])),
    Entry("MAD of 101", lambda: RollingRobust(101), _attribute("mad"), lambda v: _mad(v[-101:])),
    Entry(
        "90% quantile of 30",
        lambda: RollingRobust(30),
        lambda s: s.quantile(0.9) if isinstance(s, RollingRobust) else float("nan"),
        lambda v: float(np.quantile(v[-30:], 0.9)),
    ),
    Entry("EWMA", lambda: Ewma(0.1), _attribute("value"), _ewma),
    Entry(
        "share above 0 of 7",
        lambda: _Positive(7),
        _attribute("value"),
        lambda v: float(np.mean(np.array(v[-7:]) > 0)),
    ),
    Entry(
        "decimals",
        PrintResolution,
        _attribute("decimals"),
        lambda v: min(FULL_PRECISION, max(decimals_of(x) for x in v)),
    ),
    Entry(
        "batch noise",
        BatchNoise,
        lambda s: s.sigma(8, 20) if isinstance(s, BatchNoise) else float("nan"),
        _batch_noise,
    ),
    Entry("D6", lambda: _PositiveScore(20), _score_of_one, _d6),
)
