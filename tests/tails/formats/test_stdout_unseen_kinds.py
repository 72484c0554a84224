"""Kinds of lines that the second reading of logs nobody had seen brought up."""

from __future__ import annotations

import json

import pytest

from tests.tails.formats.stdout_reading import fact, read, values
from trainmon.tails.formats.wrapped import message_of

LOSSES = [3.25, 3.125, 3.0, 2.875]
EVERY_TEN = [(10.0 * at, loss) for at, loss in enumerate(LOSSES, 1)]


def lines(form: str) -> str:
    return "".join(form.format(step=int(step), loss=loss, index=int(step) // 10 - 1) + "\n" for step, loss in EVERY_TEN)


@pytest.mark.parametrize(
    "form",
    [
        "{loss} loss, 1.5 grad norm, 3e-4 lr at step {step}",
        "step {step}: {loss} loss 0.5 acc 120 tok/s",
        "step {step}: {loss} loss | 0.5 acc | 120 tok/s",
        "[{step}/500] {loss} (loss) 3e-4 (lr)",
    ],
)
def test_a_value_before_its_key(form: str) -> None:
    assert values(read(lines(form)), "loss") == EVERY_TEN


def test_a_number_first_does_not_turn_keys_and_values_round() -> None:
    parsed = read("epoch: 1 loss 3.25 time 3 s\nepoch: 2 loss 3.0 time 3 s\nepoch: 3 loss 2.5 time 3 s\n")
    assert [value for _, value in values(parsed, "loss")] == [3.25, 3.0, 2.5]


@pytest.mark.parametrize(
    "form",
    [
        "{step}/500 (epoch 0), loss = {loss}, time/batch = 0.15",
        "{step}/500 * Epoch (train): loss={loss} | lr=1.0e-04",
        "2025-03-04T10:00:00+00:00 training/job-1/algo-1-170 step {step} | loss {loss}",
        "[xla:0]({step}) Loss={loss} Rate=123.5 GlobalRate=120.5",
        "\x1b[2K⠋ training... step {step}/500 loss {loss}",
        "train\tRun training\t2025-03-04T10:00:00.1234567Z step {step} | loss {loss}",
    ],
)
def test_the_step_behind_or_without_words(form: str) -> None:
    name = "Loss" if "Loss" in form else "loss"
    assert values(read(lines(form)), name) == EVERY_TEN


def test_counts_of_tokens_before_a_loss_are_its_place_without_a_step() -> None:
    parsed = read("".join(f"tokens=2.{at:02d}B loss={loss} lr=3e-4\n" for at, (_, loss) in enumerate(EVERY_TEN, 1)))
    assert [loss for _, loss in values(parsed, "loss")] == LOSSES
    assert [count for _, count in values(parsed, "tokens")] == [2.01e9, 2.02e9, 2.03e9, 2.04e9]


def test_a_step_and_the_number_of_steps_in_chinese() -> None:
    parsed = read(lines("第 {step} 步 / 共 500 步，损失：{loss}，学习率：3e-04"))
    assert (values(parsed, "loss"), fact(parsed, "total_steps")) == (EVERY_TEN, 500)


def test_epoch_and_batch_in_one_bracket_are_added_up() -> None:
    text = "".join(f"[{epoch}, {batch:5d}] loss: {3 - epoch / 4}\n" for epoch in (1, 2) for batch in (2000, 4000))
    assert values(read(text), "loss") == [(2000.0, 2.75), (4000.0, 2.75), (6000.0, 2.5), (8000.0, 2.5)]


@pytest.mark.parametrize(
    "form",
    [
        "step {step} loss {loss} rank {rank}",
        "rank={rank} step={step} loss={loss}",
        "worker={rank} step={step} loss={loss}",
        "GPU {rank}: step {step}, loss {loss}",
        "node{rank}: step {step} loss {loss}",
        "| Training Device=xla:0/{rank} Step={step} Loss={loss} Rate=9.5",
    ],
)
def test_a_rank_among_the_pairs_says_whose_the_others_are(form: str) -> None:
    text = "".join(
        form.format(step=step, loss=step + rank / 10, rank=rank) + "\n" for step in range(5) for rank in range(3)
    )
    parsed = read(text)
    name = "Loss" if "Loss" in form else "loss"
    assert [value for _, value in values(parsed, name)] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [value for _, value in values(parsed, f"{name}{{rank=2}}")] == [0.2, 1.2, 2.2, 3.2, 4.2]


def test_a_data_frame_has_an_index_that_is_no_column() -> None:
    header = "   step   loss      lr split\n"
    assert values(read(header + lines("{index}    {step}  {loss}  1.0e-04 train")), "loss") == EVERY_TEN


def test_the_name_of_a_data_frames_index_may_be_the_step() -> None:
    header = "       loss  val_loss\nstep                \n"
    parsed = read(header + lines("{step}     {loss}       2.5"))
    assert values(parsed, "loss") == EVERY_TEN
    assert len(values(parsed, "val_loss")) == 4


def test_a_dictionary_that_carries_the_run_time_is_a_step_while_it_has_a_loss() -> None:
    text = "{'loss': '3.25', 'epoch': '0.1', 'train_runtime': '11'}\n{'train_runtime': 99.5, 'train_loss': 2.5}\n"
    parsed = read(text)
    assert [value for _, value in values(parsed, "loss")] == [3.25]
    assert values(parsed, "train_loss") == []


@pytest.mark.parametrize(
    "form",
    [
        "train | step: {step:6d} | steps/sec:    5.2 | output: \n    {{'lr': 0.001,\n     'loss': {loss}}}",
        "INFO:tensorflow:Step {step} per-step time 0.512s\n{{'lr': 0.001,\n 'loss': {loss}}}",
    ],
)
def test_a_dictionary_below_the_line_that_names_its_step(form: str) -> None:
    assert values(read(lines(form)), "loss") == EVERY_TEN


@pytest.mark.parametrize("group", ["jsonPayload", "_source", "attributes"])
def test_a_message_in_a_group_of_its_own(group: str) -> None:
    said = (f"step {int(step)} loss {loss}" for step, loss in EVERY_TEN)
    text = "".join(json.dumps({group: {"message": one}, "timestamp": "2025-03-04T10:00:00Z"}) + "\n" for one in said)
    assert values(read(text), "loss") == EVERY_TEN


def test_wenets_held_out_lines_are_no_training() -> None:
    text = (
        "TRAIN Batch 0/0 loss 80.5 lr 0.0001 rank 0\nTRAIN Batch 0/100 loss 60.5 lr 0.0002 rank 0\n"
        "CV Batch 0/0 loss 58.5 history loss 58.0 rank 0\nTRAIN Batch 1/0 loss 50.5 lr 0.0003 rank 0\n"
    )
    parsed = read(text)
    assert values(parsed, "loss") == [(0.0, 80.5), (100.0, 60.5), (200.0, 50.5)]
    assert values(parsed, "eval/loss") == [("nan", 58.5)]


def test_marian_counts_updates() -> None:
    text = "Ep. 1 : Up. 500 : Sen. 64,000 : Cost 9.50000000 * 13,341 after 5,203 : Time 60.50s : 9000.50 words/s\n"
    parsed = read(text + "[valid] Ep. 1 : Up. 500 : perplexity : 900.5 : stalled 2 times (last best: 890.5)\n")
    assert values(parsed, "cost") == [(500.0, 9.5)]
    assert values(parsed, "samples") == [(500.0, 64000.0)]
    assert values(parsed, "valid/perplexity") == [(500.0, 900.5)]


def test_catboost_without_held_out_data() -> None:
    text = "0:\tlearn: 0.6925\ttotal: 63.1ms\tremaining: 1m 2s\n1:\tlearn: 0.6875\ttotal: 126ms\tremaining: 1.5s\n"
    assert values(read(text), "learn loss") == [(0.0, 0.6925), (1.0, 0.6875)]


def test_a_message_beside_metrics_of_its_own_is_not_read_for_them() -> None:
    record = {"message": "Step 5/300: training loss=2.35", "data": {"step": 5, "train_loss": 2.345678}}
    assert message_of(record) is None
    assert message_of({"message": "step 5 loss 2.5", "attributes": {"dd": 1}}) == "step 5 loss 2.5"


def test_a_bar_as_log_lines_counts_in_thousands() -> None:
    text = "Progress on:train 3.00it/10.0kit rate:1.2it/s remaining:1:20:03 elapsed:00:03 postfix:loss=10.75\n"
    parsed = read(text + text.replace("3.00it/", "1.25kit/").replace("10.75", "3.25"))
    assert values(parsed, "loss") == [(3.0, 10.75), (1250.0, 3.25)]
    assert fact(parsed, "total_steps") == 10000.0


def test_step_name_and_value() -> None:
    parsed = read("0 val 10.9500\n0 hella 0.2450\n0 train 10.950000\n1 train 10.650000\n")
    assert values(parsed, "train loss") == [(0.0, 10.95), (1.0, 10.65)]
    assert values(parsed, "val loss") == [(0.0, 10.95)]


@pytest.mark.parametrize(
    ("form", "key"),
    [
        ("step {step}/500 completed (loss: {loss})", "loss"),
        ("step=`{step}`: loss=`{loss}` lr=`0.001`", "loss"),
        ("step={step} loss={loss} grad_norm={{'0_default': {loss}}} micro_num=4", "grad_norm"),
    ],
)
def test_a_key_behind_other_signs(form: str, key: str) -> None:
    assert values(read(lines(form)), key) == EVERY_TEN
