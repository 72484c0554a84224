"""Kinds of lines found by logs that nobody had shown the reader before."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import fact, read, values

LOSSES = [3.25, 3.125, 3.0, 2.875]
EVERY_TEN = [(10.0 * at, loss) for at, loss in enumerate(LOSSES, 1)]


def lines(form: str) -> str:
    return "".join(form.format(step=int(step), loss=loss) + "\n" for step, loss in EVERY_TEN)


@pytest.mark.parametrize(
    "form",
    [
        "ip-26-0-147-189 iteration {step}/ 500 | lm loss: {loss} |",
        "ip-26-0-147-189 [2025-03-04 10:00:00] iteration {step}/ 500 | lm loss: {loss} |",
        "[gpu-node-07]  iteration {step}/ 500 | lm loss: {loss} |",
        "h100-3-17 (12345): iteration {step}/ 500 | lm loss: {loss} |",
        "gpu012> iteration {step}/ 500 | lm loss: {loss} |",
    ],
)
def test_a_host_before_the_step_is_no_metric(form: str) -> None:
    parsed = read(lines(form))
    assert values(parsed, "lm loss") == EVERY_TEN
    assert {key for block in parsed.blocks for key in block.columns} == {"lm loss"}


def test_a_worker_before_the_step_is_a_rank() -> None:
    text = "".join(f"[worker-{rank}] step {step} loss {step + rank / 10}\n" for step in range(5) for rank in range(2))
    parsed = read(text)
    assert [value for _, value in values(parsed, "loss")] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [value for _, value in values(parsed, "loss{rank=1}")] == [0.1, 1.1, 2.1, 3.1, 4.1]


@pytest.mark.parametrize(
    "form",
    [
        "update #{step} loss {loss}",
        "[train] iteration #{step}: loss={loss}",
        "✔ step #{step} → loss {loss} | lr 1.0e-04",
        "Batch {step}/500: loss {loss}",
        "Step {step} - loss: {loss} - ETA 1h 2m",
        "Metrics values at step {step}:\n  loss={loss}\n  grad_norm/total=1.5",
        "Training metrics for step {step}\n  loss: {loss}",
        "   --> TIME: 2025-03-04 10:00:00 -- STEP: {step}/1500 -- GLOBAL_STEP: {step}\n     | > loss: {loss}  (3.25)",
    ],
)
def test_the_step_in_other_words(form: str) -> None:
    assert values(read(lines(form)), "loss") == EVERY_TEN


def test_metrics_below_a_heading_of_held_out_data_are_its_own() -> None:
    text = lines("Metrics values at step {step}:\n  loss={loss}") + "Validation metrics at step 40:\n  loss=2.5\n"
    parsed = read(text)
    assert values(parsed, "loss") == EVERY_TEN
    assert values(parsed, "eval/loss") == [(40.0, 2.5)]


def test_a_duration_is_no_value() -> None:
    for eta in ("1h 2m", "59m 10s", "2d 3h 4m", "1 h 02 min"):
        parsed = read(lines("step {step} loss {loss} eta " + eta))
        assert {key for block in parsed.blocks for key in block.columns} == {"loss"}, eta
        assert values(parsed, "loss") == EVERY_TEN


def test_what_is_used_of_a_capacity_has_no_average() -> None:
    parsed = read(lines("step {step} | loss {loss} | Peak Mem.: 64.1/79.1 GiB (81.0%)"))
    assert {key for block in parsed.blocks for key in block.columns} >= {"loss"}
    assert not any("avg" in key for block in parsed.blocks for key in block.columns)


def test_a_rate_of_nothing_named_leaves_the_next_key_alone() -> None:
    parsed = read(lines("step {step} | Batch (t): 1.25, 3400/s, 426/s/gpu LR: 0.000125 loss: {loss}"))
    assert values(parsed, "LR") == [(step, 0.000125) for step, _ in EVERY_TEN]


SETTINGS = """{'trainer': {'lr': 0.0001, 'epochs': 3, 'reward_scale': 2.5, 'use_ema': False},
 'model': {'path': None, 'dim': 1024, 'max_turns': 5},
 'loss_weight': 1.0,
 'clip': {'grad_clip': 1.0, 'ratio': 0.2}}
"""


def test_a_printed_configuration_is_no_record() -> None:
    parsed = read(SETTINGS + lines("step {step} loss {loss}"))
    assert {key for block in parsed.blocks for key in block.columns} == {"loss"}
    assert fact(parsed, "clip_threshold") == 1.0


def test_a_record_that_holds_a_null_is_still_one() -> None:
    text = (
        "{'loss': 2.5, 'reward': None, 'kl': 0.1, 'epoch': 0.1}\n"
        "{'loss': 2.25, 'reward': None, 'kl': 0.2, 'epoch': 0.2}\n"
    )
    assert [value for _, value in values(read(text), "loss")] == [2.5, 2.25]


def test_the_epochs_of_two_sets_do_not_mix() -> None:
    text = "".join(
        f"train epoch: {at}, loss: {3 - at / 8}, accuracy: 30\ntest epoch: {at}, loss: 4.0, accuracy: 29\n"
        for at in range(1, 5)
    )
    parsed = read(text)
    assert values(parsed, "loss") == [(float(at), 3 - at / 8) for at in range(1, 5)]
    assert [value for _, value in values(parsed, "eval/loss")] == [4.0] * 4


def test_a_result_behind_arrows_is_held_out() -> None:
    parsed = read(lines("step {step} loss {loss}") + ">>> eval @ step 40: loss=2.5 ppl=12.2\n>>> import torch\n")
    assert values(parsed, "loss") == EVERY_TEN
    assert values(parsed, "eval/loss") == [(40.0, 2.5)]


def test_a_printed_tensor_is_its_number() -> None:
    parsed = read(lines("step {step} loss: tensor({loss}, device='cuda:0', grad_fn=<NllLossBackward0>)"))
    assert values(parsed, "loss") == EVERY_TEN
    assert {key for block in parsed.blocks for key in block.columns} == {"loss"}


def test_episodes_count_where_no_step_does() -> None:
    parsed = read(lines("Episode {step} | Reward {loss} | Avg Reward (100) 18.2 | Epsilon 0.90"))
    assert values(parsed, "Reward") == EVERY_TEN


@pytest.mark.parametrize("between", ["|\n learning rate", " |\nlearning rate", " |\n      learning rate"])
def test_a_megatron_record_wrapped_by_hand_keeps_its_tail(between: str) -> None:
    form = (
        " [2025-03-02 11:00:00] iteration {step}/ 500 | consumed samples: 512 | elapsed time per iteration (ms): 3200.5"
    )
    form += between + ": 3.0E-04 | lm loss: {loss} | grad norm: 1.250 |"
    parsed = read(lines(form))
    for key, value in (("learning rate", 3e-4), ("grad norm", 1.25), ("elapsed time per iteration (ms)", 3200.5)):
        assert values(parsed, key) == [(step, value) for step, _ in EVERY_TEN], key
    assert values(parsed, "lm loss") == EVERY_TEN
