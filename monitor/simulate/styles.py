"""What simulated runs print: one writer a trainer, each in the shape that the real one has."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import ClassVar

from trainmon.monitor.simulate.model import (
    GIB,
    RunSpec,
    Step,
    card_gib,
    flops_per_rank,
    flops_share,
    tokens_per_second,
)
from trainmon.monitor.simulate.writers import Writer, clock, short

_BYTES_PER_TOKEN = 4.2
_BLOCK_KEYS = {
    "update_ratio": "update_ratio",
    "rms": "act_rms",
    "abs_max": "act_abs_max",
    "branch_scale": "residual/branch_scale",
}
_UNUSED_GIB = 0.3  # reserved by the allocator, in use by no tensor


class TitanWriter(Writer):
    """torchtitan: coloured lines of rank 0 in train.log, and metrics.jsonl under the names it gives to W&B."""

    def banner(self) -> None:
        """Facts of the run, as this trainer prints them at its start."""
        spec = self.spec
        batch = spec.batch_tokens // spec.seq_length
        # One line of stdout each, as torchtitan words them.
        lines = [
            f"Starting job: {spec.name}",
            f"Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard={spec.ranks}, cp=1, tp=1, ep=1",
            f"CUDA capacity: NVIDIA H100 80GB HBM3 with {card_gib():.2f}GiB memory",
            f"\x1b[34mModel llama3 350M \x1b[31msize: {spec.parameters:,.0f} total parameters\x1b[39m",
            "Peak FLOPS used for computing MFU: 9.890e+14",
            "Checkpointing active. Checkpoints will be loaded from and saved to ./outputs/checkpoint",
            "Trainer is initialized with "
            f"local batch size {batch // spec.ranks}, global batch size {batch}, gradient accumulation steps 1, "
            f"sequence length {spec.seq_length}, total steps {spec.total_steps} (warmup {spec.warmup_steps})",
        ]
        if self.resumed_from is not None:
            lines.append(f"Loading the checkpoint from ./outputs/checkpoint/step-{self.resumed_from}.")
            lines.append("Finished loading the checkpoint in 1.42 seconds.")
        lines.append(f"Training starts at step {(self.resumed_from or 0) + 1}")
        for line in lines:
            self._say(self.now_s, line)
        self.text("metrics.jsonl", _config_line(spec))

    def step(self, step: Step) -> None:
        """What it prints for one step."""
        self._say(step.elapsed_s - step.pause_s, self._metrics(step))
        self.text("metrics.jsonl", json.dumps(self._row(step)) + "\n")
        if step.saves_checkpoint:
            self._say(step.elapsed_s - step.pause_s, "Saving the checkpoint (or staging if async is enabled).")
            # Only torchtitan's last checkpoint names its step; the folder does for the others.
            self._say(
                step.elapsed_s,
                "Finished saving the checkpoint (or staging if async is enabled) "
                f"to ./outputs/checkpoint/step-{step.step} in {0.7 * step.pause_s:.2f} seconds.",
            )
        if step.val_loss is not None:
            self._say(
                step.elapsed_s,
                f"\x1b[31mvalidate step: {step.step}  \x1b[32mloss: {step.val_loss:7.4f}  \x1b[38;2;54;234;195mmemory: "
                f"{step.memory_gib:5.2f}GiB({100 * step.memory_gib / card_gib():.2f}%)  \x1b[34mtps: "
                f"{round(1.9 * tokens_per_second(self.spec, step) / self.spec.ranks):,}\x1b[39m",
            )

    def farewell(self) -> None:
        """Its last line."""
        self._say(self.now_s, "Training completed")

    def _say(self, at_s: float, message: str) -> None:
        self.text(
            "train.log", f"[rank0]:[titan] {self.stamp(at_s, '%Y-%m-%d %H:%M:%S,%f')} - root - INFO - {message}\n"
        )

    def _metrics(self, step: Step) -> str:
        spec = self.spec
        return (
            f"\x1b[31mstep: {step.step:2}  \x1b[32mloss: {step.loss:8.5f}  "
            f"\x1b[38;2;180;60;0mgrad_norm: {step.grad_norm:7.4f}  \x1b[38;2;54;234;195mmemory: "
            f"{step.memory_gib:5.2f}GiB({100 * step.memory_gib / card_gib():.2f}%)  "
            f"\x1b[34mtps: {round(tokens_per_second(spec, step) / spec.ranks):,}  "
            f"\x1b[36mtflops: {flops_per_rank(spec, step) / 1e12:,.2f}  "
            f"\x1b[35mmfu: {100 * flops_share(spec, step):.2f}%\x1b[39m"
        )

    def _row(self, step: Step) -> dict[str, float]:
        spec = self.spec
        row: dict[str, float] = {
            "step": step.step,
            "_timestamp": round(self.start_wall + step.elapsed_s - step.pause_s, 3),
            "loss_metrics/global_avg_loss": short(step.loss),
            "loss_metrics/global_max_loss": short(float(step.rank_loss.max())),
            "grad_norm": short(step.grad_norm),
            "lr": short(step.lr),
            "n_tokens_seen": step.step * spec.batch_tokens,
            "throughput(tps)": short(tokens_per_second(spec, step) / spec.ranks),
            "tflops": short(flops_per_rank(spec, step) / 1e12),
            "mfu(%)": short(100 * flops_share(spec, step)),
            "time_metrics/end_to_end(s)": short(step.step_s),
            "time_metrics/data_loading(s)": short(step.data_wait_s),
            "memory/max_active(GiB)": short(step.memory_gib - _UNUSED_GIB),
            "memory/max_active(%)": short(100 * (step.memory_gib - _UNUSED_GIB) / card_gib()),
            "memory/max_reserved(GiB)": short(step.memory_gib),
            "memory/max_reserved(%)": short(100 * step.memory_gib / card_gib()),
        }
        for rank in range(spec.simulated_ranks):
            row[f"loss/rank{rank}"] = short(float(step.rank_loss[rank]))
            row[f"step_time/rank{rank}(s)"] = short(float(step.rank_compute_s[rank]))
        for (source, _, _), loss, share in zip(spec.sources, step.source_loss, step.source_share, strict=True):
            row[f"loss/source/{source}"] = short(float(loss))
            row[f"token_share/source/{source}"] = short(float(share))
        if step.step % 100 == 0:
            row["output_abs_max"] = short(step.output_abs_max)
        if step.val_loss is not None:
            row["val/loss"] = short(step.val_loss)
            row["val/bpb"] = short(step.val_loss / math.log(2) / _BYTES_PER_TOKEN)
        return row


class MoeWriter(Writer):
    """A mixture of experts that logs JSON lines only, the load of every expert of every layer included."""

    def banner(self) -> None:
        """Facts of the run, as this trainer prints them at its start."""
        self.text("metrics.jsonl", _config_line(self.spec))

    def step(self, step: Step) -> None:
        """What it prints for one step."""
        row: dict[str, float] = {
            "step": step.step,
            "time": round(self.start_wall + step.elapsed_s, 3),
            "loss": short(step.loss),
            "grad_norm": short(step.grad_norm),
            "lr": short(step.lr),
            "tokens_per_second": short(tokens_per_second(self.spec, step)),
            "step_time_s": short(step.step_s),
            "peak_memory_bytes": round(step.memory_gib * GIB),
        }
        if step.load is not None:
            worst = step.load.max(axis=1) / step.load.mean(axis=1) - 1.0
            row["moe/maxvio"] = short(float(worst.max()))
            for layer, loads in enumerate(step.load):
                for expert, tokens in enumerate(loads):
                    row[f"moe/layer_{layer}/expert_{expert}/load"] = float(tokens)
        for statistic, values in step.blocks.items():
            for block, value in enumerate(values.tolist()):
                row[f"{_BLOCK_KEYS[statistic]}/layer_{block}"] = short(value)
        if step.val_loss is not None:
            row["eval/loss"] = short(step.val_loss)
        self.text("metrics.jsonl", json.dumps(row) + "\n")


class NanochatWriter(Writer):
    """nanochat: one plain line a step, no gradient norm."""

    def banner(self) -> None:
        """Facts of the run, as this trainer prints them at its start."""
        spec = self.spec
        self.text(
            "train.log",
            f"Number of parameters: {spec.parameters:,.0f}\n"
            f"Calculated number of iterations from target data:param ratio: {spec.total_steps:,}\n"
            f"Total batch size {spec.batch_tokens:,} => gradient accumulation steps: 1\n",
        )

    def step(self, step: Step) -> None:
        """What it prints for one step."""
        spec = self.spec
        done = step.step - 1
        self.text(
            "train.log",
            f"step {done:05d}/{spec.total_steps:05d} ({100 * done / spec.total_steps:.2f}%) | loss: {step.loss:.6f} | "
            f"lrm: {step.lr / spec.peak_lr:.2f} | dt: {1000 * step.step_s:.2f}ms | "
            f"tok/sec: {tokens_per_second(spec, step):,.0f} | mfu: {100 * flops_share(spec, step):.2f} | "
            f"total time: {step.elapsed_s / 60:.2f}m\n",
        )
        if step.val_loss is not None:
            bpb = step.val_loss / math.log(2) / _BYTES_PER_TOKEN
            self.text("train.log", f"Step {step.step:05d} | Validation bpb: {bpb:.4f}\n")

    def farewell(self) -> None:
        """Its last line."""
        self.text("train.log", f"Total training time: {self.now_s / 60:.2f}m\n")


class MegatronWriter(Writer):
    """Megatron-LM: a line every 10 iterations, means over them."""

    log_every: ClassVar[int] = 10

    def __init__(self, spec: RunSpec, folder: Path, start_wall: float) -> None:
        super().__init__(spec, folder, start_wall)
        self._since: list[Step] = []

    def banner(self) -> None:
        """Facts of the run, as this trainer prints them at its start."""
        spec = self.spec
        batch = spec.batch_tokens // spec.seq_length
        self._since.clear()
        arguments = {
            "global_batch_size": batch,
            "lr": spec.peak_lr,
            "lr_decay_style": "cosine",
            "lr_warmup_iters": spec.warmup_steps,
            "seq_length": spec.seq_length,
            "train_iters": spec.total_steps,
            "world_size": spec.ranks,
        }
        self.text("train.log", "------------------------ arguments ------------------------\n")
        for name, value in arguments.items():
            self.text("train.log", f"  {name} {'.' * (48 - len(name))} {value}\n")
        self.text("train.log", "-------------------- end of arguments ---------------------\n")
        if self.resumed_from is not None:
            self.text("train.log", f"  successfully loaded checkpoint from ./ckpt at iteration {self.resumed_from}\n")
        self.text("train.log", f"[before the start of training step] datetime: {self.stamp(self.now_s)} \n")

    def step(self, step: Step) -> None:
        """What it prints for one step."""
        self._since.append(step)
        if step.step % self.log_every == 0:
            self.text("train.log", self._metrics(step))
            self._since.clear()
        if step.saves_checkpoint:
            self.text("train.log", f"saving checkpoint at iteration {step.step:7d} to ./ckpt in torch_dist format\n")
            self.text("train.log", f"  successfully saved checkpoint from iteration {step.step:7d} to ./ckpt\n")
        if step.val_loss is not None:
            line = (
                f" validation loss at iteration {step.step} | lm loss value: {step.val_loss:.6E} | "
                f"lm loss PPL: {math.exp(step.val_loss):.6E} | "
            )
            rule = "-" * len(line)
            self.text("train.log", f"{rule}\n{line}\n{rule}\n")

    def farewell(self) -> None:
        """Its last line."""
        self.text("train.log", f"[after training is done] datetime: {self.stamp(self.now_s)} \n")

    def _metrics(self, step: Step) -> str:
        spec, steps = self.spec, self._since
        mean_s = sum(each.step_s for each in steps) / len(steps)
        loss = sum(each.loss for each in steps) / len(steps)
        rate = 6.0 * spec.parameters * spec.batch_tokens / mean_s / spec.ranks / 1e12
        batch = spec.batch_tokens // spec.seq_length
        return (
            f" [{self.stamp(step.elapsed_s - step.pause_s)}] iteration {step.step:8d}/{spec.total_steps:8d} | "
            f"consumed samples: {step.step * batch:12d} | elapsed time per iteration (ms): {1000 * mean_s:.1f} | "
            f"throughput per GPU (TFLOP/s/GPU): {rate:.1f} | learning rate: {step.lr:.6E} | "
            f"global batch size: {batch:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | "
            f"grad norm: {step.grad_norm:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )


class TrainerWriter(Writer):
    """Hugging Face Trainer: dict lines every 10 steps among the redraws of a tqdm bar, on one stream."""

    log_every: ClassVar[int] = 10

    def banner(self) -> None:
        """Facts of the run, as this trainer prints them at its start."""
        spec = self.spec
        per_device = max(spec.batch_tokens // spec.seq_length // spec.ranks, 1)
        self.text(
            "train.log",
            "***** Running training *****\n"
            f"  Num examples = {spec.total_steps * per_device * spec.ranks // 3:,}\n"
            "  Num Epochs = 3\n"
            f"  Instantaneous batch size per device = {per_device}\n"
            f"  Total train batch size (w. parallel, distributed & accumulation) = {per_device * spec.ranks}\n"
            "  Gradient Accumulation steps = 1\n"
            f"  Total optimization steps = {spec.total_steps:,}\n"
            f"  Number of trainable parameters = {spec.parameters:,.0f}\n",
        )

    def step(self, step: Step) -> None:
        """What it prints for one step."""
        spec = self.spec
        bar = self._bar(step)
        self.text("train.log", f"\r{bar}")
        if step.step % self.log_every == 0:
            row = {
                "loss": round(step.loss, 4),
                "grad_norm": step.grad_norm,
                "learning_rate": step.lr,
                "epoch": round(3 * step.step / spec.total_steps, 2),
            }
            blank = " " * len(bar)
            self.text("train.log", f"\r{blank}\r{row}\n\r{bar}")
        if step.saves_checkpoint:
            self.text("train.log", f"\nSaving model checkpoint to ./out/checkpoint-{step.step}\n")

    def farewell(self) -> None:
        """Its last line."""
        self.text(
            "train.log", "\n\nTraining completed. Do not forget to share your model on huggingface.co/models =)\n\n"
        )

    def _bar(self, step: Step) -> str:
        total = self.spec.total_steps
        share = step.step / total
        left_s = (total - step.step) * step.elapsed_s / step.step
        blocks = "█" * int(20 * share)
        return (
            f"{100 * share:3.0f}%|{blocks:<20}| {step.step}/{total} "
            f"[{clock(step.elapsed_s)}<{clock(left_s)}, {1.0 / step.step_s:5.2f}it/s]"
        )


def _config_line(spec: RunSpec) -> str:
    """What a metric log says of its run before the first step."""
    config: dict[str, float | str] = {
        "total_steps": spec.total_steps,
        "warmup_steps": spec.warmup_steps,
        "learning_rate": spec.peak_lr,
        "max_grad_norm": 1.0,
        "global_batch_size": spec.batch_tokens // spec.seq_length,
        "seq_length": spec.seq_length,
        "active_params" if spec.experts else "num_params": spec.parameters,
        "world_size": spec.ranks,
        "precision": "bf16",
    }
    if spec.experts:
        config |= {"num_experts": spec.experts, "num_layers": spec.layers}
    return json.dumps({"config": config}) + "\n"


WRITERS: dict[str, type[Writer]] = {
    "torchtitan": TitanWriter,
    "megatron": MegatronWriter,
    "nanochat": NanochatWriter,
    "hf": TrainerWriter,
    "moe": MoeWriter,
}
