"""Logs whose names end in a number, and what torchrun's directories tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmon.tails.discover import discover


def log(first: int, last: int) -> bytes:
    return "".join(f"step {step} | loss {4 / step:.3f} | lr 1e-4\n" for step in range(first, last + 1)).encode()


def runs(root: Path, tree: dict[str, bytes]) -> dict[str, list[str]]:
    for name, content in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    found = discover((), root)
    return {run.name: sorted(str(file.path.relative_to(root)) for file in run.files) for run in found.runs}


@pytest.mark.parametrize("stem", ["out", "stdout", "err", "log", "train.log", "job.out"])
def test_numbers_from_0_are_ranks_of_one_run(tmp_path: Path, stem: str) -> None:
    tree = {f"exp/{stem}.{rank}": log(1, 20) for rank in range(4)}
    assert list(runs(tmp_path, tree).values()) == [sorted(tree)]


def test_numbers_behind_the_log_itself_are_its_parts(tmp_path: Path) -> None:
    tree = {"exp/train.log": log(41, 60), "exp/train.log.1": log(21, 40), "exp/train.log.2": log(1, 20)}
    assert list(runs(tmp_path, tree).values()) == [["exp/train.log"]]


def test_parts_whose_log_is_gone_are_one_run(tmp_path: Path) -> None:
    tree = {"exp/log.1": log(21, 40), "exp/log.2": log(1, 20)}
    assert runs(tmp_path, tree) == {"exp": sorted(tree)}


def test_numbers_from_1_that_train_the_same_steps_are_runs_of_their_own(tmp_path: Path) -> None:
    tree = {f"exp/out.{number}": log(1, 20) for number in (1, 2, 3)}
    assert sorted(runs(tmp_path, tree).values()) == [[name] for name in sorted(tree)]


def test_the_directories_of_torchrun_tell_which_start_wrote_a_file(tmp_path: Path) -> None:
    tree = {f"logs/id_x/attempt_{n}/{rank}/stdout.log": log(1, 20) for n in (0, 1) for rank in (0, 1)}
    tree |= {"logs/id_x/attempt_0/1/stderr.log": b"Traceback (most recent call last):\nKeyError: 'a'\n"}
    assert list(runs(tmp_path, tree).values()) == [sorted(tree)]
    (run,) = discover((), tmp_path).runs
    assert {str(file.path.relative_to(tmp_path)): file.attempt for file in run.files} == {
        name: int("attempt_1" in name) for name in tree
    }


@pytest.mark.parametrize("name", ["worker.{}", "local_rank{}", "node-{}", "host{}", "rank.{}", "task_{}"])
def test_directories_of_ranks_are_one_run(tmp_path: Path, name: str) -> None:
    tree = {f"exp/{name.format(rank)}/train.log": log(1, 20) for rank in range(2)}
    assert runs(tmp_path, tree) == {"exp": sorted(tree)}


def test_another_experiment_on_each_card_is_another_run(tmp_path: Path) -> None:
    assert len(runs(tmp_path, {"gpu0/base.log": log(1, 20), "gpu1/wide.log": log(1, 20)})) == 2


def test_what_a_job_said_to_its_standard_error_is_no_run_of_its_own(tmp_path: Path) -> None:
    tree = {"a/err.4": b"Traceback (most recent call last):\n", "a/fail-4.log": log(1, 20)}
    assert list(runs(tmp_path, tree).values()) == [["a/fail-4.log"]]


def test_its_output_and_its_errors_are_one_run(tmp_path: Path) -> None:
    tree = {"a/err.4": b"Traceback (most recent call last):\n", "a/out.4": log(1, 20)}
    assert list(runs(tmp_path, tree).values()) == [["a/err.4", "a/out.4"]]
