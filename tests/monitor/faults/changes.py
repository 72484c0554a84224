"""Runs in which everything moves because something was changed on purpose: batch, context, epoch, learning rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.monitor.faults.shape import AT, Columns, N, Plan

CARD = {"event": "start", "device_name": "NVIDIA A100-SXM4-80GB", "max_steps": 20_000, "seed": 1}
Change = Callable[[Plan], Columns]


def _everything(plan: Plan, at: int = AT) -> Columns:
    """Loss, gradient norm, speed, waits, memory, ranks, sources, experts and scales on another level from `at` on."""

    def moved(before: float, after: float, spread: float = 0.02) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return plan.noisy(plan.late(before, after, at), spread)

    loss = plan.loss() * plan.late(1.0, 1.12, at)
    time = plan.noisy(plan.late(0.8, 1.7, at), 0.02)
    time = time * np.exp(plan.rng.normal(0, 1, plan.n) * plan.late(0.0, 0.07, at))
    columns = plan.base(loss=loss, grad=moved(0.5, 1.15, 0.1), time=time)
    columns |= {
        "perf/tokens_per_second": 4e5 / time,
        "perf/comm_wait_s": time * plan.share(plan.late(0.1, 0.35, at)),
        "perf/data_wait_s": time * plan.share(plan.late(0.02, 0.2, at)),
        "perf/max_memory_allocated_gib": moved(40, 66, 0.001),
        "moe/maxvio": moved(0.4, 0.6),
        "update_ratio": moved(1e-3, 1.6e-3, 0.1),
    }
    for rank in range(3):
        columns[f"rank{rank}/loss"] = loss * plan.noisy(1.0, 0.01)
        columns[f"rank{rank}/compute_seconds"] = 0.8 * time * plan.noisy(1.0, 0.01)
    for source in ("web", "code"):
        columns[f"loss/source/{source}"] = loss * plan.noisy(1.0, 0.01)
    return columns


def batch(plan: Plan) -> Columns:
    """The global batch doubles at once."""
    return _everything(plan) | {"global_batch_size": plan.late(256, 512)}


def ramp(plan: Plan) -> Columns:
    """The global batch grows in twelve steps, and memory, step time and gradient norm with it."""
    size = 64 + 32 * np.clip(np.floor((plan.i - 300) / 60), 0, 12)
    time = plan.noisy(0.2 + 0.6 * size / 256, 0.02)
    return plan.base(
        loss=plan.loss() * (size / 64) ** 0.05, grad=plan.noisy(0.5 * (size / 64) ** -0.5, 0.1), time=time
    ) | {
        "global_batch_size": size,
        "perf/max_memory_allocated_gib": plan.noisy(20 + 45 * size / 448, 0.0005),
        "perf/tokens_per_second": 2048 * size / time,
        "perf/comm_wait_s": plan.noisy(0.15, 0.05),
    }


def context(plan: Plan) -> Columns:
    """Sequences are twice as long."""
    return _everything(plan) | {"seq_length": plan.late(4096, 8192)}


def epoch(plan: Plan) -> Columns:
    """A second epoch begins, on data that is read from elsewhere."""
    return _everything(plan, 700) | {"epoch": np.floor(plan.i / 700)}


def fraction_of_epoch(plan: Plan) -> Columns:
    """The same, with the epoch told in fractions."""
    return _everything(plan, 700) | {"epoch": plan.i / 700}


def decayed(plan: Plan) -> Columns:
    """The learning rate goes down to a tenth at once: the loss falls, norms and clip rate rise."""
    lr = 4e-4 * np.minimum((plan.i + 1) / 120, 1.0) * plan.late(1.0, 0.1, 300)
    loss = plan.loss() * plan.late(1.0, 0.93, 300)
    return plan.base(loss=loss, lr=lr, grad=plan.noisy(plan.late(0.7, 1.3, 300), 0.12)) | {
        "update_ratio": plan.noisy(2.5 * lr, 0.1)
    }


def cosine(plan: Plan) -> Columns:
    """The learning rate follows a cosine down to a hundredth; the gradient norm doubles meanwhile."""
    share = 0.505 + 0.495 * np.cos(np.pi * np.minimum(plan.i / N, 1.0))
    lr = 4e-4 * np.minimum((plan.i + 1) / 120, 1.0) * share
    return plan.base(lr=lr, grad=plan.noisy(0.7 * (2 - share), 0.12)) | {"update_ratio": plan.noisy(2.5 * lr, 0.1)}


CHANGES: tuple[tuple[str, Change, str], ...] = (
    ("the batch doubles", batch, "batch_ramp"),
    ("the batch is ramped", ramp, "batch_ramp"),
    ("the context doubles", context, "longer_context"),
    ("an epoch begins", epoch, "epoch"),
    ("an epoch begins, told in fractions", fraction_of_epoch, "epoch"),
    ("the learning rate steps down", decayed, "lr_step"),
    ("the learning rate follows a cosine", cosine, ""),
)
