"""Figures of published runs that preflight holds a plan against, each with where it is from."""

from __future__ import annotations

import math

# GPU-hours to one unplanned interruption: OPT-175B (Zhang et al. 2022: some 105 restarts in 60 days on 992 A100) and
# Llama 3 405B (Grattafiori et al. 2024, table 5: 419 unexpected ones in 54 days on 16,384 H100).
GPU_HOURS_PER_FAILURE = (13_600.0, 50_700.0)
FAILURE_SOURCE = "OPT-175B and Llama 3 405B: one interruption in 14,000 to 51,000 GPU-hours"
# Peak learning rates with Adam of models that were trained further: lowest, highest, where from.
TUNING_LR: dict[str, tuple[float, float, str]] = {
    "all weights": (5e-6, 5e-5, "Tulu 3, Llama 2-Chat, Zephyr"),
    "an adapter": (5e-5, 4e-4, "LoRA: Hu et al. 2021; QLoRA: Dettmers et al. 2023"),
}
# bf16 peak FLOP/s of a card without sparsity, from the makers' data sheets.
PEAK_FLOPS: dict[str, float] = {
    "h200": 989e12, "h100": 989e12, "h800": 989e12, "gh200": 989e12, "b200": 2250e12, "a100": 312e12, "a800": 312e12,
    "mi300x": 1307e12, "mi250": 383e12, "v100": 125e12, "l40": 181e12, "4090": 165e12, "3090": 71e12, "a6000": 155e12,
}  # fmt: skip
MFU = (0.25, 0.5)  # of published dense runs: PaLM 46%, Llama 3 38-43%, many clusters 25-35%


def peak_flops(gpu: str) -> float | None:
    """The card's bf16 peak by its name; None for one that is not known.

    >>> peak_flops("NVIDIA A100-SXM4-80GB"), peak_flops("abacus")
    (312000000000000.0, None)
    """
    name = gpu.lower()
    return next((flops for card, flops in PEAK_FLOPS.items() if card in name), None)


def step_time_range(parameters: float, tokens: float, world: float, flops: float) -> tuple[float, float]:
    """Seconds a step: 6 N D / (cards x peak x MFU) (METRICS.md, D9) at the MFU of published runs."""
    work = 6.0 * parameters * tokens / (world * flops)
    return work / MFU[1], work / MFU[0]


def failures_apart_s(world: float) -> tuple[float, float]:
    """Seconds between interruptions of a job of `world` cards."""
    low, high = GPU_HOURS_PER_FAILURE
    return low / world * 3600.0, high / world * 3600.0


def best_interval_s(cost_s: float, apart_s: float) -> float:
    """Young's interval between checkpoints that cost `cost_s` each (Young 1974): sqrt(2 C M)."""
    return math.sqrt(2.0 * cost_s * apart_s)
