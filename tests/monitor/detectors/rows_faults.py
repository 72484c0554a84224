"""A fault of each row of the metric table beyond loss, gradient norm and speed."""

from __future__ import annotations

import numpy as np

from tests.monitor.detectors.rows_shape import (
    AT,
    GIB,
    Case,
    N,
    beat,
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

FAULTS = [
    Case(
        "one exploding element", GradElements, lambda i, r: element(i, r, 100.0, 1.0), ("element",), say=("mean flat",)
    ),
    Case(
        "one exploding element beside the norm alone",
        GradElements,
        lambda i, r: {k: v for k, v in element(i, r, 100.0, 1.0).items() if k != "grad.abs_mean"},
        ("element",),
    ),
    Case(
        "the gradient vanishes",
        GradDead,
        lambda i, r: {"grad.norm": noisy(r, 0.4) * late(i, 1.0, 0.0)},
        ("dead_gradient",),
    ),
    Case(
        "one part's gradient vanishes",
        GradDead,
        lambda i, r: {
            "grad.norm": noisy(r, 0.4),
            "grad.rank_norm{part=vision}": noisy(r, 0.1) * late(i, 1.0, 0.0),
            "grad.rank_norm{part=text}": noisy(r, 0.4),
        },
        ("dead_gradient",),
        say=("vision",),
    ),
    Case(
        "more zero gradients",
        GradDead,
        lambda i, r: {
            "grad.zero_fraction{part=embed}": share(r, 0.9, 0.01),
            "grad.zero_fraction{part=layer3}": share(r, late(i, 0.05, 0.6)),
        },
        ("zero_gradients",),
        say=("layer3",),
    ),
    Case(
        "dead neurons in one layer",
        DeadUnits,
        lambda i, r: {
            f"tensor.dead_fraction{{layer={n}}}": share(r, late(i, 0.02, 0.5) if n == 2 else 0.02) for n in range(4)
        },
        ("dead_units",),
        say=("layer 2",),
    ),
    Case(
        "neurons that die slowly",
        DeadUnits,
        lambda i, r: {"tensor.dead_fraction{layer=0}": share(r, 0.02 + 0.8 * i / N, 0.005)},
        ("dead_units",),
        first=720,
        slack=40,
    ),
    Case(
        "an update ratio goes to zero",
        UpdateRatio,
        lambda i, r: {
            "optim.lr": lr(i),
            "update.ratio{layer=0}": noisy(r, 3.0 * lr(i)),
            "update.ratio{layer=1}": noisy(r, 3.0 * lr(i)) * late(i, 1.0, 0.0),
        },
        ("update_ratio",),
        say=("layer 1", "nothing"),
    ),
    Case(
        "an update ratio jumps",
        UpdateRatio,
        lambda i, r: {"optim.lr": lr(i), "update.ratio{layer=1}": noisy(r, 3.0 * lr(i)) * late(i, 1.0, 40.0)},
        ("update_ratio",),
    ),
    Case(
        "an update ratio without a learning rate",
        UpdateRatio,
        lambda i, r: {"update.ratio": noisy(r, 1e-3) * late(i, 1.0, 1e-3)},
        ("update_ratio",),
    ),
    Case(
        "AbsMax jumps",
        AbsMax,
        lambda i, r: {"tensor.abs_max{site=output}": noisy(r, 30 * late(i, 1.0, 15.0))},
        ("scale",),
    ),
    Case(
        "RMS falls to nothing",
        AbsMax,
        lambda i, r: {"tensor.rms{layer=3}": noisy(r, 1.0) * late(i, 1.0, 0.0)},
        ("scale",),
    ),
    Case(
        "RMS drifts by a little each time",
        AbsMax,
        lambda i, r: {"tensor.rms{layer=3}": noisy(r, ramp(i, 1.0, 1000.0), 0.05)},
        ("scale_drift",),
        first=910,
        slack=40,
        say=("drifted",),
    ),
    Case("heavy tails", AbsMax, lambda i, r: {"tensor.kurtosis{layer=1}": noisy(r, late(i, 3.5, 80.0))}, ("scale",)),
    Case(
        "a branch that dominates",
        ResidualStream,
        lambda i, r: {"residual.branch_scale{layer=4}": noisy(r, late(i, 0.3, 6.0))},
        ("branch",),
    ),
    Case(
        "a layer that stopped changing the stream",
        ResidualStream,
        lambda i, r: {
            f"residual.block_importance{{layer={n}}}": noisy(r, late(i, 0.2, 0.004) if n == 7 else 0.2) for n in (6, 7)
        },
        ("idle_layer",),
        say=("layer 7",),
    ),
    Case(
        "updates lost to rounding",
        ResidualStream,
        lambda i, r: {"residual.bf16_noop{layer=1}": share(r, late(i, 0.1, 0.6))},
        ("lost_updates",),
    ),
    Case(
        "gates that close",
        ResidualStream,
        lambda i, r: {"residual.gate_saturation{layer=1}": share(r, late(i, 0.2, 0.8))},
        ("closed_gates",),
    ),
    Case(
        "a source runs dry",
        Modality,
        lambda i, r: {
            "source.token_share{source=code}": share(r, late(i, 0.2, 0.0), 0.01),
            "source.token_share{source=web}": share(r, late(i, 0.8, 1.0), 0.01),
        },
        ("mix_gone",),
        say=("code",),
    ),
    Case(
        "media embeddings far too large",
        Modality,
        lambda i, r: {"modality.scale_ratio": noisy(r, late(i, 1.1, 40.0))},
        ("media_scale",),
    ),
    Case(
        "an encoder that stopped learning",
        Modality,
        lambda i, r: {"modality.encoder_grad_share": noisy(r, late(i, 0.2, 1e-4))},
        ("encoder_stopped",),
    ),
    Case(
        "communication takes more of the step",
        Waits,
        lambda i, r: {"sys.step_time": noisy(r, late(i, 1.0, 1.4), 0.02), "sys.comm_wait": noisy(r, late(i, 0.1, 0.5))},
        ("wait",),
        say=("waiting for collectives",),
    ),
    Case(
        "data takes more of the step",
        Waits,
        lambda i, r: {
            "sys.step_time": noisy(r, late(i, 1.0, 1.5), 0.02),
            "sys.data_wait": noisy(r, late(i, 0.01, 0.5)),
        },
        ("wait",),
        say=("waiting for data",),
    ),
    Case(
        "every 8th step is slow",
        Jitter,
        lambda i, r: {"sys.step_time": beat(i, r, 8, 4.0)},
        ("rhythm",),
        say=("slow step every",),
    ),
    Case(
        "step times scatter",
        Jitter,
        lambda i, r: {"sys.step_time": 0.5 * np.exp(r.normal(0, 1, N) * late(i, 0.01, 0.15))},
        ("scatter",),
    ),
    Case(
        "heat",
        Devices,
        lambda i, r: {"device.temperature{device=3}": late(i, 70, 93) + r.normal(0, 1, N)},
        ("heat",),
        say=("3",),
    ),
    Case(
        "a throttled clock",
        Devices,
        lambda i, r: {"device.clock{device=1}": late(i, 1980, 1200) + r.normal(0, 5, N)},
        ("throttled",),
    ),
    Case("new errors", Devices, lambda i, r: {"device.errors{device=1}": late(i, 2, 5)}, ("device_errors",)),
    Case(
        "host memory",
        Devices,
        lambda i, r: {"host.memory_share": share(r, late(i, 0.5, 0.98), 0.002)},
        ("host_memory",),
    ),
    Case(
        "memory creeps",
        Memory,
        lambda i, r: {"sys.peak_memory": (50 + 0.015 * np.maximum(i - AT + 400, 0)) * GIB + r.normal(0, 1e7, N)},
        ("memory_creep",),
        {"gpu_memory_bytes": 80 * GIB, "total_steps": 50_000.0},
        first=401,
        slack=310,
        say=("out of memory in about",),
    ),
    Case(
        "memory creeps on a card known by its name",
        Memory,
        lambda i, r: {"sys.peak_memory": (50 + 0.015 * np.maximum(i - AT + 400, 0)) * GIB + r.normal(0, 1e7, N)},
        ("memory_creep",),
        {"gpu": "NVIDIA A100-SXM4-80GB", "total_steps": 50_000.0},
        first=401,
        slack=310,
    ),
    Case(
        "memory that creeps by a printed digit now and then",
        Memory,
        lambda i, r: {"sys.peak_memory": np.round(50 + 0.005 * np.maximum(i - AT + 400, 0), 1) * GIB},
        ("memory_creep",),
        {"gpu_memory_bytes": 80 * GIB, "total_steps": 50_000.0},
        first=401,
        slack=330,
    ),
    Case(
        "fragmentation",
        Memory,
        lambda i, r: {
            "sys.peak_memory": noisy(r, 40 * GIB, 0.001),
            "sys.fragmentation": noisy(r, late(i, 2, 20) * GIB, 0.02),
        },
        ("fragmentation",),
        {"gpu_memory_bytes": 80 * GIB},
        say=("reserved and unused",),
    ),
    Case(
        "fragmentation that creeps",
        Memory,
        lambda i, r: {
            "sys.peak_memory": noisy(r, 40 * GIB, 0.001),
            "sys.fragmentation": noisy(r, ramp(i, 2, 20) * GIB, 0.02),
        },
        ("fragmentation",),
        {"gpu_memory_bytes": 80 * GIB},
        first=895,
        slack=60,
        say=("reserved and unused",),
    ),
    Case(
        "one hot expert",
        MoeBalance,
        lambda i, r: experts(i, r, hot=4.0),
        ("hot_expert",),
        say=("expert 5 of layer 1",),
    ),
    Case(
        "one dead expert", MoeBalance, lambda i, r: experts(i, r, dead=(3,)), ("dead_experts",), say=("layer 1", "(3)")
    ),
    Case(
        "router entropy falls while MaxVio is still flat",
        MoeBalance,
        lambda i, r: {
            "moe.entropy{layer=2}": share(r, late(i, 0.95, 0.75), 0.01),
            "moe.maxvio{layer=2}": noisy(r, 0.3),
        },
        ("entropy",),
        say=("layer 2",),
    ),
    Case("empty output", Samples, lambda i, r: {"sample.empty": share(r, late(i, 0.0, 0.9))}, ("empty_output",)),
    Case("output shrinks", Samples, lambda i, r: {"sample.length": noisy(r, late(i, 200, 2))}, ("empty_output",)),
    Case("output repeats", Samples, lambda i, r: {"sample.repetition": share(r, late(i, 0.1, 0.8))}, ("repetition",)),
    Case("few distinct words", Samples, lambda i, r: {"sample.distinct": share(r, late(i, 0.7, 0.1))}, ("repetition",)),
    Case("gibberish", Samples, lambda i, r: {"sample.gibberish": share(r, late(i, 0.02, 0.8))}, ("gibberish",)),
    Case(
        "a task regresses",
        EvalTasks,
        lambda i, r: {"eval.greedy{task=gsm8k}": share(r, late(i, 0.6, 0.3))},
        ("task_drop",),
    ),
    Case(
        "media gain is lost", EvalTasks, lambda i, r: {"eval.media_gain": share(r, late(i, 0.3, 0.0))}, ("task_drop",)
    ),
    Case(
        "averaged weights get worse",
        EvalTasks,
        lambda i, r: {"eval.averaged_weights": noisy(r, late(i, 2.5, 3.5), 0.01)},
        ("task_drop",),
    ),
]
