"""Losses that no word calls so, held-out data of boosted trees, and shapes of Julia, darknet, Python 2 and Composer."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import EVERY_TEN, LOSSES, lines, read, rows, values
from trainmon.monitor.mapping import map_key


def same_however_cut(text: str) -> None:
    whole = rows(read(text))
    assert all(rows(read(text, cuts=[cut])) == whole for cut in range(1, text.count("\n") + 1))


@pytest.mark.parametrize(
    "form",
    [
        "step {step} | train {loss} | val 3.5",
        "step={step} train={loss} val=3.5",
        "iter {step}: trn {loss}, vld 3.5",
        "[{step}] step {step} train: {loss} valid: 3.5 (12.0 s)",
    ],
)
def test_the_two_sets_beside_a_step_are_losses(form: str) -> None:
    parsed = read(lines(form))
    assert values(parsed, "train loss") == EVERY_TEN
    assert [value for _, value in values(parsed, "val loss")] == [3.5] * len(LOSSES)
    same_however_cut(lines(form))


def test_a_loss_that_no_word_calls_so_may_fall_below_one() -> None:
    text = "".join(f"step {at} | train {2 - at / 4} | val {2.25 - at / 4}\n" for at in range(8))
    assert values(read(text), "train loss")[-1] == (7.0, 0.25)


@pytest.mark.parametrize(
    "form",
    [
        "step {step} train 12000 val 3000",  # counts
        "epoch {step} train 0.{step} val 0.{step}",  # accuracies, as far as one can tell
        "epoch {step} train {step}.5 val 62.5",  # percentages
        "step {step} train {loss}",  # nothing beside it
    ],
)
def test_what_need_not_be_a_loss_is_none(form: str) -> None:
    parsed = read(lines(form))
    assert not values(parsed, "train loss")
    assert not values(parsed, "val loss")


def test_a_bar_with_the_two_sets_behind_it() -> None:
    text = "\r".join(
        f"{at}%|{'#' * (at // 10):10s}| {at}/100 [00:{at:02d}<01:40,  1.00it/s, train={2 - at / 40}, val=2.5]"
        for at in (10, 20, 30, 50)
    )
    parsed = read(text + "\n")
    assert values(parsed, "train loss") == [(10.0, 1.75), (20.0, 1.5), (30.0, 1.25), (50.0, 0.75)]
    assert len(values(parsed, "val loss")) == 4


@pytest.mark.parametrize(
    ("form", "is_loss"),
    [
        ("step {step} loss {loss} val 3.5", True),
        ("#{step} loss={loss} val=3.5", True),
        ("step {step} loss {loss} val 0.5", False),  # an accuracy, as far as one can tell
        ("step {step} loss {loss} val 62.5", False),
        ("step {step} loss {loss} val 3", False),  # a count
    ],
)
def test_held_out_data_beside_a_loss(form: str, is_loss: bool) -> None:
    parsed = read(lines(form))
    assert values(parsed, "loss") == EVERY_TEN
    assert len(values(parsed, "val loss")) == (len(LOSSES) if is_loss else 0)


@pytest.mark.parametrize("which", ["{} binary_logloss", "{}'s binary_logloss", "{}-logloss", "{}-rmse", "{}'s l2"])
def test_boosted_trees_tell_held_out_data_from_training(which: str) -> None:
    for name in ("train", "training"):
        assert map_key(which.format(name)).key.signal == "loss.train"
    for name in ("valid", "eval", "test", "validation"):
        assert map_key(which.format(name)).key.signal == "eval.nll"
    numbered = map_key(which.format("valid_1")).key
    assert (numbered.signal, numbered.label_dict) == ("eval.nll", {"set": "valid 1"})
    assert map_key("valid_1's auc").key.signal not in ("loss.train", "eval.nll")


DARKNET = "{step}: 9.5, {loss} avg{word}, 0.001000 rate, 2.113 seconds, 768 images{left}"


@pytest.mark.parametrize(("word", "left"), [(" loss", ", 3.2 hours left"), (" loss", ""), ("", "")])
@pytest.mark.parametrize("before", ["", " ", "Loaded: 0.000045 seconds\n"])
def test_darknet(before: str, word: str, left: str) -> None:
    text = lines(before + DARKNET.replace("{word}", word).replace("{left}", left))
    parsed = read(text)
    assert values(parsed, "avg loss") == EVERY_TEN
    assert values(parsed, "learning rate") == [(step, 0.001) for step, _ in EVERY_TEN]
    same_however_cut(text)


@pytest.mark.parametrize(
    "form",
    [
        "┌ Info: Training step\n│   step = {step}\n│   loss = {loss}f0\n│   file = a.jld2\n└ @ Main train.jl:33",
        "┌ Info: step {step}\n│ loss = {loss}\n└ accuracy = 0.5",
        "┌ Info: Iteration: {step}/90\n│   loss = {loss}\nLoading shard 5\n└   n = 3",
    ],
)
def test_messages_of_julia(form: str) -> None:
    assert values(read(lines(form)), "loss") == EVERY_TEN
    same_however_cut(lines(form))


def test_a_warning_of_julia_is_no_record() -> None:
    assert rows(read(lines("┌ Warning: learning rate {loss} is high\n│   threads = 5\n└ @ Main train.jl:33"))) == []


@pytest.mark.parametrize("form", ["('step', {step}, 'loss', {loss})", "('step:', {step}, 'loss:', {loss}, 'lr:', 0.1)"])
def test_tuples_as_python_2_prints_them(form: str) -> None:
    assert values(read(lines(form)), "loss") == EVERY_TEN


LOGGED = "2024-05-01 10:01:00,123: rank0[123][MainThread]: INFO: "


def test_composer_behind_a_logger_of_its_own() -> None:
    text = lines(
        f"{LOGGED}composer.loggers.console: [batch={{step}}/400]:\n"
        f"{LOGGED}composer.loggers.console: \t Train loss/train/total: {{loss}}\n"
        f"{LOGGED}composer.loggers.console: \t Train time/remaining: 1:02:03"
    )
    assert values(read(text), "loss/train/total") == EVERY_TEN
    same_however_cut(text)


def test_a_dictionary_of_composer_counts_its_batches() -> None:
    form = LOGGED + "llmfoundry.callbacks.log: {{'time/batch': {step}, 'loss/train/total': {loss}}}"
    assert values(read(lines(form)), "loss/train/total") == EVERY_TEN
