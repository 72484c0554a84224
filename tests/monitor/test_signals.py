"""The 39 rows as data, against the doctrine written out by hand: priority, cadence, derivation, reduction."""

from __future__ import annotations

import re

import pytest

from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.signals import SIGNALS

# row -> (priority, cadence, rule or "" where it must be logged, its signals)
ROWS: dict[int, tuple[str, str, str, str]] = {
    1: ("P0", "step", "D1", "loss.train"),
    2: ("P0", "step", "D2", "loss.worst_rank"),
    3: ("P0", "1-10", "D3", "loss.source loss.modality"),
    4: ("P0", "step", "", "grad.norm"),
    5: ("P0", "step", "D4", "grad.clip_rate"),
    6: ("P0", "step", "D5", "spike.co_count"),
    7: ("P1", "step", "D6", "spike.score"),
    8: ("P1", "step", "", "grad.abs_mean grad.abs_max"),
    9: ("P1", "step", "", "grad.zero_fraction"),
    10: ("P1", "step", "D7", "count.skipped_steps count.bad_replays"),
    11: ("P0", "step", "D8", "sys.step_time sys.tokens_per_second"),
    12: ("P0", "step", "D2", "sys.peak_memory sys.memory_share sys.reserved_memory sys.fragmentation"),
    13: ("P0", "step", "D9", "sys.compute_rate sys.mfu"),
    14: ("P1", "step", "D10", "sys.straggler"),
    15: ("P1", "10", "", "sys.comm_wait"),
    16: (
        *("P1", "step", ""),
        "device.temperature device.utilization device.power device.clock device.errors host.memory_share host.cpu",
    ),
    17: ("P0", "100", "", "tensor.abs_max"),
    18: ("P1", "100", "", "tensor.rms tensor.abs_mean"),
    19: ("P1", "100", "", "tensor.zero_fraction tensor.dead_fraction"),
    20: ("P1", "100", "D11", "update.ratio"),
    21: ("P2", "100", "", "tensor.kurtosis"),
    22: ("P2", "demand", "", "optim.state"),
    23: ("P0", "step", "D12", "moe.maxvio moe.imbalance"),
    24: ("P0", "step", "D12", "moe.shard_imbalance"),
    25: ("P1", "100", "D13", "moe.entropy"),
    26: ("P2", "demand", "", "moe.load moe.router_score"),
    27: ("P0", "100", "", "residual.branch_scale"),
    28: ("P1", "100", "D14", "residual.block_importance residual.angle"),
    29: ("P1", "100", "", "residual.bf16_noop"),
    30: ("P1", "100", "", "residual.gate_saturation"),
    31: ("P0", "1-10", "D3", "modality.token_share"),
    32: ("P0", "100", "", "modality.scale_ratio"),
    33: ("P1", "100", "D15", "modality.encoder_grad_share"),
    34: ("P0", "eval", "D16", "eval.nll eval.bits_per_byte eval.perplexity"),
    35: ("P0", "ckpt", "", "eval.accuracy"),
    36: ("P0", "ckpt", "", "eval.greedy"),
    37: ("P0", "ckpt", "D17", "eval.media_gain"),
    38: ("P1", "ckpt", "", "eval.sampled eval.iou"),
    39: ("P1", "eval", "", "eval.averaged_weights"),
}
# What no detector reads under its own name -> where it is judged: derived from it, or what it is derived from.
JUDGED_AS = {
    "spike.score": "loss.spike",
    "spike.co_count": "spike.co",
    "count.bad_replays": "run.restarts",
    "sys.reserved_memory": "sys.memory",  # as fragmentation
    "residual.angle": "residual.stream",  # as block importance, D14
}
CAUSES = ("device.power", "host.cpu")  # row 16 lists them as causes to look at: no level of them is a fault


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_as_the_doctrine_has_it(row: int) -> None:
    priority, cadence, rule, names = ROWS[row]
    mine = [signal for signal in SIGNALS if signal.row == row]
    assert {signal.id for signal in mine} == set(names.split())
    for signal in mine:
        assert (signal.priority, signal.cadence, signal.rule) == (priority, cadence, rule), signal.id
        assert signal.to_get_it


def test_there_are_39_rows_and_no_maximum_is_averaged() -> None:
    assert {signal.row for signal in SIGNALS} - {0} == set(range(1, 40))
    for signal in SIGNALS:
        if re.search(r"max|worst|peak|imbalance", signal.id) and signal.row:
            assert signal.reduction == "max", signal.id


@pytest.mark.parametrize("name", [one.id for one in SIGNALS if one.row and one.id not in CAUSES])
def test_a_row_is_judged(name: str) -> None:
    known = {detector.id: detector for detector in DETECTORS}
    if name in JUDGED_AS:
        assert JUDGED_AS[name] in known
        return
    assert [detector.id for detector in DETECTORS if name in detector.signals], name
