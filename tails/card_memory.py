"""The memory of one card, by the names that logs and configurations give it."""

from __future__ import annotations

import math
from typing import Final

_PLAIN: Final = (
    *(
        "gpu_total_memory",
        "gpu_memory_total",
        "total_gpu_memory",
        "gpu_memory_capacity",
        "gpu_capacity",
        "gpu_mem_total",
    ),
    *("cuda_total_memory", "cuda_memory_total", "total_cuda_memory", "cuda_memory_capacity", "cuda_mem_total"),
    *("device_total_memory", "device_memory_total", "total_device_memory", "device_memory_capacity", "device_capacity"),
    *("device_mem_total", "vram_total", "total_vram", "vram_capacity", "gpu_vram_total", "hbm_capacity", "hbm_total"),
)
_UNITS: Final = {"bytes": 1.0, "b": 1.0, "mb": 1e6, "mib": 2.0**20, "gb": 1e9, "gib": 2.0**30}
_SCALES: Final = {f"{name}_{unit}": scale for name in _PLAIN for unit, scale in _UNITS.items()}
NAMES: Final = ("gpu_memory_bytes", *_SCALES, *_PLAIN)  # the surest first
_LEAST_BYTES, _LEAST_MIB = 1e7, 1000.0  # without a unit: a card of 10 million GiB or of less than a GiB is none


def card_bytes(name: str, value: float) -> float:
    """`value`, that `name` (one of `NAMES`) tells, in bytes. Without a unit: bytes, MiB or GiB, by its size.

    The decimal GB of a name is a decimal one, as that of the used memory beside it (monitor/mapping.py).

    >>> card_bytes("gpu_capacity_gb", 80.0), card_bytes("gpu_total_memory", 40960.0) == 40 * 2**30
    (80000000000.0, True)
    """
    if name in _SCALES or name == "gpu_memory_bytes":
        return value * _SCALES.get(name, 1.0)
    if not math.isfinite(value) or value >= _LEAST_BYTES:
        return value
    return value * (2.0**20 if value >= _LEAST_MIB else 2.0**30)
