"""The rows of the metric table beyond loss, gradient norm and speed: each fault, and the neighbours it is told from.

Every case runs at full cadence, logged every 10th step with the same number of values, in few digits, in pieces of any
size and over a restart.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.monitor.detectors.harness import Folded, cut, run
from tests.monitor.detectors.rows_faults import FAULTS
from tests.monitor.detectors.rows_shape import (
    AT,
    Case,
    Make,
    N,
    frame_of,
    late,
    noisy,
    share,
)
from tests.monitor.detectors.rows_silent import SILENT
from trainmon.monitor.detectors.abs_max import AbsMax
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.clip_rate import ClipRate
from trainmon.monitor.detectors.dead_units import DeadUnits
from trainmon.monitor.detectors.grad_dead import GradDead
from trainmon.monitor.detectors.loss_groups import LossGroups
from trainmon.monitor.detectors.residual import ResidualStream
from trainmon.monitor.detectors.rl_health import RlHealth
from trainmon.monitor.detectors.samples import Samples
from trainmon.monitor.detectors.straggler import Straggler
from trainmon.monitor.detectors.throughput import Throughput
from trainmon.monitor.frame import Frame
from trainmon.tails.record import FloatArray


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
