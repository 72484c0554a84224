"""Lines as trainers print them, into columns, against a loop of ``re.finditer`` and ``float`` over the same bytes.

`parse_stdout` measures the one shape that its target names; these are what most logs look like: colours, a second
account of each step, places inside an epoch, numbers as wide as they happen to be, dictionaries behind bars.
Usage: python -m benchmarks.parse_trainers [LINES]
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from time import process_time

from benchmarks.parse_stdout import by_format
from benchmarks.timing import interleaved

_PAIR = re.compile(rb"([A-Za-z_][\w /().-]*?)['\"]?\s*[:= \t]\s*([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf))")


def _stamp(step: int) -> str:
    return f"2026-03-{1 + step // 86400:02d} {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d}"


def _loss(step: int, rng: random.Random) -> float:
    return 2 + 8 / (1 + step / 500) + rng.gauss(0, 0.02)


def torchtitan(step: int, rng: random.Random) -> str:
    """With a rank and in colours."""
    return (
        f"[rank0]:[titan] {_stamp(step)},{rng.randrange(1000):03d} - root - INFO - \x1b[31mstep: {step:2}  "
        f"\x1b[32mloss: {_loss(step, rng):7.4f}  \x1b[38;2;180;60;0mgrad_norm: {rng.uniform(0.3, 0.6):7.4f}  "
        f"\x1b[33mmemory: {58.4 + rng.random() / 50:5.2f}GiB({73.8 + rng.random() / 20:.2f}%)  "
        f"\x1b[34mtps: {rng.randrange(150_000, 170_000):,}  \x1b[36mtflops: {rng.uniform(300, 350):,.2f}  "
        f"\x1b[35mmfu: {rng.uniform(33, 36):.2f}%\x1b[39m\n"
    )


def megatron_deepspeed(step: int, rng: random.Random) -> str:
    """Three lines a step: two of DeepSpeed's own account before the trainer's."""
    stamp = f"[{_stamp(step)},{rng.randrange(1000):03d}] [INFO]"
    return (
        f"{stamp} [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[{1e-5 * rng.random()}, "
        f"{1e-5 * rng.random()}], mom=[[0.9, 0.95], [0.9, 0.95]]\n"
        f"{stamp} [timer.py:215:stop] epoch=0/micro_step={2 * step}/global_step={step}, RunningAvgSamplesPerSec="
        f"{5 + rng.random()}, CurrSamplesPerSec={5 + rng.random()}, MemAllocated=1.77GB, MaxMemAllocated=27.43GB\n"
        f" samples/sec: {rng.uniform(38, 40):.3f} | iteration {step:8d}/  900000 | elapsed time per iteration (ms): "
        f"{rng.uniform(11000, 12000):.1f} | learning rate: {1e-5 * rng.random():.3E} | approx flops per GPU: "
        f"{rng.uniform(110, 120):.1f}TFLOPS | lm_loss: {_loss(step, rng):.6E} | loss scale: 65536.0 | number of "
        f"skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def epoch_and_batch(step: int, rng: random.Random) -> str:
    """Swin's: a place in an epoch, and each value with its average."""
    epoch, batch = divmod(step, 1251)
    return (
        f"[{_stamp(step)} model_x] (main.py 506): INFO Train: [{epoch}/900][{batch}/1251]\teta 0:{step % 60:02d}:25 "
        f"lr {rng.random() / 10:.6f}\ttime {rng.uniform(2.3, 2.5):.4f} (2.3993)\tloss {_loss(step, rng):.4f} (2.4990)\t"
        f"grad_norm {rng.uniform(0.3, 0.6):.4f} (0.5000)\tmem 27000MB\n"
    )


def any_width(step: int, rng: random.Random) -> str:
    """Fifteen pairs whose numbers are as wide as ``%.4g`` makes them."""
    names = ("lr", "grad_norm", "mfu", "z_loss", "wd", "mem", "t_data", "t_fwd", "t_bwd", "ppl", "aux", "scale", "temp")
    rest = " | ".join(f"{name} {rng.expovariate(10 ** -rng.randrange(-3, 4)):.4g}" for name in names)
    return f"step {step} | loss {_loss(step, rng):.4g} | {rest}\n"


def key_and_value(step: int, rng: random.Random) -> str:
    """A logger's, with numbers as ``str`` writes them."""
    return (
        f"{_stamp(step)} | INFO     | train:main:123 - epoch={step // 1000} step={step} loss={_loss(step, rng)} "
        f"lr={1e-4 * rng.random()} grad_norm={rng.random()} tokens_per_sec={rng.uniform(1e5, 2e5)}\n"
    )


def bars_and_dictionaries(step: int, rng: random.Random) -> str:
    """The HF Trainer's: ten frames of a bar, then a dictionary."""
    frames = "".join(
        f"\r{at // 900:3d}%|{'#' * (at // 9000):<10}| {at}/900000 [{at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
        f"<1:00:00,  1.02it/s]"
        for at in range(10 * step - 9, 10 * step + 1)
    )
    return (
        f"{frames}\n{{'loss': {_loss(step, rng):.4f}, 'grad_norm': {rng.uniform(0.3, 0.6)}, "
        f"'learning_rate': {1e-4 * rng.random()}, 'epoch': {step / 2000:.2f}}}\n"
    )


SHAPES: tuple[Callable[[int, random.Random], str], ...] = (
    torchtitan,
    megatron_deepspeed,
    epoch_and_batch,
    any_width,
    key_and_value,
    bars_and_dictionaries,
)


def by_finditer(data: bytes) -> float:
    """Seconds of CPU time of the loop."""
    began = process_time()
    columns: dict[bytes, list[float]] = {}
    for line in data.split(b"\n"):
        for match in _PAIR.finditer(line):
            columns.setdefault(match[1], []).append(float(match[2]))
    assert columns
    return process_time() - began


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    for shape in SHAPES:
        rng = random.Random(3)
        data = "".join(shape(step, rng) for step in range(1, records + 1)).encode()
        ours, loop = f"{shape.__name__}: trainmon", "re.finditer + float"

        def read(data: bytes = data) -> float:
            return by_format(data, records, process_time)

        def loops(data: bytes = data) -> float:
            return by_finditer(data)

        found = interleaved({ours: read, loop: loops})
        size = len(data) / 1e6
        print(f"{ours:36s} {size / found[ours]:6.1f} MB/s {found[loop] / found[ours]:5.2f}x of {loop}")


if __name__ == "__main__":
    main()
