"""Held-out loss is consulted before any FAIL of the training loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.monitor.detectors.harness import cut, run
from tests.monitor.detectors.synthetic import (
    LOSS,
    RunSpec,
    climbing,
    healthy,
    ramped,
    scaled,
)
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.loss_drift import LossDrift
from trainmon.monitor.detectors.loss_shift import LossShift
from trainmon.monitor.detectors.loss_spike import LossSpike
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray


def evaluated(frame: Frame, every: int, curve: Callable[[FloatArray], FloatArray]) -> Frame:
    """Held-out loss every so many steps."""
    held = np.where(frame.steps % every == 0, curve(frame.steps), np.nan)
    return dataclasses.replace(frame, columns={**frame.columns, SignalKey("eval.nll"): held})


def test_a_shift_under_a_falling_held_out_loss_is_a_warning() -> None:
    frame = scaled(healthy(RunSpec(steps=4000, seed=3)), LOSS, 2001, 1e9, 1.4)
    told = run(LossShift, [frame])
    assert [e.severity for e in told.loud] == [Severity.FAIL]
    falling = evaluated(frame, 500, lambda steps: 5.0 - steps / 2000)
    for frames in ([falling], cut(falling, [2050, 2330, 2499, 2501])):
        told = run(LossShift, frames)
        assert [e.severity for e in told.loud] == [Severity.WARN]
        assert "held-out loss fell meanwhile (4 to" in told.loud[0].what
    rising = evaluated(frame, 500, lambda steps: 3.0 + steps / 2000)
    told = run(LossShift, [rising])
    assert [e.severity for e in told.loud] == [Severity.FAIL]
    assert "held-out loss rose too" in told.loud[0].what


def stays_up() -> Frame:
    """A loss that jumps by 60% and stays."""
    return scaled(healthy(RunSpec(steps=3000, seed=3)), LOSS, 2001, 1e9, 1.6)


def drifts_up() -> Frame:
    """A loss that rises by half within 1,500 steps."""
    return ramped(healthy(RunSpec(steps=4000, seed=3)), LOSS, 2001, 3500, 1.5)


@pytest.mark.parametrize(
    ("cls", "make"),
    [(LossSpike, stays_up), (LossDrift, drifts_up), (LossDrift, lambda: climbing(0.006))],
    ids=["spike", "drift", "climb"],
)
def test_held_out_loss_is_consulted_before_any_fail(cls: type[Detector], make: Callable[[], Frame]) -> None:
    frame = make()
    assert Severity.FAIL in [e.severity for e in run(cls, [frame]).loud]
    rising = evaluated(frame, 20, lambda steps: 3.0 + steps / 2000)
    assert Severity.FAIL in [e.severity for e in run(cls, [rising]).loud]
    falling = evaluated(frame, 20, lambda steps: 9.0 - steps / 1000)
    told = run(cls, [falling])
    assert {e.severity for e in told.loud} == {Severity.WARN}
    assert any("held-out loss fell meanwhile" in e.what for e in told.loud)
    pieces = cut(falling, [at for at in (100, 300, 301, 2050, 2330, 2499, 2501) if at < len(falling)])
    assert [repr(f) for f in run(cls, pieces).findings] == [repr(f) for f in told.findings]


def test_an_evaluation_soon_behind_the_onset_says_nothing_of_a_fail() -> None:
    frame = stays_up()
    early = evaluated(frame, 1, lambda steps: np.where(steps > 2010, np.nan, 9.0 - steps / 1000))
    assert Severity.FAIL in [e.severity for e in run(LossSpike, [early]).loud]
