"""Whose number a key tells of: ranks, layers and experts, wherever a trainer writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.engine import RunEngine
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.key_parts import of_part, without_rank
from trainmon.monitor.mapping import Mapper, map_key
from trainmon.tails.clock import SystemClock
from trainmon.tails.formats.jsonl import JsonLines

WORDS = ("rank", "worker", "gpu", "device", "proc", "process", "npu", "dp_rank", "global_rank", "local_rank")


@pytest.mark.parametrize(
    ("raw", "signal"),
    [
        ("rank0/step_time", "sys.rank_step_time{rank=0}"),
        ("perf/rank_5/compute_time", "sys.rank_step_time{rank=5}"),
        ("step_time_ms_rank5", "sys.rank_step_time{rank=5}"),
        ("gpu3/memory_gb", "sys.rank_memory{rank=3}"),
        ("GPU 0 memory (MB)", "sys.rank_memory{rank=0}"),
        ("worker_2/loss", "loss.rank{rank=2}"),
        ("loss_rank_0", "loss.rank{rank=0}"),
        ("train/loss@rank3", "loss.rank{rank=3}"),
        ("loss[rank=3]", "loss.rank{rank=3}"),
        ("loss (rank 3)", "loss.rank{rank=3}"),
        ('train_loss{rank="3"}', "loss.rank{rank=3}"),
        ("r3/loss", "loss.rank{rank=3}"),
        ("node1_rank3_loss", "loss.rank{rank=1.3}"),
        ("node_3/step_time", "sys.rank_step_time{rank=3}"),
        ("rank3/grad_norm", "grad.rank_norm{rank=3}"),
        ("rank_3.tokens_per_sec", "sys.tokens_per_second{rank=3}"),
        ("rank3/mem_reserved_gb", "sys.reserved_memory{rank=3}"),
        ("worker_3/data_time", "sys.data_wait{rank=3}"),
        ("rank 3/comm_time_ms", "sys.comm_wait{rank=3}"),
        ("val_loss_rank3", "eval.nll{rank=3}"),
        ("tokens_rank_3", "loss.tokens{rank=3}"),
        ("gpu_0_util", "device.utilization{device=0}"),
        ("gpu:3 power", "device.power{device=3}"),
        ("system.gpu.0.memoryAllocatedBytes", "sys.rank_memory{rank=0}"),
        ("system.gpu.0.memoryAllocated", "sys.memory_share{rank=0}"),
        ("rank0/layer_3/grad_norm", "grad.rank_norm{layer=3,rank=0}"),
        ("loss[source=code]", "loss.source{source=code}"),
        ('train_loss{source="code"}', "loss.source{source=code}"),
    ],
)
def test_a_rank_anywhere_in_a_key(raw: str, signal: str) -> None:
    assert str(map_key(raw).key) == signal


@pytest.mark.parametrize(
    ("raw", "signal"),
    [
        ("layer.3.mlp/grad_norm", "grad.rank_norm{layer=3,site=mlp}"),
        ("grad_norm/layers.3.mlp", "grad.rank_norm{layer=3,site=mlp}"),
        ("blocks.12.attn.out/rms", "tensor.rms{layer=12,site=attn out}"),
        ("h3_out_rms", "tensor.rms{layer=3}"),
        ("encoder.layer.5.output/abs_max", "tensor.abs_max{layer=5,site=output}"),
        ("weights/layer_3/norm", "param.norm{layer=3}"),
        ("expert_07_load", "moe.load{expert=7}"),
        ("moe/l3/e5/tokens", "moe.load{expert=5,layer=3}"),
        ("moe/expert_5/layer_3/tokens", "moe.load{expert=5,layer=3}"),
        ("tokens_per_expert/layer_3/expert_5", "moe.load{expert=5,layer=3}"),
        ("router/layer_3/entropy", "moe.entropy{layer=3}"),
        ("layer_3_max_vio", "moe.maxvio{layer=3}"),
        ("moe/layer_3/aux_loss", "loss.aux{layer=3,name=aux}"),
    ],
)
def test_layers_and_experts_in_any_order(raw: str, signal: str) -> None:
    assert str(map_key(raw).key) == signal


@pytest.mark.parametrize(
    "raw", ["layer_0/loss", "layer_3/attn_entropy", "l1_loss", "device 0", "num_workers", "compute_time", "lr/layer_3"]
)
def test_a_part_of_the_model_is_not_the_run(raw: str) -> None:
    assert map_key(raw).key == (raw, ())


@given(st.sampled_from(WORDS), st.integers(0, 99999), st.sampled_from(("/", "_", ".")), st.booleans(), st.booleans())
def test_where_the_rank_stands_makes_no_difference(word: str, rank: int, joint: str, glued: bool, ahead: bool) -> None:
    who = f"{word}{'' if glued else '_'}{rank}"
    raw = f"{who}{joint}step_time" if ahead else f"step_time{joint}{who}"
    assert str(map_key(raw).key) == f"sys.rank_step_time{{rank={rank}}}"


@given(st.text(max_size=200))
def test_any_key_is_taken_apart_without_an_error(text: str) -> None:
    for found in (without_rank(text), of_part(text)):
        assert found is None or found


def test_a_long_key_costs_linear_time() -> None:
    assert without_rank("rank 1/" * 50_000) is not None
    assert of_part("layer 1/" * 50_000) is None


def test_compute_times_tell_the_straggler_and_step_times_the_step() -> None:
    claimed = Mapper().claim(["rank0/step_time", "rank1/step_time", "rank0/compute_time", "rank1/compute_time"])
    assert str(claimed["rank0/compute_time"].key) == "sys.rank_step_time{rank=0}"
    assert str(claimed["rank0/step_time"].key) == "sys.step_time{rank=0}"


def columns(rows: list[dict[str, float]], tmp_path: Path) -> dict[SignalKey, np.ndarray]:  # type: ignore[type-arg]
    """The run's series after reading `rows` as JSON lines."""
    source = str(tmp_path / "log.jsonl")
    reader = JsonLines(source)
    parsed = reader.feed("".join(json.dumps(row) + "\n" for row in rows).encode(), 0, 1)
    parsed.add(reader.finish())
    engine = RunEngine("run", source, clock=SystemClock())
    engine.feed(source, parsed)
    engine.settle()
    return {key: view.values for key, view in engine.series_views().items()}


