"""Each dialect's own samples, and the shapes that trainers print."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import fact, kinds, label, read, rows, values
from trainmon.tails.formats import registry
from trainmon.tails.formats.dialects import DIALECTS
from trainmon.tails.formats.line import Dialect

SAMPLES = [(dialect, sample) for dialect in DIALECTS for sample in dialect.samples]


@pytest.mark.parametrize(("dialect", "sample"), SAMPLES)
def test_samples_are_read_by_their_dialect(dialect: type[Dialect], sample: bytes) -> None:
    parsed = read(sample)
    assert parsed.records > 0
    assert parsed.unreadable == 0
    # What a model wrote is taken so that it is no record: the records are another's.
    others = {"dict": {"dict", "hf_trainer"}, "generated text": {"generic"}}
    expected = others.get(dialect.name, {dialect.name})
    assert label(sample) in expected


@pytest.mark.parametrize(("dialect", "sample"), SAMPLES)
def test_samples_are_told_as_stdout(dialect: type[Dialect], sample: bytes) -> None:
    found = registry.detect(sample, "train.log")
    assert found is not None
    assert found.name == "stdout"


def test_every_dialect_has_samples() -> None:
    assert all(dialect.samples and dialect.tokens for dialect in DIALECTS)


MEGATRON = (
    " iteration {step:8d}/     500 | consumed samples: {samples:12d} | elapsed time per "
    "iteration (ms): 1757.5 | learning rate: "
    "2.000E-07 | global batch size:    16 | lm loss: {loss} | loss scale: 1.0 | grad norm: {norm} | num zeros: 0.0 | "
    "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)


def test_megatron() -> None:
    lines = [
        MEGATRON.format(step=step, samples=step * 16, loss=loss, norm=norm)
        for step, loss, norm in [(9, "1.2E+01", "20.2"), (10, "nan", "inf"), (11, "1.1E+01", "3.125")]
    ]
    parsed = read(
        "".join(lines) + " validation loss at iteration 11 | lm loss value: 2.3E+00 | lm loss PPL: 9.9E+00 | \n"
    )
    assert values(parsed, "lm loss") == [(9.0, 12.0), (10.0, "nan"), (11.0, 11.0)]
    assert values(parsed, "grad norm") == [(9.0, 20.2), (10.0, float("inf")), (11.0, 3.125)]
    assert values(parsed, "number of nan iterations")[0] == (9.0, 0.0)
    assert values(parsed, "elapsed time per iteration (ms)")[0] == (9.0, 1757.5)
    assert values(parsed, "validation/lm loss value") == [(11.0, 2.3)]
    assert fact(parsed, "total_steps") == 500


def test_megatron_arguments_are_facts() -> None:
    parsed = read(
        "  clip_grad ....................................... 1.0\n  train_iters "
        "..................................... 500000\n"
        "  global_batch_size ............................... 256\n  seq_length "
        "...................................... 2048\n"
        "  lr .............................................. 0.00015\n  params_dtype "
        ".................. torch.bfloat16\n"
        "  load ............................................ None\n"
    )
    told = {one.key: one.value for one in parsed.facts}
    assert told == {
        "clip_threshold": 1.0,
        "total_steps": 500000.0,
        "batch_size": 256.0,
        "seq_length": 2048.0,
        "peak_lr": 0.00015,
        "precision": "bfloat16",
    }
    assert parsed.records == 0


def test_a_record_printed_twice_is_one() -> None:
    line = MEGATRON.format(step=5, samples=80, loss="3.5E+00", norm="1.0")
    prefix = "[20260511 03:12:{0:02d}][rank-7/8][DEBUG]    [----utils.py:{1}] : [2026-05-11 03:12:30.000001]"
    parsed = read(prefix.format(30, 425) + line + prefix.format(31, 429) + line)
    assert values(parsed, "lm loss") == [(5.0, 3.5)]


def test_values_and_averages_behind_slashes() -> None:
    text = (
        " iteration 7/ 20 | elapsed time per iteration (ms): 32023.4/33151.2 | lm loss: 7.4E+00 | "
        "hip mem usage/free/total/usage_ratio: 248.58GB/39.40GB/287.98GB/86.32% | rank-4 rocm "
        "max mem usage/usage_ratio: 251.53GB/87.34%\n"
    )
    [(step, _, _, _, cells)] = rows(read(text))
    assert step == 7
    assert cells["elapsed time per iteration (ms)"] == 32023.4
    assert cells["elapsed time per iteration (ms) avg"] == 33151.2
    assert cells["hip mem free (GB)"] == 39.40
    assert cells["hip mem usage_ratio (%)"] == 86.32
    assert cells["rocm max mem usage (GB)"] == 251.53


def test_deepspeed_lines_count_only_where_nothing_else_does() -> None:
    engine = (
        "[2024-02-11 18:21:23,661] [INFO] [logging.py:96:log_dist] [Rank 0] step={0}, "
        "skipped=0, lr=[1e-05], mom=[[0.9, 0.95]]\n"
    )
    twice = "steps: {0} loss: 12.6 iter time (s): 14.7 samples/sec: 1.084\n"
    alone = read("".join(engine.format(step) for step in (10, 20)))
    assert values(alone, "lr") == [(10.0, 1e-05), (20.0, 1e-05)]
    both = read("".join(twice.format(n) + MEGATRON.format(step=n, samples=n, loss="2.5", norm="1.0") for n in (1, 2)))
    assert values(both, "loss") == []
    assert values(both, "lm loss") == [(1.0, 2.5), (2.0, 2.5)]


def test_nanogpt() -> None:
    parsed = read(
        "number of parameters: 124.5M\nstep 0: train loss 10.85, val loss 10.84\n"
        "iter 0: loss 10.86, time 58313.41ms, mfu -100.00%\niter 1: loss 10.16, time 401.77ms, mfu 37.80%\n"
    )
    assert values(parsed, "loss") == [(0.0, 10.86), (1.0, 10.16)]
    assert values(parsed, "time (ms)")[1] == (1.0, 401.77)
    assert values(parsed, "mfu (%)")[0] == (0.0, -100.0)
    assert values(parsed, "val loss") == [(0.0, 10.84)]
    assert values(parsed, "train loss") == []
    assert fact(parsed, "parameters") == 124.5e6


def test_nanochat_stages() -> None:
    parsed = read(
        "step 05741/05742 (99.98%) | loss: 2.57 | lr(adamw:4.344e-02, muon:7.567e-03) | dt: "
        "45.8ms | tok/sec: 22,884 | epoch: 1\n"
        "Step 05742 | Validation bpb: 0.762\nstep 00001 (0.17%) | loss: nan | dt: 9338.51ms | tok/sec: 111 | epoch: 1\n"
        "step 00002/00002 (final) | loss: 1.5 | early_stop: 0\n"
    )
    assert values(parsed, "loss") == [(5741.0, 2.57), (1.0, "nan")]
    assert values(parsed, "tok/sec") == [(5741.0, 22884.0), (1.0, 111.0)]
    assert values(parsed, "lr(muon)") == [(5741.0, 7.567e-03)]
    assert values(parsed, "Validation bpb") == [(5742.0, 0.762)]
    assert fact(parsed, "total_steps") == 5742


def test_torchtitan_colours_ranks_and_times() -> None:
    line = (
        "[rank6]:[titan] 2026-05-03 02:00:{0:02d},500 - root - INFO - \x1b[31mstep: {0:2d}  \x1b[32mloss:  5.9{0}  "
        "\x1b[38;2;180;60;0mgrad_norm: 306.0339  \x1b[34mmemory:  7.12GiB(22.71%)  tps: 120  mfu: N/A\x1b[39m\n"
    )
    found = rows(read("".join(line.format(step) for step in (1, 2))))
    assert [row[0] for row in found] == [1.0, 2.0]
    assert float(found[1][3]) - float(found[0][3]) == 1.0
    assert found[0][4] == {"loss": 5.91, "grad_norm": 306.0339, "memory (GiB)": 7.12, "memory (%)": 22.71, "tps": 120.0}


def test_ranks_that_repeat_one_another() -> None:
    text = "".join(
        f"[rank{rank}]: step: {step} loss: {step + rank / 10}\n"
        for step in (1, 2, 3)
        for rank in ((0, 3) if step < 3 else (3, 0))
    )
    parsed = read(text)
    assert values(parsed, "loss") == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert values(parsed, "loss{rank=3}") == [(1.0, 1.3), (2.0, 2.3), (3.0, 3.3)]


def test_a_rank_that_reports_alone_keeps_its_keys() -> None:
    parsed = read("".join(f"[rank7]: step: {step} loss: 2.5 tps: 3\n" for step in (1, 2)))
    assert values(parsed, "loss") == [(1.0, 2.5), (2.0, 2.5)]


def test_olmo_core_records_of_several_lines() -> None:
    parsed = read(
        "2025-03-01 10:00:00 node-3 olmo_core.train.callbacks.console_logger:83 INFO [step=1/1000,epoch=1]\n"
        "    optim/LR (group 0)=4.0e-06\n    train/CE loss=11.20\n    throughput/device/TPS=9,120\n    data/source=c4\n"
        "2025-03-01 10:00:09 node-3 olmo_core.train.callbacks.console_logger:83 INFO [step=2/1000,epoch=1]\n"
        "    train/CE loss=nan\n"
    )
    assert values(parsed, "train/CE loss") == [(1.0, 11.2), (2.0, "nan")]
    assert values(parsed, "throughput/device/TPS") == [(1.0, 9120.0)]
    assert fact(parsed, "total_steps") == 1000


@pytest.mark.parametrize("who", ["slurmstepd", "slurmstepd-g084", "slurmstepd-node1.cluster"])
def test_llmc_console_cut_by_the_scheduler(who: str) -> None:
    parsed = read(
        "step  901/19560 | loss 3.5 (+1.2z)| norm 0.25 (-0.1z)| lr 8.57e-07 | 3788.44 ms | "
        "35.6% bf16 MFU | 138391 tok/s\n"
        f"step  902/19560 | loss     nan (+nanz)|{who}: error: *** JOB 7 ON g084 CANCELLED "
        "AT 2024-10-10T02:20:29 DUE TO TIME LIMIT ***\n"
    )
    assert values(parsed, "loss") == [(901.0, 3.5), (902.0, "nan")]
    assert values(parsed, "loss z")[0] == (901.0, 1.2)
    assert values(parsed, "ms") == [(901.0, 3788.44)]
    assert values(parsed, "bf16 MFU (%)") == [(901.0, 35.6)]
    assert values(parsed, "tok/s") == [(901.0, 138391.0)]
    assert {"time_limit", "cancelled"} <= set(kinds(parsed))


def test_epochs_and_batches() -> None:
    line = (
        "[2023-11-09 22:24:27 vit] (main.py 506): INFO Train: [{0}/2][{1}/100]\teta 1:01:44 "
        "lr 0.001\tloss 6.9{1} (6.91)\tmem 48MB\n"
    )
    parsed = read("".join(line.format(*place) for place in [(0, 0), (0, 90), (1, 0), (1, 90)]))
    assert [step for step, _ in values(parsed, "loss")] == [0.0, 90.0, 100.0, 190.0]
    assert values(parsed, "loss avg")[0] == (0.0, 6.91)
    assert fact(parsed, "total_steps") == 200
    assert values(read("Epoch [2/10], Step [100/500], Loss: 0.5\n"), "Loss") == [(600.0, 0.5)]


@pytest.mark.parametrize(
    ("line", "step", "expected"),
    [
        ("s:12 trl:3.1 lr:0.000001 norm:0.2", 12, {"trl": 3.1, "lr": 1e-06, "norm": 0.2}),
        ("completed step: 29, seconds: 0.779, loss: 12.978", 29, {"seconds": 0.779, "loss": 12.978}),
        ("Step: 1, LR: 8.755e-10, Loss: 0.69", 1, {"LR": 8.755e-10, "Loss": 0.69}),
        ("step=5 loss=-.0453 kl=None", 5, {"loss": -0.0453, "kl": "null"}),
        ("global_step 1,200 | loss inf | grad_norm -inf", 1200, {"loss": float("inf"), "grad_norm": float("-inf")}),
        ("update 7: loss 2.5; throughput: 1.86 TFLOP/s", 7, {"loss": 2.5, "throughput (TFLOP/s)": 1.86}),
        ("step: 4 | step time: 250ms | loss: 1.5", 4, {"step time (ms)": 250.0, "loss": 1.5}),
        ("Epoch 3 | iter 16 | loss 2.25", 16, {"Epoch": 3.0, "loss": 2.25}),
        ("eval step 9 loss 2.0", 9, {"eval/loss": 2.0}),
        ("Epoch(train)   [2][ 50/100]  lr: 1.0e-03  eta: 1:20:03  loss: 6.9", 150, {"lr": 0.001, "loss": 6.9}),
        ("Train: 1 [ 25/125 ( 20%)]  Loss: 3.5 (3.75)", 25, {"Loss": 3.5, "Loss avg": 3.75}),
        (
            "Training epoch 0, iteration 5/99 | global_step: 205 | loss: 2.5",
            205,
            {"Training epoch": 0.0, "iteration": 5.0, "loss": 2.5},
        ),
        ("train_inner | epoch 001:    100 / 5000 loss=8.4, num_updates=700", 700, {"epoch": 1.0, "loss": 8.4}),
        ("Step 100: {'loss': 2.5, 'lr': 0.1}", 100, {"loss": 2.5, "lr": 0.1}),
        ('x | INFO | {"num_updates": "100", "loss": "8.4", "ppl": "340"}', 100, {"loss": 8.4, "ppl": 340.0}),
        ("step 7 loss: 3.0 time: 1:02:03 remaining: 2 days, 3:04:05", 7, {"loss": 3.0}),
    ],
)
def test_single_lines(line: str, step: float, expected: dict[str, float | str]) -> None:
    [(found, _, _, _, cells)] = rows(read(line + "\n"))
    assert found == step
    assert cells == expected


@pytest.mark.parametrize(
    "line",
    [
        "Saving checkpoint at step 1000 took 3.2 seconds",
        "0-iteration loop inserted, body will not be executed: start=0, step=1, limit=0",
        "train_batch_tokens:524288 train_seq_len:1024 iterations:20000 warmup_steps:20",
        "| learning rate (LR)    | 6.000000e-04        |",
        "    loss_scale: 1.0",
        "{'lr': 1e-05, 'betas': [0.9, 0.95], 'eps': 1e-08, 'weight_decay': 0.1}",
        "wandb:       train/loss 2.31",
        "  log(f'step:{step}/{total} train_loss:{loss:.4f}')",
        "Requirement already satisfied: lossless>=1.0 in ./step (1.2.3)",
        "> working on iteration: 30",
        "rank 0 sample 1: In step 1 the loss was 3 points and step 2",
        "--train-iters 500 --lr 1e-4 --loss 2.5",
        "  adlr_autoresume_interval ........ 1000........................default",
        "Applied plan tp_degree=2.",
        '    "loss": 0.5,',
    ],
)
def test_lines_that_are_no_records(line: str) -> None:
    assert read((line + "\n") * 3).records == 0


def test_results_without_a_step() -> None:
    parsed = read("validation loss: 10.9522\nHellaSwag accuracy: 2497/10042=0.2487\nstep 0 | loss: 9.5\nval loss nan\n")
    assert values(parsed, "validation loss") == [("nan", 10.9522)]
    assert values(parsed, "val loss") == [("nan", "nan")]


def test_mllog() -> None:
    parsed = read(
        ' 0: :::MLLOG {"time_ms": 1000, "event_type": "POINT_IN_TIME", "key": '
        '"global_batch_size", "value": 8, "metadata": {}}\n'
        ' 0: :::MLLOG {"time_ms": 2500, "event_type": "POINT_IN_TIME", "key": "tracked_stats", '
        '"value": {"reduced_train_loss": 2.5}, "metadata": {"step": 96}}\n'
        ' 0: :::MLLOG {"time_ms": 3000, "event_type": "INTERVAL_END", "key": "run_stop", '
        '"value": null, "metadata": {"status": "success"}}\n'
        " 0: :::MLLOG {broken\n"
    )
    assert values(parsed, "reduced_train_loss") == [(96.0, 2.5)]
    assert rows(parsed)[0][3] == 2.5
    assert fact(parsed, "batch_size") == 8
    assert kinds(parsed) == ["finished_ok"]
    assert parsed.unreadable == 1


def test_keras() -> None:
    parsed = read(
        "Epoch 1/2\n 1/3 [=>...] - ETA: 3s - loss: 2.30\r 3/3 [=====] - 4s 9ms/step - loss: 2.10\nEpoch 2/2\n"
        " 3/3 [=====] - 4s 9ms/step - loss: 1.90 - val_loss: 2.0\n"
    )
    assert values(parsed, "loss") == [(1.0, 2.3), (3.0, 2.1), (6.0, 1.9)]
    assert fact(parsed, "total_steps") == 6


def test_hf_summary_is_no_record() -> None:
    parsed = read("{'loss': 2.5, 'epoch': 0.1}\n{'train_runtime': 5507.3, 'train_loss': -117584776.0, 'epoch': 0.68}\n")
    assert values(parsed, "loss") == [("nan", 2.5)]
    assert values(parsed, "train_loss") == []
    assert kinds(parsed) == ["finished_ok"]


def test_summary_without_bar_and_words_for_numbers() -> None:
    parsed = read(
        "[INFO|2024-11-26 22:09:01] logging.py:157 >> {'loss': '2.2', 'grad_norm': nan, 'kl': None, 'epoch': 0.3}\n"
    )
    [(step, _, _, time, cells)] = rows(parsed)
    assert step == "nan"
    assert isinstance(time, float)
    assert cells == {"loss": 2.2, "grad_norm": "nan", "kl": "null", "epoch": 0.3}
