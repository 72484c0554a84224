"""What trainers, launchers and Python print, for the tables of deaths."""

# ruff: noqa: E501

from __future__ import annotations


def titan(n: int = 6, pre: str = "[rank0]:") -> str:
    """torchtitan."""
    return "".join(
        f"{pre}[titan] 2026-05-03 02:03:{s:02d},104 - root - INFO - step: {s:2d}  loss: {6 - s / 10:7.4f}  grad_norm:  1.2034  memory: 40.12GiB(50.65%)  tps: 7,012  tflops: 405.8  mfu: 41.03%\n"
        for s in range(1, n + 1)
    )


def megatron(n: int = 6, pre: str = "") -> str:
    """Megatron-LM."""
    return "".join(
        f"{pre} [2026-05-03 02:03:{s:02d}] iteration {s:8d}/ 500000 | consumed samples: {s * 512:12d} | elapsed time per iteration (ms): 3200.1 | learning rate: 3.000E-04 | global batch size:   512 | lm loss: {6 - s / 10:.6E} | loss scale: 1.0 | grad norm: 1.203 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for s in range(1, n + 1)
    )


def hf(n: int = 6, pre: str = "") -> str:
    """transformers.Trainer."""
    return "".join(
        f"{pre}{{'loss': {6 - s / 10:.4f}, 'grad_norm': 1.203, 'learning_rate': 5e-05, 'epoch': {s / 100:.2f}}}\n"
        for s in range(1, n + 1)
    )


def nano(n: int = 6, pre: str = "") -> str:
    """nanoGPT."""
    return "".join(f"{pre}iter {s * 10}: loss {6 - s / 10:.4f}, time 120.12ms, mfu 41.03%\n" for s in range(n))


def maxtext(n: int = 6, pre: str = "") -> str:
    """MaxText."""
    return "".join(
        f"{pre}completed step: {s}, seconds: 2.107, TFLOP/s/device: 120.411, Tokens/s/device: 1943.2, total_weights: 65536, loss: {6 - s / 10:.3f}\n"
        for s in range(n)
    )


def plain(n: int = 6, pre: str = "") -> str:
    """A loop of one's own."""
    return "".join(f"{pre}step {s} | loss {6 - s / 100:.4f} | grad_norm 1.01 | lr 1.0e-4\n" for s in range(1, n + 1))


def deepspeed(n: int = 6, pre: str = "") -> str:
    """DeepSpeed."""
    return "".join(
        f"{pre}[2026-05-03 02:03:{s:02d},104] [INFO] [logging.py:96:log_dist] [Rank 0] step={s * 10}, skipped=0, lr=[5e-05], mom=[(0.9, 0.999)]\n{pre}steps: {s * 10} loss: {6 - s / 10:.4f} iter time (s): 1.203 samples/sec: 106.3\n"
        for s in range(1, n + 1)
    )


def tb(exc: str, pre: str = "", frames: int = 2) -> str:
    """A traceback, each line behind `pre`."""
    out = f"{pre}Traceback (most recent call last):\n"
    for i in range(frames):
        out += f'{pre}  File "/w/train.py", line {i + 7}, in f{i}\n{pre}    loss = model(batch)\n'
    return out + "".join(f"{pre}{line}\n" for line in exc.split("\n"))


def torchrun(
    rank: int = 0, code: int = 1, cause_tb: str = "To enable traceback see: https://x", err: str = "<N/A>"
) -> str:
    """The report of torchrun about one worker that failed."""
    ruler, dashes = "=" * 60, "-" * 60
    return (
        f"E0503 02:09:00.123000 4100 site-packages/torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode:"
        f" {code}) local_rank: {rank} (pid: 4243) of binary: /usr/bin/python\n"
        + tb(
            f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n{ruler}\ntrain.py FAILED\n{dashes}\n"
            f"Failures:\n  <NO_OTHER_FAILURES>\n{dashes}\nRoot Cause (first observed failure):\n[0]:\n"
            f"  time      : 2026-05-03_02:09:00\n  host      : n1\n  rank      : {rank} (local_rank: {rank})\n"
            f"  exitcode  : {code} (pid: 4243)\n  error_file: {err}\n  traceback : {cause_tb}\n{ruler}"
        )
    )
