"""Restarts without warm-up, and changes that were meant: notes, and levels that begin anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tests.monitor.detectors.harness import cut, run
from tests.monitor.detectors.synthetic import LOSS, LR, TIME, TPS, RunSpec, healthy, without
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.changes import Changes
from trainmon.monitor.detectors.loss_shift import LossShift
from trainmon.monitor.detectors.loss_spike import LossSpike
from trainmon.monitor.detectors.lr_schedule import LrSchedule
from trainmon.monitor.detectors.restarts import Restarts
from trainmon.monitor.detectors.rewarm import Rewarm
from trainmon.monitor.detectors.step_time import StepTime
from trainmon.monitor.detectors.throughput import Throughput
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray

SIZE, LENGTH, EPOCH = SignalKey("batch.size"), SignalKey("batch.seq_length"), SignalKey("progress.epoch")


def attempt(first: int, number: int, *, loss: float = 1.0, warm: bool = False, cadence: int = 1) -> Frame:
    """Steps `first`.. of the run, with the loss `loss` times what it should be, and a warm-up or none."""
    frame = healthy(RunSpec(steps=600 * cadence, seed=number, first_step=first, attempt=number, cadence=cadence))
    at = np.arange(len(frame))
    rate = np.minimum((at + 1) / 100, 1.0) if warm else np.ones(len(frame))
    decayed = 1 + (loss - 1) * np.exp(-at / 200)
    columns = {**frame.columns, LR: 3e-4 * rate, LOSS: frame.columns[LOSS] * decayed}
    return dataclasses.replace(frame, columns=columns)


@pytest.mark.parametrize("cadence", [1, 10])
def test_a_restart_whose_state_was_lost(cadence: int) -> None:
    told = run(Rewarm, [attempt(cadence, 0, cadence=cadence), attempt(550 * cadence, 1, loss=1.6, cadence=cadence)])
    assert [(e.kind, e.severity) for e in told.episodes] == [("restart_loss", Severity.WARN)]
    assert "without warm-up (learning rate 0.0003" in told.episodes[0].what
    assert told.result is not None
    assert told.result.verdict is Verdict.WARN


@pytest.mark.parametrize(("asked", "says"), [(None, "over a few hundred steps"), (250.0, "over the 250 steps of its")])
def test_a_restart_whose_state_was_lost_is_told_its_own_warm_up(asked: float | None, says: str) -> None:
    facts = {} if asked is None else {"warmup_steps": asked}
    told = run(Rewarm, [attempt(1, 0), attempt(550, 1, loss=1.6)], facts)
    assert told.result is not None
    assert says in told.result.next


def test_a_restart_with_a_new_warm_up_is_a_note() -> None:
    told = run(Rewarm, [attempt(1, 0), attempt(550, 1, loss=1.6, warm=True)])
    assert [(e.kind, e.severity) for e in told.episodes] == [("restart_loss", Severity.INFO)]
    assert "with a new warm-up" in told.episodes[0].what


def test_a_restart_that_goes_on_and_a_run_that_begins_anew_are_silent() -> None:
    assert run(Rewarm, [attempt(1, 0), attempt(550, 1)]).episodes == []
    assert run(Rewarm, [attempt(1, 0), attempt(1, 1)]).episodes == []
    only = run(Rewarm, [attempt(1, 0)]).result
    assert only is not None
    assert only.verdict is Verdict.NOT_APPLICABLE


def test_without_a_learning_rate_the_words_say_so() -> None:
    told = run(Rewarm, [without(attempt(1, 0), LR), without(attempt(550, 1, loss=1.6), LR)])
    assert "learning rate that is not logged" in told.episodes[0].what


def test_restarts_do_not_depend_on_the_cut() -> None:
    first, second = attempt(1, 0), attempt(550, 1, loss=1.6)
    whole = run(Rewarm, [first, second]).findings
    for bounds in (list(range(1, 600)), [3, 50, 555]):
        pieces = [*cut(first, bounds), *cut(second, bounds)]
        assert [repr(f) for f in run(Rewarm, pieces).findings] == [repr(f) for f in whole]


def meant(n: int = 1200) -> Frame:
    """A batch ramp, a longer context, epochs and a step of the learning rate."""
    index = np.arange(n)
    size = np.select([index < 300, index < 600], [256.0, 512.0], 1024.0)
    length = np.where(index < 800, 4096.0, 8192.0)
    work = size * length / (256 * 4096)
    rng = np.random.default_rng(0)
    extra: dict[SignalKey, FloatArray] = {
        SIZE: size,
        LENGTH: length,
        EPOCH: index / 500.0,
        LR: np.where(index < 1000, 3e-4, 3e-5),
        TIME: 0.5 * work * np.exp(0.02 * rng.normal(size=n)),
        TPS: 1e5 * np.where(index < 800, 1.0, 0.7) * np.exp(0.02 * rng.normal(size=n)),
    }
    return healthy(RunSpec(steps=n, extra=extra))


@pytest.mark.parametrize("cadence", [1, 10])
def test_a_rate_that_jumps_beyond_its_height_is_told_and_a_warm_up_is_not(cadence: int) -> None:
    frame = healthy(RunSpec(steps=1000 * cadence, cadence=cadence))
    index = np.arange(len(frame))
    for rate, told in (
        (3e-4 * np.where(index < 600, 1.0, 4.0), [1]),
        (3e-4 * np.minimum((1 + index) / 100, 1.0), []),
        (3e-4 * np.minimum(2.0 ** (index // 12) / 2**8, 1.0), []),
        (3e-4 * np.where(index < 5, 0.01, 1.0), []),
    ):
        one = dataclasses.replace(frame, columns={**frame.columns, LR: rate})
        found = run(LrSchedule, [one])
        assert [(e.kind, e.severity) for e in found.episodes] == [("lr_jump", Severity.WARN)] * len(told)
        assert found.result is not None
        assert found.result.verdict is (Verdict.WARN if told else Verdict.PASS)
        pieces = cut(one, [3, 100, 601, 602])
        assert [repr(f) for f in run(LrSchedule, pieces).findings] == [repr(f) for f in found.findings]


def test_changes_that_were_meant_are_notes() -> None:
    told = run(Changes, [meant()])
    assert [(e.kind, e.first_step) for e in told.episodes] == [
        ("batch_ramp", 301),
        ("epoch", 501),
        ("batch_ramp", 601),
        ("longer_context", 801),
        ("lr_step", 1001),
        ("epoch", 1001),
    ]
    assert told.loud == []
    assert all(episode.recovered for episode in told.episodes)
    assert told.result is not None
    assert told.result.verdict is Verdict.PASS
    assert [repr(f) for f in run(Changes, cut(meant(), [1, 300, 301, 599, 801, 1000])).findings] == [
        repr(f) for f in told.findings
    ]


def test_levels_of_speed_begin_anew_with_the_work_of_a_step() -> None:
    for detector in (StepTime, Throughput):
        assert run(detector, [meant()]).loud == []
        unmarked = without(meant(), SIZE, LENGTH)
        assert run(detector, [unmarked]).loud != []


def moved(factor: float, what: SignalKey | None, cadence: int = 1, *, at: int = 600) -> Frame:
    """The loss is `factor` times what it was from value `at` on; `what` is doubled there (None: nothing is)."""
    frame = healthy(RunSpec(steps=1200 * cadence, cadence=cadence, seed=3))
    later = np.arange(len(frame)) >= at
    columns = {**frame.columns, LOSS: frame.columns[LOSS] * np.where(later, factor, 1.0)}
    if what is not None:
        columns[what] = np.where(later, 1.0, 0.0) if what == EPOCH else np.where(later, 8192.0, 4096.0)
    return dataclasses.replace(frame, columns=columns)


LEVELS = (LossSpike, LossShift)


@pytest.mark.parametrize("cadence", [1, 10])
@pytest.mark.parametrize("what", [SIZE, LENGTH, EPOCH])
def test_a_loss_that_moves_with_batch_context_or_epoch_is_a_note(what: SignalKey, cadence: int) -> None:
    frame = moved(1.18, what, cadence)
    told = [run(detector, [frame]) for detector in LEVELS]
    assert [one.loud for one in told] == [[], []]
    spike, shift = (one.episodes for one in told)
    assert len(shift) == 1
    assert [episode.severity for episode in (*spike, *shift)] == [Severity.INFO] * len([*spike, *shift])
    assert all(episode.recovered for episode in (*spike, *shift))
    words = "epoch 1 began" if what == EPOCH else "went from 4,096 to 8,192"
    assert all(words in episode.what for episode in (*spike, *shift))
    loud = [run(detector, [moved(1.18, None, cadence)]).loud for detector in LEVELS]
    assert all(loud)


@pytest.mark.parametrize("what", [SIZE, LENGTH, EPOCH])
def test_a_loss_that_jumps_by_half_is_a_fault_whatever_was_changed(what: SignalKey) -> None:
    for detector in LEVELS:
        assert [episode.severity for episode in run(detector, [moved(1.5, what)]).loud] == [Severity.FAIL]


def test_a_fault_away_from_the_change_is_a_fault_and_the_new_level_is_the_level() -> None:
    frame = moved(1.18, LENGTH)
    later = np.arange(len(frame)) >= 900
    again = dataclasses.replace(frame, columns={**frame.columns, LOSS: frame.columns[LOSS] * np.where(later, 1.2, 1.0)})
    for detector in LEVELS:
        loud = run(detector, [again]).loud
        assert [abs(episode.first_step - 901) <= 5 for episode in loud] == [True]


@pytest.mark.parametrize("detector", [LossSpike, LossShift, LrSchedule])
@pytest.mark.parametrize("bounds", [[599, 600, 601, 700], list(range(1, 1200, 7)), [3]])
def test_notes_of_changes_do_not_depend_on_the_cut(detector: type[Detector], bounds: list[int]) -> None:
    frame = moved(1.18, SIZE)
    rate = np.where(np.arange(len(frame)) < 600, 3e-4, 1.2e-3)
    frame = dataclasses.replace(frame, columns={**frame.columns, LR: rate})
    whole = run(detector, [frame]).findings
    assert whole
    assert [repr(f) for f in run(detector, cut(frame, bounds)).findings] == [repr(f) for f in whole]


def test_a_rate_that_is_raised_with_the_batch_is_a_note() -> None:
    frame = moved(1.0, SIZE)
    rate = np.where(np.arange(len(frame)) < 600, 3e-4, 1.2e-3)
    told = run(LrSchedule, [dataclasses.replace(frame, columns={**frame.columns, LR: rate})])
    assert [e.severity for e in told.episodes] == [Severity.INFO]
    assert "batch size went from" in told.episodes[0].what


def test_packed_batches_that_differ_every_step_are_no_changes() -> None:
    frame = healthy(RunSpec(steps=600, extra={SIZE: np.random.default_rng(0).integers(200, 400, 600).astype(float)}))
    assert run(Changes, [frame]).episodes == []


@pytest.mark.parametrize(("first", "compared"), [(550, True), (300, True), (150, True), (1, False)])
def test_steps_trained_again_are_compared_wherever_the_checkpoint_was(first: int, compared: bool) -> None:
    told = run(Restarts, [attempt(1, 0), attempt(first, 1, loss=1.05)])
    assert told.result is not None
    assert ("replayed steps differ" in told.result.why) is compared


@pytest.mark.parametrize(
    ("again", "until", "severity", "words"),
    [
        (lambda u, r: u * (1 + 0.005 * r.standard_normal(len(u))), 600, Severity.INFO, "of 51 steps"),
        (lambda u, r: u * (1 + 0.005 * r.standard_normal(len(u))), 579, Severity.INFO, "of 30 steps"),
        (lambda u, r: u * 1.2, 600, Severity.INFO, "higher by 20% throughout: the state was not restored"),
        (lambda u, r: r.permutation(u), 600, Severity.WARN, "the data order was not restored"),
        (lambda u, r: u * (1 + 1e-5 * r.standard_normal(len(u))), 600, None, ""),
    ],
    ids=["nondeterminism", "as far as the log goes", "lost state", "other data", "the same"],
)
@pytest.mark.parametrize("bounds", [[], [3, 20, 51]])
def test_a_replay_is_told_by_all_its_steps(
    again: Callable[[FloatArray, np.random.Generator], FloatArray],
    until: int,
    severity: Severity | None,
    words: str,
    bounds: list[int],
) -> None:
    first = healthy(RunSpec(steps=600, seed=1))
    rng = np.random.default_rng(3)
    loss = 3 * np.exp(0.05 * rng.standard_normal(600))
    old = dataclasses.replace(first, columns={LOSS: loss})
    steps = np.arange(550.0, until + 1.0)
    redone = Frame(1, "log", steps, steps, steps.astype(int), {LOSS: again(loss[549:until], rng)})
    told = run(Restarts, [old, *cut(redone, bounds)])
    replays = [one for one in told.episodes if one.kind == "bad_replay"]
    assert [one.severity for one in replays] == ([] if severity is None else [severity])
    for one in replays:
        assert words in one.what
        assert (one.first_step, one.last_step) == (550.0, float(until))
