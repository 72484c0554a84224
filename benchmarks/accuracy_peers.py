"""The rules that training code bases use, each in a few lines of numpy: the row indices at which a value is flagged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.monitor.detectors.synthetic import GRAD, LOSS
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray, IntArray

TOGETHER = 200  # rows: flagged values nearer than this are one alarm, as findings of one episode are


def _windows(x: FloatArray, window: int) -> FloatArray:
    """(n - window, window): the `window` values before each of x[window:]."""
    return np.lib.stride_tricks.sliding_window_view(x, window)[:-1]


def mean_and_deviations(window: int, deviations: float) -> Callable[[FloatArray], IntArray]:
    """More than so many standard deviations above the mean of the window (OLMo-core: 6 of 128; OLMo 2: 7 of 1000)."""

    def flag(x: FloatArray) -> IntArray:
        if len(x) <= window:
            return np.empty(0, np.int64)
        before = _windows(x, window)
        return window + np.flatnonzero(x[window:] > before.mean(axis=1) + deviations * before.std(axis=1))

    return flag


def times_mean(window: int, ratio: float) -> Callable[[FloatArray], IntArray]:
    """More than `ratio` times the mean of the window (llm-foundry)."""

    def flag(x: FloatArray) -> IntArray:
        if len(x) <= window:
            return np.empty(0, np.int64)
        return window + np.flatnonzero(x[window:] > ratio * _windows(x, window).mean(axis=1))

    return flag


def ema_score(alpha: float, cut: float, warm_up: int) -> Callable[[FloatArray], IntArray]:
    """ZClip: z against an exponential mean and variance; a flagged value enters them clipped to the cut."""

    def flag(x: FloatArray) -> IntArray:
        if len(x) <= warm_up:
            return np.empty(0, np.int64)
        mean, variance = float(x[:warm_up].mean()), float(x[:warm_up].var())
        flagged = []
        for i, value in enumerate(x[warm_up:].tolist(), warm_up):
            deviation = variance**0.5 + 1e-12
            if value > mean + cut * deviation:
                flagged.append(i)
                value = mean + cut * deviation
            mean = alpha * mean + (1 - alpha) * value
            variance = alpha * variance + (1 - alpha) * (value - mean) ** 2
        return np.array(flagged, np.int64)

    return flag


def times_median(window: int, ratio: float, left_out: int) -> Callable[[FloatArray], IntArray]:
    """More than `ratio` times the median of the window without its last values (the stability report's plain ratio)."""

    def flag(x: FloatArray) -> IntArray:
        if len(x) <= window:
            return np.empty(0, np.int64)
        before = _windows(x, window)[:, : window - left_out]
        return window + np.flatnonzero(x[window:] > ratio * np.median(before, axis=1))

    return flag


PEERS: dict[str, Callable[[FloatArray], IntArray]] = {
    "6 sd/128": mean_and_deviations(128, 6.0),
    "7 sd/1000": mean_and_deviations(1000, 7.0),
    "2x mean": times_mean(25, 2.0),
    "EMA z 2.5": ema_score(0.97, 2.5, 25),
    "2.5x median": times_median(100, 2.5, 10),
}


class Asked:
    """What the rules flag of loss and gradient norm, remembered by column: a fault changes one of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[FloatArray, list[int]]] = {}

    def alarms(self, name: str, frame: Frame) -> int:
        """How many alarms the rule `name` gives: flagged values within `TOGETHER` rows of each other are one."""
        count = 0
        for key in (LOSS, GRAD):
            last = -TOGETHER - 1
            for row in self._column(name, frame, key) if key in frame.columns else ():
                count += row - last > TOGETHER
                last = row
        return count

    def flags(self, name: str, frame: Frame) -> set[tuple[SignalKey, int]]:
        """Every value that it flags: (series, row). A value that is not finite is flagged by all of them."""
        return {(key, row) for key in (LOSS, GRAD) if key in frame.columns for row in self._column(name, frame, key)}

    def _column(self, name: str, frame: Frame, key: SignalKey) -> list[int]:
        column = frame.columns[key]
        kept = self._known.get((name, id(column)))
        if kept is None or key in frame.marks:
            kept = (column, _judge(name, frame, key))
            if key not in frame.marks:
                self._known[name, id(column)] = kept
        return kept[1]

    def forget(self) -> None:
        """For the next run."""
        self._known.clear()


def _judge(name: str, frame: Frame, key: SignalKey) -> list[int]:
    column = frame.columns[key]
    logged = frame.logged(key)
    finite = logged[np.isfinite(column[logged])]
    bad = logged[~np.isfinite(column[logged])] if key in frame.marks else np.empty(0, np.int64)
    flagged: list[int] = np.sort(np.concatenate([finite[PEERS[name](column[finite])], bad])).tolist()
    return flagged
