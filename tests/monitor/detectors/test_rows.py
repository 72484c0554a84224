"""The rows of the metric table beyond loss, gradient norm and speed: each fault, and the neighbours it is told from.

Every case runs at full cadence, logged every 10th step with the same number of values, in few digits, in pieces of any
size and over a restart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.monitor.detectors.harness import Folded, cut, run
from trainmon.monitor.detectors.abs_max import AbsMax
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.clip_rate import ClipRate
from trainmon.monitor.detectors.dead_units import DeadUnits
from trainmon.monitor.detectors.devices import Devices
from trainmon.monitor.detectors.eval_tasks import EvalTasks
from trainmon.monitor.detectors.grad_dead import GradDead
from trainmon.monitor.detectors.grad_elements import GradElements
from trainmon.monitor.detectors.jitter import Jitter
from trainmon.monitor.detectors.loss_groups import LossGroups
from trainmon.monitor.detectors.memory import Memory
from trainmon.monitor.detectors.modality import Modality
from trainmon.monitor.detectors.moe_balance import MoeBalance
from trainmon.monitor.detectors.residual import ResidualStream
from trainmon.monitor.detectors.rl_health import RlHealth
from trainmon.monitor.detectors.samples import Samples
from trainmon.monitor.detectors.straggler import Straggler
from trainmon.monitor.detectors.throughput import Throughput
from trainmon.monitor.detectors.update_ratio import UpdateRatio
from trainmon.monitor.detectors.waits import Waits
from trainmon.monitor.finding import Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray

N = 1200
AT = 800
Make = Callable[[FloatArray, np.random.Generator], Mapping[str, FloatArray]]


def key_of(text: str) -> SignalKey:
    name, _, labels = text.partition("{")
    pairs = [part.split("=") for part in labels.rstrip("}").split(",") if part]
    return SignalKey(name, tuple(sorted((label, value) for label, value in pairs)))


def frame_of(make: Make, *, seed: int = 0, cadence: int = 1, digits: int | None = None, n: int = N) -> Frame:
    rng = np.random.default_rng(seed)
    index = np.arange(n, dtype=np.float64)
    columns = {key_of(name): np.array(values, dtype=np.float64) for name, values in make(index, rng).items()}
    if digits is not None:
        columns = {key: np.array([float(f"{x:.{digits}g}") for x in values]) for key, values in columns.items()}
    return Frame(0, "log", cadence * (index + 1), np.full(n, np.nan), np.arange(1, n + 1), columns)


def noisy(rng: np.random.Generator, level: float | FloatArray, spread: float = 0.1, n: int = N) -> FloatArray:
    """A level with log-normal noise."""
    return np.asarray(level * np.exp(rng.normal(0, spread, n)))


def late(index: FloatArray, before: float, after: float, at: int = AT) -> FloatArray:
    """`before` up to the fault, `after` from then on."""
    return np.where(index < at, before, after)


def share(rng: np.random.Generator, level: float | FloatArray, spread: float = 0.02, n: int = N) -> FloatArray:
    return np.clip(level + rng.normal(0, spread, n), 0, 1)


def ramp(index: FloatArray, begin: float, end: float) -> FloatArray:
    """Geometric from `begin` to `end` over the run."""
    return np.asarray(begin * (end / begin) ** (index / N))


def lr(index: FloatArray) -> FloatArray:
    """Warm-up, then cosine down to a thousandth."""
    return np.asarray(
        3e-4 * np.minimum(index / 100 + 0.01, 1.0) * (0.5005 + 0.4995 * np.cos(np.pi * np.clip(index / N, 0, 1)))
    )


@dataclass
class Case:
    """A fault with the episodes (kind, signal) it must open at WARN, and facts."""

    name: str
    detector: type[Detector]
    make: Make
    kinds: tuple[str, ...] = ()
    facts: dict[str, float | str] = field(default_factory=dict)
    first: int = AT + 1
    slack: int = 0
    say: tuple[str, ...] = ()
    severity: Severity = Severity.WARN


def experts(
    index: FloatArray, rng: np.random.Generator, hot: float = 1.0, dead: tuple[int, ...] = ()
) -> dict[str, FloatArray]:
    loads = {}
    for layer in range(3):
        for expert in range(8):
            load = noisy(rng, 1000.0)
            if layer == 1 and expert == 5:
                load = load * late(index, 1.0, hot)
            if layer == 1 and expert in dead:
                load = load * late(index, 1.0, 0.0)
            loads[f"moe.load{{expert={expert},layer={layer}}}"] = load
    return loads


def element(index: FloatArray, rng: np.random.Generator, largest: float, mean: float) -> dict[str, FloatArray]:
    return {
        "grad.abs_max": noisy(rng, 0.5 * late(index, 1.0, largest), 0.3),
        "grad.abs_mean": noisy(rng, 1e-4 * late(index, 1.0, mean)),
        "grad.norm": noisy(rng, 0.4 * late(index, 1.0, mean)),
    }


def beat(index: FloatArray, rng: np.random.Generator, period: int, factor: float) -> FloatArray:
    slow = (index >= AT) & (index % period == 0)
    return noisy(rng, 0.5, 0.01) * np.where(slow, factor, 1.0)


GIB = 2.0**30
FAULTS = [
    Case(
        "one exploding element", GradElements, lambda i, r: element(i, r, 100.0, 1.0), ("element",), say=("mean flat",)
    ),
    Case(
        "one exploding element beside the norm alone",
        GradElements,
        lambda i, r: {k: v for k, v in element(i, r, 100.0, 1.0).items() if k != "grad.abs_mean"},
        ("element",),
    ),
    Case(
        "the gradient vanishes",
        GradDead,
        lambda i, r: {"grad.norm": noisy(r, 0.4) * late(i, 1.0, 0.0)},
        ("dead_gradient",),
    ),
    Case(
        "one part's gradient vanishes",
        GradDead,
        lambda i, r: {
            "grad.norm": noisy(r, 0.4),
            "grad.rank_norm{part=vision}": noisy(r, 0.1) * late(i, 1.0, 0.0),
            "grad.rank_norm{part=text}": noisy(r, 0.4),
        },
        ("dead_gradient",),
        say=("vision",),
    ),
    Case(
        "more zero gradients",
        GradDead,
        lambda i, r: {
            "grad.zero_fraction{part=embed}": share(r, 0.9, 0.01),
            "grad.zero_fraction{part=layer3}": share(r, late(i, 0.05, 0.6)),
        },
        ("zero_gradients",),
        say=("layer3",),
    ),
    Case(
        "dead neurons in one layer",
        DeadUnits,
        lambda i, r: {
            f"tensor.dead_fraction{{layer={n}}}": share(r, late(i, 0.02, 0.5) if n == 2 else 0.02) for n in range(4)
        },
        ("dead_units",),
        say=("layer 2",),
    ),
    Case(
        "neurons that die slowly",
        DeadUnits,
        lambda i, r: {"tensor.dead_fraction{layer=0}": share(r, 0.02 + 0.8 * i / N, 0.005)},
        ("dead_units",),
        first=720,
        slack=40,
    ),
    Case(
        "an update ratio goes to zero",
        UpdateRatio,
        lambda i, r: {
            "optim.lr": lr(i),
            "update.ratio{layer=0}": noisy(r, 3.0 * lr(i)),
            "update.ratio{layer=1}": noisy(r, 3.0 * lr(i)) * late(i, 1.0, 0.0),
        },
        ("update_ratio",),
        say=("layer 1", "nothing"),
    ),
    Case(
        "an update ratio jumps",
        UpdateRatio,
        lambda i, r: {"optim.lr": lr(i), "update.ratio{layer=1}": noisy(r, 3.0 * lr(i)) * late(i, 1.0, 40.0)},
        ("update_ratio",),
    ),
    Case(
        "an update ratio without a learning rate",
        UpdateRatio,
        lambda i, r: {"update.ratio": noisy(r, 1e-3) * late(i, 1.0, 1e-3)},
        ("update_ratio",),
    ),
    Case(
        "AbsMax jumps",
        AbsMax,
        lambda i, r: {"tensor.abs_max{site=output}": noisy(r, 30 * late(i, 1.0, 15.0))},
        ("scale",),
    ),
    Case(
        "RMS falls to nothing",
        AbsMax,
        lambda i, r: {"tensor.rms{layer=3}": noisy(r, 1.0) * late(i, 1.0, 0.0)},
        ("scale",),
    ),
    Case(
        "RMS drifts by a little each time",
        AbsMax,
        lambda i, r: {"tensor.rms{layer=3}": noisy(r, ramp(i, 1.0, 1000.0), 0.05)},
        ("scale_drift",),
        first=910,
        slack=40,
        say=("drifted",),
    ),
    Case("heavy tails", AbsMax, lambda i, r: {"tensor.kurtosis{layer=1}": noisy(r, late(i, 3.5, 80.0))}, ("scale",)),
    Case(
        "a branch that dominates",
        ResidualStream,
        lambda i, r: {"residual.branch_scale{layer=4}": noisy(r, late(i, 0.3, 6.0))},
        ("branch",),
    ),
    Case(
        "a layer that stopped changing the stream",
        ResidualStream,
        lambda i, r: {
            f"residual.block_importance{{layer={n}}}": noisy(r, late(i, 0.2, 0.004) if n == 7 else 0.2) for n in (6, 7)
        },
        ("idle_layer",),
        say=("layer 7",),
    ),
    Case(
        "updates lost to rounding",
        ResidualStream,
        lambda i, r: {"residual.bf16_noop{layer=1}": share(r, late(i, 0.1, 0.6))},
        ("lost_updates",),
    ),
    Case(
        "gates that close",
        ResidualStream,
        lambda i, r: {"residual.gate_saturation{layer=1}": share(r, late(i, 0.2, 0.8))},
        ("closed_gates",),
    ),
    Case(
        "a source runs dry",
        Modality,
        lambda i, r: {
            "source.token_share{source=code}": share(r, late(i, 0.2, 0.0), 0.01),
            "source.token_share{source=web}": share(r, late(i, 0.8, 1.0), 0.01),
        },
        ("mix_gone",),
        say=("code",),
    ),
    Case(
        "media embeddings far too large",
        Modality,
        lambda i, r: {"modality.scale_ratio": noisy(r, late(i, 1.1, 40.0))},
        ("media_scale",),
    ),
    Case(
        "an encoder that stopped learning",
        Modality,
        lambda i, r: {"modality.encoder_grad_share": noisy(r, late(i, 0.2, 1e-4))},
        ("encoder_stopped",),
    ),
    Case(
        "communication takes more of the step",
        Waits,
        lambda i, r: {"sys.step_time": noisy(r, late(i, 1.0, 1.4), 0.02), "sys.comm_wait": noisy(r, late(i, 0.1, 0.5))},
        ("wait",),
        say=("waiting for collectives",),
    ),
    Case(
        "data takes more of the step",
        Waits,
        lambda i, r: {
            "sys.step_time": noisy(r, late(i, 1.0, 1.5), 0.02),
            "sys.data_wait": noisy(r, late(i, 0.01, 0.5)),
        },
        ("wait",),
        say=("waiting for data",),
    ),
    Case(
        "every 8th step is slow",
        Jitter,
        lambda i, r: {"sys.step_time": beat(i, r, 8, 4.0)},
        ("rhythm",),
        say=("slow step every",),
    ),
    Case(
        "step times scatter",
        Jitter,
        lambda i, r: {"sys.step_time": 0.5 * np.exp(r.normal(0, 1, N) * late(i, 0.01, 0.15))},
        ("scatter",),
    ),
    Case(
        "heat",
        Devices,
        lambda i, r: {"device.temperature{device=3}": late(i, 70, 93) + r.normal(0, 1, N)},
        ("heat",),
        say=("3",),
    ),
    Case(
        "a throttled clock",
        Devices,
        lambda i, r: {"device.clock{device=1}": late(i, 1980, 1200) + r.normal(0, 5, N)},
        ("throttled",),
    ),
    Case("new errors", Devices, lambda i, r: {"device.errors{device=1}": late(i, 2, 5)}, ("device_errors",)),
    Case(
        "host memory",
        Devices,
        lambda i, r: {"host.memory_share": share(r, late(i, 0.5, 0.98), 0.002)},
        ("host_memory",),
    ),
    Case(
        "memory creeps",
        Memory,
        lambda i, r: {"sys.peak_memory": (50 + 0.015 * np.maximum(i - AT + 400, 0)) * GIB + r.normal(0, 1e7, N)},
        ("memory_creep",),
        {"gpu_memory_bytes": 80 * GIB, "total_steps": 50_000.0},
        first=401,
        slack=310,
        say=("out of memory in about",),
    ),
    Case(
        "memory creeps on a card known by its name",
        Memory,
        lambda i, r: {"sys.peak_memory": (50 + 0.015 * np.maximum(i - AT + 400, 0)) * GIB + r.normal(0, 1e7, N)},
        ("memory_creep",),
        {"gpu": "NVIDIA A100-SXM4-80GB", "total_steps": 50_000.0},
        first=401,
        slack=310,
    ),
    Case(
        "memory that creeps by a printed digit now and then",
        Memory,
        lambda i, r: {"sys.peak_memory": np.round(50 + 0.005 * np.maximum(i - AT + 400, 0), 1) * GIB},
        ("memory_creep",),
        {"gpu_memory_bytes": 80 * GIB, "total_steps": 50_000.0},
        first=401,
        slack=330,
    ),
    Case(
        "fragmentation",
        Memory,
        lambda i, r: {
            "sys.peak_memory": noisy(r, 40 * GIB, 0.001),
            "sys.fragmentation": noisy(r, late(i, 2, 20) * GIB, 0.02),
        },
        ("fragmentation",),
        {"gpu_memory_bytes": 80 * GIB},
        say=("reserved and unused",),
    ),
    Case(
        "one hot expert",
        MoeBalance,
        lambda i, r: experts(i, r, hot=4.0),
        ("hot_expert",),
        say=("expert 5 of layer 1",),
    ),
    Case(
        "one dead expert", MoeBalance, lambda i, r: experts(i, r, dead=(3,)), ("dead_experts",), say=("layer 1", "(3)")
    ),
    Case(
        "router entropy falls while MaxVio is still flat",
        MoeBalance,
        lambda i, r: {
            "moe.entropy{layer=2}": share(r, late(i, 0.95, 0.75), 0.01),
            "moe.maxvio{layer=2}": noisy(r, 0.3),
        },
        ("entropy",),
        say=("layer 2",),
    ),
    Case("empty output", Samples, lambda i, r: {"sample.empty": share(r, late(i, 0.0, 0.9))}, ("empty_output",)),
    Case("output shrinks", Samples, lambda i, r: {"sample.length": noisy(r, late(i, 200, 2))}, ("empty_output",)),
    Case("output repeats", Samples, lambda i, r: {"sample.repetition": share(r, late(i, 0.1, 0.8))}, ("repetition",)),
    Case("few distinct words", Samples, lambda i, r: {"sample.distinct": share(r, late(i, 0.7, 0.1))}, ("repetition",)),
    Case("gibberish", Samples, lambda i, r: {"sample.gibberish": share(r, late(i, 0.02, 0.8))}, ("gibberish",)),
    Case(
        "a task regresses",
        EvalTasks,
        lambda i, r: {"eval.greedy{task=gsm8k}": share(r, late(i, 0.6, 0.3))},
        ("task_drop",),
    ),
    Case(
        "media gain is lost", EvalTasks, lambda i, r: {"eval.media_gain": share(r, late(i, 0.3, 0.0))}, ("task_drop",)
    ),
    Case(
        "averaged weights get worse",
        EvalTasks,
        lambda i, r: {"eval.averaged_weights": noisy(r, late(i, 2.5, 3.5), 0.01)},
        ("task_drop",),
    ),
]

SILENT = [
    Case("all elements grow", GradElements, lambda i, r: element(i, r, 100.0, 100.0)),
    Case(
        "a heavy-tailed largest element",
        GradElements,
        lambda i, r: {**element(i, r, 1.0, 1.0), "grad.abs_max": noisy(r, 0.5, 0.6)},
    ),
    Case("a gradient that falls far", GradDead, lambda i, r: {"grad.norm": noisy(r, ramp(i, 1.0, 1e-3))}),
    Case("zeros from the start", GradDead, lambda i, r: {"grad.norm": np.zeros(N)}),
    Case("two zeros", GradDead, lambda i, r: {"grad.norm": noisy(r, 0.4) * np.where((i == 700) | (i == 900), 0, 1)}),
    Case("a norm that prints as 0", GradDead, lambda i, r: {"grad.norm": np.round(noisy(r, 0.006, 0.5), 2)}),
    Case(
        "an embedding with few rows in use",
        GradDead,
        lambda i, r: {"grad.zero_fraction{part=embed}": share(r, 0.97, 0.01)},
    ),
    Case(
        "sparsity that grows slowly",
        DeadUnits,
        lambda i, r: {"tensor.zero_fraction{layer=0}": share(r, 0.3 + 0.5 * i / N, 0.005)},
    ),
    Case(
        "updates follow the learning rate",
        UpdateRatio,
        lambda i, r: {"optim.lr": lr(i), "update.ratio": noisy(r, 3.0 * lr(i), 0.3)},
    ),
    Case("scales that grow threefold", AbsMax, lambda i, r: {"tensor.rms{layer=3}": noisy(r, ramp(i, 1.0, 3.0))}),
    Case("Gaussian activations", AbsMax, lambda i, r: {"tensor.kurtosis{layer=1}": np.abs(r.normal(0, 0.5, N))}),
    Case(
        "one outlier", AbsMax, lambda i, r: {"tensor.abs_max{site=output}": noisy(r, 30.0) * np.where(i == AT, 40, 1)}
    ),
    Case("gates half closed", ResidualStream, lambda i, r: {"residual.gate_saturation{layer=1}": share(r, 0.5, 0.05)}),
    Case(
        "a mix that is changed",
        Modality,
        lambda i, r: {"source.token_share{source=code}": share(r, late(i, 0.1, 0.3), 0.01)},
    ),
    Case(
        "waits that grow with the step",
        Waits,
        lambda i, r: {"sys.step_time": noisy(r, late(i, 1.0, 3.0), 0.02), "sys.comm_wait": noisy(r, late(i, 0.1, 0.3))},
    ),
    Case(
        "an evaluation every 10 steps from the start",
        Jitter,
        lambda i, r: {"sys.step_time": noisy(r, 0.5, 0.01) * np.where(i % 10 == 0, 8, 1)},
    ),
    Case(
        "checkpoints every 250 steps",
        Jitter,
        lambda i, r: {"sys.step_time": noisy(r, 0.5, 0.02) * np.where(i % 250 == 0, 30, 1)},
    ),
    Case(
        "slow steps at random",
        Jitter,
        lambda i, r: {"sys.step_time": noisy(r, 0.5, 0.02) * np.where(r.random(N) < 0.1, 2, 1)},
    ),
    Case(
        "step times that are slower but steady",
        Jitter,
        lambda i, r: {"sys.step_time": noisy(r, late(i, 0.5, 2.0), 0.02)},
    ),
    Case(
        "warm cards",
        Devices,
        lambda i, r: {
            "device.temperature{device=3}": 84 + r.normal(0, 2, N),
            "device.clock{device=3}": 1900 + r.normal(0, 50, N),
        },
    ),
    Case("an error count that stands", Devices, lambda i, r: {"device.errors{device=1}": np.full(N, 7.0)}),
    Case(
        "memory that comes and goes",
        Memory,
        lambda i, r: {"sys.peak_memory": (50 + 5 * (np.floor(i / 60) % 2)) * GIB},
        (),
        {"gpu_memory_bytes": 80 * GIB, "total_steps": 50_000.0},
    ),
    Case(
        "memory that jumps once",
        Memory,
        lambda i, r: {"sys.peak_memory": late(i, 50, 60) * GIB},
        (),
        {"gpu_memory_bytes": 80 * GIB, "total_steps": 50_000.0},
    ),
    Case(
        "reserved memory from the start",
        Memory,
        lambda i, r: {"sys.peak_memory": noisy(r, 40 * GIB, 0.001), "sys.fragmentation": noisy(r, 30 * GIB, 0.02)},
        (),
        {"gpu_memory_bytes": 80 * GIB},
    ),
    Case("balanced experts", MoeBalance, experts),
    Case("an expert somewhat above", MoeBalance, lambda i, r: experts(i, r, hot=1.7)),
    Case(
        "noisy samples",
        Samples,
        lambda i, r: {"sample.repetition": share(r, 0.2, 0.08), "sample.length": noisy(r, 100.0, 0.8)},
    ),
    Case("a noisy task", EvalTasks, lambda i, r: {"eval.greedy{task=aime}": share(r, 0.3, 0.08)}),
    Case("a task at chance", EvalTasks, lambda i, r: {"eval.greedy{task=mmlu}": share(r, 0.25, 0.004)}),
]


def told(case: Case, frames: list[Frame]) -> Folded:
    return run(case.detector, frames, case.facts)


def check(case: Case, found: Folded, cadence: int = 1) -> None:
    loud = [episode for episode in found.episodes if episode.severity >= case.severity]
    assert {episode.kind for episode in loud} == set(case.kinds), [e.what for e in loud]
    first = min(episode.first_step for episode in loud)
    assert abs(first - cadence * case.first) <= cadence * (case.slack + 3), first
    for words in case.say:
        assert any(words in episode.what for episode in loud), [e.what for e in loud]
    assert found.result is not None
    assert found.result.next


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name)
def test_a_fault_is_told(case: Case) -> None:
    check(case, told(case, [frame_of(case.make)]))


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name)
def test_a_fault_is_told_when_every_tenth_step_is_logged(case: Case) -> None:
    if case.detector is AbsMax and "drifts" in case.name:
        case = dataclasses.replace(case, first=458)  # the level is the lowest since step 500, the 50th value
    facts = {
        name: 10 * value if name == "total_steps" and not isinstance(value, str) else value
        for name, value in case.facts.items()
    }
    check(
        dataclasses.replace(case, facts=facts),
        told(dataclasses.replace(case, facts=facts), [frame_of(case.make, seed=1, cadence=10)]),
        10,
    )


@pytest.mark.parametrize(
    "case", [c for c in FAULTS if "drift" not in c.name and "creep" not in c.name], ids=lambda case: case.name
)
def test_a_fault_is_told_in_two_digits(case: Case) -> None:
    check(case, told(case, [frame_of(case.make, seed=2, digits=2)]))


@pytest.mark.parametrize("case", FAULTS + SILENT, ids=lambda case: case.name)
def test_findings_do_not_depend_on_the_cut(case: Case) -> None:
    frame = frame_of(case.make, seed=3)
    again = dataclasses.replace(rows(frame, slice(600, 900)), attempt=1)
    whole = told(case, [frame, again]).findings
    rng = np.random.default_rng(5)
    for bounds in (list(range(AT - 30, AT + 220)), sorted(rng.integers(1, N, 9).tolist())):
        pieces = [*cut(frame, bounds), *cut(again, [b % 300 for b in bounds if b % 300])]
        assert [repr(said) for said in told(case, pieces).findings] == [repr(said) for said in whole]


@pytest.mark.parametrize("case", SILENT, ids=lambda case: case.name)
@pytest.mark.parametrize(("seed", "cadence", "digits"), [(0, 1, None), (1, 10, None), (2, 100, 3), (3, 1, 2)])
def test_neighbours_are_silent(case: Case, seed: int, cadence: int, digits: int | None) -> None:
    if digits == 2 and "memory" in case.name:
        digits = 3
    found = told(case, [frame_of(case.make, seed=seed, cadence=cadence, digits=digits)])
    assert [episode.what for episode in found.loud] == []


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name)
def test_holes_change_nothing(case: Case) -> None:
    frame = frame_of(case.make, seed=4)
    holes = np.random.default_rng(9).random(N) < 0.2
    columns = {key: np.where(holes, np.nan, values) for key, values in frame.columns.items()}
    check(dataclasses.replace(case, slack=case.slack + 40), told(case, [dataclasses.replace(frame, columns=columns)]))


def rows(frame: Frame, where: slice) -> Frame:
    return dataclasses.replace(
        frame,
        steps=frame.steps[where],
        times=frame.times[where],
        lines=frame.lines[where],
        columns={key: values[where] for key, values in frame.columns.items()},
    )


# A group that gets worse while the mean stays flat.


def groups(i: FloatArray, r: np.random.Generator) -> dict[str, FloatArray]:
    code = noisy(r, late(i, 1.5, 2.2), 0.01)
    web = noisy(r, late(i, 2.5, 2.5), 0.01)
    return {
        "loss.train": 0.05 * code + 0.95 * web,
        "loss.source{source=code}": code,
        "loss.source{source=web}": web,
        "source.token_share{source=code}": np.full(N, 0.05),
        "source.token_share{source=web}": np.full(N, 0.95),
    }


def test_a_source_that_gets_worse_is_told_beside_mean_and_share() -> None:
    frame = frame_of(groups)
    found = run(LossGroups, [frame])
    assert [str(episode.signal) for episode in found.loud] == ["loss.source{source=code}"]
    assert "(flat)" in found.loud[0].what
    assert "share of the tokens is 5.0%" in found.loud[0].what
    bounds = sorted(np.random.default_rng(1).integers(1, N, 12).tolist())
    assert [repr(f) for f in run(LossGroups, cut(frame, bounds)).findings] == [repr(f) for f in found.findings]


# Policy runs.


def policy(**changed: FloatArray) -> Make:
    def make(i: FloatArray, r: np.random.Generator) -> dict[str, FloatArray]:
        usual = {
            "reward.mean": 0.5 + 0.3 * i / N + r.normal(0, 0.03, N),
            "policy.kl": noisy(r, 0.05),
            "policy.entropy": noisy(r, 1.0, 0.05),
            "policy.length": noisy(r, 500.0, 0.05),
            "policy.zero_variance": share(r, 0.2, 0.05),
            "policy.truncated": share(r, 0.05, 0.02),
        }
        return {**usual, **{name.replace("__", "."): values for name, values in changed.items()}}

    return make


INDEX = np.arange(N, dtype=np.float64)
POLICY = [
    ("groups without variance", policy(policy__zero_variance=late(INDEX, 0.2, 0.95)), "zero_variance"),
    ("groups slowly without variance", policy(policy__zero_variance=np.clip(INDEX / 1000, 0, 1)), "zero_variance"),
    ("responses at the limit", policy(policy__truncated=late(INDEX, 0.05, 0.9)), "truncated"),
    ("length runs away", policy(policy__length=late(INDEX, 500.0, 4000.0)), "policy"),
    ("length to nothing", policy(policy__length=late(INDEX, 500.0, 3.0)), "policy"),
    ("reward collapses", policy(reward__mean=0.5 + 0.3 * INDEX / N - late(INDEX, 0.0, 0.6)), "policy"),
    ("KL blows up", policy(policy__kl=late(INDEX, 0.05, 8.0)), "policy"),
    ("entropy collapses", policy(policy__entropy=late(INDEX, 1.0, 0.02)), "policy"),
]


@pytest.mark.parametrize(("make", "kind"), [c[1:] for c in POLICY], ids=[c[0] for c in POLICY])
def test_policy_faults(make: Make, kind: str) -> None:
    found = run(RlHealth, [frame_of(make)], rl=True)
    assert {episode.kind for episode in found.loud} == {kind}
    assert len(found.loud) == 1
    bounds = sorted(np.random.default_rng(1).integers(1, N, 12).tolist())
    assert [repr(f) for f in run(RlHealth, cut(frame_of(make), bounds)).findings] == [repr(f) for f in found.findings]


def test_a_policy_that_learns_is_silent() -> None:
    for seed in range(4):
        assert run(RlHealth, [frame_of(policy(), seed=seed)], rl=True).loud == []


# What a new level costs: a fault that stays is told once, becomes the level after a stated time, and a second one is
# told again.


@pytest.mark.parametrize(
    ("detector", "name", "levels", "persistence"),
    [
        (DeadUnits, "tensor.dead_fraction", (0.0, 0.4, 0.8), 100),
        (GradDead, "grad.zero_fraction", (0.0, 0.4, 0.8), 50),
        (Samples, "sample.repetition", (0.1, 0.45, 0.8), 3),
        (AbsMax, "tensor.abs_max{site=output}", (1.0, 30.0, 900.0), 3),
        (ResidualStream, "residual.branch_scale", (1.0, 30.0, 900.0), 3),
    ],
)
def test_a_true_new_level_is_accepted_after_ten_times_the_persistence(
    detector: type[Detector], name: str, levels: tuple[float, float, float], persistence: int
) -> None:
    lasting = 12 * persistence
    rng = np.random.default_rng(0)
    values = np.concatenate([np.full(200, levels[0]), np.full(lasting, levels[1]), np.full(lasting, levels[2])])
    noise = 1 + 0.01 * rng.normal(size=len(values))
    frame = frame_of(lambda _i, _r: {name: np.clip(values * noise, 0, None)}, n=len(values))
    opened = [said.step for said in run(detector, [frame]).findings if said.action == "open"]
    assert len(opened) == 2
    assert 201 <= opened[0] <= 201 + persistence + 3
    assert 201 + lasting <= opened[1] <= 201 + lasting + persistence + 3


def test_outliers_do_not_widen_the_level() -> None:
    # One value in five is out, for a long time: the level is still the level, and the fault after it is found.
    rng = np.random.default_rng(1)
    values = 0.1 + 0.01 * rng.normal(size=N)
    values[200:700:5] = 0.95
    values[900:] = 0.6
    found = run(DeadUnits, [frame_of(lambda _i, _r: {"tensor.dead_fraction": values})])
    assert [episode.first_step for episode in found.loud] == [901]


def test_the_rank_that_waits_least_is_the_slow_one() -> None:
    def make(i: FloatArray, r: np.random.Generator) -> dict[str, FloatArray]:
        waits = {f"sys.comm_wait{{rank={n}}}": noisy(r, late(i, 0.05, 0.4), 0.05) for n in range(8)}
        waits["sys.comm_wait{rank=6}"] = noisy(r, 0.05, 0.05)
        return {"sys.step_time": late(i, 0.6, 1.0), **waits}

    found = run(Straggler, [frame_of(make)])
    assert [(str(e.signal), e.first_step) for e in found.loud] == [("sys.straggler{rank=6}", AT + 1)]
    assert "rank 6" in found.loud[0].what
    bounds = sorted(np.random.default_rng(1).integers(1, N, 12).tolist())
    assert [repr(f) for f in run(Straggler, cut(frame_of(make), bounds)).findings] == [repr(f) for f in found.findings]


def test_a_clip_rate_that_is_logged_without_the_norm_is_judged() -> None:
    long = 3000
    rate = np.where(np.arange(long) < 1500, 0.1, 0.6)
    found = run(ClipRate, [frame_of(lambda _i, r: {"grad.clip_rate": rate + 0.02 * r.random(long)}, n=long)])
    assert [(e.kind, e.first_step) for e in found.loud] == [("clip_rate", 1501)]
    steady = run(ClipRate, [frame_of(lambda _i, r: {"grad.clip_rate": 0.6 + 0.02 * r.random(long)}, n=long)])
    assert steady.loud == []


def test_mfu_that_is_lost_is_told() -> None:
    found = run(Throughput, [frame_of(lambda i, r: {"sys.mfu": noisy(r, late(i, 0.42, 0.29), 0.02)})])
    assert [(e.kind, str(e.signal), e.first_step) for e in found.loud] == [("slow", "sys.mfu", AT + 1)]
    assert run(Throughput, [frame_of(lambda i, r: {"sys.mfu": noisy(r, late(i, 0.42, 0.38), 0.02)})]).loud == []
