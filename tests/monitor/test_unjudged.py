"""A target of which nothing could be judged is told, and counts, whatever stands beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.monitor.counting import calls_of
from trainmon.monitor.finding import Verdict
from trainmon.monitor.judge import is_one_unjudged, judge


@pytest.mark.parametrize("bad", ["", "  ", "nope.log", "no*pe", "slurm:", "ssh://", "a\0b", "empty/"])
def test_a_bad_target_beside_a_good_one(tmp_path: Path, bad: str) -> None:
    (tmp_path / "train.log").write_text("".join(f"step: {step} | loss: 2.5 | lr: 0.1\n" for step in range(1, 41)))
    (tmp_path / "empty").mkdir()
    found = judge(["train.log", bad], cwd=tmp_path)
    assert [run.last_step for run in found.runs if run.target == "train.log"] == [40]
    assert found.named_unjudged
    assert found.problems or any(file.problem for run in found.runs for file in run.files)


@pytest.mark.parametrize(
    ("target", "is_judged"),
    [
        ("runs/a/train.log", True),
        ("runs/../runs/a", True),
        ("runs/a/", True),
        ("runs/*/train.log", True),
        ("runs/[ab]/train.log", True),
        ("run", False),
        ("runs/[c]/train.log", False),
        ("*.csv", False),
    ],
)
def test_what_a_target_names(tmp_path: Path, target: str, is_judged: bool) -> None:
    """A file, a directory above it or a pattern, from a current directory that has brackets in its name too."""
    folder = tmp_path / "[x]"
    (folder / "runs" / "a").mkdir(parents=True)
    log = "".join(f"step: {step} | loss: 2.5 | lr: 0.1\n" for step in range(1, 41))
    (folder / "runs" / "a" / "train.log").write_text(log)
    runs = judge(["runs/a/train.log"], cwd=folder).runs
    assert is_one_unjudged([target], runs, folder) is not is_judged


def test_what_many_targets_cost_is_in_line_with_their_number(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step: {step} | loss: 2.5 | lr: 0.1\n" for step in range(1, 41)))
    [run] = judge(["train.log"], cwd=tmp_path).runs
    costs = []
    for count in (100, 400):
        names = [f"run{number}/train.log" for number in range(count)]
        runs = [
            replace(run, target=f"t{name}", files=(replace(run.files[0], path=str(tmp_path / name)),)) for name in names
        ]
        costs.append(calls_of(lambda names=names, runs=runs: is_one_unjudged(names, runs, tmp_path)))
        assert not is_one_unjudged(names, runs, tmp_path)
    assert costs[1] < 5 * costs[0], costs


def test_a_table_of_other_things_that_is_named_is_no_data_and_says_what_it_holds(tmp_path: Path) -> None:
    told = "step 10: loss 2.5, nan at step 9, CUDA out of memory"
    rows = "".join(f"{i}.log\t{i * 10}\t{i} lines, {told}\n" for i in range(40))
    (tmp_path / "INDEX.tsv").write_text("file\tbytes\twhat it shows\n" + rows)
    [run] = judge(["INDEX.tsv"], cwd=tmp_path).runs
    assert run.verdict is Verdict.NO_DATA
    assert run.verdict_reason == "nothing could be judged: no loss, gradient, reward or evaluation, only bytes"
    assert (run.root_error, run.episodes) == (None, ())
