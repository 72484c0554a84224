"""Kinds of lines that no trainer owns: each as several print it, with what must be read and what must not."""

from __future__ import annotations

import json

import pytest

from tests.tails.formats.stdout_reading import fact, kinds, read, rows, values
from trainmon.tails.formats import registry

ONE_RECORD = [
    ("[   10] loss: 3.25", "loss", 10, 3.25),
    ("train[10] loss=3.25 lr=1e-4", "loss", 10, 3.25),
    ("[TRAIN] it=10 | loss: 3.25 | LR: 1.0e-04", "loss", 10, 3.25),
    ("Training loss at step 10: 3.25", "Training loss", 10, 3.25),
    ("validation loss at step 10 is 3.25", "validation loss", 10, 3.25),
    ("step=10 loss=tensor(3.25, device='cuda:0', grad_fn=<NllLossBackward0>) lr=1e-4", "loss", 10, 3.25),
    ('level=info msg="train step" step=10 loss=3.25 lr=1e-4', "loss", 10, 3.25),
    ("Iter(train) [   10/80000]  base_lr: 1e-4 loss: 3.25", "loss", 10, 3.25),
    ("loss = 3.25, step = 10 (12.3 sec)", "loss", 10, 3.25),
    ("Saving dict for global step 10: global_step = 10, loss = 3.25", "eval/loss", 10, 3.25),
    ("validate step: 10  loss: 3.25  memory: 1.18GiB(3.7%)  tps: 1,234", "eval/loss", 10, 3.25),
    ("eval[10] loss=3.25", "eval/loss", 10, 3.25),
    ("[10] collection=eval accuracy=0.5, loss=3.25", "eval/loss", 10, 3.25),
    ("Epoch 3, validation: loss=3.25, over 9.00 frames. ", "eval/loss", 3, 3.25),
    ("(0/8) Epoch 1, batch 10, loss[loss=3.25, over 9.00 frames. ], tot_loss[loss=3.5, ], lr: 2e-02", "loss", 10, 3.25),
    ("iter 25 step 10: loss 3.25, iter time: 99.5ms (optimizer.step)", "loss", 10, 3.25),
    ("iteration: 10 / 90 | tokens_per_sec: 43.5K | lm_loss: 3.25", "tokens_per_sec", 10, 43500.0),
    ("step 10 | loss 3.25 | params 1.5M | mem 12.5G", "mem", 10, 12.5e9),
    ("Train Metrics (step 10) - CTC Loss: 3.25 | Gradient Norm: 1.5", "CTC Loss", 10, 3.25),
    ("[STATUS]: step_i: 10, training loss: 3.25", "training loss", 10, 3.25),
    ("Step 10 | Loss: 3.25 | Grad. Norm: 1.5", "Grad. Norm", 10, 1.5),
    ("🚀 Step 10 | 📉 Loss: 3.25 | ⚡ 12.3k tok/s", "Loss", 10, 3.25),
    ("step 10k | loss 3.25", "loss", 10_000, 3.25),
    ("#10 loss=3.25", "loss", 10, 3.25),
    ("step: 10; loss: 3.25; grad norm: 1.5;", "loss", 10, 3.25),
    ("[2024-01-15 10:00:01.123] [trainer] [info] step 10 loss 3.25", "loss", 10, 3.25),
    ("┌ Info: training\n│   step = 10\n└   loss = 3.25", "loss", 10, 3.25),
    ("train-job-0 pytorch step: 10 loss: 3.25", "loss", 10, 3.25),
    ("@10 loss 3.25", "loss", 10, 3.25),
    ("Step 10 of 20: loss = 3.25", "loss", 10, 3.25),
    ("Iteration 10 / 20 — loss: 3.25", "loss", 10, 3.25),
    ("At step 10, the training loss is 3.25", "training loss", 10, 3.25),
    ("After 10 steps: loss 3.25", "loss", 10, 3.25),
    ("[10:00:01] INFO     step 10 | loss: 3.25                    train.py:88", "loss", 10, 3.25),
]


@pytest.mark.parametrize(("line", "key", "step", "value"), ONE_RECORD)
def test_one_line(line: str, key: str, step: float, value: float) -> None:
    assert values(read(line + "\n"), key) == [(step, value)]


NO_RECORD = [
    "Loss for final step: 3.25.",
    "Starting epoch 3 with lr 0.001",
    '{"step": 10, "config": {',
    "step  loss  lr",
    "======== Step 3/10 ========",
    "| Parameter | Value |\n+---+---+\n| learning rate (LR) | 6e-4 |\n| loss_chunk | 2 |",
    "    step = 10;\n    loss = compute(3.25);",
    "loss, step and rate\nare three words, no table",
]


@pytest.mark.parametrize("text", NO_RECORD)
def test_no_record(text: str) -> None:
    assert read(text + "\n").records == 0


def test_a_value_that_changes_its_multiplier_keeps_its_key() -> None:
    text = "step 1 | loss 3.25 | ms: 980\nstep 2 | loss 3.25 | ms: 1.25K\nstep 3 | loss 3.25 | ms: 999\n"
    assert values(read(text), "ms") == [(1, 980), (2, 1250), (3, 999)]