def test_what_the_ranks_say_becomes_the_runs(tmp_path: Path) -> None:
    rows = [
        {"step": step, "loss": 2.5}
        | {f"rank{rank}/step_time": 1.0 + rank for rank in range(3)}
        | {f"gpu{rank}/memory_gb": 60.0 + rank for rank in range(3)}
        | {f"worker_{rank}/tokens_per_sec": 1000.0 for rank in range(3)}
        | {f"rank{rank}/lr": 1e-4 for rank in range(3)}
        | {f"rank{rank}/mfu": 0.25 + rank / 8 for rank in range(3)}
        for step in range(1, 6)
    ]
    found = columns(rows, tmp_path)
    assert found[SignalKey("sys.step_time")].tolist() == [3.0] * 5
    assert found[SignalKey("sys.straggler")].tolist() == pytest.approx([1.5] * 5)
    assert found[SignalKey("sys.peak_memory")].tolist() == [62e9] * 5
    assert found[SignalKey("sys.tokens_per_second")].tolist() == [3000.0] * 5
    assert found[SignalKey("optim.lr")].tolist() == [1e-4] * 5  # they agree
    assert SignalKey("sys.mfu") not in found  # they do not, and ratios are not averaged


def test_ranks_on_rows_of_their_own_are_not_taken_for_the_run(tmp_path: Path) -> None:
    rows = [
        {"step": step, f"loss_rank_{rank}": 2.0 + rank} for step in range(1, 6) for rank in range(2)
    ]  # fmt: skip
    found = columns(rows, tmp_path)
    assert found[SignalKey("loss.train")].tolist() == [2.5] * 5  # once both have told, never one rank's
    assert found[SignalKey("loss.worst_rank")].tolist() == [3.0] * 5


def test_one_evaluation_of_tasks_is_nothing_to_judge_by(tmp_path: Path) -> None:
    source = str(tmp_path / "log.jsonl")
    reader = JsonLines(source)
    rows = [{"step": 100, "metrics/lambada_openai/0-shot/LMAccuracy": 0.5, "mmlu": 0.25}]
    for evaluations, verdict in ((1, "NO DATA"), (3, "PASS")):
        engine = RunEngine("run", source, clock=SystemClock())
        lines = [json.dumps({**row, "step": 100 * number}) for number in range(1, evaluations + 1) for row in rows]
        reader = JsonLines(source)
        parsed = reader.feed(("\n".join(lines) + "\n").encode(), 0, 1)
        parsed.add(reader.finish())
        engine.feed(source, parsed)
        engine.settle()
        assert [check.verdict.value for check in engine.checks() if check.id == "eval.tasks"] == [verdict]
