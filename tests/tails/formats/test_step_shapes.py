"""Where the step and the number of steps stand, in words of many trainers; boxes; and lines of two writers."""

from __future__ import annotations

import json
from time import process_time

import pytest

from tests.tails.formats.stdout_reading import fact, kinds, read, rows, values

LOSSES = [(at, 3 - at / 8) for at in range(1, 5)]


def log(form: str) -> str:
    return "".join(form.format(at=at, tenth=at / 10, loss=loss) + "\n" for at, loss in LOSSES)


@pytest.mark.parametrize(
    ("form", "times", "total"),
    [
        ("Epoch 1 @ step {at} ({at}/60): loss {loss}", 1, 60),
        ("@ step {at} ({at}/60) loss={loss}", 1, 60),
        ("Step {at} ({at}/60): loss {loss}", 1, 60),
        ("[{at} | 14.52] loss={loss}", 1, None),
        ("[{tenth}k/100k] loss: {loss}", 100, 100_000),
        ("[{at}k/1M] loss: {loss}", 1000, 1_000_000),
        ("{at},000/20,000 loss: {loss}", 1000, 20_000),
        ("step {at},000/20,000 | loss: {loss}", 1000, 20_000),
        ("Training  [   {at}/60]  eta: 1:02:03  lr: 0.1 (0.1)  loss: {loss} (2.5)  time: 0.4", 1, 60),
        ("trainer/global_step={at} | train/loss={loss} | train/lr=0.1", 1, None),
        ("acc=0.5 grad_norm=1.5 loss={loss} lr=0.1 mfu=0.4 seconds=3.5 step={at}", 1, None),
        ("mae: 0.5, force: 1.5, loss: {loss}, lr: 0.1, epoch: 0.5, step: {at}.00e+00", 1, None),
    ],
)
def test_the_step_and_the_total(form: str, times: int, total: int | None) -> None:
    parsed = read(log(form))
    assert values(parsed, "train/loss" if "train/loss" in form else "loss") == [
        (at * times, loss) for at, loss in LOSSES
    ]
    assert fact(parsed, "total_steps") == total


def test_a_step_among_the_last_values_is_the_bare_name_of_a_whole_number() -> None:
    form = "acc=0.5 grad_norm=1.5 loss={loss} lr=0.1 mfu=0.4 sec_per_step=3 step=0.5"
    assert rows(read(log(form)))[0][0] == "nan"


def test_a_size_of_a_whole_is_no_step() -> None:
    assert rows(read(log("{at}.5/20 GB read, loss {loss}"))) == []
    assert rows(read("warmup: 100/1000 steps | peak loss 3.5\n")) == []


@pytest.mark.parametrize(
    "banner",
    [
        "Num steps = 60",
        "   \\\\   /|    Num examples = 1,000 | Num Epochs = 1 | Total steps = 60",
        "[2025-03-04 10:00:00,123] [INFO] [axolotl.utils.trainer:100] [PID:1] Maximum number of steps set at 60",
        "  Number of training steps = 60",
        "num optimization steps = 60",
        "Training for 60 steps",
    ],
)
def test_banners_tell_the_number_of_steps(banner: str) -> None:
    assert fact(read(f"{banner}\n" + log("step {at} loss {loss}")), "total_steps") == 60


def test_a_set_and_its_epoch_before_the_values() -> None:
    form = "train ({at}/4) loss: {loss} | lr: 0.001\nvalid ({at}/4) loss: 9.5 | acc: 0.5"
    parsed = read(log(form))
    assert values(parsed, "loss") == LOSSES
    assert values(parsed, "eval/loss") == [(at, 9.5) for at, _ in LOSSES]
    assert fact(parsed, "total_steps") == 4


BOX = """---------------------------------
| rollout/             |        |
|    ep_rew_mean       | {reward} |
| time/                |        |
|    iterations        | {at}      |
|    total_timesteps   | 2048   |
{train}---------------------------------
"""
TRAIN = "| train/               |        |\n|    loss              | 6.25   |\n"


