"""Writes event stores of one simulated run with the real writers. Run by the interpreter that has them installed:

``PEERS_PYTHON -m benchmarks.event_writers KIND DIRECTORY STEPS SCALARS``; nothing of trainmon is imported.

``tfevents``: tensorboardX, one simple value an event. ``tensors``: the newer form, a tensor for each value. ``mixed``:
simple values among histograms, pictures, texts and hyperparameters. ``several``: three files of one run, resumed twice.
``wandb``: W&B offline. ``wandb-mixed``: the same with nested keys, several calls a step, jumps of the step, histograms,
texts, console lines and a summary.
"""

from __future__ import annotations

import math
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILES_KEPT = 3
BEGAN = 1.75e9
NAMES = (
    *("train/loss", "train/grad_norm", "train/lr", "perf/tokens_per_second", "perf/step_time_s", "memory/allocated_gb"),
    *("moe/aux_loss", "moe/dropped", "optim/update_rms", "optim/param_norm", "optim/weight_decay", "data/tokens"),
    *("data/epoch", "perf/mfu", "perf/tflops", "perf/data_time_s", "layers/0/grad_norm", "layers/1/grad_norm"),
    *("layers/2/grad_norm", "layers/3/grad_norm"),
)


def values_of(steps: int, scalars: int, seed: int = 1) -> Iterator[tuple[int, float, dict[str, float]]]:
    """(step, wall time, values) of a healthy run."""
    rng = random.Random(seed)
    for step in range(1, steps + 1):
        row = {
            "train/loss": 2 + 8 * math.exp(-step / 20_000) + rng.gauss(0, 0.02),
            "train/grad_norm": abs(rng.gauss(0.5, 0.05)),
            "train/lr": 3e-4 * min(1, step / 2000) * (0.1 + 0.45 * (1 + math.cos(math.pi * step / steps))),
        }
        for index, name in enumerate(NAMES[3:scalars]):
            row[name] = 1 + index + rng.random()
        yield step, BEGAN + step * 0.5 + rng.random() * 1e-3, row


def write_tfevents(directory: Path, steps: int, scalars: int) -> None:
    """The events of `SummaryWriter.add_scalar`, given to its writer without its queue, which is many times slower."""
    from tensorboardX.event_file_writer import EventsWriter
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.summary import scalar

    writer = EventsWriter(str(directory / "events"))
    for step, wall, row in values_of(steps, scalars):
        for name, value in row.items():
            writer.write_event(Event(wall_time=wall, step=step, summary=scalar(name, value)))
    writer.close()


def write_tensors(directory: Path, steps: int, scalars: int) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.scalar.summary import scalar_pb
    from tensorboardX.event_file_writer import EventsWriter
    from tensorboardX.proto import event_pb2

    writer = EventsWriter(str(directory / "events"))
    for step, wall, row in values_of(steps, scalars):
        for name, value in row.items():
            event = Event(wall_time=wall, step=step, summary=scalar_pb(name, value))
            writer.write_event(event_pb2.Event.FromString(event.SerializeToString()))
    writer.close()


def write_mixed(directory: Path, steps: int, scalars: int) -> None:
    import numpy as np
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(directory), max_queue=10_000, flush_secs=600) as writer:
        writer.add_hparams({"lr": 3e-4, "batch_size": 64, "model": "small"}, {"hparam/best": 2.0}, name="hp")
        writer.add_text("config", "a text of **markdown**\n" * 20, 0)
        noise = np.random.default_rng(1)
        for step, wall, row in values_of(steps, scalars):
            for name, value in row.items():
                writer.add_scalar(name, value, step, wall)
            if step % 50 == 0:
                writer.add_histogram("weights/0", noise.normal(size=500), step, walltime=wall)
            if step % 500 == 0:
                writer.add_image("samples", noise.integers(0, 255, (3, 64, 64), np.uint8), step, wall)
                writer.add_text("sample", f"step {step}: once upon a time", step, wall)
            if step % 100 == 0:
                writer.add_scalars("eval", {"loss": row["train/loss"] + 0.1, "accuracy": 0.5}, step, wall)


def write_several(directory: Path, steps: int, scalars: int) -> None:
    """Each file goes on 10 steps before the end of the one before it, as after a checkpoint."""
    from tensorboardX.event_file_writer import EventsWriter
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.summary import scalar

    rows = list(values_of(steps, scalars))
    for part in range(FILES_KEPT):
        begin = max(0, part * steps // FILES_KEPT - (10 if part else 0))
        writer = EventsWriter(str(directory / f"part{part}.events"))
        for step, wall, row in rows[begin : (part + 1) * steps // FILES_KEPT]:
            for name, value in row.items():
                writer.write_event(Event(wall_time=wall + part, step=step, summary=scalar(name, value)))
        writer.close()


def _init(directory: Path, steps: int) -> Any:
    os.environ["WANDB_MODE"] = "offline"
    os.environ["WANDB_SILENT"] = "true"
    import wandb

    config = {"max_steps": steps, "model": {"n_layer": 12, "n_head": 8}, "batch_size": 64, "seq_length": 1024}
    settings = wandb.Settings(disable_git=True, x_disable_stats=False, x_stats_sampling_interval=1.0)
    return wandb.init(project="bench", name="run", dir=str(directory), config=config, settings=settings)


def write_wandb(directory: Path, steps: int, scalars: int) -> None:
    run = _init(directory, steps)
    for step, _, row in values_of(steps, scalars):
        run.log(row, step=step)
    run.finish()


def write_wandb_mixed(directory: Path, steps: int, scalars: int) -> None:
    import wandb

    run = _init(directory, steps)
    run.define_metric("eval/*", step_metric="trainer/global_step")
    jump = 0
    for step, _, row in values_of(steps, scalars):
        jump += 5 if step % 97 == 0 else 0
        names = list(row)
        run.log({name: row[name] for name in names[:2]}, step=step + jump)
        run.log({"nested": {"a": {"b": row[names[1]]}, "c.d": step}, "trainer/global_step": step}, step=step + jump)
        run.log({name: row[name] for name in names[2:]}, step=step + jump)
        if step % 50 == 0:
            run.log({"eval/loss": math.nan if step == 100 else math.inf if step == 150 else 2.5, "phase": "eval"})
            run.log({"weights": wandb.Histogram([1.0, 2.0, 3.0]), "big": 12345678901234567890, "ok": True})
            print(f"step {step}: a line on the console")
        if step % 200 == 0:
            run.log({"table": wandb.Table(columns=["a", "b"], data=[[1, "x"], [2, "y"]]), "none": None})
    run.summary["best"] = 1.25
    run.finish(exit_code=0)


WRITERS = {
    "tfevents": write_tfevents,
    "tensors": write_tensors,
    "mixed": write_mixed,
    "several": write_several,
    "wandb": write_wandb,
    "wandb-mixed": write_wandb_mixed,
}


if __name__ == "__main__":
    kind, directory, steps, scalars = sys.argv[1:]
    Path(directory).mkdir(parents=True, exist_ok=True)
    WRITERS[kind](Path(directory), int(steps), int(scalars))
