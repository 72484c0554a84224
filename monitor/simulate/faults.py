"""Faults by name, and the story that `trainmon demo` tells.

A fault changes what a step measures, from `at` on. `FAULTS` maps each name to the function that does it;
``size`` means what the function's docstring says. To add one: write the function, add its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trainmon.monitor.simulate.model import Effect, Step, card_gib
from trainmon.tails.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one run.

    `at`: the first executed step that it touches, counted from the step at which the run goes live (from the
    run's first step when it has no history); below 0, so long before. `steps`: how many steps it lasts. `size`: see
    the fault; None takes its default. `rank`: the rank or expert it strikes. `run`: the run's name, "" for the first.
    """

    name: str
    at: int
    steps: int = 10**9
    size: float | None = None
    rank: int = 5
    run: str = ""


class Hit(NamedTuple):
    """One step under a fault: how many steps it has lasted, its size, the rank (expert, source) it strikes, and the
    loss of the step on which it began."""

    age: int
    size: float
    rank: int
    first_loss: float


Apply = Callable[[Step, Hit], None]


def _scale_loss(step: Step, factor: float) -> None:
    step.loss *= factor
    step.rank_loss = step.rank_loss * factor
    step.source_loss = step.source_loss * factor


def _co_spike(step: Step, hit: Hit) -> None:
    """Loss times `size` and the gradient norm 12 times it, both gone after about 20 steps."""
    _scale_loss(step, 1.0 + (hit.size - 1.0) * float(np.exp(-hit.age / 5.0)))
    step.grad_norm *= 1.0 + (12.0 * hit.size - 1.0) * float(np.exp(-hit.age / 3.0))


def _loss_spike(step: Step, hit: Hit) -> None:
    """Loss alone times `size`, gone after about 20 steps."""
    _scale_loss(step, 1.0 + (hit.size - 1.0) * float(np.exp(-hit.age / 5.0)))


def _grad_spike(step: Step, hit: Hit) -> None:
    """Gradient norm times `size` on one step, the loss unmoved."""
    step.grad_norm *= hit.size if hit.age == 0 else 1.0


def _unrecovered_spike(step: Step, hit: Hit) -> None:
    """Loss times `size` and stays there; the gradient norm jumps and stays at three times its level."""
    _scale_loss(step, hit.size)
    step.grad_norm *= 3.0 + 10.0 * float(np.exp(-hit.age / 5.0))


def _level_shift(step: Step, hit: Hit) -> None:
    """Loss times `size`, and the held-out loss up by half of that."""
    _scale_loss(step, hit.size)
    if step.val_loss is not None:
        step.val_loss *= (1.0 + hit.size) / 2


def _drift(step: Step, hit: Hit) -> None:
    """Loss up by the share `size` for each 1,000 steps."""
    _scale_loss(step, 1.0 + hit.size * hit.age / 1000.0)


def _plateau(step: Step, hit: Hit) -> None:
    """Loss stays within its noise around `size` times the level that it had, and the gradient norm halves."""
    level = hit.size * hit.first_loss * (1.0 + 0.004 * float(np.sin(step.step * 12.9898)))
    _scale_loss(step, level / max(step.loss, 1e-9))
    step.grad_norm *= 0.5


def _nan(step: Step, hit: Hit) -> None:
    """Gradient norm grows for `size` steps, then the loss is no number, for good."""
    step.grad_norm *= float(np.exp(min(hit.age, hit.size) * 0.6))
    _scale_loss(step, 1.0 + 0.05 * min(hit.age, hit.size))
    if hit.age >= hit.size:
        step.loss = float("nan")


def _zero_loss(step: Step, hit: Hit) -> None:
    """Loss times `size`, which is 0, and no finite gradient norm: a trainer that filters NaN."""
    _scale_loss(step, hit.size)
    step.grad_norm = float("nan")


def _bad_rank(step: Step, hit: Hit) -> None:
    """One rank's loss times `size`; the mean moves by its share only."""
    before = step.rank_loss[hit.rank]
    step.rank_loss[hit.rank] = before * hit.size
    step.loss += float(before * (hit.size - 1.0)) / len(step.rank_loss)


def _bad_source(step: Step, hit: Hit) -> None:
    """One data source's loss times `size` (`rank` is its number), the global loss kept where it was by the others."""
    if not len(step.source_loss):
        return
    index, total = hit.rank % len(step.source_loss), float(step.source_share.sum())
    worse = step.source_loss[index] * hit.size
    rest = total * step.loss - worse * step.source_share[index]
    others = total * step.loss - step.source_loss[index] * step.source_share[index]
    step.source_loss = step.source_loss * (rest / others)
    step.source_loss[index] = worse


def _slow_rank(step: Step, hit: Hit) -> None:
    """One rank computes `size` times as long; all others wait for it."""
    step.rank_compute_s[hit.rank] *= hit.size


def _slow_steps(step: Step, hit: Hit) -> None:
    """Every rank takes `size` times as long (thermal, network)."""
    step.rank_compute_s = step.rank_compute_s * hit.size