def test_epochs_count_where_nothing_better_does() -> None:
    text = "".join(f"Epoch {epoch}/3: train_loss={4 - epoch}.5, val_loss=4.25, time=1.5s\n" for epoch in (1, 2, 3))
    parsed = read(text)
    assert values(parsed, "train_loss") == [(1, 3.5), (2, 2.5), (3, 1.5)]
    assert fact(parsed, "total_steps") == 3


def test_beside_steps_an_epochs_line_gives_its_held_out_values_alone() -> None:
    text = "step 10 loss 3.25\nstep 20 loss 3.0\nEpoch 1: train_loss=3.125, val_loss=3.5\nstep 30 loss 2.5\n"
    parsed = read(text)
    assert values(parsed, "loss") == [(10, 3.25), (20, 3.0), (30, 2.5)]
    assert values(parsed, "val_loss") == [(20, 3.5)]
    assert values(parsed, "train_loss") == []


def test_steps_that_begin_again_each_epoch_go_on() -> None:
    text = "".join(f"Epoch {epoch}, batch {n}, loss: 2.5\n" for epoch in (1, 2) for n in (0, 50, 100))
    assert [row[0] for row in rows(read(text))] == [0, 50, 100, 150, 200, 250]


def test_steps_that_do_not_begin_again_stay() -> None:
    text = "".join(f"Epoch: {n // 100}, Step: {n}, loss = 2.5\n" for n in (50, 100, 150, 200))
    assert [row[0] for row in rows(read(text))] == [50, 100, 150, 200]


def test_the_mean_over_an_epoch_is_no_step() -> None:
    text = "".join(
        f"| INFO | train_inner | epoch 001:  {n} / 300 loss=3.{n}, num_updates={n}, lr=1e-4\n" for n in (100, 200, 300)
    )
    parsed = read(text + "| INFO | train | epoch 001 | loss 3.5 | num_updates 300 | lr 1e-4\n")
    assert [step for step, _ in values(parsed, "loss")] == [100, 200, 300]


RECORD = {"step": 10, "loss": 3.25, "opt": {"lr": 0.5}, "grad_norm": 1.5}


@pytest.mark.parametrize("head", ["", "metrics: "])
def test_a_dictionary_over_several_lines(head: str) -> None:
    parsed = read(f"start\n{head}{json.dumps(RECORD, indent=4)}\nend\n")
    assert values(parsed, "loss") == [(10, 3.25)]


def test_settings_over_several_lines_are_facts() -> None:
    parsed = read('config = {\n  "max_steps": 500,\n  "learning_rate": 0.5\n}\nstep 1 loss 2.5\n')
    assert fact(parsed, "total_steps") == 500
    assert parsed.records == 1


def test_a_dictionary_that_is_never_closed_hides_nothing() -> None:
    parsed = read('x = {\n  "a": [\nstep 1 loss 2.5\nstep 2 loss 2.25\n')
    assert [step for step, _ in values(parsed, "loss")] == [1, 2]


def test_the_same_step_told_twice_with_other_digits_is_one() -> None:
    bar = "\r {n}%|#   | {n}/100 [00:10<00:50,  1.0s/it]"
    text = "".join(
        bar.format(n=n) + "\n[INFO] {'loss': 3.25, 'learning_rate': 1.2346e-05, 'epoch': 0.1}\n"
        "{'loss': 3.25, 'grad_norm': 1.5, 'learning_rate': 1.23456e-05, 'epoch': 0.1}\n"
        for n in (10, 20)
    )
    parsed = read(text)
    assert values(parsed, "loss") == [(10, 3.25), (20, 3.25)]
    assert values(parsed, "learning_rate") == [(10, 1.23456e-05), (20, 1.23456e-05)]


def test_a_table_ends_and_another_line_is_read() -> None:
    parsed = read("step loss lr\n1 3.25 1e-4\n2 3.0 1e-4\nsaved.\nstep 3 loss 2.5\n3 2.75 1e-4\n")
    assert values(parsed, "loss") == [(1, 3.25), (2, 3.0), (3, 2.5), (3, 2.75)]


def wrap(text: str, key: str) -> str:
    return json.dumps({key: text, "stream": "stderr", "time": "2025-01-15T10:00:00Z"}) + "\n"


@pytest.mark.parametrize("key", ["log", "message", "textPayload"])
def test_wrapped_lines(key: str) -> None:
    lines = ["step 1/9 | loss 3.25", "step 2/9 | loss 3.0", "Traceback (most recent call last):"]
    lines += ['  File "a.py", line 1, in <module>', "    f()", "KeyError: 'labels'"]
    text = "".join(wrap(line + "\n", key) for line in lines)
    found = registry.detect(text.encode(), "a.log")
    assert found is not None
    assert found.name == "stdout"
    parsed = read(text)
    assert values(parsed, "loss") == [(1, 3.25), (2, 3.0)]
    assert rows(parsed)[0][3] == 1736935200.0
    assert kinds(parsed) == ["traceback"]


