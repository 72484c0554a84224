"""A check whose signals were logged and never as a number cannot have judged anything, whatever it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainmon.monitor.amount import named
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import SignalKey

_LOSS = SignalKey("loss.train")


def without_numbers(
    detector: Detector, told: CheckResult, seen: Mapping[SignalKey, int], numbers: Mapping[SignalKey, int]
) -> CheckResult:
    """`told`, or NO DATA where all that `detector` is about was logged as NaN, Inf or null, or of several runs.

    `seen` counts the logged values of each signal, `numbers` the finite ones among them.
    """
    if told.verdict not in (Verdict.PASS, Verdict.NO_DATA):
        return told
    about = detector.signals if detector.about is None else detector.about
    if detector.signals[0] == _LOSS.signal and not seen.get(_LOSS):
        others = [named(key) for key, count in seen.items() if count and key.signal == _LOSS.signal]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            what = f"the loss of several runs in one file ({others[0]}{more}) is charted, not judged"
            return replace(told, verdict=Verdict.NO_DATA, what=what, why="", next="give each run a file of its own")
    logged = [key for key, count in seen.items() if count and key.signal in about]
    if not logged or any(numbers.get(key) for key in logged):
        return told
    most = max(logged, key=lambda key: seen[key])
    what = f"logged {seen[most]:,} times, never as a number (NaN, Inf or null)"
    return replace(told, verdict=Verdict.NO_DATA, what=what, why=", ".join(named(key) for key in logged[:5]), next="")
