"""A fault that lasted until its level was taken for the new one, and then went away, has recovered, and says when."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.monitor.detectors.harness import Folded, cut, run
from trainmon.monitor.detectors.abs_max import AbsMax
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.grad_dead import GradDead
from trainmon.monitor.detectors.loss_shift import LossShift
from trainmon.monitor.detectors.loss_spike import LossSpike
from trainmon.monitor.detectors.modality import Modality
from trainmon.monitor.detectors.step_time import StepTime
from trainmon.monitor.detectors.throughput import Throughput
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray

N, AT, END = 4000, 1200, 3000
CASES: list[tuple[str, type[Detector], str, float, float]] = [
    # name, detector, signal, healthy level, factor while it lasts
    ("slow steps", StepTime, "sys.step_time", 1.0, 1.6),
    ("very slow steps", StepTime, "sys.step_time", 1.0, 4.0),
    ("throughput lost", Throughput, "sys.tokens_per_second", 4e6, 0.6),
    ("a spike that comes back late", LossSpike, "loss.train", 2.5, 1.6),
    ("a level that goes back", LossShift, "loss.train", 2.5, 1.15),
    ("zero gradients", GradDead, "grad.zero_fraction", 0.02, 30.0),
    ("an output's scale", AbsMax, "tensor.abs_max{site=output}", 20.0, 20.0),
    ("an encoder that sleeps", Modality, "modality.encoder_grad_share{modality=image}", 0.1, 0.001),
]


def frame(signal: str, level: float, factor: Callable[[FloatArray], FloatArray], cadence: int, seed: int = 0) -> Frame:
    index = np.arange(N, dtype=np.float64)
    values = level * np.exp(0.01 * np.random.default_rng(seed).standard_normal(N)) * factor(index)
    name, _, label = signal.partition("{")
    labels = tuple(tuple(part.split("=", 1)) for part in label.rstrip("}").split(",") if part)
    steps = cadence * (index + 1)
    return Frame(0, "log", steps, steps, steps.astype(int), {SignalKey(name, labels): values})  # type: ignore[arg-type]


def only(told: Folded) -> tuple[float, float, bool]:
    loud = [one for one in told.episodes if one.severity >= Severity.WARN]
    assert len(loud) == 1, [(one.kind, one.first_step, one.last_step, one.what) for one in told.episodes]
    return loud[0].first_step, loud[0].last_step, loud[0].recovered


@pytest.mark.parametrize("cadence", [1, 10])
@pytest.mark.parametrize(("name", "detector", "signal", "level", "factor"), CASES, ids=[case[0] for case in CASES])
def test_a_long_fault_that_goes_away_has_recovered(
    name: str, detector: type[Detector], signal: str, level: float, factor: float, cadence: int
) -> None:
    whole = frame(signal, level, lambda i: np.where((i >= AT) & (i < END), factor, 1.0), cadence)
    told = run(detector, [whole])
    first, last, recovered = only(told)
    assert abs(first - cadence * (AT + 1)) <= 3 * cadence
    assert recovered
    assert abs(last - cadence * END) <= 30 * cadence
    pieces = run(detector, cut(whole, [7, AT + 2, AT + 1700, END - 1, END + 9]))
    assert [(one.first_step, one.last_step, one.recovered) for one in pieces.episodes] == [
        (one.first_step, one.last_step, one.recovered) for one in told.episodes
    ]


@pytest.mark.parametrize(("name", "detector", "signal", "level", "factor"), CASES, ids=[case[0] for case in CASES])
def test_a_level_that_stays_is_open_to_its_last_value(
    name: str, detector: type[Detector], signal: str, level: float, factor: float
) -> None:
    _, last, recovered = only(run(detector, [frame(signal, level, lambda i: np.where(i >= AT, factor, 1.0), 1)]))
    assert not recovered
    assert last > N - 60


@pytest.mark.parametrize("back", [False, True])
def test_a_second_fault_on_a_level_that_was_accepted_is_one_of_its_own(back: bool) -> None:
    def steps(i: FloatArray) -> FloatArray:
        return np.where(i < 800, 1.0, np.where(i < 2400, 1.6, np.where(i < 3500 if back else True, 3.0, 1.0)))  # type: ignore[no-any-return]

    told = run(StepTime, [frame("sys.step_time", 1.0, steps, 1)])
    loud = [one for one in told.episodes if one.severity >= Severity.WARN]
    assert [one.first_step for one in loud] == [801.0, 2401.0]
    assert [one.recovered for one in loud] == [back, back]


@pytest.mark.parametrize("length", [300, 1200], ids=["short", "taken for the level"])
@pytest.mark.parametrize(("name", "detector", "signal", "level", "factor"), CASES, ids=[case[0] for case in CASES])
def test_a_second_fault_of_the_same_height_is_told_as_well(
    name: str, detector: type[Detector], signal: str, level: float, factor: float, length: int
) -> None:
    def twice(i: FloatArray) -> FloatArray:
        return np.where(((i >= 800) & (i < 800 + length)) | ((i >= 2500) & (i < 2500 + length)), factor, 1.0)  # type: ignore[no-any-return]

    whole = frame(signal, level, twice, 1)
    told = run(detector, [whole])
    loud = [one for one in told.episodes if one.severity >= Severity.WARN]
    assert [one.recovered for one in loud] == [True, True], [(one.first_step, one.what) for one in loud]
    assert all(abs(one.first_step - first) <= 3 for one, first in zip(loud, (801, 2501), strict=True))
    pieces = run(detector, cut(whole, [9, 803, 811, 900, 2510, 2899]))
    assert [(one.first_step, one.last_step, one.what) for one in pieces.episodes] == [
        (one.first_step, one.last_step, one.what) for one in told.episodes
    ]


def test_a_run_that_goes_between_two_speeds_is_told_of_five_times() -> None:
    whole = frame("sys.step_time", 1.0, lambda i: np.where((i > 300) & (i % 200 < 100), 1.5, 1.0), 1)
    assert len([one for one in run(StepTime, [whole]).episodes if one.severity >= Severity.WARN]) == 5


def test_words_of_a_share_that_is_back_are_those_of_the_fault() -> None:
    told = run(GradDead, [frame("grad.zero_fraction", 0.02, lambda i: np.where((i >= 800) & (i < 1000), 25, 1.0), 1)])
    [one] = [one for one in told.episodes if one.severity >= Severity.WARN]
    to = float(one.what.partition(" to ")[2].partition("%")[0])
    assert to > 40, one.what
