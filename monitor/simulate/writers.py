"""How a simulated run writes: the base of its writers, and the last words of jobs that die.

A writer turns launches, steps and deaths into bytes of its files. Nothing reaches the disk before `flush`, so
that history is written at once and a live step in one append.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from pathlib import Path

from trainmon.monitor.simulate.model import RunSpec, Step, card_gib


class Writer(ABC):
    """`start_wall`: seconds since the epoch at which the run's clock stood at 0."""

    def __init__(self, spec: RunSpec, folder: Path, start_wall: float) -> None:
        self.spec = spec
        self.folder = folder
        self.start_wall = start_wall
        self.now_s = 0.0
        self.resumed_from: int | None = None
        self._pending: dict[str, list[str]] = {}

    def launch(self, at_s: float, resumed_from: int | None) -> None:
        """The banner of a start, or of a restart from the checkpoint at step `resumed_from`."""
        self.now_s, self.resumed_from = at_s, resumed_from
        self.banner()

    def finished(self, at_s: float) -> None:
        """The last words of a run that is complete."""
        self.now_s = at_s
        self.farewell()

    @abstractmethod
    def step(self, step: Step) -> None:
        """What the trainer prints for one executed step, its checkpoint and evaluation included."""

    def died(self, step: Step) -> None:
        """The last words after `step.crash`."""
        self.text("train.log", LAST_WORDS[step.crash](self, step))

    @abstractmethod
    def banner(self) -> None:
        """Queues the words of a start at `now_s`."""

    def farewell(self) -> None:  # noqa: B027 - a metric log has no last words
        """Queues the words of a good end at `now_s`."""

    def text(self, name: str, text: str) -> None:
        """Queues `text` for the file `name` of the run's folder."""
        self._pending.setdefault(name, []).append(text)

    def flush(self) -> None:
        """Appends what is queued, one write a file."""
        for name, parts in self._pending.items():
            with (self.folder / name).open("ab") as file:
                file.write("".join(parts).encode())
        self._pending.clear()

    def stamp(self, at_s: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
        """A UTC time stamp of the run's clock; ``%f`` is cut to milliseconds."""
        moment = datetime.fromtimestamp(self.start_wall + at_s, UTC)
        return moment.strftime(form.replace("%f", f"{moment.microsecond // 1000:03d}"))


def short(value: float) -> float:
    """`value` to 7 significant digits, as float32 prints; JSON writes NaN and Infinity as Python does."""
    return float(f"{value:.7g}")


def clock(seconds: float) -> str:
    """``mm:ss`` or ``h:mm:ss`` as tqdm writes it.

    >>> clock(71), clock(3671)
    ('01:11', '1:01:11')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def _traceback(exception: str) -> str:
    return (
        "[rank0]:[rank0]: Traceback (most recent call last):\n"
        '[rank0]:[rank0]:   File "/workspace/train.py", line 214, in <module>\n'
        "[rank0]:[rank0]:     main(config)\n"
        '[rank0]:[rank0]:   File "/workspace/train.py", line 187, in main\n'
        "[rank0]:[rank0]:     loss.backward()\n"
        f"[rank0]:[rank0]: {exception}\n"
    )


def _elastic(writer: Writer, step: Step, exit_code: int) -> str:
    rule, thin = "=" * 60, "-" * 60
    return (
        f"{rule}\ntrain.py FAILED\n{thin}\nFailures:\n  <NO_OTHER_FAILURES>\n{thin}\n"
        "Root Cause (first observed failure):\n[0]:\n"
        f"  time      : {writer.stamp(step.elapsed_s, '%Y-%m-%d_%H:%M:%S')}\n"
        f"  host      : node-03\n  rank      : 5 (local_rank: 5)\n  exitcode  : {exit_code} (pid: 41337)\n"
        "  error_file: <N/A>\n"
        f"  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n{rule}\n"
    )


def _out_of_memory(writer: Writer, step: Step) -> str:
    free = max(card_gib() - step.memory_gib, 0.0)
    return _traceback(
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {max(2.0, 1.25 * free):.2f} GiB. GPU 5 has a "
        f"total capacity of {card_gib():.2f} GiB of which {free * 1024:.2f} MiB is free. Including non-PyTorch memory, "
        f"this process has {step.memory_gib:.2f} GiB memory in use. Of the allocated memory "
        f"{step.memory_gib - 1.2:.2f} GiB is allocated by PyTorch, and 320.19 MiB is reserved by PyTorch but "
        "unallocated."
    ) + _elastic(writer, step, 1)


def _collective_timeout(writer: Writer, step: Step) -> str:
    words = (
        f"[rank3]:[E{writer.stamp(step.elapsed_s, '%m%d %H:%M:%S')}.104213801 ProcessGroupNCCL.cpp:632] [Rank 3] "
        f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={step.tick * 97}, OpType=ALLREDUCE, "
        "NumelIn=25559040, NumelOut=25559040, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
    )
    return words + _elastic(writer, step, -6)


def _terminated(writer: Writer, step: Step) -> str:
    return (
        f"slurmstepd: error: *** JOB 48213 ON node-03 CANCELLED AT {writer.stamp(step.elapsed_s, '%Y-%m-%dT%H:%M:%S')} "
        "DUE TO PREEMPTION ***\n"
    )


LAST_WORDS = {"oom": _out_of_memory, "nccl": _collective_timeout, "sigterm": _terminated}
