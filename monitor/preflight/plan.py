"""What a configuration plans, under one name for each thing, with the key that said so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from trainmon.monitor.preflight.flatten import Flat, Value
from trainmon.tails.fact_names import FACT_NAMES
from trainmon.tails.quick_dataclass import dataclass

# Names beside those of tails.fact_names; lower case, the last part of a key, the surest first.
_NAMES: dict[str, tuple[str, ...]] = {
    **{name: FACT_NAMES[name] for name in ("parameters", "active_parameters", "gpu", "num_experts")},
    "world_size": (*FACT_NAMES["world_size"], "num_processes"),
    "total_steps": ("train_iters", *FACT_NAMES["total_steps"], "max_duration", "total_num_steps", "steps"),
    "total_tokens": ("total_tokens", "max_tokens", "train_tokens", "num_tokens", "max_train_tokens"),
    "total_samples": ("train_samples",),
    "epochs": ("num_train_epochs", "num_epochs", "max_epochs", "epochs"),
    "peak_lr": ("peak_lr", "max_lr", "learning_rate", "lr", "base_lr", "peak_learning_rate"),
    "min_lr": ("min_lr", "eta_min", "min_learning_rate", "lr_min"),
    "min_lr_ratio": ("min_lr_ratio", "min_lr_factor", "alpha_f", "lr_min_ratio", "min_lr_rate"),
    "warmup_steps": (*FACT_NAMES["warmup_steps"], "warmup_num_steps", "num_warmup_steps", "t_warmup", "warmup"),
    "warmup_ratio": ("warmup_ratio", "lr_warmup_fraction", "warmup_fraction", "warmup_proportion"),
    "decay_steps": ("lr_decay_iters", "lr_decay_steps", "decay_steps", "lr_decay_iterations"),
    "decay_ratio": ("decay_ratio", "lr_decay_fraction", "warmdown_frac", "warmdown_ratio", "cooldown_frac"),
    "schedule": (
        *("lr_scheduler_type", "lr_decay_style", "decay_type", "lr_schedule", "scheduler", "lr_scheduler"),
        *("scheduler/type", "scheduler/name", "sched/name", "lr_scheduler/name", "lr_scheduler/type"),
    ),
    "decay_lr": ("decay_lr",),
    "batch_size": FACT_NAMES["batch_size"],
    "micro_batch": (*FACT_NAMES["train_batch_size"], "local_batch_size"),
    "accumulation": FACT_NAMES["gradient_accumulation_steps"],
    "tokens_per_batch": FACT_NAMES["tokens_per_batch"],
    "seq_length": FACT_NAMES["seq_length"],
    "clip": (*FACT_NAMES["clip_threshold"], "clipping_threshold"),
    "precision": ("precision", "mixed_precision", "dtype", "torch_dtype", "mixed_precision_param", "param_dtype", "mp"),
    "fp16": ("fp16", "fp16/enabled", "use_fp16"),
    "bf16": ("bf16", "bf16/enabled", "bfloat16", "use_bf16"),
    "loss_scale": ("loss_scale", "initial_loss_scale", "fp16/loss_scale", "initial_scale_power"),
    "checkpoint_interval": (
        *(*FACT_NAMES["checkpoint_interval"], "checkpoint/interval", "every_n_train_steps", "checkpointing_steps"),
    ),
    "saves": ("enable_checkpoint", "enable_checkpointing", "save_strategy", "checkpoint/enable"),
    "saves_per_epoch": ("saves_per_epoch",),
    "evals_per_epoch": ("evals_per_epoch",),
    "eval_strategy": ("eval_strategy", "evaluation_strategy"),
    "eval_interval": (
        "eval_interval",
        "eval_steps",
        "eval_every",
        "val_check_interval",
        "eval_freq",
        "val_interval",
        "steps_per_eval",
    ),
    "log_interval": (
        *("log_interval", "logging_steps", "log_freq", "log_every", "log_every_n_steps", "steps_per_print"),
        "console_log_interval",
    ),
    "optimizer": FACT_NAMES["optimizer"],
    "beta2": ("beta2", "adam_beta2", "betas/1", "b2"),
    "weight_decay": ("weight_decay", "wd"),
    "hidden_size": ("hidden_size", "n_embd", "dim", "d_model", "hidden_dim", "embedding_dim", "model_dim"),
    "num_layers": ("num_layers", "n_layer", "n_layers", "num_hidden_layers", "depth"),
    "vocab_size": ("vocab_size", "padded_vocab_size", "n_vocab"),
    "dead_time_s": (),
    "step_time_s": (),
}
_NODES = ("nnodes", "num_nodes", "nodes")
_PER_NODE = ("nproc_per_node", "gpus_per_node", "ntasks_per_node", "devices")
# A section's plain `interval` or `steps` says nothing without the section.
_EVERY = {"checkpoint": "checkpoint_interval", "eval": "eval_interval", "valid": "eval_interval"}
_IN_SECTION = {"interval": _EVERY, "freq": {"valid": "eval_interval"}}
# Lengths with their unit, as Composer, OLMo and Levanter write them: 100ba, 2e9tok, 1ep, 10m.
_LENGTH = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?) ?(ba|steps?|it|iters?|ep|epochs?|tok|t|s|sec|m|min|h|hr|hours?)", re.I)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
# A model's size in its name: Llama-8B, 1.1b, 124M; not 8x7B, whose size is not 7B.
_SIZE = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,2})?)([bm])(?![a-z0-9])", re.I)
_NAMED = ("flavor", "model_name", "model_flavor")
_FINE_TUNED = {
    "an adapter": ("adapter", "lora_r", "lora_alpha", "lora_rank", "peft_type", "use_peft"),
    "all weights": ("base_model", "model_name_or_path", "pretrained_model_name_or_path"),
}
_NOT_TOTALS = ("eval", "valid", "test", "checkpoint", "profil", "warm", "log", "save")


@dataclass(slots=True)
class Plan:
    """`values`: name -> what is planned; `said`: name -> the key (and file) that said so, or how it was derived.
    `tunes`: of a model that is trained further, ``an adapter`` or ``all weights``; "" for pretraining."""

    values: dict[str, Value] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    flat: Flat = field(default_factory=dict)
    tunes: str = ""

    def number(self, name: str) -> float | None:
        """The number planned for `name`; None where there is none. A switch is no number."""
        value = self.values.get(name)
        return value if isinstance(value, float) else None

    def word(self, name: str) -> str | None:
        """The word planned for `name`, lower case."""
        value = self.values.get(name)
        return value.lower() if isinstance(value, str) else None

    def derive(self, name: str, value: float | None, how: str) -> None:
        """Sets what is not said but follows."""
        if value is not None and value > 0 and name not in self.values:
            self.values[name], self.said[name] = float(value), how


def plan_of(flat: Flat, given: Mapping[str, float | str] | None = None) -> Plan:
    """The plan in a flat configuration; `given`: facts that are known from elsewhere, weaker than it. What a trainer
    does unless it is told comes by `with_defaults`."""
    plan = Plan(flat=flat)
    by_last: dict[str, list[str]] = {}
    for key in flat:
        parts = key.lower().replace("-", "_").replace(".", "/").split("/")
        by_last.setdefault(parts[-1], []).append(key)
        if len(parts) > 1:
            by_last.setdefault("/".join(parts[-2:]), []).append(key)
            section = _IN_SECTION.get(parts[-1], {})
            target = next((name for word, name in section.items() if word in parts[-2]), None)
            if target:
                _set(plan, target, key)
    for name, names in _NAMES.items():
        for candidate in names:
            keys = [key for key in by_last.get(candidate, []) if _may_be(name, key)]
            for key in sorted(keys, key=lambda key: (key.count("/"), key)):
                if not _is_unset(name, flat[key]):
                    _set(plan, name, key)
                    break
    for name, value in (given or {}).items():
        if name == "clip_threshold":
            name = "clip"
        if name in _NAMES and name not in plan.values and not _is_unset(name, value):
            plan.values[name] = float(value) if isinstance(value, (int, float)) else value
            plan.said[name] = "the log"
    _derive(plan, flat, by_last)
    return plan


def with_defaults(plan: Plan, trainer: str, defaults: Mapping[str, Value]) -> None:
    """What `trainer` does where its configuration is silent, so that silence is not taken for "off"."""
    for name, value in defaults.items():
        is_told = name == "warmup_steps" and "warmup_ratio" in plan.values
        if name not in plan.values and not is_told:
            plan.values[name], plan.said[name] = value, f"default of {trainer}"


def _may_be(name: str, key: str) -> bool:
    path = key.lower()
    if name == "total_steps":
        return not any(word in path for word in _NOT_TOTALS)
    if name in ("peak_lr", "batch_size", "seq_length"):
        return not any(word in path for word in ("eval", "valid", "min", "decoupled", "critic"))
    return True


# Trainers write -1 or 0 where these are not set (Hugging Face: max_steps = -1): no run has so many of them.
_ABOVE_ZERO = frozenset(
    (
        *("total_steps", "total_tokens", "total_samples", "epochs", "batch_size", "micro_batch", "accumulation"),
        *("seq_length", "tokens_per_batch", "parameters", "active_parameters", "world_size", "hidden_size"),
        *("num_layers", "log_interval"),
    )
)
_MAY_BE_NEGATIVE = frozenset(("clip", "checkpoint_interval", "eval_interval"))  # off
_MOST = 1e30  # beyond it a number is a slip of the pen


def _is_unset(name: str, value: Value) -> bool:
    """Whether `value` says that `name` is not set.

    >>> _is_unset("total_steps", -1.0), _is_unset("warmup_steps", 0.0), _is_unset("warmup_steps", -1.0)
    (True, False, True)
    """
    if not isinstance(value, float):
        return False
    if not abs(value) < _MOST:
        return True
    return value <= 0 if name in _ABOVE_ZERO else value < 0 and name not in _MAY_BE_NEGATIVE


def _set(plan: Plan, name: str, key: str) -> None:
    value = plan.flat[key]
    if _is_unset(name, value):
        return
    if isinstance(value, str) and (found := _LENGTH.fullmatch(value)) and name in _LENGTHS:
        name, value = _with_unit(name, float(found[1]), found[2].lower())
    elif name == "warmup_steps" and isinstance(value, float) and 0 < value < 1:
        name = "warmup_ratio"  # Levanter has one name for both
    if name not in plan.values:
        plan.values[name], plan.said[name] = value, key


_LENGTHS = ("total_steps", "warmup_steps", "checkpoint_interval", "eval_interval", "log_interval")


def _with_unit(name: str, number: float, unit: str) -> tuple[str, float]:
    """Which setting a length with a unit is, and its number.

    >>> _with_unit("total_steps", 2e9, "tok"), _with_unit("warmup_steps", 100.0, "ba")
    (('total_tokens', 2000000000.0), ('warmup_steps', 100.0))
    >>> _with_unit("checkpoint_interval", 10.0, "m"), _with_unit("total_steps", 3.0, "ep")
    (('checkpoint_s', 600.0), ('epochs', 3.0))
    """
    if unit in ("tok", "t"):
        return {"total_steps": "total_tokens"}.get(name, f"{name}_tokens"), number
    if unit in ("ep", "epoch", "epochs"):
        return {"total_steps": "epochs"}.get(name, f"{name}_epochs"), number
    if unit[0] in _SECONDS and unit not in ("step", "steps"):
        return {"checkpoint_interval": "checkpoint_s"}.get(name, f"{name}_s"), number * _SECONDS[unit[0]]
    return name, number


def _derive(plan: Plan, flat: Flat, by_last: dict[str, list[str]]) -> None:
    def first(names: tuple[str, ...]) -> float | None:
        found = (flat[key] for name in names for key in by_last.get(name, []))
        return next((value for value in found if isinstance(value, float)), None)

    _tell_batches_apart(plan)
    nodes, per_node = first(_NODES), first(_PER_NODE)
    if nodes and per_node:
        plan.derive("world_size", nodes * per_node, "nodes x processes a node")
    micro, accumulation, world = (plan.number(name) for name in ("micro_batch", "accumulation", "world_size"))
    if micro and world and "batch_size" not in plan.values:
        plan.derive("batch_size", micro * (accumulation or 1.0) * world, "micro-batch x accumulation x world size")
    if accumulation and not micro and plan.said.get("batch_size", "").rpartition("/")[2] == "batch_size":
        # nanoGPT and its kin: `batch_size` is the micro-batch, and accumulation counts over all cards.
        plan.values["batch_size"] = (plan.number("batch_size") or 0.0) * accumulation
        plan.said["batch_size"] = "batch_size x accumulation"
    batch, length, tokens = (plan.number(name) for name in ("batch_size", "seq_length", "tokens_per_batch"))
    if batch and length:
        plan.derive("tokens_per_batch", batch * length, "batch x sequence length")
        tokens = plan.number("tokens_per_batch")
    if tokens and (total := plan.number("total_tokens")):
        plan.derive("total_steps", total / tokens, "tokens / tokens a batch")
    if batch and (samples := plan.number("total_samples")):
        plan.derive("total_steps", samples / batch, "samples / batch")
    steps = plan.number("total_steps")
    if steps and tokens:
        plan.derive("total_tokens", steps * tokens, "steps x tokens a batch")
    if plan.number("warmup_ratio") and plan.number("warmup_steps") == 0:
        del plan.values["warmup_steps"], plan.said["warmup_steps"]  # Hugging Face: the share counts where no steps are
    if steps and (ratio := plan.number("warmup_ratio")):
        plan.derive("warmup_steps", ratio * steps, "warm-up share x steps")
    if (peak := plan.number("peak_lr")) and (ratio := plan.number("min_lr_ratio")) is not None:
        plan.derive("min_lr", ratio * peak, "share x peak")
    hidden, layers = plan.number("hidden_size"), plan.number("num_layers")
    if hidden and layers and not plan.number("num_experts"):
        vocabulary = plan.number("vocab_size") or 0.0
        # 12 L d^2 of attention and feed-forward weights, and the embedding (Kaplan et al. 2020, table 1).
        how = "12 x layers x width^2" + (" + embedding" if vocabulary else ", without embedding")
        plan.derive("parameters", 12 * layers * hidden**2 + vocabulary * hidden, how)
    # A model that is tuned further is not held against recipes of pretraining.
    plan.tunes = next((kind for kind, names in _FINE_TUNED.items() if any(name in by_last for name in names)), "")
    if not plan.tunes:
        names = (flat[key] for name in _NAMED for key in by_last.get(name, []))
        sizes = (_SIZE.search(name) for name in names if isinstance(name, str))
        found = next((size for size in sizes if size), None)
        if found:
            plan.derive("parameters", float(found[1]) * (1e9 if found[2] in "bB" else 1e6), "the model's name")


def _tell_batches_apart(plan: Plan) -> None:
    """DeepSpeed and Levanter call the whole batch `train_batch_size`, which others call that of one card."""
    last = plan.said.get("micro_batch", "").lower().rpartition("/")[2]
    whole = [key for key in plan.flat if key.lower().rpartition("/")[2] == "train_batch_size"]
    if not whole or "batch_size" in plan.values or (last == "train_batch_size" and plan.number("accumulation")):
        return
    if last == "train_batch_size":
        del plan.values["micro_batch"], plan.said["micro_batch"]
    plan.values["batch_size"], plan.said["batch_size"] = plan.flat[whole[0]], whole[0]
