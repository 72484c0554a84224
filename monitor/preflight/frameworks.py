"""Which trainer a configuration is of, what it logs of the first screen, and the switches that add the rest."""

from __future__ import annotations

from dataclasses import field

from trainmon.monitor.preflight.flatten import Flat, Value
from trainmon.tails.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Framework:
    """`marks`: keys of which `least` must be there; `logs`: signals of the first screen that it logs by default;
    `switches`: signal -> (key that turns it on, what to write); `defaults`: what it does where it is not told, under
    the names of a plan."""

    name: str
    marks: tuple[str, ...]
    least: int
    logs: tuple[str, ...]
    switches: dict[str, tuple[str, str]]
    defaults: dict[str, Value] = field(default_factory=dict)


# From the trainers' public documentation and sources of 2024-2026.
FRAMEWORKS: tuple[Framework, ...] = (
    Framework(
        "Megatron-LM",
        ("train_iters", "tensor_model_parallel_size", "micro_batch_size", "lr_decay_style", "num_layers", "seq_length"),
        3,
        ("loss.train", "grad.norm", "sys.step_time", "optim.lr", "eval.nll"),
        {
            "sys.tokens_per_second": ("log_throughput", "--log-throughput"),
            "sys.peak_memory": ("log_memory_to_tensorboard", "--log-memory-to-tensorboard with --tensorboard-dir"),
            "grad.zero_fraction": ("log_num_zeros_in_grad", "--log-num-zeros-in-grad"),
            "moe.load": ("moe_per_layer_logging", "--moe-per-layer-logging"),
        },
        {"clip": 1.0, "beta2": 0.999, "log_interval": 100.0},
    ),
    Framework(
        "torchtitan",
        ("metrics/log_freq", "training/steps", "job/dump_folder", "parallelism/data_parallel_shard_degree"),
        2,
        ("loss.train", "grad.norm", "sys.tokens_per_second", "sys.peak_memory", "sys.mfu"),
        {"optim.lr": ("metrics/enable_tensorboard", "enable_tensorboard or enable_wandb under [metrics]")},
        {"clip": 1.0, "precision": "bfloat16", "log_interval": 10.0, "warmup_steps": 200.0},
    ),
    Framework(
        "HF Trainer",
        ("logging_steps", "per_device_train_batch_size", "output_dir", "lr_scheduler_type", "save_steps", "report_to"),
        3,
        ("loss.train", "grad.norm", "optim.lr", "eval.nll"),
        {
            "sys.tokens_per_second": ("include_num_input_tokens_seen", "include_num_input_tokens_seen"),
            "sys.peak_memory": ("", "skip_memory_metrics=False gives it at the end only; log it in a callback"),
        },
        {"clip": 1.0, "beta2": 0.999, "log_interval": 500.0},
    ),
    Framework(
        "OLMo",
        ("max_duration", "device_train_microbatch_size", "speed_monitor/window_size", "global_train_batch_size"),
        2,
        ("loss.train", "grad.norm", "optim.lr", "sys.tokens_per_second", "sys.peak_memory"),
        {"grad.clip_rate": ("gen1_gradient_clipping", "the clipping rate is logged with the gradient norm")},
    ),
    Framework(
        "MosaicML Composer",
        (
            *("max_seq_len", "max_duration", "eval_first", "device_train_microbatch_size", "console_log_interval"),
            "clipping_type",
        ),
        3,
        ("loss.train", "optim.lr", "sys.tokens_per_second", "sys.mfu", "eval.nll"),
        {
            "grad.norm": ("callbacks/optimizer_monitor", "callbacks: optimizer_monitor"),
            "sys.peak_memory": ("callbacks/memory_monitor", "callbacks: memory_monitor: {}"),
        },
    ),
    Framework(
        "NeMo",
        ("trainer/val_check_interval", "trainer/max_steps", "encoder_seq_length", "sched/name", "every_n_train_steps"),
        2,
        ("loss.train", "grad.norm", "optim.lr", "sys.step_time", "eval.nll"),
        {"sys.peak_memory": ("", "log torch.cuda.max_memory_allocated in a callback")},
    ),
    Framework(
        "Levanter",
        ("num_train_steps", "steps_per_eval", "checkpointer/save_interval", "mp", "max_eval_batches"),
        2,
        ("loss.train", "grad.norm", "optim.lr", "sys.step_time", "sys.tokens_per_second", "sys.mfu", "eval.nll"),
        {"sys.peak_memory": ("", "JAX tells it by device.memory_stats(); log it in a hook")},
    ),
    Framework(
        "axolotl",
        ("base_model", "sample_packing", "sequence_len", "evals_per_epoch", "saves_per_epoch", "micro_batch_size"),
        3,
        ("loss.train", "grad.norm", "optim.lr", "eval.nll"),
        {
            "sys.tokens_per_second": ("include_tokens_per_second", "include_tokens_per_second: true"),
            "sys.peak_memory": ("", "it logs memory/max_active in recent releases; else log it in a callback"),
        },
    ),
    Framework(
        "litgpt",
        ("train/log_interval", "train/micro_batch_size", "train/lr_warmup_steps", "train/max_tokens", "eval/interval"),
        2,
        ("loss.train", "sys.step_time", "eval.nll"),
        {"grad.norm": ("", "log the value that clip_gradients returns")},
    ),
    Framework(
        "DeepSpeed",
        ("zero_optimization/stage", "train_micro_batch_size_per_gpu", "gradient_clipping", "steps_per_print"),
        2,
        ("loss.train", "optim.lr", "sys.step_time"),
        {"grad.norm": ("", "log engine.get_global_grad_norm()")},
        {"clip": 0.0, "log_interval": 10.0},
    ),
    Framework(
        "nanoGPT",
        ("eval_interval", "log_interval", "block_size", "n_layer", "always_save_checkpoint", "decay_lr", "max_iters"),
        4,
        ("loss.train", "sys.step_time", "sys.mfu", "eval.nll"),
        {
            "grad.norm": ("", "print the value that clip_grad_norm_ returns"),
            "optim.lr": ("wandb_log", "wandb_log=True"),
        },
        {"clip": 1.0, "beta2": 0.95, "warmup_steps": 2000.0, "precision": "bfloat16"},
    ),
)


def framework_of(flat: Flat) -> Framework | None:
    """The trainer of which most keys are there; None when none is told."""
    keys = [key.lower().replace("-", "_").replace(".", "/") for key in flat]
    there = set(keys) | {key.rpartition("/")[2] for key in keys} | {"/".join(key.split("/")[-2:]) for key in keys}
    scored = [(sum(mark in there for mark in each.marks), each) for each in FRAMEWORKS]
    fitting = [(score / len(each.marks), each) for score, each in scored if score >= each.least]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None
