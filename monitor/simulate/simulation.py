"""Simulated training runs that write real log files, for `trainmon demo` and for measuring the detectors.

>>> import tempfile
>>> from trainmon.tails.clock import SystemClock
>>> with tempfile.TemporaryDirectory() as folder:
...     simulation = Simulation(Path(folder), seed=1, clock=SystemClock(), runs=(DEFAULT_RUNS[3],), faults=())
...     simulation.run_to_end(live_s=2.0)
...     sorted(path.name for path in Path(folder).rglob("*.*"))
['train.log']
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from trainmon.monitor.simulate.faults import DEFAULT_SCRIPT, FAULTS, Fault, effect_of
from trainmon.monitor.simulate.model import RunModel, RunSpec, Step
from trainmon.monitor.simulate.styles import WRITERS
from trainmon.monitor.simulate.writers import Writer
from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.quick_dataclass import dataclass

__all__ = [
    "DEFAULT_RUNS",
    "DEFAULT_SCRIPT",
    "FAULTS",
    "STORY_S",
    "Fault",
    "RunSpec",
    "Simulation",
    "serve",
    "write_finished",
]

STORY_S = 90.0  # after so many seconds live, all faults of DEFAULT_SCRIPT have been and their detectors have had time

DEFAULT_RUNS: tuple[RunSpec, ...] = (
    RunSpec(
        name="llama-350m",
        style="torchtitan",
        total_steps=20_000,
        history_steps=4_000,
        step_s=0.1,
        parameters=353_453_056,
        batch_tokens=131_072,
        seq_length=2048,
        peak_lr=3e-4,
        warmup_steps=1_000,
        sources=(("web", 0.62, 1.06), ("code", 0.20, 0.62), ("books", 0.13, 1.12), ("math", 0.05, 0.85)),
    ),
    RunSpec(
        name="gpt-124m-lr6e-3",
        style="nanochat",
        total_steps=12_000,
        history_steps=3_000,
        step_s=0.25,
        parameters=124_337_664,
        batch_tokens=262_144,
        seq_length=1024,
        peak_lr=6e-3,
        warmup_steps=600,
        eval_every=500,
    ),
    RunSpec(
        name="moe-8x160m",
        style="moe",
        total_steps=15_000,
        history_steps=2_500,
        step_s=0.2,
        parameters=290_000_000,
        batch_tokens=262_144,
        seq_length=2048,
        peak_lr=4e-4,
        warmup_steps=500,
        eval_every=500,
        layers=4,
        experts=8,
        blocks=12,
    ),
    RunSpec(
        name="llama-7b-base",
        style="megatron",
        total_steps=50_000,
        history_steps=6_000,
        step_s=0.5,
        parameters=6_738_415_616,
        batch_tokens=2_097_152,
        seq_length=4096,
        peak_lr=3e-4,
        warmup_steps=2_000,
        ranks=512,
        checkpoint_every=1_000,
        eval_every=1_000,
        floor_loss=1.75,
        loss_noise=0.004,
    ),
    RunSpec(
        name="qwen-1.5b-sft",
        style="hf",
        total_steps=3_000,
        history_steps=1_200,
        step_s=0.4,
        parameters=1_543_714_304,
        batch_tokens=65_536,
        seq_length=1024,
        peak_lr=1e-5,
        warmup_steps=100,
        first_loss=1.62,
        floor_loss=0.71,
        loss_noise=0.012,
        grad_level=1.1,
        checkpoint_every=500,
        eval_every=10**9,
    ),
)


@dataclass(slots=True)
class _Live:
    """One run in progress: its steps still to come, who writes them, and its own clock's zero in simulated time."""

    steps: Iterator[Step]
    writer: Writer
    zero_s: float
    next_step: Step | None

    @property
    def due_s(self) -> float:
        """Simulated seconds after going live at which the next step is complete."""
        assert self.next_step is not None
        return self.zero_s + self.next_step.elapsed_s

    def write_next(self) -> None:
        """Writes the step that is due (and a restart's banner before it, a death's last words after it)."""
        step = self.next_step
        assert step is not None
        if step.restarted_from is not None:
            self.writer.launch(step.elapsed_s - step.step_s - step.pause_s, step.restarted_from)
        self.writer.step(step)
        if step.crash:
            self.writer.died(step)
        elif step.step == self.writer.spec.total_steps:
            self.writer.finished(step.elapsed_s)
        self.next_step = next(self.steps, None)


