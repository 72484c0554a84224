"""The names by which logs and configurations call what is fixed about a run: one table for text and for records."""

from __future__ import annotations

from trainmon.tails.card_memory import NAMES as _CARD_MEMORY

# fact -> its names, lower case, blanks and dashes as underscores, the surest first.
FACT_NAMES: dict[str, tuple[str, ...]] = {
    "total_steps": (
        *("total_steps", "max_steps", "max_iters", "train_iters", "num_train_steps", "total_iterations", "total_iters"),
        *("max_iterations", "num_training_steps", "total_training_steps", "total_train_steps", "max_train_steps"),
        *("num_iterations", "train_steps", "training_steps", "max_iter", "n_iters", "total_optimizer_steps"),
        *("total_optimization_steps", "total_num_steps", "max_update", "max_updates", "num_update_steps"),
    ),
    "batch_size": (
        *("global_batch_size", "batch_size", "effective_batch_size", "global_batch", "train_global_batch_size"),
        *("total_train_batch_size", "global_train_batch_size"),
    ),
    "seq_length": (
        *("seq_length", "seq_len", "sequence_length", "max_seq_len", "max_seq_length", "max_sequence_length"),
        *("block_size", "context_length", "ctx_len", "seqlen", "encoder_seq_length", "max_length", "train_seq_len"),
        *("train_seq_length", "sequence_len", "cutoff_len"),
    ),
    "tokens_per_batch": (
        *("tokens_per_batch", "global_batch_tokens", "tokens_per_step", "batch_tokens", "tokens_per_iter"),
        *("train_batch_tokens", "tokens_per_iteration"),
    ),
    "parameters": (
        *("num_params", "n_params", "num_parameters", "total_params", "total_parameters", "model_params"),
        *("n_parameters", "param_count", "parameter_count", "parameters", "number_of_parameters"),
        *("number_of_trainable_parameters", "total_number_of_parameters"),
    ),
    "active_parameters": ("active_params", "active_parameters", "num_active_params", "activated_params"),
    "clip_threshold": (
        *("grad_clip", "max_grad_norm", "clip_grad", "gradient_clip_norm", "opt_gradient_clip_norm", "clip_grad_norm"),
        *("gradient_clip_val", "grad_clip_norm", "gradient_clipping", "max_norm", "clip_threshold", "gradient_clip"),
        *("clip_norm",),
    ),
    "peak_lr": ("peak_lr", "max_lr", "learning_rate", "lr", "opt_base_learning_rate", "base_lr", "peak_learning_rate"),
    "warmup_steps": (
        *("warmup_steps", "warmup_iters", "lr_warmup_steps", "num_warmup_steps", "opt_learning_rate_warmup_steps"),
        *("lr_warmup_iters", "warmup", "warmup_iterations", "warmup_updates"),
    ),
    "precision": ("precision", "mixed_precision", "dtype", "torch_dtype", "mp_dtype", "params_dtype"),
    "world_size": ("world_size", "num_gpus", "n_gpus", "ngpus", "num_devices", "n_devices", "total_gpus"),
    "gpu": ("device_name", "gpu_name", "gpu_type", "gpu"),
    "gpu_memory_bytes": _CARD_MEMORY,
    "max_response_length": (
        *("max_response_length", "max_completion_length", "max_new_tokens", "max_generation_length"),
        *("max_gen_length", "max_gen_len", "generate_max_len", "rollout_max_response_len"),
    ),
    "optimizer": ("optimizer", "optim", "opt_name", "optimizer_name", "optimizer_type"),
    "checkpoint_interval": (
        *("save_steps", "save_interval", "checkpoint_interval", "ckpt_interval", "save_every", "checkpoint_every"),
        *("ckpt_every", "save_freq"),
    ),
    "num_experts": ("num_experts", "n_experts", "n_routed_experts", "num_local_experts", "num_moe_experts"),
    "framework": ("framework", "trainer_name"),
    "num_layers": ("num_layers",),
    "hidden_size": ("hidden_size",),
    "num_train_epochs": ("num_train_epochs", "num_epochs", "max_epochs"),
    "num_examples": ("num_examples",),
    "logging_steps": ("logging_steps",),
    "train_batch_size": ("train_batch_size", "per_device_train_batch_size", "micro_batch_size", "device_batch_size"),
    "gradient_accumulation_steps": (
        *("gradient_accumulation_steps", "grad_accum_steps", "grad_accum", "accumulate_grad_batches"),
    ),
    "seed": ("seed",),
    "best_metric": ("best_metric",),
    "global_step": ("global_step",),
}
# Facts that are words, not numbers.
TEXT_FACTS = frozenset(("precision", "gpu", "optimizer", "framework"))
# Switches that are called by the precision they turn on.
PRECISIONS = frozenset(("bf16", "fp16", "fp8", "bfloat16", "float16"))
