"""Facts of the run by the names that configurations and records give them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from trainmon.tails.card_memory import card_bytes
from trainmon.tails.fact_names import FACT_NAMES, PRECISIONS, TEXT_FACTS
from trainmon.tails.lazy_pattern import lazy

_FACT_OF = {name: (fact, order) for fact, names in FACT_NAMES.items() for order, name in enumerate(names)}
# In a configuration these stand for the length of the run; in a record they may be anything.
_FACT_OF_CONFIG_ONLY = {"steps": ("total_steps", 90), "iterations": ("total_steps", 91), "iters": ("total_steps", 92)}
# A configuration's memory of a card is what the card has; a record's is what is used of it.
_FACT_OF_CONFIG_ONLY |= {
    f"{card}{unit}": ("gpu_memory_bytes", 93)
    for card in ("gpu_memory", "gpu_mem", "vram", "gpu_vram", "hbm")
    for unit in ("", "_gb", "_gib", "_mb", "_mib")
}
# Names that, repeated in every metric record, tell something fixed about the run.
_CONSTANT_FACTS = frozenset(
    (
        *("total_steps", "batch_size", "seq_length", "tokens_per_batch", "world_size", "parameters"),
        *("gpu_memory_bytes", "max_response_length"),
    )
)
_DEEPSPEED = frozenset(("train_micro_batch_size_per_gpu", "zero_optimization", "zero_allow_untested_optimizer"))
_CAMEL = lazy(r"(?<=[a-z0-9])(?=[A-Z])")
_TEXT_LIMIT = 120


def _normal(key: str) -> str:
    last = re.split(r"[/.]", key[:200])[-1]
    return _CAMEL.sub("_", last).replace("-", "_").replace(" ", "_").strip("_").lower()


@lru_cache(maxsize=16384)
def fact_of_constant(key: str) -> str | None:
    """The fact that a top-level `key` of metric records stands for when its value stays the same.

    >>> fact_of_constant("max_steps"), fact_of_constant("lr")
    ('total_steps', None)
    """
    if "/" in key:
        return None
    fact = _FACT_OF.get(_normal(key))
    return fact[0] if fact is not None and fact[0] in _CONSTANT_FACTS else None


def is_fact_name(key: str) -> bool:
    """Whether a configuration's `key` tells a fact of the run.

    >>> is_fact_name("optim.learning_rate"), is_fact_name("comment")
    (True, False)
    """
    name = _normal(key)
    return name in _FACT_OF or name in _FACT_OF_CONFIG_ONLY


def fact_value(fact: str, key: str, value: float) -> float:
    """`value`, told under `key`, in the unit of `fact`: bytes of memory, else as it stands.

    >>> fact_value("gpu_memory_bytes", "gpu-memory-total-gib", 80.0) == 80 * 2**30, fact_value("seq_length", "x", 8.0)
    (True, 8.0)
    """
    return card_bytes(_normal(key), value) if fact == "gpu_memory_bytes" else value


def looks_like_config(values: Mapping[str, float | None], texts: Mapping[str, str]) -> bool:
    """Whether a record without a type is a configuration: three or more of its keys are settings' names."""
    return sum(_normal(key) in _FACT_OF for key in (*values, *texts)) >= 3


def config_facts(values: Mapping[str, float | None], texts: Mapping[str, str]) -> Iterator[tuple[str, float | str]]:
    """The known facts of a configuration laid flat, one value each: the surest name, the outermost place.

    >>> dict(config_facts({"args/max_iters": 2000.0, "args/grad_clip": 1.0}, {"args/dtype": "bfloat16"}))
    {'total_steps': 2000.0, 'clip_threshold': 1.0, 'precision': 'bfloat16'}
    >>> dict(config_facts({"hardware/gpu_memory_gb": 80.0}, {})) == {"gpu_memory_bytes": 80 * 2**30}
    True
    """
    best: dict[str, tuple[int, int, float | str]] = {}
    for key, value in (*values.items(), *texts.items()):
        name = _normal(key)
        fact, order = _FACT_OF.get(name) or _FACT_OF_CONFIG_ONLY.get(name) or ("", 0)
        if not fact or value is None or not _fits(fact, value):
            continue
        place = (key.count("/"), order)
        if fact not in best or place < best[fact][:2]:
            best[fact] = (*place, value[:_TEXT_LIMIT] if isinstance(value, str) else fact_value(fact, key, value))
    if "precision" not in best and (switched := _switched_on(texts)):
        best["precision"] = (0, 0, switched)
    if "batch_size" not in best and any(_normal(key) in _DEEPSPEED for key in (*values, *texts)):
        whole = best.get("train_batch_size")  # DeepSpeed's is the global one, whatever others call so
        if whole is not None and any(
            _normal(key) == "train_batch_size" and key.count("/") == whole[0] for key in values
        ):
            best["batch_size"] = whole
    accumulation = best.get("gradient_accumulation_steps")
    for fact, (_, order, value) in best.items():
        if fact == "batch_size" and order == 1 and accumulation is not None and not isinstance(value, str):
            steps = accumulation[2]
            yield fact, value * steps if not isinstance(steps, str) else value
        else:
            yield fact, value


def _switched_on(texts: Mapping[str, str]) -> str:
    """The precision that a switch sets (``bf16: true``, ``bf16: {enabled: true}``); "" when none does."""
    for key, text in texts.items():
        if text.lower() == "true":
            *_, before, last = ("", *(_normal(part) for part in key.split("/")))
            name = before if last == "enabled" else last
            if name in PRECISIONS:
                return name
    return ""


def _fits(fact: str, value: float | str) -> bool:
    if isinstance(value, str):
        return fact in TEXT_FACTS
    if fact in TEXT_FACTS:
        return False
    return math.isfinite(value) and (value > 0 or fact in ("warmup_steps", "best_metric", "seed"))
