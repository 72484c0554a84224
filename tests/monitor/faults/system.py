"""Faults of speed, memory, ranks, cards and the job itself."""

from __future__ import annotations

import numpy as np

from tests.monitor.faults.shape import AT, Case, Columns, N, Plan, Told
from trainmon.monitor.finding import Severity

CONFIG = {"event": "start", "device_name": "NVIDIA A100-SXM4-80GB", "max_steps": 5_000, "seed": 1}
INFO, WARN, FAIL = Severity.INFO, Severity.WARN, Severity.FAIL


def _ranks(plan: Plan, factor: float) -> Columns:
    base = plan.base()
    for rank in range(5):
        base[f"rank{rank}/compute_seconds"] = plan.noisy(0.7, 0.01) * (plan.late(1.0, factor) if rank == 2 else 1.0)
    return base


def _speed(plan: Plan, factor: float) -> Columns:
    time = plan.noisy(0.81, 0.015) * plan.late(1.0, 1 / factor)
    return plan.base(time=time) | {"perf/tokens_per_second": 5e5 / time, "perf/mfu": 0.4 * 0.81 / time}


CASES = (
    Case(
        "one slow step",
        lambda p: p.base(time=p.noisy(0.81, 0.015) * p.only(AT, AT, 15.0)),
        (Told("sys.step_time", "slow_step", "sys.step_time", INFO, recovered=True),),
    ),
    Case(
        "steps slow down",
        lambda p: p.base(time=p.noisy(0.81, 0.015) * p.late(1.0, 1.6)),
        (Told("sys.step_time", "slow", "sys.step_time"),),
    ),
    Case(
        "every sixth step is slow",
        lambda p: p.base(time=p.noisy(0.81, 0.015) * np.where((p.i >= AT) & (p.i % 6 == 0), 4.0, 1.0)),
        (Told("sys.jitter", "rhythm", "sys.step_time", slack=10),),
    ),
    Case(
        "step times scatter",
        lambda p: p.base(time=0.81 * np.exp(p.rng.normal(0, 1, N) * p.late(0.01, 0.12))),
        (Told("sys.jitter", "scatter", "sys.step_time", slack=10),),
    ),
    Case(
        "throughput is lost",
        lambda p: _speed(p, 0.6),
        (Told("sys.throughput", "slow", "sys.tokens_per_second"),),
        beside=("sys.step_time",),
    ),
    Case(
        "MFU alone is lost",
        lambda p: p.base() | {"perf/mfu": p.noisy(p.late(0.41, 0.25), 0.01)},
        (Told("sys.throughput", "slow", "sys.mfu"),),
    ),
    Case(
        "a straggler",
        lambda p: _ranks(p, 1.3),
        (Told("sys.straggler", "straggler", "sys.straggler", labels={"rank": "2"}),),
        advice=("rank 2",),
    ),
    Case(
        "collectives take longer",
        lambda p: (
            p.base(time=p.noisy(p.late(0.8, 1.2), 0.015)) | {"perf/comm_wait_s": p.noisy(p.late(0.08, 0.48), 0.03)}
        ),
        (Told("sys.waits", "wait", "sys.comm_wait"),),
        beside=("sys.step_time",),
    ),
    Case(
        "data comes late",
        lambda p: (
            p.base(time=p.noisy(p.late(0.8, 1.2), 0.015)) | {"perf/data_wait_s": p.noisy(p.late(0.01, 0.41), 0.03)}
        ),
        (Told("sys.waits", "wait", "sys.data_wait"),),
        beside=("sys.step_time",),
    ),
    Case(
        "memory creeps",
        lambda p: (
            p.base() | {"perf/max_memory_allocated_gib": p.noisy(48 + 0.02 * np.maximum(p.i - AT + 500, 0), 0.0005)}
        ),
        (
            Told(
                "sys.memory", "memory_creep", "sys.peak_memory", first=401, slack=330, says=("out of memory in about",)
            ),
        ),
        head=CONFIG,
    ),
    Case(
        "memory is nearly full in a single value",
        lambda p: p.base() | {"perf/memory_allocated_pct": 70 + 0.1 * np.minimum(p.i % 7, 3) + 28 * (p.i == AT)},
        (Told("sys.memory", "memory_high", "sys.memory_share", recovered=True, says=("reached 98%",)),),
    ),
    Case(
        "memory is nearly full",
        lambda p: p.base() | {"perf/max_memory_allocated_gib": p.noisy(p.late(60, 74), 0.0005)},
        (Told("sys.memory", "memory_high", "sys.peak_memory", slack=5),),
        head=CONFIG,
    ),
    Case(
        "fragmentation",
        lambda p: (
            p.base()
            | {
                "perf/max_memory_allocated_gib": p.noisy(40, 0.0005),
                "perf/max_memory_reserved_gib": p.noisy(p.late(43, 62), 0.0005),
            }
        ),
        (Told("sys.memory", "fragmentation", "sys.fragmentation"),),
        head=CONFIG,
    ),
    Case(
        "a hot card",
        lambda p: p.base() | {"gpu/3/temperature": p.late(71, 93) + p.rng.normal(0, 0.8, N)},
        (Told("sys.devices", "heat", "device.temperature"),),
        advice=("card 3",),
    ),
    Case(
        "a throttled card",
        lambda p: p.base() | {"gpu/1/sm_clock": p.late(1900, 1200) + p.rng.normal(0, 8, N)},
        (Told("sys.devices", "throttled", "device.clock"),),
    ),
)