def test_records_with_a_message_are_no_wrappers() -> None:
    text = '{"message": "train", "step": 1, "loss": 2.5}\n{"message": "train", "step": 2, "loss": 2.25}\n'
    found = registry.detect(text.encode(), "a.jsonl")
    assert found is not None
    assert found.name == "jsonl"


def test_a_boxed_traceback() -> None:
    box = "╭──── Traceback (most recent call last) ────╮\n│ a.py:1 in <module>  │\n│ ❱ 1 f()  │\n╰────╯\n"
    text = f"{box}ValueError: bad\n"
    assert kinds(read(text)) == ["traceback"]


def mllog(key: str, value: object, **metadata: object) -> str:
    entry = {"time_ms": 1736935200000, "event_type": "POINT_IN_TIME", "key": key, "value": value, "metadata": metadata}
    return f":::MLLOG {json.dumps(entry)}\n"


def test_mllog_evaluation_of_a_language_model_is_a_loss() -> None:
    text = mllog("submission_benchmark", "llama2_70b_lora") + mllog("eval_accuracy", 0.95, epoch_num=512)
    text += mllog("tracked_stats", {"validation_step_time": 1.5}, step=1) + mllog("eval_accuracy", 0.9, epoch_num=1024)
    parsed = read(text)
    assert values(parsed, "eval_loss") == [(512, 0.95), (1024, 0.9)]
    assert values(parsed, "validation_step_time") == [("nan", 1.5)]


def test_mllog_samples_of_an_evaluation_beside_steps_and_samples_of_the_training_are_steps() -> None:
    text = "".join(
        mllog("tracked_stats", {"reduced_train_loss": 3.0}, step=step, samples_count=1152 * step)
        + mllog("eval_loss", 3.1, samples_count=1152 * step)
        for step in (32, 64)
    )
    assert [step for block in read(text).blocks for step in block.steps.tolist()] == [32.0, 32.0, 64.0, 64.0]


def test_mllog_accuracies_stay() -> None:
    parsed = read(mllog("submission_benchmark", "bert") + mllog("eval_accuracy", 0.5, epoch_num=512))
    assert values(parsed, "eval_accuracy") == [(512, 0.5)]


FACTS = [
    (
        "Trainer is initialized with local batch size 1, global batch size 64, total steps 900 (warmup 40)",
        "total_steps",
        900,
    ),
    (
        "Trainer is initialized with local batch size 1, global batch size 64, total steps 900 (warmup 40)",
        "batch_size",
        64,
    ),
    (
        "Trainer is initialized with local batch size 1, global batch size 64, total steps 900 (warmup 40)",
        "warmup_steps",
        40,
    ),
    ("Model llama3 8B size: 8,030,261,248 total parameters", "parameters", 8030261248),
    ("{'common': {'seed': 1}, 'optimization': {'max_update': 500, 'clip_norm': 0.0}}", "total_steps", 500),
    ("Starting training..., iters: 500", "total_steps", 500),
    ("O^O/ \\_/ \\    Num Epochs = 1 | Total steps = 60", "total_steps", 60),
    ("learning_rate=2e-05,", "peak_lr", 2e-5),
    ("TrainingArguments(bf16=True, learning_rate=2e-05, max_steps=5000, save_steps=500)", "peak_lr", 2e-5),
    ("Namespace(max_steps=4000, lr=0.0006, grad_clip=1.0)", "peak_lr", 0.0006),
    ("+ torchrun --nproc_per_node 8 train.py --max_steps 4000 --grad-clip=0.5", "total_steps", 4000),
    ("+ torchrun --nproc_per_node 8 train.py --max_steps 4000 --grad-clip=0.5", "clip_threshold", 0.5),
    ("Model has 1.3B parameters, training on 64 GPUs", "parameters", 1.3e9),
    ("Model has 1.3B parameters, training on 64 GPUs", "world_size", 64),
    ("total params: 124.44M (124,439,808)", "parameters", 124.44e6),
    ("  seq_len: 1024", "seq_length", 1024),
    ("bf16=True,", "precision", "bf16"),
    ("  bf16 ............................................ True", "precision", "bf16"),
    ("Using device: cuda (NVIDIA GeForce RTX 4090)", "gpu", "GeForce RTX 4090"),
    ("|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |", "gpu", "H100 80GB"),
    ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaa)", "gpu", "A100-SXM4-80GB"),
]


@pytest.mark.parametrize(("line", "key", "value"), FACTS)
def test_facts(line: str, key: str, value: float | str) -> None:
    assert fact(read(line + "\n"), key) == value


@pytest.mark.parametrize("line", ["optim/step skipped=0", "number of skipped steps: 0"])
def test_a_counter_of_skipped_steps_is_no_event(line: str) -> None:
    assert kinds(read(line + "\n")) == []


def test_one_clock_a_file() -> None:
    bar = "\r 1%|#   | {n}/100 [00:{n}<00:50,  1.0s/it, loss=2.5]"
    text = bar.format(n=10) + bar.format(n=11) + "\n2025-01-15 10:00:00 INFO eval loss: 2.5\n" + bar.format(n=12) + "\n"
    times = {row[1]: row[3] for row in rows(read(text))}
    assert times == {1: 11.0, 2: "nan", 3: 12.0}
