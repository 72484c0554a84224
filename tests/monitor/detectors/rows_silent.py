"""The neighbours from which faults are told: healthy runs that look like them."""

from __future__ import annotations

import numpy as np

from tests.monitor.detectors.rows_shape import (
    AT,
    GIB,
    Case,
    N,
    element,
    experts,
    late,
    lr,
    noisy,
    ramp,
    share,
)
from trainmon.monitor.detectors.abs_max import AbsMax
from trainmon.monitor.detectors.dead_units import DeadUnits
from trainmon.monitor.detectors.devices import Devices
from trainmon.monitor.detectors.eval_tasks import EvalTasks
from trainmon.monitor.detectors.grad_dead import GradDead
from trainmon.monitor.detectors.grad_elements import GradElements
from trainmon.monitor.detectors.jitter import Jitter
from trainmon.monitor.detectors.memory import Memory
from trainmon.monitor.detectors.modality import Modality
from trainmon.monitor.detectors.moe_balance import MoeBalance
from trainmon.monitor.detectors.residual import ResidualStream
from trainmon.monitor.detectors.samples import Samples
from trainmon.monitor.detectors.update_ratio import UpdateRatio
from trainmon.monitor.detectors.waits import Waits

SILENT = [
    Case("all elements grow", GradElements, lambda i, r: element(i, r, 100.0, 100.0)),
    Case(
        "a heavy-tailed largest element",
        GradElements,
        lambda i, r: {**element(i, r, 1.0, 1.0), "grad.abs_max": noisy(r, 0.5, 0.6)},
    ),
    Case("a gradient that falls far", GradDead, lambda i, r: {"grad.norm": noisy(r, ramp(i, 1.0, 1e-3))}),
    Case("zeros from the start", GradDead, lambda i, r: {"grad.norm": np.zeros(N)}),
    Case("two zeros", GradDead, lambda i, r: {"grad.norm": noisy(r, 0.4) * np.where((i == 700) | (i == 900), 0, 1)}),
    Case("a norm that prints as 0", GradDead, lambda i, r: {"grad.norm": np.round(noisy(r, 0.006, 0.5), 2)}),
    Case(
        "an embedding with few rows in use",
        GradDead,
        lambda i, r: {"grad.zero_fraction{part=embed}": share(r, 0.97, 0.01)},
    ),
    Case(
        "sparsity that grows slowly",
        DeadUnits,
        lambda i, r: {"tensor.zero_fraction{layer=0}": share(r, 0.3 + 0.5 * i / N, 0.005)},
    ),
    Case(
        "updates follow the learning rate",
        UpdateRatio,
        lambda i, r: {"optim.lr": lr(i), "update.ratio": noisy(r, 3.0 * lr(i), 0.3)},
    ),
    Case("scales that grow threefold", AbsMax, lambda i, r: {"tensor.rms{layer=3}": noisy(r, ramp(i, 1.0, 3.0))}),
    Case("Gaussian activations", AbsMax, lambda i, r: {"tensor.kurtosis{layer=1}": np.abs(r.normal(0, 0.5, N))}),
    Case(
        "one outlier", AbsMax, lambda i, r: {"tensor.abs_max{site=output}": noisy(r, 30.0) * np.where(i == AT, 40, 1)}
    ),
    Case("gates half closed", ResidualStream, lambda i, r: {"residual.gate_saturation{layer=1}": share(r, 0.5, 0.05)}),
    Case(
        "a mix that is changed",
        Modality,
        lambda i, r: {"source.token_share{source=code}": share(r, late(i, 0.1, 0.3), 0.01)},
    ),
    Case(
        "waits that grow with the step",
        Waits,
        lambda i, r: {"sys.step_time": noisy(r, late(i, 1.0, 3.0), 0.02), "sys.comm_wait": noisy(r, late(i, 0.1, 0.3))},
    ),
    Case(
        "an evaluation every 10 steps from the start",
        Jitter,
        lambda i, r: {"sys.step_time": noisy(r, 0.5, 0.01) * np.where(i % 10 == 0, 8, 1)},
    ),
    Case(
        "checkpoints every 250 steps",
        Jitter,
        lambda i, r: {"sys.step_time": noisy(r, 0.5, 0.02) * np.where(i % 250 == 0, 30, 1)},
    ),
    Case(
        "slow steps at random",
        Jitter,
        lambda i, r: {"sys.step_time": noisy(r, 0.5, 0.02) * np.where(r.random(N) < 0.1, 2, 1)},
    ),
    Case(
        "step times that are slower but steady",
        Jitter,
        lambda i, r: {"sys.step_time": noisy(r, late(i, 0.5, 2.0), 0.02)},
    ),
    Case(
        "warm cards",
        Devices,
        lambda i, r: {
            "device.temperature{device=3}": 84 + r.normal(0, 2, N),
            "device.clock{device=3}": 1900 + r.normal(0, 50, N),
        },
    ),
    Case("an error count that stands", Devices, lambda i, r: {"device.errors{device=1}": np.full(N, 7.0)}),
    Case(
        "memory that comes and goes",
        Memory,
        lambda i, r: {"sys.peak_memory": (50 + 5 * (np.floor(i / 60) % 2)) * GIB},
        (),
        {"gpu_memory_bytes": 80 * GIB, "total_steps": 50_000.0},
    ),
    Case(
        "memory that jumps once",
        Memory,
        lambda i, r: {"sys.peak_memory": late(i, 50, 60) * GIB},
        (),
        {"gpu_memory_bytes": 80 * GIB, "total_steps": 50_000.0},
    ),
    Case(
        "reserved memory from the start",
        Memory,
        lambda i, r: {"sys.peak_memory": noisy(r, 40 * GIB, 0.001), "sys.fragmentation": noisy(r, 30 * GIB, 0.02)},
        (),
        {"gpu_memory_bytes": 80 * GIB},
    ),
    Case(
        "fragmentation that grows by less than a tenth of the card",
        Memory,
        lambda i, r: {
            "sys.peak_memory": noisy(r, 40 * GIB, 0.001),
            "sys.fragmentation": noisy(r, ramp(i, 2, 8.5) * GIB, 0.1),
        },
        (),
        {"gpu_memory_bytes": 80 * GIB},
    ),
    Case("balanced experts", MoeBalance, experts),
    Case("an expert somewhat above", MoeBalance, lambda i, r: experts(i, r, hot=1.7)),
    Case(
        "noisy samples",
        Samples,
        lambda i, r: {"sample.repetition": share(r, 0.2, 0.08), "sample.length": noisy(r, 100.0, 0.8)},
    ),
    Case("a noisy task", EvalTasks, lambda i, r: {"eval.greedy{task=aime}": share(r, 0.3, 0.08)}),
    Case("a task at chance", EvalTasks, lambda i, r: {"eval.greedy{task=mmlu}": share(r, 0.25, 0.004)}),
]
