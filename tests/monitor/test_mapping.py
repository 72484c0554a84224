"""Keys to signals: the alias table, units, labels, false friends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.alias_table import aliases
from trainmon.monitor.mapping import Mapper, map_key
from trainmon.monitor.signals import BY_ID


@pytest.mark.parametrize(
    ("raw", "signal", "scale"),
    [
        ("lm loss", "loss.train", 1.0),
        ("loss/out", "loss.train", 1.0),
        ("train/loss_by_source/web", "loss.source{source=web}", 1.0),
        ("domain_loss/code", "loss.source{source=code}", 1.0),
        ("val/loss_by_source/web", "eval.nll{set=by source/web}", 1.0),
        ("moe/tokens_per_expert[0][3]", "moe.load{expert=3,layer=0}", 1.0),
        ("tokens_per_expert[3]", "moe.load{expert=3}", 1.0),
        ("layer_3/tokens_per_expert[2]", "moe.load{expert=2,layer=3}", 1.0),
        ("tokens_per_sec_k", "sys.tokens_per_second", 1e3),
        ("perf/tokens_per_second_m", "sys.tokens_per_second", 1e6),
        ("Ktok/s", "sys.tokens_per_second", 1e3),
        ("throughput (Mtok/s)", "sys.tokens_per_second", 1e6),
        ("samples_per_sec_k", "sys.samples_per_second", 1e3),
        ("tokens_seen_b", "progress.tokens", 1e9),
        ("tokens (M)", "progress.tokens", 1e6),
        ("loss_k", "loss_k", 1.0),
        ("top_k", "top_k", 1.0),
        ("learning/current_learning_rate", "optim.lr", 1.0),
        ("training.lr", "optim.lr", 1.0),
        ("Train_Samples_lr", "optim.lr", 1.0),
        ("Train_Samples_loss_scale", "optim.loss_scale", 1.0),
        ("lr/pg0", "optim.lr", 1.0),
        ("speed/curr_iter_time", "sys.step_time", 1.0),
        ("throughput/duration", "sys.step_time", 1.0),
        ("perf/per_device_tokens_per_sec", "sys.tokens_per_second", 1.0),
        ("perf/per_device_tflops", "perf/per_device_tflops", 1.0),
        ("Loss", "loss.train", 1.0),
        ("train/CE loss", "loss.train", 1.0),
        ("reduced_train_loss", "loss.train", 1.0),
        ("loss_metrics/global_avg_loss", "loss.train", 1.0),
        ("loss_metrics/global_max_loss", "loss.worst_rank", 1.0),
        ("loss{rank=3}", "loss.rank{rank=3}", 1.0),
        ("validation/lm loss value", "eval.nll", 1.0),
        ("eval_g3_loss", "eval.nll{set=g3}", 1.0),
        ("val_bpb", "eval.bits_per_byte", 1.0),
        ("grad norm", "grad.norm", 1.0),
        ("grad/norm/total", "grad.norm", 1.0),
        ("temp (C)", "device.temperature", 1.0),
        ("perf/max_memory_allocated_gb", "sys.peak_memory", 2.0**30),
        ("max_memory_allocated_gb", "sys.peak_memory", 1e9),
        ("optim/total grad norm", "grad.norm", 1.0),
        ("learning_rate", "optim.lr", 1.0),
        ("lr(adamw)", "optim.lr", 1.0),
        ("opt/gnorm", "grad.norm", 1.0),
        ("perf/iter_seconds", "sys.step_time", 1.0),
        ("speed/step_ms", "sys.step_time", 1e-3),
        ("amp/skipped_steps", "count.skipped_steps", 1.0),
        ("logits/abs_max", "tensor.abs_max{site=logits}", 1.0),
        ("elapsed time per iteration (ms)", "sys.step_time", 1e-3),
        ("dt (ms)", "sys.step_time", 1e-3),
        ("iter_time_s", "sys.step_time", 1.0),
        ("time (us)", "sys.step_time", 1e-6),
        ("tok/sec", "sys.tokens_per_second", 1.0),
        ("memory (GiB)", "sys.peak_memory", 2.0**30),
        ("GPU Mem (GB)", "sys.peak_memory", 1e9),
        ("memory (%)", "sys.memory_share", 0.01),
        ("MFU (%)", "sys.mfu", 0.01),
        ("throughput per GPU (TFLOP/s/GPU)", "sys.compute_rate", 1e12),
        ("moe/layer3/expert5", "moe.load{expert=5,layer=3}", 1.0),
        ("data/train/loss", "loss.train", 1.0),
        ("data/code/loss", "loss.source{source=code}", 1.0),
        ("losses/total", "loss.train", 1.0),
        ("tot_loss", "loss.train", 1.0),
        ("actor/ppo_kl", "policy.kl", 1.0),
        ("loss scale", "optim.loss_scale", 1.0),
        ("LossPi", "loss.train", 1.0),
        ("LossV", "loss.aux{name=v}", 1.0),
        ("LossQ", "loss.aux{name=q}", 1.0),
        ("AverageEpRet", "reward.mean", 1.0),
        ("actor_lr", "optim.lr", 1.0),
    ],
)
def test_the_keys_that_trainers_write(raw: str, signal: str, scale: float) -> None:
    mapped = map_key(raw)
    assert str(mapped.key) == signal
    assert mapped.scale_for(0.0) == pytest.approx(scale) or mapped.by_size


@pytest.mark.parametrize(
    "raw",
    [
        "loss_mask",
        "num_loss_tokens",
        "lrm",
        "best_loss_step",
        "time",
        "train_time (ms)",
        "loss avg",
        "HFU (%)",
        "my key",
    ],
)
def test_false_friends_keep_their_own_name(raw: str) -> None:
    assert map_key(raw).key == (raw, ())


def test_a_share_written_as_a_percentage_is_told_by_its_size() -> None:
    mfu = map_key("bf16_mfu")
    assert mfu.scale_for(40.2) == 0.01
    assert mfu.scale_for(0.402) == 1.0


def test_memory_without_a_unit_is_told_by_its_size() -> None:
    memory = map_key("max_memory_allocated")
    assert [memory.scale_for(first) for first in (7.1e10, 48463.0, 21.3)] == [1.0, 1e6, 1e9]


def test_within_a_row_the_key_listed_first_is_the_loss_and_the_rest_are_parts() -> None:
    claimed = Mapper().claim(["cls_loss", "loss", "aux_loss"])
    assert str(claimed["loss"].key) == "loss.train"
    assert str(claimed["aux_loss"].key) == "loss.aux{name=aux}"
    assert claimed["cls_loss"].key.signal == "loss.aux"


def test_a_later_key_never_takes_a_signal_away() -> None:
    mapper = Mapper()
    mapper.claim(["train_loss"])
    assert mapper.claim(["lm loss"])["lm loss"].key == ("lm loss", ())


def test_a_lone_rank_speaks_for_the_run_and_two_do_not() -> None:
    assert str(Mapper().claim(["loss_rank0", "lr"])["loss_rank0"].key) == "loss.train"
    # On a row of its own it may be one of several: a table in long form.
    assert str(Mapper().claim(["loss_rank0"])["loss_rank0"].key) == "loss.rank{rank=0}"
    both = Mapper().claim(["loss_rank0", "loss_rank1"])
    assert {str(mapped.key) for mapped in both.values()} == {"loss.rank{rank=0}", "loss.rank{rank=1}"}


@pytest.mark.parametrize("name", ["length", "empty", "repetition", "distinct", "gibberish"])
def test_measures_of_samples_are_read_by_the_names_of_their_signals(name: str) -> None:
    for key in (f"sample/{name}", f"sample.{name}", f"sample_text/{name}" if name != "distinct" else "sample/distinct"):
        assert map_key(key).key.signal == f"sample.{name}"


def test_every_alias_names_a_signal_of_the_table() -> None:
    table = aliases()
    named = {signal for _, signal in table.exact.values()} | {signal for _, signal, _ in table.patterns}
    assert named <= set(BY_ID)


@given(st.lists(st.text(max_size=40), unique=True, max_size=12))
def test_any_keys_are_claimed_once_each(keys: list[str]) -> None:
    claimed = Mapper().claim(keys)
    assert list(claimed) == keys
    assert len({mapped.key for mapped in claimed.values()}) == len(keys)


def test_a_hostile_key_costs_linear_time() -> None:
    assert map_key("loss " * 200_000).key.signal


def test_a_loss_per_token_is_the_loss_beside_one_that_is_a_sum() -> None:
    claimed = Mapper().claim(["loss", "cross_ent_loss", "loss_per_nonpadding_target_token"])
    assert str(claimed["loss_per_nonpadding_target_token"].key) == "loss.train"
    assert str(claimed["loss"].key) != "loss.train"
