"""No row of the metric table without a fault that is told and, where it can be derived, numbers worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest

from tests.monitor import test_derive, test_derive_rules
from tests.monitor.detectors.harness import cut, run
from tests.monitor.detectors.rows_faults import FAULTS
from tests.monitor.detectors.rows_shape import AT, N, frame_of, late, noisy, share
from tests.monitor.faults import loss, model, system
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.devices import Devices
from trainmon.monitor.detectors.eval_tasks import EvalTasks
from trainmon.monitor.detectors.heldout import HeldOut
from trainmon.monitor.detectors.loss_groups import LossGroups
from trainmon.monitor.detectors.memory import Memory
from trainmon.monitor.detectors.moe_balance import MoeBalance
from trainmon.monitor.detectors.throughput import Throughput
from trainmon.monitor.finding import Severity
from trainmon.monitor.signals import SIGNALS
from trainmon.tails.record import FloatArray

Levels = Callable[[FloatArray, np.random.Generator], FloatArray]


def falls(level: float, spread: float, to: float) -> Levels:
    """A level that falls to `to` times itself."""
    return lambda i, r: noisy(r, level * late(i, 1.0, to), spread)


@dataclass(frozen=True)
class Lone:
    """A signal that the log carries alone, without what it is derived from or the others of its row."""

    signal: str
    detector: type[Detector]
    make: Levels
    slack: int = 0


LONE = (
    Lone("loss.worst_rank", LossGroups, falls(2.2, 0.01, 1.3), slack=8),
    Lone("sys.memory_share", Memory, lambda i, r: share(r, late(i, 0.7, 0.94), 0.002)),
    Lone("sys.compute_rate", Throughput, falls(4e14, 0.02, 0.6), slack=2),
    Lone("device.utilization{device=1}", Devices, lambda i, r: share(r, late(i, 0.95, 0.3), 0.01), slack=2),
    Lone("device.errors{device=1}", Devices, lambda i, _: np.maximum(i - AT, 0.0) // 10, slack=10),
    Lone("host.memory_share", Devices, lambda i, r: share(r, late(i, 0.5, 0.97), 0.005)),
    Lone("moe.imbalance{layer=2}", MoeBalance, falls(1.5, 0.03, 3.0), slack=2),
    Lone("eval.bits_per_byte", HeldOut, falls(0.9, 0.001, 1.2)),
    Lone("eval.perplexity", HeldOut, falls(11.0, 0.001, 1.6)),
    Lone("eval.greedy{task=chat}", EvalTasks, falls(0.6, 0.02, 0.7)),
    Lone("eval.sampled{task=code}", EvalTasks, falls(0.4, 0.02, 0.7)),
    Lone("eval.iou", EvalTasks, falls(0.5, 0.02, 0.7)),
    Lone("eval.averaged_weights", EvalTasks, falls(0.7, 0.02, 0.7)),
)
# Told by a fault of another name, since it is the same quantity: signal -> where.
TOLD_AS = {
    "spike.score": "spike.co_count",  # the score is what co-spikes and loss spikes are told by
    "count.bad_replays": "run.restarts",  # tests/monitor/faults/test_ends.py
    "grad.abs_mean": "grad.abs_max",  # flat beside an exploding element
    "tensor.abs_mean": "tensor.rms",  # one rule for both scales
    "sys.reserved_memory": "sys.fragmentation",  # reserved memory alone is no fault (METRICS.md)
    "residual.angle": "residual.block_importance",  # each from the other, D14
    "moe.router_score": "moe.load",
}
CAUSES = ("device.power", "host.cpu")  # no level of them is a fault
# Worked by hand in a test of its own, where a row of a table does not do (time stamps, notes, two attempts).
BY_HAND: dict[str, object] = {
    "grad.clip_rate": test_derive_rules.test_the_clip_rate_is_the_share_of_the_last_window,
    "spike.co_count": test_derive_rules.test_co_spikes_are_counted_whatever_the_pieces,
    "spike.score": test_derive_rules.test_the_score_is_two_sided_on_log_values,
    "count.skipped_steps": test_derive.test_skipped_steps_are_counted_once_a_line,
    "count.bad_replays": test_derive.test_replayed_steps_are_held_against_the_first_time,
    "sys.step_time": test_derive.test_step_time_from_time_stamps_within_an_attempt,
}


def told() -> set[str]:
    """Every signal on which some test puts a fault and names the episode."""
    cases = chain(loss.CASES, system.CASES, model.CASES)
    logs = {one.signal for case in cases for one in case.told}
    rng = np.random.default_rng(0)
    made = {name.partition("{")[0] for case in FAULTS for name in case.make(np.arange(float(N)), rng)}
    return logs | made | {one.signal.partition("{")[0] for one in LONE}


@pytest.mark.parametrize("name", [one.id for one in SIGNALS if one.row and one.id not in CAUSES])
def test_a_fault_is_put_on_it(name: str) -> None:
    assert name in told() or TOLD_AS.get(name) in told() | {"run.restarts"}, name


@pytest.mark.parametrize("name", [one.id for one in SIGNALS if one.rule])
def test_its_formula_is_worked_by_hand(name: str) -> None:
    cases = {case[3].partition("{")[0] for case in test_derive_rules.CASES}
    assert name in cases or callable(BY_HAND.get(name)), name


@pytest.mark.parametrize("cadence", [1, 10, 100])
@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("one", LONE, ids=lambda one: one.signal)
def test_it_is_judged_when_the_log_has_it_alone(one: Lone, seed: int, cadence: int) -> None:
    facts: dict[str, float | str] = {"gpu": "NVIDIA H100 80GB HBM3"}
    frame = frame_of(lambda i, r: {one.signal: one.make(i, r)}, seed=seed, cadence=cadence)
    found = run(one.detector, [frame], facts)
    first = [e for e in found.loud if str(e.signal).partition("{")[0] == one.signal.partition("{")[0]]
    assert len(first) == 1, [e.what for e in found.episodes]
    assert abs(first[0].first_step - cadence * (AT + 1)) <= cadence * one.slack, first[0].first_step
    assert first[0].severity >= Severity.WARN
    assert {str(e.signal) for e in found.loud} == {str(first[0].signal)}
    pieces = run(one.detector, cut(frame, list(range(5, N, 97))), facts)
    assert [repr(f) for f in pieces.findings] == [repr(f) for f in found.findings]
    healthy = run(one.detector, [frame_of(lambda i, r: {one.signal: one.make(i * 0, r)}, seed=seed)], facts)
    assert healthy.loud == []
