"""The learning rate and the batch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.monitor.detectors.harness import result, run
from tests.monitor.detectors.synthetic import (
    LOSS,
    LR,
    RunSpec,
    healthy,
    logged_as,
    with_columns,
)
from trainmon.monitor.detectors.batch_ratio import BatchRatio
from trainmon.monitor.detectors.lr_schedule import LrSchedule
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import Frame
from trainmon.tails.record import FloatArray, Mark


def schedule(lr: FloatArray, first_step: int = 1) -> Frame:
    frame = healthy(RunSpec(steps=len(lr), seed=40, first_step=first_step))
    return with_columns(frame, {LR: lr})


def cosine(n: int, warmup: int) -> FloatArray:
    t = np.arange(n)
    return 3e-4 * np.minimum((t + 1) / max(warmup, 1), 0.55 + 0.45 * np.cos(np.pi * t / n))


@pytest.mark.parametrize("shape", ["cosine", "linear", "wsd"])
def test_usual_schedules_pass(shape: str) -> None:
    n, t = 5000, np.arange(5000)
    lr = {
        "cosine": cosine(n, 150),
        "linear": 3e-4 * np.minimum((t + 1) / 150, (n - t) / n),
        "wsd": 3e-4 * np.minimum((t + 1) / 150, np.minimum(1.0, (n - t) / 500)),
    }[shape]
    assert result(run(LrSchedule, [schedule(lr)], {"total_steps": float(n)})).verdict is Verdict.PASS


def test_no_or_short_warm_up_is_advice() -> None:
    none = result(run(LrSchedule, [schedule(cosine(5000, 0))], {"total_steps": 5000.0}))
    assert (none.verdict, none.advisory) == (Verdict.WARN, True)
    assert "no warm-up" in none.what
    short = result(run(LrSchedule, [schedule(cosine(5000, 20))], {"total_steps": 5000.0}))
    assert (short.verdict, short.advisory) == (Verdict.WARN, True)


def test_no_warm_up_with_a_loss_that_goes_wrong_is_a_fail() -> None:
    frame = schedule(cosine(5000, 0))
    frame = logged_as(frame, LOSS, [20, 21, 22], Mark.NAN)
    assert result(run(LrSchedule, [frame], {"total_steps": 5000.0})).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("asked", "says", "never"),
    [
        (None, "over 2-5% of the steps, 100 to 250", "settings"),
        (400.0, "the warm-up of 400 steps that the run's settings ask for", "2-5%"),
        (0.0, "settings ask for no warm-up", "of 0 steps"),
    ],
)
def test_a_start_that_fails_is_told_the_warm_up_of_its_own_settings(asked: float | None, says: str, never: str) -> None:
    frame = logged_as(schedule(cosine(5000, 0)), LOSS, [20, 21, 22], Mark.NAN)
    facts = {"total_steps": 5000.0} | ({} if asked is None else {"warmup_steps": asked})
    told = result(run(LrSchedule, [frame], facts))
    assert told.verdict is Verdict.FAIL
    assert says in told.next
    assert never not in told.next


def test_a_log_that_starts_late_has_no_data_on_warm_up() -> None:
    late = schedule(cosine(5000, 150)[2000:], first_step=2001)
    assert result(run(LrSchedule, [late], {"total_steps": 5000.0})).verdict is Verdict.NO_DATA


@pytest.mark.parametrize(("warmup", "said"), [(0, True), (60, True), (3000, False)])
def test_a_log_of_every_hundredth_step_shows_that_it_begins_at_the_peak(warmup: int, said: bool) -> None:
    total, every = 100_000, 100
    t = np.arange(every, total + 1, every)
    lr = 3e-4 * np.minimum(t / max(warmup, 1), 0.55 + 0.45 * np.cos(np.pi * np.maximum(t - every, 0) / total))
    frame = healthy(RunSpec(steps=total, seed=40, first_step=every, cadence=every))
    frame = with_columns(frame, {LR: lr})
    told = result(run(LrSchedule, [frame], {"total_steps": float(total)}))
    assert (told.verdict, told.advisory) == ((Verdict.WARN, True) if said else (Verdict.PASS, False))
    assert ("at its peak 0.0003 in the first value, at step 100" in told.what) == said


def test_a_learning_rate_next_to_the_largest_number_is_read() -> None:
    told = result(run(LrSchedule, [schedule(np.array([8.9e307, 0.0, 1e308]))], {}))
    assert told.what.startswith("peak 1e+308 at step 3")


def test_a_learning_rate_that_is_never_above_zero_is_said() -> None:
    told = result(run(LrSchedule, [schedule(np.zeros(50))], {"total_steps": 5000.0}))
    assert (told.verdict, "nothing is learned" in told.what) == (Verdict.WARN, True)
    assert result(run(LrSchedule, [schedule(np.zeros(3))], {})).verdict is Verdict.NO_DATA


def test_a_warm_up_whose_end_was_left_out_is_not_called_short() -> None:
    lr = cosine(200_000, 2000)
    seen = [schedule(lr[:869]), schedule(lr[60_000:80_000], first_step=60_001)]
    told = result(run(LrSchedule, seen, {"total_steps": 200_000.0}))
    assert told.verdict is Verdict.PASS
    whole = result(run(LrSchedule, [schedule(cosine(200_000, 869))], {"total_steps": 200_000.0}))
    assert whole.verdict is Verdict.WARN


def resumed_at(step: int, lr: FloatArray, attempt: int = 1) -> Frame:
    return dataclasses.replace(schedule(lr, first_step=step), attempt=attempt)


@pytest.mark.parametrize("back_to", [1001, 1901, 2101])
def test_a_resume_without_warm_up_is_normal(back_to: int) -> None:
    lr = cosine(5000, 150)
    frames = [schedule(lr[:2000]), resumed_at(back_to, lr[back_to - 1 : 4000])]
    told = result(run(LrSchedule, frames, {"total_steps": 5000.0}))
    assert told.verdict is Verdict.PASS
    assert "at step 1," in told.why, "the warm-up of the first attempt is the run's"


def test_a_restart_from_the_beginning_without_warm_up_is_judged() -> None:
    frames = [schedule(cosine(5000, 150)[:2000]), resumed_at(1, cosine(5000, 0)[:2000])]
    told = result(run(LrSchedule, frames, {"total_steps": 5000.0}))
    assert (told.verdict, told.advisory) == (Verdict.WARN, True)
    assert "no warm-up" in told.what


def test_one_unexplained_jump_is_told_and_warm_restarts_are_not() -> None:
    lr = cosine(5000, 150)
    lr[4500:] = 2.9e-4
    told = result(run(LrSchedule, [schedule(lr)], {"total_steps": 5000.0}))
    assert (told.verdict, told.advisory) == (Verdict.WARN, True)
    saw = np.concatenate([cosine(1000, 60) for _ in range(5)])
    assert result(run(LrSchedule, [schedule(saw)], {"total_steps": 5000.0})).verdict is Verdict.PASS


def test_batch_against_the_model() -> None:
    frame = healthy(RunSpec(steps=200))
    usual = result(run(BatchRatio, [frame], {"parameters": 1.3e9, "tokens_per_batch": 1e6}))
    assert usual.verdict is Verdict.PASS
    tiny = result(run(BatchRatio, [frame], {"parameters": 7e9, "batch_size": 4.0, "seq_length": 1024.0}))
    assert (tiny.verdict, tiny.advisory) == (Verdict.WARN, True)
    unknown = result(run(BatchRatio, [frame], {"parameters": 7e9}))
    assert unknown.verdict is Verdict.NO_DATA
    assert "tokens per batch" in unknown.what


@pytest.mark.parametrize(("warmup", "asked", "says"), [(0, 400, True), (20, 400, True), (20, 20, False), (0, 0, False)])
def test_a_warm_up_that_the_settings_ask_for_is_named(warmup: int, asked: int, says: bool) -> None:
    facts = {"total_steps": 5000.0, "warmup_steps": float(asked)}
    told = result(run(LrSchedule, [schedule(cosine(5000, warmup))], facts))
    assert told.verdict is Verdict.WARN
    assert (f"ask for a warm-up of {asked} steps" in told.next) is says
    assert ("2-5%" in told.next) is not says
