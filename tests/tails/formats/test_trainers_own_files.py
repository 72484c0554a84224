"""Files that trainers' own loggers write: their records' wrappers, one metric a line, names of summaries."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import fact, read, values
from trainmon.monitor.mapping import map_key

COMPOSER = (
    "[hyperparameter]: max_steps: 200 \n"
    + "".join(
        f"[metric][batch={batch}]: time/batch: {batch} \n[stdout]: a word of the trainer\n"
        f"[metric][batch={batch}]: loss/train/total: {3 - batch / 10} \n"
        f"[metric][batch={batch}]: l2_norm/grad/global: 0.5 \n"
        for batch in range(10)
    )
    + "[trace]: algorithm/1/event: x \n"
)


def test_composers_file_holds_one_metric_a_line_under_its_batch() -> None:
    parsed = read(COMPOSER)
    assert values(parsed, "loss/train/total") == [(float(batch), 3 - batch / 10) for batch in range(10)]
    assert values(parsed, "l2_norm/grad/global") == [(float(batch), 0.5) for batch in range(10)]
    assert (parsed.records, parsed.unreadable, fact(parsed, "total_steps")) == (10, 0, 200.0)


@pytest.mark.parametrize("cut", range(1, 12))
def test_composers_batch_is_one_row_wherever_it_is_cut(cut: int) -> None:
    assert values(read(COMPOSER, cuts=[cut]), "loss/train/total") == values(read(COMPOSER), "loss/train/total")


@pytest.mark.parametrize(
    ("raw", "signal"),
    [
        ("data/critic/rewards/mean", "reward.mean"),
        ("data/response_length/mean", "policy.length"),
        ("data/timing_s/step", "sys.step_time"),
        ("data/actor/pg_loss", "loss.train"),
        ("data/cache", "data/cache"),
        ("loss/mean", "loss.train"),
        ("entropy/mean", "policy.entropy"),
        ("progress/total_tokens", "progress.tokens"),
        ("time/iter (s)", "sys.step_time"),
        ("runtime/flops_per_sec_per_gpu", "sys.compute_rate"),
        ("total_norm", "grad.norm"),
        ("num_skipped_steps", "count.skipped_steps"),
        ("gpu_temp_c", "device.temperature"),
        ("gpu_power_w", "device.power"),
        ("val_loss/c4", "eval.nll{set=c4}"),
        ("val_loss_best", "val_loss_best"),  # the lowest so far falls whatever the loss does
        ("eval/loss/ema", "eval/loss/ema"),
    ],
)
def test_names_that_their_loggers_give(raw: str, signal: str) -> None:
    assert str(map_key(raw).key) == signal
