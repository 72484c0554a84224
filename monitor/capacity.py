"""How much memory a card has, from what the log tells of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from trainmon.tails.lazy_pattern import lazy

_SIZE: Final = lazy(r"(?<![\d.])(\d{2,3}) ?gi?b?\b", re.IGNORECASE)
# Cards that come in one size, by their name.
_CARDS: Final = (
    ("h200", 141),
    ("gb200", 186),
    ("b200", 180),
    ("mi300x", 192),
    ("mi325x", 256),
    ("l40s", 48),
    ("h100 nvl", 94),
)
_GIB: Final = 2.0**30


def capacity_bytes(facts: Mapping[str, float | str]) -> float | None:
    """The memory of one card in bytes: as logged, else by the card's name; None where neither tells.

    >>> capacity_bytes({"gpu": "NVIDIA A100-SXM4-80GB"}) == 80 * 2**30, capacity_bytes({"gpu": "NVIDIA H200"}) == 141e9
    (True, True)
    >>> capacity_bytes({"gpu": "NVIDIA H100 80GB HBM3", "gpu_memory_bytes": 8.5e10}), capacity_bytes({"gpu": "V100"})
    (85000000000.0, None)
    """
    told = facts.get("gpu_memory_bytes")
    if isinstance(told, (int, float)) and told > 0:
        return float(told)
    name = str(facts.get("gpu", "")).lower()[:120]
    found = _SIZE.search(name)
    if found:
        return float(found[1]) * _GIB
    plain = name.replace("-", " ")
    return next((size * 1e9 for part, size in _CARDS if part in plain), None)
