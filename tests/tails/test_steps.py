from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.tails.steps import (
    StepChooser,
    StepTrack,
    is_training_key,
    ranked_step_keys,
    says_eval,
    step_rank,
)


@pytest.mark.parametrize(
    ("keys", "best"),
    [
        (["epoch", "step", "loss"], "step"),
        (["step", "global_step"], "global_step"),
        (["_step", "trainer/global_step", "epoch"], "trainer/global_step"),
        (["_step", "_runtime"], "_step"),
        (["epoch", "batch_in_epoch", "global_step"], "global_step"),
        (["current_steps", "total_steps", "epoch"], "current_steps"),
        (["progress/batch", "step"], "step"),
        (["step_number", "epoch_number"], "step_number"),
        (["Wall time", "Step", "Value"], "Step"),
        (["train/step", "loss"], "train/step"),
        (["iteration", "checkpoint_step"], "iteration"),
        (["TotalEnvSteps", "Evaluation/Iteration"], "TotalEnvSteps"),
        (["tokens_seen", "epoch"], "tokens_seen"),
        (["eval/step", "iter"], "iter"),
    ],
)
def test_optimiser_step_wins(keys: list[str], best: str) -> None:
    assert ranked_step_keys(keys)[0] == best


@pytest.mark.parametrize("key", ["step_time", "total_steps", "max_steps", "loss", "steps_per_second", "epoch_time", ""])
def test_other_quantities_are_no_step(key: str) -> None:
    assert step_rank(key) is None


def test_epoch_that_stands_still_is_refused_and_a_later_step_chosen() -> None:
    chooser = StepChooser()
    first = {"epoch": 1.0, "loss": 3.0}
    assert chooser.consider(first, [{"epoch": 1.0, "loss": 2.5}], final=True) is False
    assert chooser.consider({"iter": 5.0, "loss": 2.0}, [], final=False) is True
    assert chooser.key == "iter"


def test_epoch_that_rises_is_taken_also_beside_validation_rows() -> None:
    chooser = StepChooser()
    following = [{"epoch": 1.0, "val_loss": 3.0}, {"epoch": 2.0, "loss": 2.5}]
    assert chooser.consider({"epoch": 1.0, "loss": 3.0}, following, final=True) is True
    assert chooser.key == "epoch"


def test_an_epoch_that_rises_waits_for_a_step_that_comes_late() -> None:
    chooser, first = StepChooser(), {"epoch": 1.0, "loss": 3.0}
    following = [{"epoch": float(epoch), "loss": 2.5} for epoch in range(2, 10)]
    assert chooser.consider(first, following, final=False) is None
    assert chooser.consider(first, [*following, {"epoch": 10.0, "step": 90.0, "loss": 2.0}], final=False) is True
    assert chooser.key == "step"


def test_weak_candidate_asks_for_more_records_unless_final() -> None:
    assert StepChooser().consider({"epoch": 0.5, "loss": 3.0}, [], final=False) is None
    assert StepChooser().consider({"epoch": 0.5, "loss": 3.0}, [], final=True) is True


def test_a_better_key_among_the_following_records_wins() -> None:
    chooser = StepChooser()
    assert chooser.consider({"epoch": 0.0, "val_loss": 9.0}, [{"epoch": 0.0, "step": 1.0, "loss": 3.0}], final=False)
    assert chooser.key == "step"


def test_a_value_that_is_no_number_decides_nothing() -> None:
    chooser = StepChooser()
    assert chooser.consider({"step": None, "loss": 1.0}, [], final=True) is False
    assert chooser.consider({"step": math.nan, "loss": 1.0}, [], final=True) is False
    assert chooser.consider({"step": 3.0, "loss": 1.0}, [], final=True) is True


def test_validation_rows_on_the_epochs_counter_lose_their_step() -> None:
    track = StepTrack()
    steps = np.array([69.0, 1.0, 138.0, 2.0, 207.0])
    training = np.array([True, False, True, False, True])
    assert [step for step in track.own_steps(steps, training).tolist() if step == step] == [69.0, 138.0, 207.0]


def test_training_rows_that_go_back_are_kept() -> None:
    track = StepTrack()
    steps = np.array([100.0, 200.0, 150.0, 160.0])
    assert track.own_steps(steps).tolist() == steps.tolist()
    assert track.own_step(10.0, is_training=True) == 10.0


def test_evaluation_at_or_beyond_the_training_step_keeps_it() -> None:
    track = StepTrack()
    out = track.own_steps(np.array([100.0, 100.0, 120.0]), np.array([True, False, False]))
    assert out.tolist() == [100.0, 100.0, 120.0]


_ROWS = st.lists(
    st.tuples(st.one_of(st.just(math.nan), st.integers(-5, 20).map(float)), st.booleans()), min_size=0, max_size=30
)


@given(_ROWS, st.integers(0, 30))
def test_track_gives_the_same_row_by_row_and_in_pieces(rows: list[tuple[float, bool]], cut: int) -> None:
    steps = np.array([step for step, _ in rows], np.float64)
    training = np.array([flag for _, flag in rows], np.bool_)
    whole = StepTrack().own_steps(steps, training)
    pieces = StepTrack()
    joined = np.concatenate(
        [pieces.own_steps(steps[part], training[part]) for part in (slice(0, cut), slice(cut, None))]
    )
    one = StepTrack()
    single = [one.own_step(step, is_training=flag) for step, flag in rows]
    np.testing.assert_array_equal(whole, joined)
    np.testing.assert_array_equal(whole, np.array(single, np.float64))


def test_words_of_keys() -> None:
    assert says_eval("eval_loss")
    assert says_eval("Validation/CTC")
    assert not says_eval("retrieval_reward")
    assert not says_eval("latest")
    assert is_training_key("train/loss")
    assert is_training_key("learning_rate")
    assert not is_training_key("val_loss")
    assert not is_training_key("coco/AP")
