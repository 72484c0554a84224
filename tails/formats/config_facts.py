"""Facts of the run by the names that configurations and records give them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

_NAMES: dict[str, tuple[str, ...]] = {
    "total_steps": (
        *("total_steps", "max_steps", "max_iters", "train_iters", "num_train_steps", "total_iterations", "total_iters"),
        *("max_iterations", "num_training_steps", "total_training_steps", "total_train_steps", "max_train_steps"),
        *("num_iterations", "train_steps", "training_steps", "max_iter", "n_iters", "total_optimizer_steps"),
    ),
    "batch_size": (
        "global_batch_size",
        "batch_size",
        "effective_batch_size",
        "global_batch",
        "train_global_batch_size",
    ),
    "seq_length": (
        *("seq_length", "seq_len", "sequence_length", "max_seq_len", "max_seq_length", "max_sequence_length"),
        *("block_size", "context_length", "ctx_len", "seqlen", "encoder_seq_length", "max_length"),
    ),
    "tokens_per_batch": (
        "tokens_per_batch",
        "global_batch_tokens",
        "tokens_per_step",
        "batch_tokens",
        "tokens_per_iter",
    ),
    "parameters": (
        *(
            "num_params",
            "n_params",
            "num_parameters",
            "total_params",
            "total_parameters",
            "model_params",
            "n_parameters",
        ),
        *("param_count", "parameter_count", "parameters"),
    ),
    "active_parameters": ("active_params", "active_parameters", "num_active_params", "activated_params"),
    "clip_threshold": (
        *("grad_clip", "max_grad_norm", "clip_grad", "gradient_clip_norm", "opt_gradient_clip_norm", "clip_grad_norm"),
        *("gradient_clip_val", "grad_clip_norm", "gradient_clipping", "max_norm", "clip_threshold", "gradient_clip"),
    ),
    "peak_lr": ("peak_lr", "max_lr", "learning_rate", "lr", "opt_base_learning_rate", "base_lr", "peak_learning_rate"),
    "warmup_steps": (
        *("warmup_steps", "warmup_iters", "lr_warmup_steps", "num_warmup_steps", "opt_learning_rate_warmup_steps"),
        *("lr_warmup_iters", "warmup"),
    ),
    "precision": ("precision", "mixed_precision", "dtype", "torch_dtype", "mp_dtype"),
    "world_size": ("world_size", "num_gpus", "n_gpus", "ngpus", "num_devices", "n_devices", "total_gpus"),
    "gpu": ("device_name", "gpu_name", "gpu_type", "gpu"),
    "optimizer": ("optimizer", "optim", "opt_name", "optimizer_name", "optimizer_type"),
    "checkpoint_interval": (
        *("save_steps", "save_interval", "checkpoint_interval", "ckpt_interval", "save_every", "checkpoint_every"),
        *("ckpt_every", "save_freq"),
    ),
    "num_experts": ("num_experts", "n_experts", "n_routed_experts", "num_local_experts", "num_moe_experts"),
    "framework": ("framework", "trainer_name"),
    "num_train_epochs": ("num_train_epochs", "num_epochs", "max_epochs"),
    "train_batch_size": ("train_batch_size", "per_device_train_batch_size", "micro_batch_size", "device_batch_size"),
    "gradient_accumulation_steps": (
        "gradient_accumulation_steps",
        "grad_accum_steps",
        "grad_accum",
        "accumulate_grad_batches",
    ),
    "seed": ("seed",),
    "best_metric": ("best_metric",),
    "global_step": ("global_step",),
}
_FACT_OF = {name: (fact, order) for fact, names in _NAMES.items() for order, name in enumerate(names)}
# In a configuration these stand for the length of the run; in a record they may be anything.
_FACT_OF_CONFIG_ONLY = {"steps": ("total_steps", 90), "iterations": ("total_steps", 91), "iters": ("total_steps", 92)}
_TEXT_FACTS = frozenset(("precision", "gpu", "optimizer", "framework"))
# Names that, repeated in every metric record, tell something fixed about the run.
_CONSTANT_FACTS = frozenset(("total_steps", "batch_size", "seq_length", "tokens_per_batch", "world_size", "parameters"))
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
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


def looks_like_config(values: Mapping[str, float | None], texts: Mapping[str, str]) -> bool:
    """Whether a record without a type is a configuration: three or more of its keys are settings' names."""
    return sum(_normal(key) in _FACT_OF for key in (*values, *texts)) >= 3


def config_facts(values: Mapping[str, float | None], texts: Mapping[str, str]) -> Iterator[tuple[str, float | str]]:
    """The known facts of a configuration laid flat, one value each: the surest name, the outermost place.

    >>> dict(config_facts({"args/max_iters": 2000.0, "args/grad_clip": 1.0}, {"args/dtype": "bfloat16"}))
    {'total_steps': 2000.0, 'clip_threshold': 1.0, 'precision': 'bfloat16'}
    """
    best: dict[str, tuple[int, int, float | str]] = {}
    for key, value in (*values.items(), *texts.items()):
        name = _normal(key)
        fact, order = _FACT_OF.get(name) or _FACT_OF_CONFIG_ONLY.get(name) or ("", 0)
        if not fact or value is None or not _fits(fact, value):
            continue
        place = (key.count("/"), order)
        if fact not in best or place < best[fact][:2]:
            best[fact] = (*place, value if not isinstance(value, str) else value[:_TEXT_LIMIT])
    accumulation = best.get("gradient_accumulation_steps")
    for fact, (_, order, value) in best.items():
        if fact == "batch_size" and order == 1 and accumulation is not None and not isinstance(value, str):
            steps = accumulation[2]
            yield fact, value * steps if not isinstance(steps, str) else value
        else:
            yield fact, value


def _fits(fact: str, value: float | str) -> bool:
    if isinstance(value, str):
        return fact in _TEXT_FACTS
    if fact in _TEXT_FACTS:
        return False
    return math.isfinite(value) and (value > 0 or fact in ("warmup_steps", "best_metric", "seed"))
