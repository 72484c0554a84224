"""Whether a rate that a log tells is of one card or of all: trainers print either under the same words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainmon.tails.lazy_pattern import lazy

_CARD = lazy(r"(?:per|/|_|\b)(?:gpu|device|card|npu|chip|core|rank)s?(?:\b|_|/|$)|\btgs\b", re.IGNORECASE)
# These print tokens a second of one card and do not say so.
_UNSAID = {"torchtitan": frozenset(("tps", "throughput(tps)"))}


def is_per_card(raw_key: str, facts: Mapping[str, float | str]) -> bool:
    """Whether the rate under the log's own `raw_key` is one card's, by the key's words or by who printed it.

    >>> is_per_card("tokens_per_sec_per_gpu", {}), is_per_card("tokens/s", {}), is_per_card("tps", {})
    (True, False, False)
    >>> is_per_card("tps", {"framework": "torchtitan"}), is_per_card("throughput/device/tps", {})
    (True, True)
    """
    unsaid = _UNSAID.get(str(facts.get("framework", "")), frozenset())
    return _CARD.search(raw_key) is not None or raw_key in unsaid
