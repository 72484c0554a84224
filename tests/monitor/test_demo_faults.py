"""Whatever fault the demo is asked for, the check names: which check, what kind, where, and how bad; and nothing else
of weight is said to be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.judge import judge
from trainmon.monitor.simulate.choice import choose_faults
from trainmon.monitor.simulate.simulation import DEFAULT_RUNS, FAULTS, STORY_S, write_finished
from trainmon.monitor.snapshot import RunSnapshot

WARN, FAIL, PASS = Verdict.WARN, Verdict.FAIL, Verdict.PASS
SHORT = {"history_steps": 800, "warmup_steps": 100, "eval_every": 100, "total_steps": 6000}
# What is judged against the fall of the loss needs the length of a real demo: early on the loss falls too fast.
LONG = ("unrecovered_spike", "level_shift", "drift", "bad_source", "plateau", "eval_regression")
SLOW = ("stall",)  # takes long to happen


@dataclass(frozen=True)
class Named:
    """What the report must say. `reason` stands in the run's verdict, `cause` in the incident's likely cause, `others`
    are checks that may speak up beside the first."""

    verdict: Verdict
    check: str
    kind: str
    reason: str = ""
    cause: str = ""
    labels: dict[str, str] | None = None
    others: tuple[str, ...] = ()


SPEED = ("sys.step_time", "sys.throughput")
NUMBERS = ("loss.nonfinite", "grad.norm", "loss.spike", "spike.co", "numerics.abs_max", "eval.heldout", "loss.shift")
EXPECTED = {
    "co_spike": Named(WARN, "spike.co", "co_spike", "loss rose", "one odd batch", others=("loss.spike",)),
    "loss_spike": Named(WARN, "loss.spike", "spike", "loss rose"),
    "grad_spike": Named(PASS, "grad.norm", "spike", "nothing wrong"),
    "unrecovered_spike": Named(
        FAIL, "loss.spike", "spike", "not recovered", "moved together",
        others=("loss.shift", "spike.co", "loss.groups", "grad.norm"),
    ),
    "level_shift": Named(WARN, "loss.shift", "level_shift", "stayed there", others=("loss.groups", "eval.heldout")),
    "drift": Named(WARN, "loss.drift", "drift", "drifted up", others=("loss.shift", "loss.groups")),
    "plateau": Named(WARN, "loss.plateau", "plateau", "has stayed at"),
    "nan": Named(FAIL, "loss.nonfinite", "nonfinite", "NaN", "moved", others=NUMBERS),
    "zero_loss": Named(FAIL, "loss.nonfinite", "zero_loss", "exactly 0.0", "filters NaN", others=NUMBERS),
    "bad_rank": Named(FAIL, "loss.groups", "group_shift", "rank 5", "rank 5", {"rank": "5"}, ("loss.shift",)),
    "bad_source": Named(FAIL, "loss.groups", "group_shift", "source code", labels={"source": "code"}),
    "slow_rank": Named(WARN, "sys.straggler", "straggler", "step time rose", "rank 5", {"rank": "5"}, SPEED),
    "slow_steps": Named(WARN, "sys.step_time", "slow", "step time rose", others=SPEED),
    "data_wait": Named(WARN, "sys.waits", "wait", "step time rose", "data wait", others=SPEED),
    "stall": Named(PASS, "sys.step_time", "slow_step", "nothing wrong"),
    "memory_creep": Named(FAIL, "sys.memory", "memory_high", "memory"),
    "oom_crash": Named(FAIL, "job.state", "oom", "out of memory"),
    "nccl_crash": Named(FAIL, "job.state", "crashed", "collective operation timeout"),
    "restart": Named(PASS, "run.restarts", "restart", "nothing wrong"),
    "lr_jump": Named(WARN, "lr.schedule", "lr_jump", "learning rate jumped"),
    "eval_regression": Named(WARN, "eval.heldout", "held_out", "over-fitting"),
    "expert_collapse": Named(WARN, "moe.balance", "imbalance", "MaxVio rose"),
}  # fmt: skip


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunSnapshot]:
    @cache
    def of(name: str) -> RunSnapshot:
        folder = tmp_path_factory.mktemp(name)
        runs = DEFAULT_RUNS if name in LONG else [replace(run, **SHORT) for run in DEFAULT_RUNS]
        (fault,) = choose_faults((name,), runs)
        struck = next(run for run in runs if run.name == fault.run)
        write_finished(folder, faults=(fault,), runs=(struck,), live_s=STORY_S if name in (*LONG, *SLOW) else 40.0)
        (run,) = judge([str(folder)], cwd=folder, with_scores=False).runs
        return run

    return of


def test_every_fault_is_in_the_table() -> None:
    assert EXPECTED.keys() == FAULTS.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xdist_group(f"demo {name}")) for name in EXPECTED]
)
def test_the_check_names_the_fault(name: str, judged: Callable[[str], RunSnapshot]) -> None:
    run, wanted = judged(name), EXPECTED[name]
    told = [(one.check, one.kind, one.severity.name, one.what) for one in run.episodes]
    assert run.verdict is wanted.verdict, told
    assert wanted.reason in run.verdict_reason, run.verdict_reason
    (loudest, *_) = sorted(
        (one for one in run.episodes if (one.check, one.kind) == (wanted.check, wanted.kind)),
        key=lambda one: one.severity,
        reverse=True,
    )
    if wanted.labels:
        assert any(one.signal.label_dict == wanted.labels for one in run.episodes if one.check == wanted.check), told
    if wanted.cause:
        (incident,) = [each for each in run.incidents if loudest.id in each.episodes]
        assert wanted.cause in (incident.cause or ""), incident
    loud = {one.check for one in run.episodes if one.severity > Severity.INFO}
    assert loud <= {wanted.check, *wanted.others}, told
    assert bool(run.actions) == (wanted.verdict is not PASS)


@pytest.mark.xdist_group("demo plateau")
def test_a_plateau_is_dated_where_the_loss_stopped_falling(judged: Callable[[str], RunSnapshot]) -> None:
    run = judged("plateau")
    (found,) = [one for one in run.episodes if one.kind == "plateau"]
    began = 0.3 * DEFAULT_RUNS[0].history_steps
    assert 0.7 * began < found.first_step < 1.3 * began


@pytest.mark.xdist_group("demo level_shift")
def test_where_all_groups_moved_none_is_blamed(judged: Callable[[str], RunSnapshot]) -> None:
    run = judged("level_shift")
    assert not any("Look at rank" in action for action in run.actions)
    (check,) = [one for one in run.checks if one.id == "loss.groups"]
    assert "no group by itself" in check.why


def test_what_was_asked_for_by_number_is_what_happens(tmp_path: Path) -> None:
    (fault,) = choose_faults(("slow_rank:2@150",), DEFAULT_RUNS)
    short = replace(DEFAULT_RUNS[0], **SHORT)
    write_finished(tmp_path, faults=(fault,), runs=(short,))
    (run,) = judge([str(tmp_path)], cwd=tmp_path, with_scores=False).runs
    (found,) = [one for one in run.episodes if one.check == "sys.straggler"]
    assert found.first_step == pytest.approx(short.history_steps + 150, abs=3)
    assert found.worst_value == pytest.approx(2.0, rel=0.1)