def test_the_first_box_has_no_loss_and_counts() -> None:
    text = "".join(BOX.format(at=at, reward=20 + at, train=TRAIN if at > 1 else "") for at in (1, 2, 3))
    parsed = read(text)
    assert values(parsed, "rollout/ep_rew_mean") == [(1, 21), (2, 22), (3, 23)]
    assert values(parsed, "train/loss") == [(2, 6.25), (3, 6.25)]


def test_rules_between_the_rows_of_a_grid() -> None:
    grid = (
        "Step {at}/100\n+-----------+--------+\n| metric    |  value |\n+===========+========+\n"
        "| loss      |  {loss} |\n+-----------+--------+\n| grad_norm |   1.25 |\n+-----------+--------+"
    )
    parsed = read(log(grid))
    assert [(step, cells) for step, _, _, _, cells in rows(parsed)] == [
        (at, {"loss": loss, "grad_norm": 1.25}) for at, loss in LOSSES
    ]
    assert fact(parsed, "total_steps") == 100


def test_ranks_in_one_line_are_taken_apart_and_no_half_number_is_read() -> None:
    text = log("[rank0]: step {at} loss {loss}") + "[rank0]: step 5 loss 2.[rank1]: step 5 loss 3.25\n375\n"
    parsed = read(text)
    assert values(parsed, "loss") == [*LOSSES, (5, 3.25)]
    assert kinds(parsed) == ["unreadable"]


@pytest.mark.parametrize("before", ["", "[rank0]: [rank1]: "])
def test_of_two_records_in_one_line_the_number_at_the_seam_is_counted_and_not_read(before: str) -> None:
    parsed = read(log("step {at} loss {loss}") + f"{before}step 5 loss 2.375step 5 loss 2.25\n")
    assert values(parsed, "loss") == [*LOSSES, (5, 2.25)]
    assert parsed.unreadable == 1


def test_a_record_of_six_megabytes_is_kept_by_its_head_and_counted() -> None:
    text = log("step {at} loss {loss}") + json.dumps({"step": 5, "tokens": list(range(900_000)), "loss": 2.5}) + "\n"
    assert len(text) > 6_000_000
    began = process_time()
    parsed = read(text)
    assert process_time() - began < 5
    assert values(parsed, "loss") == LOSSES
    assert parsed.unreadable == 1


@pytest.mark.parametrize(
    ("form", "total"),
    [
        ("DLL 2025-03-04 10:00:00.123456 - (0, {at}) loss : {loss} train_perf : 123.4 ", None),
        ('DLLL {{"timestamp": "1741082400.1", "type": "LOG", "step": [0, {at}], "data": {{"loss": {loss}}}}}', None),
        (
            "[2025-03-04:10:00:00:INFO:a.b:c] Epoch[0] Batch [{at}]\tSpeed: 12.5 samples/sec\tloss={loss}",
            None,
        ),
        ("Step... ({at} | loss: {loss}, Learning Rate: 9.9e-05)", None),
        ("Progress: {at}/60 steps | loss: {loss} | gnorm: 1.5", 60),
        (
            "╭──────── Step {at} ────────╮\n│ loss       {loss}   │\n│ grad_norm  1.5  │\n╰───────────────╯",
            None,
        ),
        (
            "=== [GlobalReducer] - METRICS STEP {at} ===\n  loss: {loss}\n  grad_norm: 1.5\n=====",
            None,
        ),
    ],
)
def test_steps_in_the_words_of_more_trainers(form: str, total: int | None) -> None:
    parsed = read(log(form))
    assert values(parsed, "loss") == LOSSES
    assert fact(parsed, "total_steps") == total


def test_the_number_between_a_loss_and_its_value_is_the_step() -> None:
    parsed = read(log("Train loss {at} {loss:.6f} Grad Norm 1.250000 1.23s/it"))
    assert values(parsed, "Train loss") == LOSSES
    assert values(parsed, "Grad Norm") == [(at, 1.25) for at, _ in LOSSES]
