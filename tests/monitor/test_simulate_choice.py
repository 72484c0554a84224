"""What `trainmon demo` is asked for is what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_cli import run
from trainmon.monitor.simulate.choice import choose_faults, choose_runs
from trainmon.monitor.simulate.faults import DEFAULT_SCRIPT, FAULTS
from trainmon.monitor.simulate.simulation import DEFAULT_RUNS


def test_nothing_asked_is_the_demos_own_story() -> None:
    assert choose_faults((), DEFAULT_RUNS) == DEFAULT_SCRIPT
    assert [run.name for run in choose_runs(DEFAULT_RUNS, None, None, moe=False)] == [run.name for run in DEFAULT_RUNS]


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_every_fault_finds_a_run_that_can_show_it(name: str) -> None:
    (fault,) = choose_faults((name,), DEFAULT_RUNS)
    struck = next(run for run in DEFAULT_RUNS if run.name == fault.run)
    assert name != "expert_collapse" or struck.experts
    assert name != "bad_source" or struck.sources


def test_words_are_read() -> None:
    first, second = choose_faults(("nan:12@200,qwen-1.5b-sft/lr_jump",), DEFAULT_RUNS)
    assert (first.name, first.size, first.at) == ("nan", 12.0, 200)
    assert (second.name, second.run) == ("lr_jump", "qwen-1.5b-sft")


@pytest.mark.parametrize("word", ["nope", "nan:", "nan@x", "other/nan", "nan:-1"])
def test_what_is_not_known_is_said(word: str, tmp_path: Path) -> None:
    made = run("demo", "--faults", word, "--out", "d", cwd=tmp_path)
    assert made.returncode == 2
    assert word in made.stderr
    assert not (tmp_path / "d").exists()


def test_the_fault_that_was_asked_for_is_the_one_that_is_found(tmp_path: Path) -> None:
    assert run("demo", "--faults", "nan", "--runs", "2", "--out", "d", cwd=tmp_path).returncode == 0
    document = json.loads(run("check", "d", "--json", cwd=tmp_path).stdout)
    verdicts = {one["run"]: one["verdict"] for one in document["runs"]}
    assert len(verdicts) == 2
    assert list(verdicts.values()).count("FAIL") == 1


def test_runs_of_a_kind_differ() -> None:
    runs = choose_runs(DEFAULT_RUNS, 7, 16, moe=False)
    assert len({run.name for run in runs}) == 7
    assert {run.ranks for run in runs} == {16}