class Simulation:
    """Several runs below `out_dir`, one folder each; existing logs there are appended to.

    The same seed, runs, faults and starting time give the same bytes. Time stamps follow the simulated clock,
    which starts at `clock.wall()` when the runs go live: history lies before that moment.
    """

    def __init__(
        self,
        out_dir: Path,
        seed: int = 0,
        faults: Sequence[Fault] = DEFAULT_SCRIPT,
        runs: Sequence[RunSpec] = DEFAULT_RUNS,
        clock: Clock | None = None,
        history_steps: int | None = None,
    ) -> None:
        """`history_steps` replaces that of every run (0: a run is written from its first step on, live).

        Raises KeyError for an unknown fault, ValueError for a fault of a run that is not there.
        """
        self.out_dir = out_dir
        self.seed = seed
        self.clock = clock or SystemClock()
        self.runs = [run if history_steps is None else replace(run, history_steps=history_steps) for run in runs]
        names = [run.name for run in self.runs]
        for fault in faults:
            if fault.run and fault.run not in names:
                raise ValueError(f"fault {fault.name}: no run is called {fault.run}; there are {', '.join(names)}")
        self.faults = faults
        self._script = [
            [effect_of(fault, run.history_steps) for fault in faults if (fault.run or names[0]) == run.name]
            for run in self.runs
        ]
        self._live: list[_Live] | None = None

    def write_history(self) -> None:
        """Writes what stands in the logs when the runs go live. Done by the other methods unless done before."""
        if self._live is None:
            now = self.clock.wall()
            self._live = [self._begin(index, now) for index in range(len(self.runs))]

    def run_live(self, stop: threading.Event) -> None:
        """Writes steps as they fall due by the clock, until `stop` is set or every run has ended."""
        self.write_history()
        started = self.clock.monotonic()
        for live in self._in_order():
            while (wait_s := started + live.due_s - self.clock.monotonic()) > 0 and not stop.is_set():
                self.clock.sleep(min(wait_s, 0.25))
            if stop.is_set():
                return
            live.write_next()
            live.writer.flush()

    def run_to_end(self, live_s: float = float("inf")) -> None:
        """Writes without pacing: all that falls into the first `live_s` simulated seconds after going live."""
        self.write_history()
        assert self._live is not None
        for live in self._in_order():
            if live.due_s > live_s:
                break
            live.write_next()
        for live in self._live:
            live.writer.flush()

    def _in_order(self) -> Iterator[_Live]:
        """The run whose next step falls due first, again and again; the caller writes that step."""
        assert self._live is not None
        queue = [(live.due_s, index) for index, live in enumerate(self._live) if live.next_step is not None]
        heapq.heapify(queue)
        while queue:
            index = heapq.heappop(queue)[1]
            live = self._live[index]
            yield live
            if live.next_step is not None:
                heapq.heappush(queue, (live.due_s, index))

    def _begin(self, index: int, now: float) -> _Live:
        spec = self.runs[index]
        folder = self.out_dir / spec.name
        folder.mkdir(parents=True, exist_ok=True)
        steps = RunModel(spec, (self.seed, index), self._script[index]).run()
        history = list(islice(steps, spec.history_steps))
        lasted_s = history[-1].elapsed_s if history else 0.0
        live = _Live(steps, WRITERS[spec.style](spec, folder, now - lasted_s), -lasted_s, None)
        live.writer.launch(0.0, None)
        for step in history:
            live.next_step = step
            live.writer.step(step)
        live.writer.flush()
        live.next_step = next(steps, None)
        return live


def serve(
    out_dir: Path,
    seed: int = 0,
    clock: Clock | None = None,
    stop_event: threading.Event | None = None,
    faults: Sequence[Fault] = DEFAULT_SCRIPT,
    runs: Sequence[RunSpec] = DEFAULT_RUNS,
) -> None:
    """Writes the history, then goes live; returns when `stop_event` is set or all runs have ended.

    For a thread of its own: run by run, the history is on disk before the next one is begun.
    """
    Simulation(out_dir, seed=seed, faults=faults, runs=runs, clock=clock).run_live(stop_event or threading.Event())


def write_finished(
    out_dir: Path,
    seed: int = 0,
    clock: Clock | None = None,
    faults: Sequence[Fault] = DEFAULT_SCRIPT,
    live_s: float = STORY_S,
    runs: Sequence[RunSpec] = DEFAULT_RUNS,
) -> None:
    """Writes at once what `serve` would have written after `live_s` seconds: the demo's whole story."""
    Simulation(out_dir, seed=seed, faults=faults, runs=runs, clock=clock).run_to_end(live_s)