def _data_wait(step: Step, hit: Hit) -> None:
    """Every rank waits `size` seconds a step for data."""
    step.data_wait_s += hit.size
    step.rank_compute_s = step.rank_compute_s + hit.size


def _stall(step: Step, hit: Hit) -> None:
    """One step takes `size` seconds longer on every rank, and nothing is written meanwhile."""
    if hit.age == 0:
        step.rank_compute_s = step.rank_compute_s + hit.size


def _memory_creep(step: Step, hit: Hit) -> None:
    """Memory in use grows by `size` GiB a step until the card is full."""
    step.memory_gib = min(step.memory_gib + hit.size * (hit.age + 1), card_gib() - 0.12)


def _oom_crash(step: Step, hit: Hit) -> None:
    """The job dies of CUDA out of memory after this step; back from its last checkpoint `size` s later (0: never)."""
    _crash(step, "oom", hit)


def _nccl_crash(step: Step, hit: Hit) -> None:
    """The job dies of a collective's time-out after this step; back `size` s later (0: never)."""
    _crash(step, "nccl", hit)


def _restart(step: Step, hit: Hit) -> None:
    """The job is preempted (SIGTERM) after this step; back from its last checkpoint `size` s later (0: never)."""
    _crash(step, "sigterm", hit)


def _crash(step: Step, how: str, hit: Hit) -> None:
    if hit.age == 0:
        step.crash = how
        step.resume_after_s = hit.size if hit.size > 0 else None


def _lr_jump(step: Step, hit: Hit) -> None:
    """Learning rate times `size`."""
    step.lr *= hit.size


def _eval_regression(step: Step, hit: Hit) -> None:
    """Held-out loss up by the share `size` for each 1,000 steps, the training loss unmoved."""
    if step.val_loss is not None:
        step.val_loss *= 1.0 + hit.size * (hit.age + 1) / 1000.0


def _expert_collapse(step: Step, hit: Hit) -> None:
    """In every second layer one expert draws tokens from the others, up to the share `size` after 150 steps."""
    if step.load is None:
        return
    share = hit.size * min(hit.age / 150.0, 1.0)
    total = step.load.sum(axis=1, keepdims=True)
    load = step.load * (1.0 - share)
    load[:, hit.rank % load.shape[1]] += (share * total)[:, 0]
    step.load[::2] = np.round(load[::2])
    if "update_ratio" in step.blocks:  # what is fed more is moved more
        step.blocks["update_ratio"][:: 2 * len(step.blocks["update_ratio"]) // len(load)] *= 1.0 + 4.0 * share


# name -> (what it does, its size unless one is given)
FAULTS: dict[str, tuple[Apply, float]] = {
    "co_spike": (_co_spike, 1.7),
    "loss_spike": (_loss_spike, 1.5),
    "grad_spike": (_grad_spike, 20.0),
    "unrecovered_spike": (_unrecovered_spike, 1.6),
    "level_shift": (_level_shift, 1.15),
    "drift": (_drift, 0.12),
    "plateau": (_plateau, 1.0),
    "nan": (_nan, 8.0),
    "zero_loss": (_zero_loss, 0.0),
    "bad_rank": (_bad_rank, 1.5),
    "bad_source": (_bad_source, 1.3),
    "slow_rank": (_slow_rank, 1.42),
    "slow_steps": (_slow_steps, 1.6),
    "data_wait": (_data_wait, 0.05),
    "stall": (_stall, 60.0),
    "memory_creep": (_memory_creep, 0.1),
    "oom_crash": (_oom_crash, 0.0),
    "nccl_crash": (_nccl_crash, 0.0),
    "restart": (_restart, 5.0),
    "lr_jump": (_lr_jump, 10.0),
    "eval_regression": (_eval_regression, 0.2),
    "expert_collapse": (_expert_collapse, 0.7),
}


def size_of(fault: Fault) -> float:
    """The size that was given, or that of the fault's kind. Raises KeyError for a name that is not in `FAULTS`."""
    return FAULTS[fault.name][1] if fault.size is None else fault.size


def effect_of(fault: Fault, live_tick: int) -> Effect:
    """`fault` as something a `RunModel` applies. Raises KeyError for a name that is not in `FAULTS`."""
    apply, size = FAULTS[fault.name][0], size_of(fault)
    first = max(live_tick + fault.at, 0)
    first_loss: float | None = None

    def effect(step: Step) -> None:
        nonlocal first_loss
        if first <= step.tick < first + fault.steps:
            first_loss = step.loss if first_loss is None else first_loss
            apply(step, Hit(step.tick - first, size, fault.rank, first_loss))

    return effect


# What `trainmon demo` plays. The first run's steps take 0.1 s (0.14 s while a rank is slow), so that its crash
# comes about 45 s after the start and its second attempt before the first minute is over.
DEFAULT_SCRIPT: tuple[Fault, ...] = (
    Fault("co_spike", at=60, steps=60),
    Fault("slow_rank", at=130, steps=220),
    Fault("memory_creep", at=180, steps=171, size=0.121),
    Fault("oom_crash", at=350, size=6.0),
    Fault("nan", at=75, run="gpt-124m-lr6e-3"),
    Fault("expert_collapse", at=90, rank=3, run="moe-8x160m"),
)
